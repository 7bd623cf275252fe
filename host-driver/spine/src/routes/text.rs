//! Routes as text: `10.0.0.0/8 02:00:00:00:00:05`, `10.0.0.0/8 peer 02:00:00:00:00:05` or
//! `10.0.0.1/32 host`, one in a line, and read as they are written.

use super::{NextHop, Prefix, Route, RouteError};
use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

impl FromStr for Prefix {
    type Err = RouteError;

    /// From `10.0.0.0/8`.
    fn from_str(text: &str) -> Result<Prefix, RouteError> {
        let parts = address_and_length(text);
        let (address, length) = parts.ok_or_else(|| RouteError::Prefix(text.to_owned()))?;
        Prefix::new(address, length)
    }
}

fn address_and_length(text: &str) -> Option<(Ipv4Addr, u32)> {
    let (address, length) = text.split_once('/')?;
    Some((address.parse().ok()?, length.parse().ok()?))
}

impl fmt::Display for Prefix {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", Ipv4Addr::from_bits(self.bits), self.length)
    }
}

impl FromStr for NextHop {
    type Err = RouteError;

    /// From `02:00:00:00:00:05`, `peer 02:00:00:00:00:05`, or `host`.
    fn from_str(text: &str) -> Result<NextHop, RouteError> {
        if text == "host" {
            return Ok(NextHop::Host);
        }
        let found = match text.strip_prefix("peer ") {
            Some(text) => ethernet_address(text.trim()).map(NextHop::Peer),
            None => ethernet_address(text).map(NextHop::Wire),
        };
        found.ok_or_else(|| RouteError::Hop(text.to_owned()))
    }
}

impl fmt::Display for NextHop {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (port, [a, b, c, d, e, f]) = match self {
            NextHop::Host => return out.write_str("host"),
            NextHop::Wire(address) => ("", address),
            NextHop::Peer(address) => ("peer ", address),
        };
        write!(out, "{port}{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
    }
}

fn ethernet_address(text: &str) -> Option<[u8; 6]> {
    let mut address = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut address {
        let digits = parts.next()?;
        let are_digits = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        *byte = u8::from_str_radix(digits, 16).ok().filter(|_| are_digits)?;
    }
    parts.next().is_none().then_some(address)
}

impl FromStr for Route {
    type Err = RouteError;

    /// From a prefix and a next hop.
    fn from_str(text: &str) -> Result<Route, RouteError> {
        let whole = || RouteError::Text {
            line: 1,
            text: text.to_owned(),
        };
        let (prefix, hop) = text.split_once(char::is_whitespace).ok_or_else(whole)?;
        let hop = hop.trim().parse().map_err(|_| whole())?;
        let (address, length) = address_and_length(prefix).ok_or_else(whole)?;
        Route::new(address, length, hop)
    }
}

impl fmt::Display for Route {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.prefix, self.hop)
    }
}

/// The routes of a text: one in a line, `#` begins a remark.
///
/// # Errors
/// [`RouteError::Text`], [`RouteError::Prefix`].
pub fn parse(text: &str) -> Result<Vec<Route>, RouteError> {
    let mut routes = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let route = line.parse().map_err(|error| match error {
            RouteError::Text { text, .. } => RouteError::Text {
                line: number + 1,
                text,
            },
            other => other,
        })?;
        routes.push(route);
    }
    Ok(routes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_read_as_they_are_written() {
        let text = "0.0.0.0/0 02:00:00:00:00:01\n10.0.0.0/8 peer 02:00:00:00:00:0a\n\
                    10.1.2.3/32 host";
        let routes = parse(text).expect("routes");
        let written: Vec<String> = routes.iter().map(Route::to_string).collect();
        assert_eq!(written.join("\n"), text);
        for text in ["10.0.0.0/33", "10.0.0.1/8", "10.0.0/8", "10.0.0.0", "/8"] {
            let error = text.parse::<Prefix>().expect_err(text);
            assert_eq!(error, RouteError::Prefix(text.to_owned()));
        }
        for text in ["", "peer", "peer host", "02:00:00:00:00", "+2:0:0:0:0:5"] {
            let error = text.parse::<NextHop>().expect_err(text);
            assert_eq!(error, RouteError::Hop(text.to_owned()));
        }
    }
}
