//! Two Linux hosts joined by a card in queue mode, with a network thread for each queue.
//!
//! ```text
//!   namespace host             this process                 QEMU      namespace peer
//!   TAP queue 0 ===== thread 0, CPU 0 ── receive queue 0 ┐
//!   TAP queue 1 ===== thread 1, CPU 1 ── receive queue 1 ┴ card ==== TAP
//! ```

use crate::card::{Card, CardOptions, Wire};
use crate::conditions::DmaChannels;
use crate::hosts::{HOST, MTU, PEER, status};
use crate::net::namespace::Namespace;
use crate::tools::Tools;
use crate::worker::Worker;
use anyhow::{Context, Result, anyhow, bail};
use host_driver::Nic;
use host_driver::bridge::queues::{self, QueuesPlan, QueuesReport};
use host_driver::nic::{Link, NicStatistics, QueueReport};
use host_driver::status::StatusServer;
use host_driver::tap::Tap;
use host_driver::transport::vfio_user::VfioUser;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

const LINK: Duration = Duration::from_secs(10);

/// What card and driver have counted.
#[derive(Debug)]
pub struct QueueStatistics {
    /// All queues together.
    pub all: NicStatistics,
    /// Each queue.
    pub queues: Vec<QueueReport>,
    /// What the threads moved.
    pub bridge: QueuesReport,
}

/// The running stage; dropping it takes everything down again.
#[derive(Debug)]
pub struct QueueTestbed {
    driver: Worker<QueueStatistics>,
    /// The card itself.
    pub card: Card,
    /// The host whose network device is the card.
    pub host: Namespace,
    /// Name of that device.
    pub host_device: String,
    /// The host at the other end of the wire.
    pub peer: Namespace,
    /// Name of its device.
    pub peer_device: String,
}

impl QueueTestbed {
    /// Starts a card, loads its firmware, opens the queues, waits for the link and puts a
    /// Linux host at either end.
    ///
    /// # Errors
    /// Whatever does not come up.
    pub fn start(tools: &Tools, plan: &QueuesPlan, channels: DmaChannels) -> Result<Self> {
        let pid = std::process::id();
        let (host_device, peer_device) = (format!("tgh{pid}"), format!("tgw{pid}"));
        let host = Namespace::create("host")?;
        let peer = Namespace::create("peer")?;
        let options = CardOptions {
            wire: Wire::Tap(peer_device.clone()),
            ..CardOptions::booting(tools, None)
        };
        let card = Card::start(tools, &options)?;
        peer.adopt(&peer_device, &format!("{PEER}/24"))?;
        let firmware = std::fs::read(&tools.firmware.tg2)
            .with_context(|| format!("cannot read {}", tools.firmware.tg2.display()))?;
        let mut nic = Nic::probe(VfioUser::connect(&card.socket())?, channels.config())?;
        nic.load(&firmware)?;
        let queues = plan.queues.queues.into();
        let taps = Tap::create_queues(&host_device, nic.station(), MTU, false, queues)?;
        host.adopt(&host_device, &format!("{HOST}/24"))?;
        let visitors = StatusServer::bind(&status(&card))?;
        let (link_up, is_up) = mpsc::channel();
        let mut driver = drive(nic, taps, plan.clone(), visitors, link_up);
        match is_up.recv_timeout(LINK) {
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout) => bail!("no link"),
            Err(RecvTimeoutError::Disconnected) => {
                let error = driver.join().err();
                return Err(error.unwrap_or_else(|| anyhow!("the driver ended early")));
            }
        }
        Ok(Self {
            driver,
            card,
            host,
            host_device,
            peer,
            peer_device,
        })
    }

    /// Where the driver answers `tigonctl --attach`.
    pub fn status(&self) -> PathBuf {
        status(&self.card)
    }

    /// Fails if the card or the driver has given up.
    ///
    /// # Errors
    /// Theirs.
    pub fn check(&mut self) -> Result<()> {
        self.card.check()?;
        if self.driver.ended() {
            let error = self.driver.join().err();
            return Err(error.unwrap_or_else(|| anyhow!("the driver ended early")));
        }
        Ok(())
    }

    /// Ends the traffic and returns all counts.
    ///
    /// # Errors
    /// The driver's.
    pub fn finish(mut self) -> Result<QueueStatistics> {
        self.driver.join()
    }
}

/// The thread that has control; it says when the link is up.
fn drive(
    nic: Nic<VfioUser>,
    taps: Vec<Tap>,
    plan: QueuesPlan,
    visitors: StatusServer,
    link_up: mpsc::Sender<()>,
) -> Worker<QueueStatistics> {
    Worker::start(move |stop| {
        let mut link_up = Some(link_up);
        let (mut nic, bridge) = queues::run(nic, &taps, &plan, stop, |control, _| {
            visitors.serve(control);
            if control.link() != Link::Down
                && let Some(link_up) = link_up.take()
            {
                let _ = link_up.send(());
            }
        })?;
        let queues = nic.queue_reports()?;
        let all = nic.statistics()?;
        nic.shut_down()?;
        Ok(QueueStatistics {
            all,
            queues,
            bridge,
        })
    })
}
