//! Checks that payloads survive a network.
//!
//! Two programs communicate: one listens, one connects; either or both send. A message has a
//! number, bytes that follow from the number, and CRCs ([`message`]). The receiver records every
//! number ([`account`]), so it can distinguish lost, duplicated, reordered and damaged messages.
//! At the end each side reports how many messages it has sent and what it has received, and both
//! print the same figures ([`report`]).
//!
//! ```text
//!   connecting side                      listening side
//!   Hello ------------------------------>            (UDP: until it is answered)
//!         <------------------------------ Hello
//!   Data 0, Data 1, ... ---------------->            either way, or both at once
//!   End (how many) --------------------->            (UDP: until the report comes)
//!         <------------------------------ Report
//! ```
#![forbid(unsafe_code)]

pub mod account;
pub mod message;
pub mod pace;
pub mod report;
pub mod tcp;
pub mod udp;

use std::net::SocketAddr;
use std::time::Duration;

/// What one side does.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where to listen, or whom to connect to.
    pub address: SocketAddr,
    /// This side listens.
    pub listen: bool,
    /// This side sends; the other one may in any case.
    pub send: bool,
    /// Bytes of each message.
    pub size: usize,
    /// Payload in megabits per second; None: as fast as it goes.
    pub rate: Option<f64>,
    /// For how long this side sends.
    pub duration: Duration,
    /// How many messages this side sends at most.
    pub count: Option<u64>,
    /// How long to wait for the other side before anything has come.
    pub patience: Duration,
    /// A peer from which nothing came for so long is gone.
    pub idle: Duration,
}

impl Plan {
    /// A plan to listen at an address, or to connect to it, with the usual choices.
    #[must_use]
    pub fn new(address: SocketAddr, listen: bool, send: bool) -> Self {
        Self {
            address,
            listen,
            send,
            size: 1400,
            rate: None,
            duration: Duration::from_secs(5),
            count: None,
            patience: Duration::from_secs(30),
            idle: Duration::from_secs(5),
        }
    }
}
