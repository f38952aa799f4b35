//! Where a request comes from: the checks of its head, which a page of another site cannot pass.
//!
//! A browser lets any page send requests to this machine. What such a page cannot do is to choose
//! the headers `Host`, `Origin` and `Sec-Fetch-Site`. A name that leads to this machine only now
//! (DNS rebinding) shows in `Host`; a request out of another page shows in the other two.

use crate::observed::Refusal;
use axum::http::{HeaderMap, HeaderName, Method, header};
use std::net::{IpAddr, SocketAddr};

/// The paths that machines read. They have no keys and no names of users.
const FOR_MACHINES: [&str; 3] = ["/metrics", "/health", "/ready"];

/// What every answer says to browsers: names and values.
pub(crate) const HEADERS: [(&str, &str); 7] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    (
        "permissions-policy",
        "camera=(), geolocation=(), microphone=()",
    ),
];

/// Checks the head of a request that came to `own` from `peer`.
///
/// # Errors
///
/// [`Refusal`], which names the value.
pub(crate) fn check(
    (own, peer): (SocketAddr, IpAddr),
    method: &Method,
    path: &str,
    headers: &HeaderMap,
) -> Result<(), Refusal> {
    let for_machines = FOR_MACHINES.contains(&path);
    let is_public = !own.ip().to_canonical().is_loopback();
    if is_public && !for_machines && !peer.to_canonical().is_loopback() {
        return Err(Refusal::Forbidden(format!(
            "{path} is only for this machine, and {peer} is another; others may read /metrics, \
             /health and /ready"
        )));
    }
    if is_public && for_machines {
        return Ok(());
    }
    let host = one(headers, &header::HOST)?.unwrap_or_default();
    if !is_own(host, own.ip()) {
        return Err(Refusal::Forbidden(format!(
            "the header Host is '{}', which is not this machine's; use localhost or {}",
            short(host),
            own.ip()
        )));
    }
    if let Some(origin) = one(headers, &header::ORIGIN)?
        && origin.strip_prefix("http://") != Some(host)
    {
        return Err(Refusal::Forbidden(format!(
            "the header Origin is '{}', which is not this page",
            short(origin)
        )));
    }
    let site = one(headers, &HeaderName::from_static("sec-fetch-site"))?;
    let from_outside = site.is_some_and(|site| !["same-origin", "none"].contains(&site));
    // A link from elsewhere to the page is no harm.
    if from_outside && (path.starts_with("/api/") || method != Method::GET) {
        return Err(Refusal::Forbidden(format!(
            "the request comes from another page (Sec-Fetch-Site: {})",
            short(site.unwrap_or_default())
        )));
    }
    if method == Method::POST {
        let kind = one(headers, &header::CONTENT_TYPE)?.unwrap_or_default();
        let essence = kind.split(';').next().unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case("application/json") {
            return Err(Refusal::Wrong(format!(
                "the header Content-Type is '{}'; it must be application/json",
                short(kind)
            )));
        }
    }
    Ok(())
}

/// The value of a header that may appear once.
fn one<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(Refusal::Wrong(format!("the header {name} is there twice")));
    }
    let text = value.to_str();
    text.map(Some).map_err(|_| {
        let text = String::from_utf8_lossy(value.as_bytes());
        Refusal::Wrong(format!(
            "the header {name} is '{}', which is no text",
            short(&text)
        ))
    })
}

/// Whether a host, with any port, is this machine. A tunnel may have another port.
fn is_own(host: &str, own: IpAddr) -> bool {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((name, port)) => (name, port),
            None => return false,
        },
        None => match host.find(':') {
            Some(at) => host.split_at(at),
            None => (host, ""),
        },
    };
    let is_port = |digits: &str| {
        digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.parse::<u16>().is_ok()
    };
    if !port.is_empty() && !port.strip_prefix(':').is_some_and(is_port) {
        return false;
    }
    if name.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let is_bracketed = host.starts_with('[');
    name.parse::<IpAddr>().is_ok_and(|address| {
        address.is_ipv6() == is_bracketed
            && (address.to_canonical().is_loopback() || address == own && !own.is_unspecified())
    })
}

