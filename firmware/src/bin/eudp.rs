//! The parallel firmware with endpoints for datagrams.
//!
//! All code is in the library; its `start` module holds the reset entry.
#![no_std]
#![no_main]

use tigon_firmware as _;
