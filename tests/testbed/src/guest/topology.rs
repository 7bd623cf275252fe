//! Several guests and the cables between their cards.
//!
//! ```text
//!   two:     west eth0 10.77.0.1 ============ 10.77.0.2 eth0 east
//!
//!   router:  west eth0 10.77.1.1 == 10.77.1.254 eth0 router eth1 10.77.2.254 == 10.77.2.1 eth0 east
//! ```
//!
//! A cable is a stream socket between the netdevs of two cards.

use super::{Booting, Guest, GuestOptions, GuestTools};
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
        let ports = vec![
            vec![port(left, "10.77.0.1", 1)],
            vec![port(right, "10.77.0.2", 2)],
        ];
        let [west, east] = start(tools, guests, options, ports)?;
        Ok(Topology {
            west,
            east,
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
        let ports = vec![
            vec![port(west_end, "10.77.1.1", 1)],
            vec![
                port(to_west, "10.77.1.254", 2),
                port(to_east, "10.77.2.254", 3),
            ],
            vec![port(east_end, "10.77.2.1", 4)],
        ];
        let [west, router, east] = start(tools, guests, options, ports)?;
        router.guest.sh("sysctl -w net.ipv4.ip_forward=1")?;
        west.guest.sh("ip route add default via 10.77.1.254")?;
        east.guest.sh("ip route add default via 10.77.2.254")?;
        Ok(Topology {
            west,
            east,
            router: Some(router),
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

/// Starts all cards, then all guests at once, the first with the user's options.
fn start<const N: usize>(
    tools: &Tools,
    guests: &GuestTools,
    options: &GuestOptions,
    ports: Vec<Vec<Port>>,
) -> Result<[Station; N]> {
    // The first end of a cable is there before the second, as the ports are in order.
    let cards = |ports: Vec<Port>| ports.into_iter().map(|port| card(tools, port)).collect();
    let cards: Vec<Vec<(Card, String)>> = ports.into_iter().map(cards).collect::<Result<_>>()?;
    let with_cards = |(number, cards): (usize, &Vec<(Card, String)>)| GuestOptions {
        cards: cards.iter().map(|(card, _)| card.socket()).collect(),
        ..if number == 0 {
            options.clone()
        } else {
            plain(options)
        }
    };
    let options: Vec<GuestOptions> = cards.iter().enumerate().map(with_cards).collect();
    let launch = |options| Guest::launch(guests, options);
    let booting: Vec<Booting<'_>> = options.iter().map(launch).collect::<Result<_>>()?;
    let booted: Vec<Guest> = booting
        .into_iter()
        .map(Booting::finish)
        .collect::<Result<_>>()?;
    let stations: Vec<Station> = booted
        .into_iter()
        .zip(cards)
        .map(|(guest, cards)| {
            let (cards, addresses) = cards.into_iter().unzip();
            Station {
                guest,
                cards,
                addresses,
            }
        })
        .collect();
    for step in [Station::load, Station::up] {
        for station in &stations {
            step(station).with_context(|| station.testimony())?;
        }
    }
    <[Station; N]>::try_from(stations).map_err(|_| anyhow!("another number of guests"))
}

fn card(tools: &Tools, port: Port) -> Result<(Card, String)> {
    let options = CardOptions {
        wire: port.wire,
        monitor: true,
        station: Some([0x02, 0x54, 0x47, 0, 0, port.number]),
        ..CardOptions::default()
    };
    Ok((Card::start(tools, &options)?, port.address))
}

impl Station {
    fn load(&self) -> Result<()> {
        self.guest.load_driver(self.cards.len())
    }

    /// What its cards say when it does not come up.
    fn testimony(&self) -> String {
        let cards: Vec<String> = self.cards.iter().map(Card::testimony).collect();
        cards.join("; ")
    }

    /// Every device up; both ends of a cable must have their firmware by then.
    fn up(&self) -> Result<()> {
        for (number, address) in self.addresses.iter().enumerate() {
            let address = format!("{address}/24");
            self.guest.bring_up(&format!("eth{number}"), &address)?;
        }
        Ok(())
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
