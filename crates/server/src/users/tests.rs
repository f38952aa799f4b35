use super::*;
use std::fs;

fn users() -> Users {
    Users::new(10, 10)
}

fn set(users: &Users, name: &str, words: &str) -> Result<(), SetError> {
    users.set(name.as_bytes(), words.split(' ').map(str::as_bytes))
}

fn line(users: &Users, name: &str) -> String {
    let user = users.get(name.as_bytes()).expect(name);
    String::from_utf8(user.describe()).expect("text")
}

/// The lines that a real Redis 7.0 shows for these words, but for commands by category.
#[test]
fn users_are_described_as_redis_describes_them() {
    let users = users();
    assert_eq!(
        line(&users, "default"),
        "default on nopass ~* &* tables:* mailboxes:* +@all"
    );
    for (words, expected) in [
        ("", "off resetchannels -@all"),
        (
            "on >pw ~foo* +get %R~bar* &ch*",
            "on #30c952fab122c3f9759f02a6d95c3758b246b4fee239957b2d4fee46e26170c4 ~foo* %R~bar* \
             resetchannels &ch* -@all +get",
        ),
        ("reset", "off resetchannels -@all"),
        (
            "+@all -get +client -client|kill (+set ~x*) ( +get %R~y* )",
            "off resetchannels +@all -get +client -client|kill (~x* resetchannels -@all +set) \
             (%R~y* resetchannels -@all +get)",
        ),
        (
            "clearselectors -client|kill +client|kill",
            "off resetchannels +@all -get +client +client|kill",
        ),
        ("-client +get", "off resetchannels +@all -client +get"),
        (
            "nopass resetchannels -@all +SELECT|0 allkeys",
            "off nopass ~* resetchannels -@all +select|0",
        ),
        (
            ">a >b <a tables:t* mailboxes:m alltables",
            "off #3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d ~* \
             resetchannels tables:* mailboxes:m -@all +select|0",
        ),
    ] {
        assert_eq!(set(&users, "b", words), Ok(()), "{words}");
        assert_eq!(line(&users, "b"), format!("b {expected}"), "{words}");
        // The words of a user lead to the same user.
        let words = expected.replace("  ", " ");
        assert_eq!(set(&users, "again", &format!("reset {words}")), Ok(()));
        assert_eq!(
            line(&users, "again"),
            format!("again {expected}"),
            "{words}"
        );
    }
}

#[test]
fn a_wrong_word_changes_nothing_and_is_named() {
    let users = users();
    assert_eq!(set(&users, "b", "on ~a tables:* mailboxes:* &*"), Ok(()));
    let before = line(&users, "b");
    for (word, why) in [
        ("foo", RuleError::Syntax),
        ("+nope", RuleError::Unknown),
        ("+@nope", RuleError::Unknown),
        ("-select|0", RuleError::Unknown),
        ("+client|nope", RuleError::Unknown),
        ("+get|", RuleError::Syntax),
        ("#12", RuleError::Hash),
        ("<12", RuleError::NoSuchPassword),
        ("+client|kill|x", RuleError::FirstArgument),
        ("-client|kill|x", RuleError::Unknown),
        ("+get|a|b", RuleError::Unknown),
        ("%~x", RuleError::Syntax),
        ("%R:[b,(a", RuleError::EmptyRange),
        ("%R:b", RuleError::Range),
        ("tables:x", RuleError::TablesAfterAll),
        ("mailboxes:x", RuleError::MailboxesAfterAll),
        ("&x", RuleError::ChannelsAfterAll),
        ("(+nope)", RuleError::Unknown),
        ("(on)", RuleError::Syntax),
    ] {
        let error = SetError::Rule(word.as_bytes().to_vec(), why);
        assert_eq!(set(&users, "b", &format!("+get {word}")), Err(error));
        assert_eq!(line(&users, "b"), before, "{word}");
    }
    let error = SetError::Unmatched(b"(+get ~x".to_vec());
    assert_eq!(set(&users, "b", "+set (+get ~x"), Err(error));
    assert_eq!(line(&users, "b"), before);
}

#[test]
fn users_and_rules_have_limits() {
    let users = users();
    for number in 0..9 {
        assert_eq!(set(&users, &format!("u{number}"), "on"), Ok(()));
    }
    assert_eq!(set(&users, "more", "on"), Err(SetError::TooManyUsers(10)));
    assert_eq!(set(&users, "u1", "off"), Ok(()));
    let many: Vec<_> = (0..=MOST_RULES)
        .map(|number| format!("~{number}"))
        .collect();
    let last = many.last().expect("some").as_bytes().to_vec();
    let error = SetError::Rule(last, RuleError::TooMany);
    assert_eq!(set(&users, "u2", &many.join(" ")), Err(error));
    let long = format!("~{}", "x".repeat(LONGEST_WORD));
    let error = SetError::Rule(long.clone().into(), RuleError::TooLong);
    assert_eq!(set(&users, "u2", &long), Err(error));
}

