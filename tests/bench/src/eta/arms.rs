//! The arms: ways from a client to the same server.
//!
//! `epoll, copy loop` is the kernel over two TAP devices and the bare loop of
//! [`copy_loop`](crate::copy_loop). Its wire costs two system calls a packet, as the engine's costs
//! one; the kernel's virtual cable costs none. The loop runs in the process of the clients, so no
//! column of processor time has it.

use crate::copy_loop;
use anyhow::Result;
use host_driver::tap::Tap;
use std::path::Path;
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
    /// The kernel on two TAP devices that a copy loop joins.
    CopyLoop,
    /// The engine on the card.
    CardDusi,
    /// The same, without a copy of what is sent.
    CardInPlace,
    /// The kernel, whose packets the driver carries to the card.
    CardEpoll,
}

/// The arms without a card, and those behind it.
pub(super) const WIRE: [Arm; 5] = [
    Arm::Dusi,
    Arm::Epoll,
    Arm::Sendfile,
    Arm::CopyLoop,
    Arm::DusiAgain,
];
pub(super) const CARD: [Arm; 3] = [Arm::CardDusi, Arm::CardEpoll, Arm::CardInPlace];

impl Arm {
    /// Its name in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Dusi => "dusi",
            Self::DusiAgain => "dusi again",
            Self::Epoll => "epoll",
            Self::Sendfile => "epoll, sendfile",
            Self::CopyLoop => "epoll, copy loop",
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
            Self::CopyLoop => {
                let names = ["n", "f"].map(|side| format!("tga{side}{}", std::process::id()));
                let tap = |at: usize| {
                    Tap::create(&names[at], [2, 0x54, 0x47, 0, 2, at as u8], 1500, false)
                };
                let wire = copy_loop::start(tap(0)?, tap(1)?);
                Site::start_kernel_between([&names[0], &names[1]], wire, root, options)
            }
            Self::CardDusi => Site::start_on_card(tools, Build::Release, idle, root, options),
            Self::CardInPlace => {
                let options = with(&["--in-place"]);
                Site::start_on_card(tools, Build::Release, idle, root, &options)
            }
            Self::CardEpoll => Site::start_kernel_on_card(tools, root, options),
        }
    }
}
