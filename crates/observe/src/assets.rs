//! The files of the page, which are a part of the program.

/// A file of the page.
pub(crate) struct Asset {
    pub(crate) name: &'static str,
    pub(crate) media_type: &'static str,
    pub(crate) bytes: &'static [u8],
}

macro_rules! asset {
    ($name:literal, $media_type:literal) => {
        Asset {
            name: $name,
            media_type: $media_type,
            bytes: include_bytes!(concat!("../page/dist/", $name)),
        }
    };
}

/// The page itself.
pub(crate) const INDEX: &str = "index.html";

/// All files. `page/dist` has these and no others; a test looks.
pub(crate) static ASSETS: &[Asset] = &[
    asset!("index.html", "text/html; charset=utf-8"),
    asset!("app.js", "text/javascript; charset=utf-8"),
    asset!("style.css", "text/css; charset=utf-8"),
    asset!("uplot.js", "text/javascript; charset=utf-8"),
    asset!("uplot.css", "text/css; charset=utf-8"),
    asset!("icon.svg", "image/svg+xml"),
];

/// The file with a name.
pub(crate) fn find(name: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_program_has_every_file_of_the_page() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/page/dist");
        let files = std::fs::read_dir(directory).expect("the page is there");
        let files: BTreeSet<String> = files
            .map(|file| {
                file.expect("a file")
                    .file_name()
                    .into_string()
                    .expect("text")
            })
            .collect();
        let known: BTreeSet<String> = ASSETS.iter().map(|asset| asset.name.to_owned()).collect();
        assert_eq!(files, known);
        assert!(find(INDEX).is_some() && find("../Cargo.toml").is_none());
    }
}
