//! What must hold for any input from outside: a function for each kind of input, which panics if
//! something does not hold.
//!
//! Coverage-guided programs call these functions with the inputs that they make (`fuzz/` in the
//! repository, `cargo xtask test --only fuzz`). An ordinary test calls them with the inputs that
//! are kept.

mod effects;
mod source;
mod specs;
mod written;

pub use effects::effects;
pub use specs::specs;
pub use written::{etf, terms};

#[cfg(test)]
mod tests {
    use std::path::Path;

    fn replay(target: &str, check: fn(&[u8])) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
        let mut count = 0;
        for entry in std::fs::read_dir(folder.join(target)).unwrap() {
            let path = entry.unwrap().path();
            println!("{}", path.display());
            check(&std::fs::read(&path).unwrap());
            count += 1;
        }
        assert!(count > 0, "there are no inputs for {target}");
    }

    #[test]
    fn what_is_kept_of_terms_holds() {
        replay("terms", super::terms);
    }

    #[test]
    fn what_is_kept_of_etf_holds() {
        replay("etf", super::etf);
    }

    #[test]
    fn what_is_kept_of_effects_holds() {
        replay("effects", super::effects);
    }

    #[test]
    fn what_is_kept_of_specs_holds() {
        replay("specs", super::specs);
    }
}