/// The first letters of a value, for a message.
pub(crate) fn short(text: &str) -> String {
    const MOST: usize = 80;
    let mut shown: String = text.chars().take(MOST).map(plain).collect();
    if text.chars().nth(MOST).is_some() {
        shown.push('…');
    }
    shown
}

fn plain(letter: char) -> char {
    if letter.is_control() { '?' } else { letter }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn checked(path: &str, method: Method, given: &[(&str, &str)]) -> Result<(), Refusal> {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
            headers.append(name, value.parse().expect("a value"));
        }
        check(((PEER, 6381).into(), PEER), &method, path, &headers)
    }

    fn get(given: &[(&str, &str)]) -> Result<(), Refusal> {
        checked("/api/overview", Method::GET, given)
    }

    #[test]
    fn only_this_machine_is_a_host() {
        for host in [
            "localhost:6381",
            "127.0.0.1",
            "LocalHost",
            "[::1]:80",
            "127.0.0.2:1",
        ] {
            assert_eq!(get(&[("host", host)]), Ok(()), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example:6381",
            "127.0.0.1.evil.example",
            "10.0.0.1:6381",
            "localhost:",
            "localhost:x",
            "[::1",
            "::1",
            "localhost:99999",
            "0.0.0.0:6381",
            "localhost@evil.example",
        ] {
            assert!(
                matches!(get(&[("host", host)]), Err(Refusal::Forbidden(_))),
                "{host}"
            );
        }
        assert!(get(&[]).is_err(), "no host");
        let twice = [("host", "localhost"), ("host", "localhost")];
        assert!(matches!(get(&twice), Err(Refusal::Wrong(_))));
    }

    #[test]
    fn only_the_page_itself_is_an_origin() {
        let host = ("host", "localhost:6381");
        assert_eq!(get(&[host, ("origin", "http://localhost:6381")]), Ok(()));
        for origin in [
            "http://localhost:80",
            "http://localhost",
            "https://localhost:6381",
            "null",
            "http://evil.example",
            "http://127.0.0.1:6381",
        ] {
            assert!(get(&[host, ("origin", origin)]).is_err(), "{origin}");
        }
    }

    #[test]
    fn another_page_may_link_to_the_page_and_nothing_else() {
        let given = [("host", "localhost"), ("sec-fetch-site", "cross-site")];
        assert!(get(&given).is_err());
        assert_eq!(checked("/", Method::GET, &given), Ok(()));
        assert!(checked("/", Method::POST, &given).is_err());
        let own = [("host", "localhost"), ("sec-fetch-site", "same-origin")];
        assert_eq!(get(&own), Ok(()));
    }

    #[test]
    fn what_is_sent_must_be_json() {
        let post = |kind| {
            let given = [("host", "localhost"), ("content-type", kind)];
            checked("/api/command", Method::POST, &given)
        };
        assert_eq!(post("application/json"), Ok(()));
        assert_eq!(post("Application/JSON; charset=utf-8"), Ok(()));
        for kind in ["text/plain", "application/x-www-form-urlencoded", ""] {
            assert!(matches!(post(kind), Err(Refusal::Wrong(_))), "{kind}");
        }
    }

    #[test]
    fn other_machines_read_metrics_alone() {
        let own: SocketAddr = ([10, 0, 0, 1], 6381).into();
        let other: IpAddr = [10, 0, 0, 2].into();
        let mut headers = HeaderMap::new();
        headers.insert(
            header::HOST,
            axum::http::HeaderValue::from_static("store.example:6381"),
        );
        let from = |peer, path| check((own, peer), &Method::GET, path, &headers);
        assert_eq!(from(other, "/metrics"), Ok(()));
        assert_eq!(from(other, "/ready"), Ok(()));
        assert!(from(other, "/").is_err());
        assert!(from(other, "/api/clients").is_err());
        assert!(
            from(PEER, "/api/clients").is_err(),
            "the host is not this machine's"
        );
    }
}
