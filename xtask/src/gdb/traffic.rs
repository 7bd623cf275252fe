//! A host without time limits: it loads the firmware, opens the card and pings until gdb ends.

use anyhow::Result;
use host_driver::peer::{self, DatagramWire};
use host_driver::stack::card::CardWire;
use host_driver::stack::{Host, ping};
use host_driver::transport::vfio_user::VfioUser;
use host_driver::{Config, Nic};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use testbed::card::Card;
use testbed::tools::Tools;
use testbed::worker::Worker;
use tigon_bench::conversation;

/// Longer than any stop at a breakpoint.
const PATIENCE: Duration = Duration::from_secs(7 * 24 * 3600);

/// Frequent enough that a breakpoint on the packet path is hit at once, rare enough that
/// a card which stood still has little to catch up on.
const INTERVAL: Duration = Duration::from_millis(50);

/// Both ends of the traffic. Drop the card first: that ends a driver that waits for it.
#[derive(Debug)]
pub struct Traffic {
    driver: Worker<()>,
    peer: Worker<()>,
}

impl Traffic {
    /// Fails with the reason if either end has given up.
    ///
    /// # Errors
    /// That reason.
    pub fn check(&mut self) -> Result<()> {
        for end in [&mut self.driver, &mut self.peer] {
            if end.ended() {
                end.join()?;
            }
        }
        Ok(())
    }
}

/// Starts it.
///
/// # Errors
/// When the card's sockets cannot be reached, or the image cannot be read.
pub fn start(tools: &Tools, card: &Card) -> Result<Traffic> {
    let image = tools.firmware.image()?;
    let wire = DatagramWire::bind(&card.wire_peer(), &card.wire_card())?;
    let transport = VfioUser::connect(&card.socket())?;
    let config = Config {
        firmware_timeout: PATIENCE,
        command_timeout: PATIENCE,
        watchdog: PATIENCE,
        ..Config::default()
    };
    let driver = Worker::start(move |stop| {
        let mut nic = Nic::probe(transport, config)?;
        nic.load(&image)?;
        nic.open()?;
        nic.wait_link(PATIENCE)?;
        talk(&mut nic, stop)
    });
    let peer = Worker::start(move |stop| Ok(peer::serve(wire, conversation::peer(), stop)?));
    Ok(Traffic { driver, peer })
}

fn talk(nic: &mut Nic<VfioUser>, stop: &AtomicBool) -> Result<()> {
    let identity = conversation::host(nic.station());
    let mut host = Host::new(CardWire::new(nic), identity);
    let mut sizes = [56, 1472].into_iter().cycle();
    while !stop.load(Ordering::Relaxed) {
        let request = ping::Ping {
            target: conversation::PEER,
            count: 8,
            payload: sizes.next().unwrap_or_default(),
            interval: INTERVAL,
            timeout: INTERVAL,
        };
        ping::ping(&mut host, request, stop)?;
    }
    Ok(())
}
