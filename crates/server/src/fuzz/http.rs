//! Requests to the page: their heads, their parameters and their bodies.

/// Reads any bytes as a request to the page; what must hold is where the page is.
pub fn http(bytes: &[u8]) {
    tremula_observe::fuzz::request(bytes);
}
