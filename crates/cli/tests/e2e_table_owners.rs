//! The owners of tables over the server: connections, heirs, mailboxes, and tables from files.

mod support;

use support::Server;
use support::ets::{ask, await_answer, check};

#[test]
fn a_public_table_outlives_its_connection_and_others_do_not() {
    let server = Server::tremula(&[]);
    let (mut owner, mut other) = (server.connect(), server.connect());
    ask(&mut owner, "ETS.NEW  shared");
    ask(&mut owner, "ETS.NEW  guarded  protected");
    ask(&mut owner, "ETS.NEW  secret  private");
    for table in ["shared", "guarded", "secret"] {
        ask(&mut owner, &format!("ETS.INSERT  {table}  {{1, x}}"));
    }
    check(
        &mut other,
        &[
            ("ETS.LOOKUP  guarded  1", "[{1,x}]"),
            (
                "ETS.INSERT  guarded  {2}",
                "-BADARG insert, argument 1: the table is protected, and the caller is not its owner",
            ),
            (
                "ETS.LOOKUP  secret  1",
                "-BADARG lookup, argument 1: the table is private, and the caller is not its owner",
            ),
            ("ETS.INSERT  shared  {2, y}", "true"),
        ],
    );
    assert_eq!(
        ask(&mut owner, "ETS.SETOPTS  secret  {protection, protected}"),
        "true"
    );
    assert_eq!(ask(&mut other, "ETS.LOOKUP  secret  1"), "[{1,x}]");
    drop(owner);
    await_answer(&mut other, "ETS.ALL", "[shared]");
    assert_eq!(ask(&mut other, "ETS.LOOKUP  shared  2"), "[{2,y}]");
}

#[test]
fn an_heir_is_told_through_its_mailbox() {
    let server = Server::tremula(&[]);
    let (mut owner, mut heir) = (server.connect(), server.connect());
    ask(&mut heir, "MAILBOX.NEW  heirs  CAPACITY  1");
    ask(
        &mut owner,
        "ETS.NEW  one  private  {heir, heirs, {left, 1}}",
    );
    ask(&mut owner, "ETS.NEW  two  {heir, <<\"heirs\">>, x}");
    ask(&mut owner, "ETS.NEW  three  private");
    ask(&mut owner, "ETS.SETOPTS  three  [{heir, \"heirs\", y}]");
    ask(&mut owner, "ETS.INSERT  one  {1, kept}");
    drop(owner);
    let mut told = Vec::new();
    for _ in 0..3 {
        // The mailbox has room for one message; the others wait.
        let message = ask(&mut heir, "MAILBOX.RECV  heirs  BLOCK  0");
        let (before, after) = message.split_once("#Pid<").expect("who had it");
        let (_, after) = after.split_once('>').expect("who had it");
        told.push(format!("{before}{after}"));
    }
    told.sort();
    assert_eq!(
        told,
        [
            "{'ETS-TRANSFER',one,,{left,1}}",
            "{'ETS-TRANSFER',three,,y}",
            "{'ETS-TRANSFER',two,,x}"
        ]
    );
    check(
        &mut heir,
        &[
            ("ETS.LOOKUP  one  1", "[{1,kept}]"),
            ("ETS.INSERT  one  {2}", "true"),
            // The mailbox owns them now, and they end with it.
            ("ETS.ALL", "[one,two,three]"),
            ("MAILBOX.DROP  heirs", ":0"),
            ("ETS.ALL", "[]"),
        ],
    );
}

#[test]
fn a_table_is_given_away_to_a_mailbox() {
    let server = Server::tremula(&[]);
    let (mut owner, mut other) = (server.connect(), server.connect());
    ask(&mut owner, "MAILBOX.NEW  q");
    ask(&mut owner, "ETS.NEW  t  private");
    ask(&mut owner, "ETS.NEW  shared");
    let refused = ask(&mut other, "ETS.GIVE_AWAY  t  q  x");
    assert!(
        refused.starts_with("-BADARG give_away, argument 1: "),
        "{refused}"
    );
    // The server owns that table.
    let refused = ask(&mut owner, "ETS.GIVE_AWAY  shared  q  x");
    assert!(
        refused.starts_with("-BADARG give_away, argument 1: "),
        "{refused}"
    );
    assert_eq!(ask(&mut owner, "ETS.GIVE_AWAY  t  q  {for, you}"), "true");
    let message = ask(&mut other, "MAILBOX.RECV  q");
    assert!(message.starts_with("{'ETS-TRANSFER',t,#Pid<"), "{message}");
    assert!(message.ends_with(",{for,you}}"), "{message}");
    drop(owner);
    assert_eq!(ask(&mut other, "ETS.INSERT  t  {1}"), "true");
}

