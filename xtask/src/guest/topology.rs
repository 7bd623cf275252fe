//! Several guests and the cables between their cards.
//!
//! ```text
//!   two:     west eth0 10.77.0.1 ============ 10.77.0.2 eth0 east
//!
//!   router:  west eth0 10.77.1.1 == 10.77.1.254 eth0 router eth1 10.77.2.254 == 10.77.2.1 eth0 east
//! ```
//!
//! A cable is a stream socket between the netdevs of two cards.

use super::{Guest, GuestOptions, GuestTools};
use crate::card::{Card, CardOptions, Wire};
use crate::tools::Tools;
use anyhow::{Context, Result, anyhow};
use std::path::PathBuf;
use tempfile::TempDir;

/// A guest with its cards. The guest goes first when it is dropped.
#[derive(Debug)]
pub struct Station {
    /// The guest; its driver is loaded and its devices are up.
    pub guest: Guest,
    /// The cards in it: `eth0`, `eth1`.
    pub cards: Vec<Card>,
    /// The address of each.
    pub addresses: Vec<String>,
}

/// Guests that reach each other.
#[derive(Debug)]
pub struct Topology {
    /// The guest at one end.
    pub west: Station,
    /// The guest at the other end.
    pub east: Station,
    /// The one between them, if there is one.
    pub router: Option<Station>,
    /// Where the cables' sockets are.
    _cables: TempDir,
}

/// One card of a guest to be: its end of a cable, its address, its number among
/// all cards.
struct Port {
    wire: Wire,
    address: String,
    number: u8,
}

impl Topology {
    /// Two guests back to back. `options` goes for both, but for the cards;
    /// `interactive` and `devices` for the western one only.
    ///
    /// # Errors
    /// When one of them does not come up.
    pub fn two(tools: &Tools, guests: &GuestTools, options: &GuestOptions) -> Result<Topology> {
        let cables = folder()?;
        let (left, right) = cable(cables.path().join("cable"));
        // One end of a cable must listen before the other connects.
        let west = Station::cards(tools, vec![port(left, "10.77.0.1", 1)])?;
        let east = Station::cards(tools, vec![port(right, "10.77.0.2", 2)])?;
        let (west, east) = both(
            || Station::boot(guests, options, west),
            || Station::boot(guests, &plain(options), east),
        )?;
        Ok(Topology {
            west: west.up()?,
            east: east.up()?,
            router: None,
            _cables: cables,
        })
    }

    /// Two guests with a third between them that forwards.
    ///
    /// # Errors
    /// When one of them does not come up.
    pub fn router(tools: &Tools, guests: &GuestTools, options: &GuestOptions) -> Result<Topology> {
        let cables = folder()?;
        let (west_end, to_west) = cable(cables.path().join("west"));
        let (to_east, east_end) = cable(cables.path().join("east"));
        let west = vec![port(west_end, "10.77.1.1", 1)];
        let middle = vec![
            port(to_west, "10.77.1.254", 2),
            port(to_east, "10.77.2.254", 3),
        ];
        let east = vec![port(east_end, "10.77.2.1", 4)];
        let west = Station::cards(tools, west)?;
        let middle = Station::cards(tools, middle)?;
        let east = Station::cards(tools, east)?;
        let ((west, middle), east) = both(
            || {
                both(
                    || Station::boot(guests, options, west),
                    || Station::boot(guests, &plain(options), middle),
                )
            },
            || Station::boot(guests, &plain(options), east),
        )?;
        let middle = middle.up()?;
        middle.guest.sh("sysctl -w net.ipv4.ip_forward=1")?;
        let (west, east) = (west.up()?, east.up()?);
        west.guest.sh("ip route add default via 10.77.1.254")?;
        east.guest.sh("ip route add default via 10.77.2.254")?;
        Ok(Topology {
            west,
            east,
            router: Some(middle),
            _cables: cables,
        })
    }

    /// Every station, from west to east.
    pub fn stations(&self) -> Vec<&Station> {
        [Some(&self.west), self.router.as_ref(), Some(&self.east)]
            .into_iter()
            .flatten()
            .collect()
    }
}

impl Station {
    fn cards(tools: &Tools, ports: Vec<Port>) -> Result<Vec<(Card, String)>> {
        let card = |port: Port| {
            let options = CardOptions {
                wire: port.wire,
                monitor: true,
                station: Some([0x02, 0x54, 0x47, 0, 0, port.number]),
                ..CardOptions::default()
            };
            Ok((Card::start(tools, &options)?, port.address))
        };
        ports.into_iter().map(card).collect()
    }

    fn boot(
        guests: &GuestTools,
        options: &GuestOptions,
        cards: Vec<(Card, String)>,
    ) -> Result<Station> {
        let (cards, addresses): (Vec<Card>, Vec<String>) = cards.into_iter().unzip();
        let options = GuestOptions {
            cards: cards.iter().map(Card::socket).collect(),
            ..options.clone()
        };
        Ok(Station {
            guest: Guest::start(guests, &options)?,
            cards,
            addresses,
        })
    }

    /// The driver loaded, every device up: when the others' cards are there.
    fn up(self) -> Result<Station> {
        self.guest.load_driver(self.cards.len())?;
        for (number, address) in self.addresses.iter().enumerate() {
            let address = format!("{address}/24");
            self.guest.bring_up(&format!("eth{number}"), &address)?;
        }
        Ok(self)
    }
}

fn folder() -> Result<TempDir> {
    tempfile::Builder::new()
        .prefix("tigon-cables-")
        .tempdir()
        .context("cannot make a folder for the cables")
}

/// The two ends of a cable; the first must be there when the second is put in.
fn cable(socket: PathBuf) -> (Wire, Wire) {
    (Wire::Listen(socket.clone()), Wire::Connect(socket))
}

fn port(wire: Wire, address: &str, number: u8) -> Port {
    Port {
        wire,
        address: address.to_owned(),
        number,
    }
}

/// The options of a guest that is not the user's own.
fn plain(options: &GuestOptions) -> GuestOptions {
    GuestOptions {
        interactive: false,
        devices: Vec::new(),
        ..options.clone()
    }
}

/// Runs both at once; the boots take the longest.
fn both<A: Send, B: Send>(
    one: impl FnOnce() -> Result<A>,
    other: impl FnOnce() -> Result<B> + Send,
) -> Result<(A, B)> {
    std::thread::scope(|scope| {
        let other = scope.spawn(other);
        let one = one();
        let other = other.join().map_err(|_| anyhow!("a thread panicked"))?;
        Ok((one?, other?))
    })
}
