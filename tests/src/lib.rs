//! The stage for stories on whole systems: firmware, engine, driver and wire.
//!
//! A story is written once and runs on every [`Engine`]: a host at one end of a [`Stage`], a wire
//! at the other, and between them the driver, the card and the firmware's real MIPS code.
//!
//! ```text
//!   the story: nic.queue(..), nic.receive(..)        engine.send(..), engine.receive()
//!        driver ── transport ── card + firmware ── MAC ── wire
//! ```
#![forbid(unsafe_code)]

pub mod beyond;
pub mod engine;
pub mod frames;
pub mod guest;
pub mod programs;
pub mod spy;
pub mod stage;
pub mod svg;
pub mod tigonctl;
pub mod tutorial;
pub mod unprivileged;
pub mod xtask_command;

pub use engine::{Engine, Qemu, Sim};
pub use stage::Stage;

/// Makes tests of stories, generic over an [`Engine`]: each is played on each.
#[macro_export]
macro_rules! stories {
    ($($story:ident),* $(,)?) => {
        mod qemu {
            $(#[test] fn $story() { super::$story::<$crate::Qemu>() })*
        }
        mod sim {
            $(#[test] fn $story() { super::$story::<$crate::Sim>() })*
        }
    };
}