#[test]
fn files_are_in_one_directory_only() {
    let directory = std::env::temp_dir().join(format!("tremula-tables-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let server = Server::tremula(&["--table-directory", directory.to_str().expect("UTF-8")]);
    let mut client = server.connect();
    check(
        &mut client,
        &[
            ("ETS.NEW  t  ordered_set", "t"),
            ("ETS.INSERT  t  [{1, x}, {2, y}]", "true"),
            ("ETS.TAB2FILE  t  \"t.tab\"", "ok"),
            ("ETS.DELETE  t", "true"),
            ("ETS.FILE2TAB  <<\"t.tab\">>", "{ok,t}"),
            ("ETS.TAB2LIST  t", "[{1,x},{2,y}]"),
            ("ETS.INSERT  t  {3}", "true"),
        ],
    );
    let info = ask(&mut client, "ETS.TABFILE_INFO  't.tab'");
    assert!(
        info.starts_with("{ok,[") && info.contains("{size,2}"),
        "{info}"
    );
    let again = ask(&mut client, "ETS.FILE2TAB  \"t.tab\"");
    assert_eq!(again, "{error,cannot_create_table}");
    check(
        &mut client,
        &[
            ("ETS.TAB2FILE  nobody  \"n.tab\"", "{error,badtab}"),
            ("ETS.RENAME  t  u", "u"),
        ],
    );
    std::fs::write(directory.join("damaged"), b"no table").expect("written");
    for command in ["ETS.FILE2TAB", "ETS.TABFILE_INFO"] {
        let damaged = ask(&mut client, &format!("{command}  damaged"));
        let refused = "{error,{read_error,<<\"byte 0: it is no file of a table\">>}}";
        assert_eq!(damaged, refused, "{command}");
        let none = ask(&mut client, &format!("{command}  none"));
        assert!(none.starts_with("{error,{read_error,<<\""), "{none}");
    }
    for name in [
        "\"../t.tab\"",
        "\"/etc/passwd\"",
        "\"..\"",
        "\"a/b\"",
        "<<\"a\\0b\">>",
        "7",
    ] {
        for command in ["ETS.TAB2FILE  t", "ETS.FILE2TAB", "ETS.TABFILE_INFO"] {
            let error = ask(&mut client, &format!("{command}  {name}"));
            assert!(
                error.starts_with("-BADARG ") && error.contains("not the name of a file"),
                "{error}"
            );
        }
    }
    std::fs::remove_dir_all(&directory).expect("removed");
}

/// Fails if the file of a private table makes its rows public, or the table another connection's.
#[test]
fn a_table_comes_back_from_its_file_for_those_who_had_it() {
    let directory = std::env::temp_dir().join(format!("tremula-again-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let server = Server::tremula(&["--table-directory", directory.to_str().expect("UTF-8")]);
    let (mut owner, mut other) = (server.connect(), server.connect());
    for access in ["public", "protected", "private"] {
        check(
            &mut owner,
            &[
                (&format!("ETS.NEW  {access}  {access}"), access),
                (&format!("ETS.INSERT  {access}  {{1, x}}"), "true"),
                (&format!("ETS.TAB2FILE  {access}  {access}"), "ok"),
                (&format!("ETS.DELETE  {access}"), "true"),
                (
                    &format!("ETS.FILE2TAB  {access}"),
                    &format!("{{ok,{access}}}"),
                ),
                (&format!("ETS.INFO  {access}  protection"), access),
                (&format!("ETS.INSERT  {access}  {{2, y}}"), "true"),
                (&format!("ETS.LOOKUP  {access}  1"), "[{1,x}]"),
            ],
        );
    }
    check(
        &mut other,
        &[
            ("ETS.LOOKUP  public  1", "[{1,x}]"),
            ("ETS.INSERT  public  {3}", "true"),
            ("ETS.LOOKUP  protected  1", "[{1,x}]"),
            (
                "ETS.INSERT  protected  {3}",
                "-BADARG insert, argument 1: the table is protected, and the caller is not its owner",
            ),
            (
                "ETS.LOOKUP  private  1",
                "-BADARG lookup, argument 1: the table is private, and the caller is not its owner",
            ),
            ("ETS.TAB2FILE  private  stolen", "{error,badtab}"),
        ],
    );
    drop(owner);
    await_answer(&mut other, "ETS.ALL", "[public]");
    std::fs::remove_dir_all(&directory).expect("removed");
}
