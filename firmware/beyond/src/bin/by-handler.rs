//! Firmware for more than two CPUs: each handler runs on one CPU of a board beyond the chip.
//!
//! All code is in the library; its `start` module holds the reset entry.
#![no_std]
#![no_main]

use tigon_beyond as _;
