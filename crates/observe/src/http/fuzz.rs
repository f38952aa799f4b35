//! What must hold for any request: functions that a fuzzer calls with any bytes.

use super::guard;
use super::query::Query;
use super::routes::{credentials, words};
use crate::map::unhex;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use std::net::{IpAddr, Ipv4Addr};

/// Reads bytes as the head and the body of a request: lines of headers, an empty line, a body. The
/// first line is an address. Nothing may panic, and a request from elsewhere is refused.
#[doc(hidden)]
pub fn request(bytes: &[u8]) {
    let end = bytes.windows(2).position(|two| two == b"\n\n");
    let (head, body) = match end {
        Some(at) => (&bytes[..at], &bytes[at + 2..]),
        None => (bytes, &[][..]),
    };
    let mut lines = head.split(|byte| *byte == b'\n');
    let address = String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
    let mut headers = HeaderMap::new();
    for line in lines.take(64) {
        let at = line
            .iter()
            .position(|byte| *byte == b':')
            .unwrap_or(line.len());
        let (name, value) = line.split_at(at);
        let name = HeaderName::from_bytes(name);
        let value = HeaderValue::from_bytes(value.strip_prefix(b":").unwrap_or(value).trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    let own = IpAddr::V4(Ipv4Addr::LOCALHOST);
    for method in [Method::GET, Method::POST] {
        let path = address.split('?').next().unwrap_or_default();
        if guard::check(((own, 6381).into(), own), &method, path, &headers).is_ok() {
            let host = headers.get("host").and_then(|host| host.to_str().ok());
            let host = host.unwrap_or_default().to_ascii_lowercase();
            let is_own = ["localhost", "127.", "[::1]", "[::ffff:", "[0:"];
            assert!(is_own.iter().any(|own| host.starts_with(own)), "{host}");
            if let Some(origin) = headers.get("origin") {
                let same = format!("http://{host}");
                let origin = origin.to_str().unwrap_or_default().to_ascii_lowercase();
                assert_eq!(origin, same);
            }
        }
    }
    if let Ok(uri) = address.parse::<Uri>() {
        let known = ["from", "to", "width", "limit", "map", "token"];
        if let Ok(query) = Query::of(&uri, &known) {
            for name in known {
                if let Some(text) = query.text(name) {
                    assert!(uri.query().is_some_and(|all| all.contains(text)));
                    let bytes = unhex(text);
                    assert!(bytes.is_none_or(|bytes| 2 * bytes.len() == text.len()));
                }
            }
        }
    }
    if let Ok(words) = words(body) {
        assert!(!words.is_empty());
    }
    let _ = credentials(body);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_request_is_read_or_refused(
            address in "(/api/map/db0(\\?(from|to|limit)=[0-9a-fx]{0,6}(&map=[a-z])?)?|.{0,20})",
            host in "(localhost|127\\.0\\.0\\.[0-9]|\\[::1\\]|evil\\.example|.{0,12})(:[0-9x]{0,6})?",
            origin in "(|\nOrigin: http://localhost|\nOrigin: .{0,20})",
            body in "(\\{\"args\":\\[(\"[a-z]{0,3}\",?){0,3}\\]\\}|.{0,30})",
        ) {
            super::request(format!("{address}\nHost: {host}{origin}\n\n{body}").as_bytes());
        }
    }
}
