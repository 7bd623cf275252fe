//! Layer 3: the link, and events to the host.
//!
//! | module | what |
//! | --- | --- |
//! | [`link`] | what the host wants of the link, and what it is |
//! | [`host_events`] | the event ring |

pub mod host_events;
pub mod link;
