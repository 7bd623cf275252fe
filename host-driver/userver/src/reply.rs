//! Replies: what a request gets of a file, by ranges and conditions (RFC 9110, sections 13 and 14).

use std::fmt::Write;
use std::time::{Duration, SystemTime};

use crate::request::Request;

/// What is known of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    /// Bytes.
    pub length: u64,
    /// When it was changed last, in nanoseconds since 1970.
    pub modified: u64,
}

impl Meta {
    fn time(&self) -> SystemTime {
        // Dates of HTTP have no parts of a second.
        SystemTime::UNIX_EPOCH + Duration::from_secs(self.modified / 1_000_000_000)
    }

    /// Another file of the same path has another one.
    fn tag(&self) -> String {
        format!("\"{:x}-{:x}\"", self.modified, self.length)
    }
}

/// A reply: its header, and the part of the file behind it.
#[derive(Debug, PartialEq, Eq)]
pub struct Reply {
    /// The header, with the empty line.
    pub header: String,
    /// First byte and bytes of the file that follow.
    pub part: (u64, u64),
}

/// What is to be sent.
pub enum Content {
    /// Nothing, for a reason.
    Nothing(&'static str),
    /// A file.
    File(Meta),
    /// A page that is made anew each time.
    Page(u64),
}

/// The part of a file that a request wants.
enum Wanted {
    /// All of it.
    Whole,
    /// First byte and bytes.
    Part(u64, u64),
    /// Bytes that it has not.
    Beyond,
}

/// Replies to a request.
#[must_use]
pub fn reply(request: &Request, content: &Content) -> Reply {
    let connection = if request.persistent {
        "keep-alive"
    } else {
        "close"
    };
    let (status, length, fields, mut part) = match content {
        Content::Nothing(status) => (*status, Some(0), String::new(), (0, 0)),
        Content::Page(length) => {
            let fields = "Cache-Control: no-store\r\n".to_owned();
            ("200 OK", Some(*length), fields, (0, *length))
        }
        Content::File(meta) => of_file(request, meta),
    };
    let mut header = format!("HTTP/1.1 {status}\r\nServer: userver\r\n{fields}");
    // Writing to a string cannot fail.
    if let Some(length) = length {
        let _ = write!(header, "Content-Length: {length}\r\n");
    }
    let _ = write!(header, "Connection: {connection}\r\n\r\n");
    if request.head {
        part = (0, 0);
    }
    Reply { header, part }
}

fn of_file(request: &Request, meta: &Meta) -> (&'static str, Option<u64>, String, (u64, u64)) {
    let tag = meta.tag();
    let date = httpdate::fmt_http_date(meta.time());
    let mut fields = format!("ETag: {tag}\r\nLast-Modified: {date}\r\nAccept-Ranges: bytes\r\n");
    if is_known(request, meta, &tag) {
        return ("304 Not Modified", None, fields, (0, 0));
    }
    match wanted(request, meta, &tag) {
        Wanted::Whole => {
            let part = (0, meta.length);
            ("200 OK", Some(meta.length), fields, part)
        }
        Wanted::Part(first, bytes) => {
            let last = first + bytes - 1;
            let _ = write!(
                fields,
                "Content-Range: bytes {first}-{last}/{}\r\n",
                meta.length
            );
            ("206 Partial Content", Some(bytes), fields, (first, bytes))
        }
        Wanted::Beyond => {
            let _ = write!(fields, "Content-Range: bytes */{}\r\n", meta.length);
            ("416 Range Not Satisfiable", Some(0), fields, (0, 0))
        }
    }
}

/// Whether the client has this file already.
fn is_known(request: &Request, meta: &Meta, tag: &str) -> bool {
    if let Some(known) = &request.if_none_match {
        let mut tags = known.split(',').map(str::trim);
        return tags.any(|one| one == "*" || one.strip_prefix("W/").unwrap_or(one) == tag);
    }
    let since = request.if_modified_since.as_deref();
    let since = since.and_then(|date| httpdate::parse_http_date(date).ok());
    since.is_some_and(|since| meta.time() <= since)
}

/// One range is taken; several, and nonsense, are none, as the RFC allows.
fn wanted(request: &Request, meta: &Meta, tag: &str) -> Wanted {
    let Some(range) = &request.range else {
        return Wanted::Whole;
    };
    if let Some(condition) = &request.if_range {
        let date = || httpdate::parse_http_date(condition).ok();
        if condition != tag && date() != Some(meta.time()) {
            return Wanted::Whole;
        }
    }
    let Some((first, last)) = range
        .strip_prefix("bytes=")
        .and_then(|range| range.split_once('-'))
    else {
        return Wanted::Whole;
    };
    let number = |text: &str| match text.trim() {
        "" => Some(None),
        text if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            // More than a number holds is beyond every file.
            Some(Some(text.parse().unwrap_or(u64::MAX)))
        }
        _ => None,
    };
    let (Some(first), Some(last)) = (number(first), number(last)) else {
        return Wanted::Whole;
    };
    match (first, last) {
        (None, None) => Wanted::Whole,
        (Some(first), Some(last)) if last < first => Wanted::Whole,
        (None, Some(0)) => Wanted::Beyond,
        (None, Some(bytes)) if meta.length > 0 => {
            let bytes = bytes.min(meta.length);
            Wanted::Part(meta.length - bytes, bytes)
        }
        (Some(first), last) if first < meta.length => {
            let end = last.map_or(meta.length, |last| last.saturating_add(1).min(meta.length));
            Wanted::Part(first, end - first)
        }
        _ => Wanted::Beyond,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const META: Meta = Meta {
        length: 1000,
        modified: 784_111_777_000_000_005,
    };
    const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

    fn of(change: impl FnOnce(&mut Request)) -> (String, (u64, u64)) {
        let mut request = Request::default();
        change(&mut request);
        let reply = reply(&request, &Content::File(META));
        let status = reply.header.lines().next().unwrap_or("");
        (status.replace("HTTP/1.1 ", ""), reply.part)
    }

    #[test]
    fn ranges_are_parts_of_the_file() {
        let cases = [
            ("bytes=0-0", "206 Partial Content", (0, 1)),
            ("bytes=10-19", "206 Partial Content", (10, 10)),
            ("bytes=990-", "206 Partial Content", (990, 10)),
            ("bytes=-7", "206 Partial Content", (993, 7)),
            ("bytes=-7000", "206 Partial Content", (0, 1000)),
            (
                "bytes=900-99999999999999999999",
                "206 Partial Content",
                (900, 100),
            ),
            ("bytes=1000-", "416 Range Not Satisfiable", (0, 0)),
            ("bytes=-0", "416 Range Not Satisfiable", (0, 0)),
            ("bytes=9-3", "200 OK", (0, 1000)),
            ("bytes=0-1,5-6", "200 OK", (0, 1000)),
            ("bytes=+1-3", "200 OK", (0, 1000)),
            ("lines=1-3", "200 OK", (0, 1000)),
            ("bytes=-", "200 OK", (0, 1000)),
        ];
        for (range, status, part) in cases {
            let found = of(|request| request.range = Some(range.to_owned()));
            assert_eq!(found, (status.to_owned(), part), "{range}");
        }
    }

    #[test]
    fn a_file_that_the_client_has_is_not_sent() {
        let tag = META.tag();
        for known in [tag.clone(), format!("\"x\", W/{tag}"), "*".to_owned()] {
            let found = of(|request| request.if_none_match = Some(known.clone()));
            assert_eq!(found, ("304 Not Modified".to_owned(), (0, 0)), "{known}");
        }
        let other = of(|request| {
            // The tag decides, whatever the date says.
            request.if_none_match = Some("\"x\"".to_owned());
            request.if_modified_since = Some(DATE.to_owned());
        });
        assert_eq!(other.0, "200 OK");
        let since = |date: &str| of(|request| request.if_modified_since = Some(date.to_owned())).0;
        assert_eq!(since(DATE), "304 Not Modified");
        assert_eq!(since("Sun, 06 Nov 1994 08:49:36 GMT"), "200 OK");
        assert_eq!(since("yesterday"), "200 OK");
    }

    #[test]
    fn a_range_of_another_file_is_the_whole_file() {
        let range = |condition: &str| {
            of(|request| {
                request.range = Some("bytes=5-6".to_owned());
                request.if_range = Some(condition.to_owned());
            })
        };
        assert_eq!(range(&META.tag()).1, (5, 2));
        assert_eq!(range(DATE).1, (5, 2));
        assert_eq!(range("\"other\"").1, (0, 1000));
        assert_eq!(range("Sun, 06 Nov 1994 08:49:38 GMT").1, (0, 1000));
    }
}
