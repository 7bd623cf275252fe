//! Extensions: how they are made, and the simulated card on which the SPINE paper's claims are tried.
//!
//! ```text
//!   account   where CPU A's time goes, by function
//!   card      a card that loads extensions, its driver, and what is built for both
//!   exchange  messages from card to card
//!   explored  schedules while extensions come, run and go
//!   flow      who works on which packet when, from card to card
//!   frames    frames for handlers, and the host's own beside them
//!   contained hostile handlers, and what the others lose
//!   cost      what extensions cost, in the card's cycles
//!   handled   what CPU A does for a frame to a handler
//!   lookups   what a lookup in the router's table costs
//!   guarded   datagrams past guards, or into handlers
//!   churn     loads and unloads at full wire load
//!   cuts      every handler, and every init, cut off at each instruction of a run, under traffic
//!   cutter    one run, cut off, and the frames beside it
//!   router    packets through the router, while its table is replaced
//!   routed    where the cycles of a routed packet go
//!   peers     packets through the router to the other card on the bus
//!   profiles  the main figures under each timing profile
//!   traffic   the host's frames beside those for handlers
//!   stores    what CPU A stores in a run, and where it may
//!   trials    the commands of these
//!   new       the crate of a new extension
//!   messages  how long a message takes, and how many pass
//!   made      containers: compiled, signed, and what is proven of them
//!   list      containers in a table
//!   running   from the crate to the running card of a driver, and off it
//!   video     videos in windows of a frame buffer on the bus
//!   try_out   one extension, with datagrams from the wire
//! ```
//!
//! The commands are `cargo xtask extension cut` and others; the tests run short slices of them.

pub mod account;
pub mod card;
pub mod churn;
pub mod contained;
pub mod cost;
pub mod cuts;
mod cutter;
pub mod emulated;
pub mod exchange;
pub mod explored;
mod flooded;
pub mod flow;
pub mod frames;
pub mod guarded;
pub mod handled;
pub mod list;
mod loaded;
pub mod lookups;
pub mod made;
pub mod messages;
pub mod new;
pub mod peers;
pub mod profiles;
pub mod routed;
pub mod router;
pub mod running;
pub mod stores;
mod traffic;
pub mod trials;
pub mod try_out;
pub mod video;
pub mod window;
