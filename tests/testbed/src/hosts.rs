//! Two Linux hosts joined by the card: the stage of every traffic experiment.
//!
//! ```text
//!   namespace host            this process              QEMU         namespace peer
//!   10.77.0.1 on TAP ===== bridge, driver ==== card, firmware, MAC ==== TAP 10.77.0.2
//! ```

use crate::card::{Card, CardOptions, Wire};
use crate::conditions::DmaChannels;
use crate::net::namespace::Namespace;
use crate::tools::Tools;
use crate::worker::Worker;
use anyhow::{Context, Result, anyhow};
use host_driver::log::BuildId;
use host_driver::nic::NicStatistics;
use host_driver::status::StatusServer;
use host_driver::tap::Tap;
use host_driver::transport::vfio_user::VfioUser;
use host_driver::{Nic, bridge};
use spine_linker::policy::Policy;
use std::path::PathBuf;
use std::time::Duration;

/// The host behind the card.
pub const HOST: &str = "10.77.0.1";
/// The host at the other end of the wire.
pub const PEER: &str = "10.77.0.2";

const LINK: Duration = Duration::from_secs(10);

/// How much a TAP device of the testbed's may carry in one frame, without header.
pub(crate) const MTU: u16 = 1500;

/// The running stage; dropping it takes everything down again.
#[derive(Debug)]
pub struct Testbed {
    driver: Worker<NicStatistics>,
    /// The card itself.
    pub card: Card,
    /// The build of its firmware, if that has a log.
    pub build: Option<BuildId>,
    /// The host whose network device is the card.
    pub host: Namespace,
    /// The host at the other end of the wire.
    pub peer: Namespace,
}

/// What kind of stage. The default has a card that the driver loads the firmware into.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The driver answers for the card at a [status socket](Testbed::status).
    pub attended: bool,
    /// Opens the card's gdb stub.
    pub gdb: bool,
    /// The card boots its own firmware, from the EEPROM in this file.
    pub eeprom: Option<PathBuf>,
    /// How many DMA channels move data at a time.
    pub dma_channels: DmaChannels,
    /// The driver of an attended card loads extensions that this policy lets in.
    pub extensions: Option<Policy>,
}

impl Testbed {
    /// Starts a card, gets its firmware going, waits for the link and puts a Linux host at
    /// either end.
    ///
    /// # Errors
    /// Whatever does not come up.
    pub fn start(tools: &Tools, options: &Options) -> Result<Testbed> {
        let pid = std::process::id();
        let (host_tap, wire_tap) = (format!("tgh{pid}"), format!("tgw{pid}"));
        let host = Namespace::create("host")?;
        let peer = Namespace::create("peer")?;
        let eeprom = options.eeprom.as_ref();
        let card = Card::start(
            tools,
            &CardOptions {
                wire: Wire::Tap(wire_tap.clone()),
                gdb: options.gdb,
                ..CardOptions::booting(tools, eeprom)
            },
        )?;
        peer.adopt(&wire_tap, &format!("{PEER}/24"))?;
        let mut nic = open_booted(tools, &card, eeprom.is_some(), options.dma_channels)?;
        let build = nic.log_block()?.map(|block| block.build);
        let tap = Tap::create(&host_tap, nic.station(), MTU, false)?;
        host.adopt(&host_tap, &format!("{HOST}/24"))?;
        let visitors = options
            .attended
            .then(|| StatusServer::bind(&status(&card)))
            .transpose()?
            .map(|server| match options.extensions.clone() {
                Some(policy) => server.with_extensions(policy),
                None => server,
            });
        let driver = drive(nic, tap, move |nic| {
            if let Some(visitors) = &visitors {
                visitors.serve(nic);
            }
        });
        Ok(Testbed {
            driver,
            card,
            build,
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
pub(crate) fn status(card: &Card) -> PathBuf {
    card.socket().with_file_name("status")
}

/// Probes the card, loads the firmware, opens it and waits for the link.
pub fn open_nic(tools: &Tools, card: &Card) -> Result<Nic<VfioUser>> {
    load_and_open(tools, card, DmaChannels::default())
}

/// The same with so many DMA channels at a time.
pub fn load_and_open(
    tools: &Tools,
    card: &Card,
    dma_channels: DmaChannels,
) -> Result<Nic<VfioUser>> {
    let firmware = std::fs::read(&tools.firmware.tg2)
        .with_context(|| format!("cannot read {}", tools.firmware.tg2.display()))?;
    open(card, dma_channels, |nic| Ok(nic.load(&firmware)?))
}

/// The same, with the firmware that the card has booted if it is `own`, which is said.
pub fn open_booted(
    tools: &Tools,
    card: &Card,
    own: bool,
    dma_channels: DmaChannels,
) -> Result<Nic<VfioUser>> {
    if !own {
        return load_and_open(tools, card, dma_channels);
    }
    open(card, dma_channels, |nic| {
        let own = nic.boot()?;
        let confirmed = if own.confirmed_now {
            ", now confirmed"
        } else {
            ""
        };
        println!("the card has booted {}{confirmed}", own.slot);
        Ok(())
    })
}

fn open(
    card: &Card,
    dma_channels: DmaChannels,
    start: impl FnOnce(&mut Nic<VfioUser>) -> Result<()>,
) -> Result<Nic<VfioUser>> {
    let mut nic = Nic::probe(VfioUser::connect(&card.socket())?, dma_channels.config())?;
    start(&mut nic)?;
    nic.open()?;
    nic.wait_link(LINK)?;
    Ok(nic)
}

/// The thread that moves frames between the TAP device and the card; between its turns it
/// attends to whoever else there is.
pub fn drive(
    mut nic: Nic<VfioUser>,
    tap: Tap,
    attend: impl FnMut(&mut Nic<VfioUser>) + Send + 'static,
) -> Worker<NicStatistics> {
    Worker::start(move |stop| {
        bridge::run_attended(&mut nic, &tap, None, stop, attend)?;
        let statistics = nic.statistics()?;
        nic.shut_down()?;
        Ok(statistics)
    })
}
