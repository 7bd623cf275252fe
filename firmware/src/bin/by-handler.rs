//! More than two CPUs: each handler has one CPU of a board beyond the chip.
//!
//! All code is in the library; its `lanes` module says how.
#![no_std]
#![no_main]

use tigon_firmware as _;
