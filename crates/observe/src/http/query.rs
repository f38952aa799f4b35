//! The parameters of an address.

use super::guard::short;
use crate::map::unhex;
use crate::observed::Refusal;
use axum::http::Uri;
use std::collections::BTreeMap;

/// The parameters behind the question mark of an address.
pub(super) struct Query(BTreeMap<String, String>);

impl Query {
    /// Reads the parameters, which have these names and come once.
    pub(super) fn of(uri: &Uri, known: &[&str]) -> Result<Self, Refusal> {
        let mut values = BTreeMap::new();
        let pairs = uri.query().unwrap_or_default().split('&');
        for pair in pairs.filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if !known.contains(&name) {
                let known = known.join(", ");
                let name = short(name);
                return Err(Refusal::Wrong(format!(
                    "there is no parameter '{name}'; there are: {known}"
                )));
            }
            if values.insert(name.to_owned(), value.to_owned()).is_some() {
                return Err(Refusal::Wrong(format!(
                    "the parameter '{name}' is there twice"
                )));
            }
        }
        Ok(Self(values))
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(super) fn number(&self, name: &str, usual: u64) -> Result<u64, Refusal> {
        let Some(text) = self.text(name) else {
            return Ok(usual);
        };
        text.parse().map_err(|_| {
            Refusal::Wrong(format!(
                "{name} is '{}', which is no whole number",
                short(text)
            ))
        })
    }

    pub(super) fn key(&self, name: &str) -> Result<Option<Vec<u8>>, Refusal> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        unhex(text).map(Some).ok_or_else(|| {
            let text = short(text);
            Refusal::Wrong(format!(
                "{name} is '{text}', which is no key in hexadecimal digits"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(address: &str) -> Result<Query, Refusal> {
        let uri: Uri = address.parse().expect("an address");
        Query::of(&uri, &["from", "limit"])
    }

    #[test]
    fn parameters_are_known_and_come_once() {
        let query = read("/api?from=6b31&limit=7").unwrap_or(Query(BTreeMap::new()));
        assert_eq!(query.key("from"), Ok(Some(b"k1".to_vec())));
        assert_eq!(
            (query.number("limit", 1), query.number("to", 3)),
            (Ok(7), Ok(3))
        );
        let refused = |address| matches!(read(address), Err(Refusal::Wrong(_)));
        assert!(refused("/api?to=1") && refused("/api?from=1&from=1"));
        let wrong = read("/api?from=6&limit=-1").unwrap_or(Query(BTreeMap::new()));
        assert!(wrong.key("from").is_err() && wrong.number("limit", 1).is_err());
        assert!(read("/api").is_ok_and(|query| query.text("from").is_none()));
    }
}
