//! Requests: what is read of one.

/// Header fields of a request that are looked at.
const FIELDS: usize = 64;

/// A request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// Bytes of its header.
    pub bytes: usize,
    /// The path, without the query.
    pub path: Option<String>,
    /// Only the header is wanted.
    pub head: bool,
    /// The connection goes on after the reply.
    pub persistent: bool,
    /// Status of a request that is refused.
    pub refusal: Option<&'static str>,
    /// `Range`.
    pub range: Option<String>,
    /// `If-Range`.
    pub if_range: Option<String>,
    /// `If-None-Match`.
    pub if_none_match: Option<String>,
    /// `If-Modified-Since`.
    pub if_modified_since: Option<String>,
}

/// What the received bytes are.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A request, perhaps with more behind it.
    Whole(Box<Request>),
    /// The beginning of one.
    Partial,
    /// No HTTP.
    Bad,
}

/// What stands for a request that cannot be read.
pub(crate) fn bad(refusal: &'static str) -> Request {
    Request {
        refusal: Some(refusal),
        ..Request::default()
    }
}

/// Reads the first request.
#[must_use]
pub fn parse(bytes: &[u8]) -> Parsed {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    let length = match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Parsed::Partial,
        Err(_) => return Parsed::Bad,
    };
    let field = |name: &str| {
        let found = request
            .headers
            .iter()
            .find(|field| field.name.eq_ignore_ascii_case(name));
        found.and_then(|field| std::str::from_utf8(field.value).ok())
    };
    let says = |word: &str| {
        let mut words = field("connection").unwrap_or("").split(',');
        words.any(|one| one.trim().eq_ignore_ascii_case(word))
    };
    let newer = request.version == Some(1);
    let persistent = if newer {
        !says("close")
    } else {
        says("keep-alive")
    };
    // A body would be taken for the next request: the connection ends instead.
    let body = field("transfer-encoding").is_some()
        || field("content-length").is_some_and(|length| length.trim() != "0");
    let method = request.method.unwrap_or("");
    let refusal = match method {
        _ if newer && field("host").is_none() => Some("400 Bad Request"),
        "GET" | "HEAD" => None,
        _ => Some("501 Not Implemented"),
    };
    let path = request.path.and_then(|path| path.split('?').next());
    let own = |name: &str| field(name).map(|value| value.trim().to_owned());
    Parsed::Whole(Box::new(Request {
        bytes: length,
        path: path.map(str::to_owned),
        head: method == "HEAD",
        persistent: persistent && !body && refusal.is_none(),
        refusal,
        range: own("range").filter(|_| method == "GET"),
        if_range: own("if-range"),
        if_none_match: own("if-none-match"),
        if_modified_since: own("if-modified-since"),
    }))
}
