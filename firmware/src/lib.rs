//! Firmware for the Tigon II: event handlers and one binary per variant.
#![cfg_attr(not(test), no_std)]
