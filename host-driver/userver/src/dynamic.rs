//! A page that is made anew each time, at a cost that is given.

use std::str::FromStr;
use std::time::{Duration, Instant};

use thiserror::Error;

/// A page and its cost, as text `/now=250`, in microseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DynamicPage {
    path: String,
    cost: Duration,
}

/// A text that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a dynamic page must be /PATH=MICROSECONDS, at most one second")]
pub struct NoPage;

impl FromStr for DynamicPage {
    type Err = NoPage;

    fn from_str(text: &str) -> Result<Self, NoPage> {
        let (path, cost) = text.rsplit_once('=').ok_or(NoPage)?;
        let micros: u64 = cost.parse().map_err(|_| NoPage)?;
        if !path.starts_with('/') || micros > 1_000_000 {
            return Err(NoPage);
        }
        Ok(Self {
            path: path.to_owned(),
            cost: Duration::from_micros(micros),
        })
    }
}

impl DynamicPage {
    /// Bytes of the page.
    pub const BYTES: usize = 36;

    /// Makes the page, if a path is its.
    pub(crate) fn make(&self, path: &str) -> Option<String> {
        if path != self.path {
            return None;
        }
        let start = Instant::now();
        let mut rounds: u64 = 0;
        let mut sum: u64 = 0;
        while rounds == 0 || start.elapsed() < self.cost {
            for _ in 0..64 {
                sum = std::hint::black_box(sum.wrapping_mul(6_364_136_223_846_793_005) + 1);
            }
            rounds += 1;
        }
        Some(format!("{rounds:10} rounds, {sum:016x}\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_costs_what_was_asked() {
        let page: DynamicPage = "/now=300".parse().expect("a page");
        assert_eq!(page.make("/then"), None);
        let start = Instant::now();
        let text = page.make("/now").expect("its path");
        assert_eq!(text.len(), DynamicPage::BYTES);
        assert!(start.elapsed() >= Duration::from_micros(300));
        for wrong in ["/now", "now=3", "/now=x", "/now=1000001", "="] {
            assert_eq!(wrong.parse::<DynamicPage>(), Err(NoPage), "{wrong}");
        }
    }
}
