//! The program in the scratch pad.
//!
//! All code is in the library; its `start` module holds the entry.
#![no_std]
#![no_main]

use classify_cycles as _;
