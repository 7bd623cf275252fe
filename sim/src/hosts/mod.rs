//! A host with several CPUs, for the experiments of "Packet classification in the NIC for
//! improved SMP-based Internet servers" (KNET).
//!
//! ```text
//!   threads of the server           accept, read, request, sendfile
//!   ───────────────────────
//!   TCP (smoltcp), sockets          locks, cache lines, ACK clock
//!   ───────────────────────
//!   policy                          which CPU processes a received frame, and when
//!   ───────────────────────
//!   driver (host-driver)  ──► card (firmware, cycle model) ──► wire ──► clients (smoltcp)
//! ```
//!
//! The real driver and the real firmware move the frames, and a real TCP at both ends handles the
//! connections. Only the host's work has no code to execute: a [`profile`] charges its cost to
//! CPUs whose clocks run in parallel. A seed determines everything.
//!
//! | module | what |
//! | --- | --- |
//! | [`profile`] | the cost of work |
//! | [`account`] | an account of a CPU's time |
//! | [`cpu`] | clock, work and account of a CPU |
//! | [`lock`] | spin locks |
//! | [`transport`] | access to the card on the clock of the CPU that acts |
//! | [`card`] | firmware, driver and wire |
//! | [`reception`] | the receive queues, and a model of them for classic mode |
//! | [`kernel`] | CPUs, card, scheduler of threads |
//! | [`policy`] | `interrupt`, `napi`, `rps`, `knet`, `knet-rr` |
//! | [`packets`] | a smoltcp device of single packets |
//! | [`headers`] | the flow of a frame |
//! | [`connections`] | the server's TCP |
//! | [`web`], [`file`](mod@file) | the server of files |
//! | [`datagrams`] | a server of UDP |
//! | [`application`] | the choice between them |
//! | [`clients`] | closed-loop clients |
//! | [`source`] | datagrams at a rate |
//! | [`system`] | all of it under one clock |

pub mod account;
pub mod application;
pub mod card;
pub mod clients;
pub mod connections;
pub mod cpu;
pub mod datagrams;
mod driver;
pub mod file;
pub mod headers;
pub mod kernel;
pub mod lock;
pub mod packets;
pub mod policy;
pub mod profile;
pub mod reception;
pub mod source;
pub mod system;
#[cfg(test)]
mod tests;
pub mod transport;
pub mod web;
