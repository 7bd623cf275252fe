//! The building blocks that the commands and the tests share: cards under QEMU, Linux guests with
//! cards in them, hosts in namespaces, and the builds of QEMU and of the firmware for all of
//! these.
//!
//! ```text
//!   hosts     guest ─── guest_device   two Linux hosts joined by a card; a Linux PC with cards
//!     │         │
//!    net ──── card ──── monitor        a namespace, iperf3 and ping; a card under QEMU
//!               │
//!             tools ─── setup          what a card is made of, and the packages that this needs
//!            ╱     ╲
//!     firmware     qemu_build          the builds; extensions are built as the firmware is
//!            ╲     ╱    programs       test programs in random order
//!   process, progress, cache, paths    the common base
//! ```
//!
//! An owner of a value owns what it started: dropping it ends processes and removes namespaces,
//! sockets and folders.
#![forbid(unsafe_code)]

pub mod cache;
pub mod card;
pub mod conditions;
pub mod eta;
pub mod extensions;
pub mod firmware;
pub mod guest;
pub mod guest_device;
pub mod hosts;
pub mod interrupt;
pub mod judge;
pub mod monitor;
pub mod net;
pub mod paths;
pub mod process;
pub mod programs;
pub mod progress;
pub mod progress_bar;
pub mod qemu_build;
pub mod queue_hosts;
pub mod setup;
pub mod tools;
pub mod worker;
