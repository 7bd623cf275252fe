//! Two Linux hosts joined by the card: the stage of every traffic experiment.
//!
//! ```text
//!   namespace host            this process              QEMU         namespace peer
//!   10.77.0.1 on TAP ===== bridge, driver ==== card, firmware, MAC ==== TAP 10.77.0.2
//! ```

use crate::card::{Card, CardOptions, Wire};
use crate::net::namespace::Namespace;
use crate::tools::Tools;
use crate::worker::Worker;
use anyhow::{Context, Result, anyhow};
use host_driver::nic::NicStatistics;
use host_driver::status::StatusServer;
use host_driver::tap::Tap;
use host_driver::transport::vfio_user::VfioUser;
use host_driver::{Config, Nic, bridge};
use std::path::PathBuf;
use std::time::Duration;

/// The host behind the card.
pub const HOST: &str = "10.77.0.1";
/// The host at the other end of the wire.
pub const PEER: &str = "10.77.0.2";

const LINK: Duration = Duration::from_secs(10);

/// How much a TAP device of the testbed's may carry in one frame, without header.
const MTU: u16 = 1500;

/// The running stage; dropping it takes everything down again.
#[derive(Debug)]
pub struct Testbed {
    driver: Worker<NicStatistics>,
    /// The card itself.
    pub card: Card,
    /// The host whose network device is the card.
    pub host: Namespace,
    /// The host at the other end of the wire.
    pub peer: Namespace,
}

impl Testbed {
    /// Starts a card, loads the firmware, waits for the link and puts a Linux
    /// host at either end.
    pub fn start(tools: &Tools) -> Result<Testbed> {
        Testbed::build(tools, false, false)
    }

    /// The same, with a [status socket](Testbed::status) at which the driver answers for the
    /// card. `gdb` opens the card's gdb stub.
    pub fn attended(tools: &Tools, gdb: bool) -> Result<Testbed> {
        Testbed::build(tools, gdb, true)
    }

    fn build(tools: &Tools, gdb: bool, attended: bool) -> Result<Testbed> {
        let pid = std::process::id();
        let (host_tap, wire_tap) = (format!("tgh{pid}"), format!("tgw{pid}"));
        let host = Namespace::create("host")?;
        let peer = Namespace::create("peer")?;
        let card = Card::start(
            tools,
            &CardOptions {
                wire: Wire::Tap(wire_tap.clone()),
                gdb,
                ..CardOptions::default()
            },
        )?;
        peer.adopt(&wire_tap, &format!("{PEER}/24"))?;
        let nic = open_nic(tools, &card)?;
        let tap = Tap::create(&host_tap, nic.station(), MTU, false)?;
        host.adopt(&host_tap, &format!("{HOST}/24"))?;
        let driver = if attended {
            drive_attended(nic, tap, StatusServer::bind(&status(&card))?)
        } else {
            drive(nic, tap)
        };
        Ok(Testbed {
            driver,
            card,
            host,
            peer,
        })
    }

    /// Where the driver of an attended card answers `tigonctl --attach`.
    pub fn status(&self) -> PathBuf {
        status(&self.card)
    }

    /// Fails if the card or the driver has given up.
    pub fn check(&mut self) -> Result<()> {
        self.card.check()?;
        if self.driver.ended() {
            let error = self.driver.join().err();
            return Err(error.unwrap_or_else(|| anyhow!("the driver ended early")));
        }
        Ok(())
    }

    /// Ends the traffic and returns the driver's and the firmware's counts.
    pub fn finish(mut self) -> Result<NicStatistics> {
        self.driver.join()
    }
}

/// In the folder that goes away with the card.
fn status(card: &Card) -> PathBuf {
    card.socket().with_file_name("status")
}

/// Probes the card, loads the firmware, opens it and waits for the link.
pub fn open_nic(tools: &Tools, card: &Card) -> Result<Nic<VfioUser>> {
    let firmware = std::fs::read(&tools.firmware.tg2)
        .with_context(|| format!("cannot read {}", tools.firmware.tg2.display()))?;
    let mut nic = Nic::probe(VfioUser::connect(&card.socket())?, Config::default())?;
    nic.load(&firmware)?;
    nic.open()?;
    nic.wait_link(LINK)?;
    Ok(nic)
}

/// The thread that moves frames between the TAP device and the card.
pub fn drive(mut nic: Nic<VfioUser>, tap: Tap) -> Worker<NicStatistics> {
    Worker::start(move |stop| {
        bridge::run(&mut nic, &tap, stop)?;
        let statistics = nic.statistics()?;
        nic.shut_down()?;
        Ok(statistics)
    })
}

/// As [`drive`]; between its turns the thread answers what is asked at the status socket.
pub fn drive_attended(
    mut nic: Nic<VfioUser>,
    tap: Tap,
    visitors: StatusServer,
) -> Worker<NicStatistics> {
    Worker::start(move |stop| {
        bridge::run_attended(&mut nic, &tap, None, stop, |nic| visitors.serve(nic))?;
        let statistics = nic.statistics()?;
        nic.shut_down()?;
        Ok(statistics)
    })
}
