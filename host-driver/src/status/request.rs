//! What a client may ask of a card's driver, and what some of the answers hold.

use crate::live::Direction;
use crate::log::LogFrame;
use crate::nic::{Identity, Link};
use crate::rss::words::RssWords;
use serde::{Deserialize, Serialize};
use spine_linker::load::lease::Lease;
use std::io;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// The card's identity, and its driver.
    Card,
    /// All counts.
    Statistics,
    /// Every word of the statistics block, and the MAC's own counters.
    StatisticsBlock,
    /// Words of BAR 0 below the memory window.
    Registers {
        /// Their offsets.
        offsets: Vec<u32>,
    },
    /// Words of NIC memory.
    Memory {
        /// NIC address of the first.
        address: u32,
        /// The number of words.
        words: u32,
    },
    /// Messages of the log.
    Log {
        /// The number of the first requested message.
        from: u64,
    },
    /// The trace ring.
    Trace,
    /// The frames of one or both directions from now on: they follow the answer, as
    /// [records](crate::live::Record), until the client shuts its side down.
    Capture {
        /// The direction; None for both.
        direction: Option<Direction>,
    },
    /// Sets the recorded levels of the firmware's modules.
    LogLevels {
        /// Numbers of modules and of levels, see [`host_interface::log`].
        levels: Vec<(usize, u32)>,
    },
    /// Sets the firmware's trace mask.
    TraceMask {
        /// The mask.
        mask: u32,
    },
    /// What card and driver say of each receive queue.
    Queues,
    /// How queues are chosen.
    Rss,
    /// How queues are to be chosen from now on.
    SetRss {
        /// That; as many queues as are open.
        rss: RssWords,
    },
    /// The extensions on the card, and what they did.
    Extensions,
    /// Loads an extension into the running card.
    LoadExtension {
        /// Its container, in hexadecimal digits.
        container: String,
        /// Which frames go to it: [`spine_linker::guard`].
        guards: Vec<String>,
    },
    /// Takes an extension off the card.
    UnloadExtension {
        /// Its domain.
        domain: u32,
    },
    /// Lets an extension run again that was suspended.
    ResumeExtension {
        /// Its domain.
        domain: u32,
    },
    /// An endpoint for messages to extensions: [`Application`].
    OpenEndpoint {
        /// Slots of each ring.
        slots: u32,
        /// Bytes of bulk data.
        bulk: u32,
        /// Domains whose handlers it may call.
        domains: Vec<u32>,
        /// Whether these are unloaded when the process ends.
        unload: bool,
        /// The domain that writes to a screen of the process's, and the screen's bytes.
        #[serde(default)]
        screen: Option<(u32, u32)>,
    },
    /// Hands a message of the driver's to a handler.
    SendMessage {
        /// Its domain.
        domain: u32,
        /// The handler's number.
        handler: u8,
        /// Arguments, up to 60.
        arguments: Vec<u32>,
    },
    /// Messages of handlers to the driver.
    HandlerMessages {
        /// The number of the first requested message.
        from: u64,
    },
    /// Leases a domain a range of the bus, or takes it back.
    Lease {
        /// The domain.
        domain: u32,
        /// The range; of 0 bytes to take it back.
        lease: Lease,
    },
    /// The routes of a router on the card, after a change if one is named.
    Routes {
        /// The router's domain; by default the only router there is.
        domain: Option<u32>,
        /// The change.
        change: Option<RouteRequest>,
    },
    /// Takes the link up or down.
    Link {
        /// Whether it is to be up.
        up: bool,
    },
}

/// A change of a router's routes, which are text: [`spine_linker::routes`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RouteRequest {
    /// Adds a route, or gives its prefix another next hop.
    Add(String),
    /// Deletes the route to a prefix.
    Delete(String),
    /// Has these routes, one in a line, in place of all others.
    Replace(String),
}

impl Request {
    /// Whether it changes the card.
    pub fn changes(&self) -> bool {
        match self {
            Self::Card
            | Self::Statistics
            | Self::StatisticsBlock
            | Self::Registers { .. }
            | Self::Memory { .. }
            | Self::Log { .. }
            | Self::Trace
            | Self::Queues
            | Self::Rss
            | Self::Extensions
            | Self::HandlerMessages { .. }
            | Self::Capture { .. } => false,
            Self::Routes { change, .. } => change.is_some(),
            Self::SetRss { .. }
            | Self::LoadExtension { .. }
            | Self::UnloadExtension { .. }
            | Self::ResumeExtension { .. }
            | Self::OpenEndpoint { .. }
            | Self::SendMessage { .. }
            | Self::Lease { .. }
            | Self::LogLevels { .. }
            | Self::TraceMask { .. }
            | Self::Link { .. } => true,
        }
    }
}

/// A driver's answer about its card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardAnswer {
    /// The card's identity.
    pub identity: Identity,
    /// The station address in use.
    pub station: [u8; 6],
    /// Version of its firmware.
    pub firmware_version: String,
    /// The link.
    pub link: Link,
    /// The driver's process.
    pub process: u32,
}

/// Messages of a driver's card.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogAnswer {
    /// The number of the first message here.
    pub first: u64,
    /// CPU and bytes of each, in hexadecimal digits.
    pub frames: Vec<(u8, String)>,
    /// Messages of CPU A and B that were dropped on the card.
    pub lost: [u64; 2],
    /// The build of the firmware, if it is one with a log.
    pub build: Option<String>,
}

/// A message that a handler has sent to the driver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandlerMessage {
    /// The handler's domain.
    pub domain: u32,
    /// The extension that was loaded there.
    pub name: String,
    /// The handler's number.
    pub handler: u8,
    /// Its words.
    pub arguments: Vec<u32>,
    /// If the handler has not sent it, but was cut off with it: the number of who had sent it.
    pub cut_from: Option<u32>,
    /// The line that the handler has logged by it; none if the message is no line, or if its text is
    /// unknown.
    #[serde(default)]
    pub line: Option<String>,
}

/// Messages of handlers to the driver, which keeps the newest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandlerMessages {
    /// The number of the first message here: higher than was asked for if those before it are not
    /// kept any more.
    pub first: u64,
    /// The number after the newest message.
    pub end: u64,
    /// Some messages from the first one on.
    pub messages: Vec<HandlerMessage>,
}

impl LogAnswer {
    /// The messages.
    ///
    /// # Errors
    /// If they are no hexadecimal digits.
    pub fn frames(&self) -> io::Result<Vec<LogFrame>> {
        let wrong = || io::Error::new(io::ErrorKind::InvalidData, "messages that are no digits");
        let frame = |(cpu, digits): &(u8, String)| {
            let places = (0..digits.len()).step_by(2);
            let byte = |at| {
                let pair = digits.get(at..at + 2).ok_or_else(wrong)?;
                u8::from_str_radix(pair, 16).map_err(|_| wrong())
            };
            Ok(LogFrame {
                cpu: *cpu,
                bytes: places.map(byte).collect::<io::Result<_>>()?,
            })
        };
        self.frames.iter().map(frame).collect()
    }
}
