//! The boot code in the boot memory.
//!
//! All code is in the library; its `start` module holds the reset entry.
#![no_std]
#![no_main]

use tigon_boot as _;
