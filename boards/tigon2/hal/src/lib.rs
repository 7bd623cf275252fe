//! The Tigon II as its firmware uses it.
#![cfg_attr(not(test), no_std)]
