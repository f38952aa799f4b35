//! No search of a table holds its thread.

use super::visitor::visits;

/// Each command that looks at a whole table lets other clients of its thread run in between:
/// while it runs, another connection is answered, and its answer shows that the command is
/// still running. Clients and worker share one thread, so the test does not depend on speed. It
/// fails if a search runs to its end at once: then its reply is there before the other's.
#[test]
fn a_search_of_a_whole_table_does_not_hold_its_thread() {
    const ROWS: usize = 15_000;
    // As many as fit into a line.
    const ROWS_AT_ONCE: usize = 3000;
    visits(async |searching, other| {
        let nothing = "\"[{{'$1','$2'},[{'<','$2','$1'}],['$_']}]\"";
        let all = "\"[{{'$1','$2'},[{is_integer,'$2'}],['true']}]\"";
        let replaced = "\"[{{'$1','$2'},[],[{{'$1','$2'}}]}]\"";
        for kind in ["set", "ordered_set"] {
            searching.send(&format!("ETS.NEW {kind} {kind}")).await?;
            assert_eq!(searching.reply().await?, kind);
            for first in (0..ROWS).step_by(ROWS_AT_ONCE) {
                let rows = (first..first + ROWS_AT_ONCE).map(|key| format!("{{{key},{key}}}"));
                let rows = rows.collect::<Vec<_>>().join(",");
                searching
                    .send(&format!("ETS.INSERT {kind} [{rows}]"))
                    .await?;
                assert_eq!(searching.reply().await?, "true");
            }
            let count = ROWS.to_string();
            let empty = "'$end_of_table'";
            for (command, arguments, expected) in [
                ("select", nothing, Some("[]")),
                ("select_reverse", nothing, Some("[]")),
                ("select", &format!("{nothing} 5"), Some(empty)),
                ("match", "\"{'$1',x}\"", Some("[]")),
                ("match_object", "\"{'$1',x}\" 2", Some(empty)),
                ("select_count", all, Some(&count)),
                ("select_replace", replaced, Some(&count)),
                ("tab2list", "", None),
                ("match_delete", "\"{'_',x}\"", Some("true")),
                ("select_delete", all, Some(&count)),
            ] {
                searching
                    .send(&format!("ETS.{command} {kind} {arguments}"))
                    .await?;
                let runs = format!("cmd=ets.{command} ");
                loop {
                    other.send("CLIENT LIST").await?;
                    let list = other.reply().await?;
                    if list.contains(&runs) {
                        break;
                    }
                }
                let was_answered = searching.has_reply();
                let reply = searching.reply().await?;
                assert!(
                    !was_answered,
                    "{command} of a {kind} held its thread until its reply: {reply}"
                );
                match expected {
                    Some(expected) => assert_eq!(reply, expected, "{command}"),
                    None => assert_eq!(reply.matches('{').count(), ROWS),
                }
                // The next table of this name is another table.
                searching.send("ETS.WHEREIS t").await?;
                assert_eq!(searching.reply().await?, "undefined");
            }
        }
        Ok(())
    });
}
