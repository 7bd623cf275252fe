//! More than two CPUs: several CPUs of a board beyond the chip run a handler at once.
//!
//! All code is in the library; its `lanes` module says how.
#![no_std]
#![no_main]

use tigon_firmware as _;