#[test]
fn a_connection_follows_its_user() {
    let users = users();
    let mut known = Identity::new(&users);
    assert!(known.may_do_everything(&users));
    assert_eq!(set(&users, "default", ">pw"), Ok(()));
    assert!(known.may_do_everything(&users), "who is in stays in");
    let mut unknown = Identity::new(&users);
    assert!(!unknown.may_do_everything(&users) && unknown.user().is_none());
    assert!(users.authenticate(b"default", b"wrong").is_none());
    assert!(users.authenticate(b"nobody", b"pw").is_none());
    let user = users.authenticate(b"default", b"pw").expect("the password");
    unknown.become_user(user);
    assert!(unknown.may_do_everything(&users));
    assert_eq!(set(&users, "default", "-@all"), Ok(()));
    assert!(!known.may_do_everything(&users) && !unknown.may_do_everything(&users));
    assert_eq!(set(&users, "default", "+@all off"), Ok(()));
    assert!(known.may_do_everything(&users), "who is in stays in");
    assert!(users.authenticate(b"default", b"pw").is_none(), "off");
    assert_eq!(set(&users, "one", "on nopass +@all"), Ok(()));
    let user = users
        .authenticate(b"one", b"anything")
        .expect("any password");
    known.become_user(user);
    assert!(!known.may_do_everything(&users), "no keys");
    assert!(users.remove(b"one") && !users.remove(b"one"));
    assert!(!known.may_do_everything(&users) && known.user().is_none());
}

#[test]
fn a_file_is_taken_whole_or_not_at_all() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("users.acl");
    let text = "# comment\n\nuser one on >pw ~a* %R:[b,(c +get (+set ~x)\r\nuser default on nopass ~* +@all\n";
    fs::write(&path, text).expect("written");
    let mut users = users();
    let done = users.use_files(Some(path.clone()), None);
    done.expect("a right file");
    assert!(users.authenticate(b"one", b"pw").is_some());
    let before: Vec<_> = users.all().iter().map(|user| user.describe()).collect();
    users.save().expect("saved");
    let changed = users.load().expect("read again");
    assert!(changed.is_empty(), "what is written reads the same");
    let saved = fs::read_to_string(&path).expect("read");
    assert_eq!(saved.lines().count(), 2);
    for (text, line, part) in [
        ("user one on\nuser two +nope\n", 2, "Unknown command"),
        ("user one\n\nuser one\n", 3, "Duplicate user 'one' found"),
        ("one on\n", 1, "begins with 'user'"),
        ("user\n", 1, "missing"),
        ("user one (+get\n", 1, "Unmatched parenthesis"),
    ] {
        fs::write(&path, text).expect("written");
        let error = users.load().expect_err(text).to_string();
        let place = format!("{}:{line}: ", path.display());
        assert!(error.starts_with(&place) && error.contains(part), "{error}");
        let after: Vec<_> = users.all().iter().map(|user| user.describe()).collect();
        assert_eq!(before, after, "{text}");
    }
    fs::write(&path, "user two on nopass\n").expect("written");
    let default = line(&users, "default");
    let changed = users.load().expect("a right file");
    assert_eq!(changed, [Arc::from(&b"one"[..])]);
    assert!(users.get(b"one").is_none());
    assert_eq!(line(&users, "default"), default, "he is not in the file");
    fs::remove_file(&path).expect("removed");
    let error = users.load().expect_err("no file").to_string();
    assert!(error.starts_with(&path.display().to_string()), "{error}");
}

/// Also after a file of users without the default user is read again.
#[test]
fn a_password_file_locks_the_default_user() {
    let folder = tempfile::tempdir().expect("a folder");
    let [path, file] = ["password", "users"].map(|name| folder.path().join(name));
    let mut users = users();
    assert!(users.lets_anybody_in() && !users.has_passwords());
    fs::write(&file, "user one on nopass\n").expect("written");
    fs::write(&path, "\nsecret\n").expect("written");
    let done = users.use_files(Some(file), Some(path.clone()));
    assert!(done.is_err() && users.lets_anybody_in() && users.get(b"one").is_none());
    fs::write(&path, "se cret\r\nmore\n").expect("written");
    assert_eq!(
        users.load().expect("a password").len(),
        1,
        "the default user"
    );
    assert!(users.load().expect("a password").is_empty(), "as before");
    assert!(!users.lets_anybody_in() && users.has_passwords() && users.get(b"one").is_some());
    assert!(users.authenticate(b"default", b"se cret").is_some());
    assert!(users.authenticate(b"default", b"more").is_none());
    fs::write(&path, "another\n").expect("written");
    users.load().expect("a password");
    assert!(users.authenticate(b"default", b"se cret").is_none());
    assert!(users.authenticate(b"default", b"another").is_some());
}
