//! The arms: ways from a client to the same server.

use anyhow::Result;
use std::path::Path;
use std::time::Duration;
use testbed::eta::{Build, Site};
use testbed::tools::Tools;

/// A way from the clients to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arm {
    /// The engine on a TAP device.
    Dusi,
    /// The same, once more: what both differ by is noise.
    DusiAgain,
    /// The kernel on a virtual cable.
    Epoll,
    /// The same, and the kernel sends files from its page cache.
    Sendfile,
    /// The engine on the card.
    CardDusi,
    /// The same, without a copy of what is sent.
    CardInPlace,
    /// The kernel, whose packets the driver carries to the card.
    CardEpoll,
}

/// The arms without a card, and those behind it.
pub(super) const WIRE: [Arm; 4] = [Arm::Dusi, Arm::Epoll, Arm::Sendfile, Arm::DusiAgain];
pub(super) const CARD: [Arm; 3] = [Arm::CardDusi, Arm::CardEpoll, Arm::CardInPlace];

impl Arm {
    /// Its name in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Dusi => "dusi",
            Self::DusiAgain => "dusi again",
            Self::Epoll => "epoll",
            Self::Sendfile => "epoll, sendfile",
            Self::CardDusi => "card: dusi",
            Self::CardInPlace => "card: dusi, in place",
            Self::CardEpoll => "card: epoll",
        }
    }

    /// Starts it, with options of the server.
    pub(super) fn start(self, tools: &Tools, root: &Path, options: &[&str]) -> Result<Site> {
        let with = |more: &[&'static str]| [options, more].concat();
        let idle = "adaptive";
        match self {
            Self::Dusi | Self::DusiAgain => Site::start_with(idle, root, options),
            Self::Epoll => Site::start_kernel_with(root, options),
            Self::Sendfile => Site::start_kernel_with(root, &with(&["--sendfile"])),
            Self::CardDusi => Site::start_on_card(tools, Build::Release, idle, root, options),
            Self::CardInPlace => {
                let options = with(&["--in-place"]);
                Site::start_on_card(tools, Build::Release, idle, root, &options)
            }
            Self::CardEpoll => Site::start_kernel_on_card(tools, root, options),
        }
    }
}

/// All processors' time without sleep so far, and that of this process and others.
pub(super) fn busy(but: &[u32]) -> Result<Duration> {
    let text = std::fs::read_to_string("/proc/stat")?;
    let all = text.lines().next().unwrap_or("");
    let fields = all.split_whitespace().skip(1);
    let fields: Vec<u64> = fields.filter_map(|field| field.parse().ok()).collect();
    // User, nice, system; idle and waiting for disks are none; interrupts of both kinds.
    let busy: u64 = [0, 1, 2, 5, 6]
        .iter()
        .filter_map(|at| fields.get(*at))
        .sum();
    let others = super::cpu(&[&[std::process::id()], but].concat())?;
    Ok(Duration::from_millis(busy * 10).saturating_sub(others))
}
