//! What must hold for any input from outside: a function for each kind of input, which panics if
//! something does not hold.
//!
//! Coverage-guided programs call these functions with the inputs that they make (`fuzz/` in the
//! repository, `cargo xtask test --only fuzz`). An ordinary test calls them with the inputs that
//! are kept.

mod cut;
mod flags;
mod globs;
mod http;
mod load;
mod rdb;
mod replies;
mod requests;
mod session;
mod tls;
mod token;

pub use flags::flags;
pub use globs::globs;
pub use http::http;
pub use load::load;
pub use rdb::rdb;
pub use replies::replies;
pub use requests::requests;
pub use session::session;
pub use tls::tls;

#[cfg(test)]
mod tests {
    use std::path::Path;

    fn replay(target: &str, check: fn(&[u8])) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
        let mut count = 0;
        for entry in std::fs::read_dir(folder.join(target)).expect("a corpus") {
            let path = entry.expect("an entry").path();
            println!("{}", path.display());
            check(&std::fs::read(&path).expect("an input"));
            count += 1;
        }
        assert!(count > 0, "there are no inputs for {target}");
    }

    macro_rules! replayed {
        ($($target:ident),*) => {
            $(#[test]
            fn $target() {
                replay(stringify!($target), super::$target);
            })*
        };
    }

    replayed!(
        flags, globs, http, load, rdb, replies, requests, session, tls
    );
}
