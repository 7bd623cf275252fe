//! Firmware for more than two CPUs: several CPUs of a board beyond the chip run a handler at once.
//!
//! All code is in the library; its `start` module holds the reset entry.
#![no_std]
#![no_main]

use tigon_beyond as _;
