//! Requests and the headers of replies.

/// Header fields of a request that are looked at.
const FIELDS: usize = 64;

/// A request.
pub(crate) struct Parsed {
    /// Bytes of its header.
    pub(crate) bytes: usize,
    /// The path, without the query.
    pub(crate) path: Option<String>,
    /// Only the header is wanted.
    pub(crate) head: bool,
    /// The connection goes on after the reply.
    pub(crate) persistent: bool,
    /// Status of a request that is refused.
    pub(crate) refusal: Option<&'static str>,
}

/// What the received bytes are.
pub(crate) enum Request {
    /// A request, perhaps with more behind it.
    Whole(Parsed),
    /// The beginning of one.
    Partial,
    /// No HTTP.
    Bad,
}

/// What stands for a request that cannot be read.
pub(crate) fn bad(refusal: &'static str) -> Parsed {
    Parsed {
        bytes: 0,
        path: None,
        head: false,
        persistent: false,
        refusal: Some(refusal),
    }
}

/// Reads the first request.
pub(crate) fn parse(bytes: &[u8]) -> Request {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    let length = match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Request::Partial,
        Err(_) => return Request::Bad,
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
    Request::Whole(Parsed {
        bytes: length,
        path: path.map(str::to_owned),
        head: method == "HEAD",
        persistent: persistent && !body && refusal.is_none(),
        refusal,
    })
}

/// A reply's header.
pub(crate) fn header(status: &str, length: usize, persistent: bool) -> String {
    let connection = if persistent { "keep-alive" } else { "close" };
    format!(
        "HTTP/1.1 {status}\r\nServer: userver\r\nContent-Length: {length}\r\n\
         Connection: {connection}\r\n\r\n"
    )
}
