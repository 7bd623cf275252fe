//! Connects to a card and keeps it serviced.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use host_driver::nic::{Notice, SendConsumer};
use host_driver::transport::vfio::{Isolation, Vfio};
use host_driver::transport::vfio_user::VfioUser;
use host_driver::{Config, Nic, Transport};

use super::cli::Arguments;

/// A card behind any transport.
pub type AnyNic = Nic<Box<dyn Transport>>;

/// Rejects a command that needs the card itself but was given `--attach`.
pub fn needs_the_card(arguments: &Arguments) -> Result<()> {
    if arguments.attach.is_some() {
        bail!("this needs the card itself; through --attach it can only be looked at");
    }
    Ok(())
}

/// Opens the transport to the card that the arguments name.
pub fn transport(arguments: &Arguments) -> Result<Box<dyn Transport>> {
    needs_the_card(arguments)?;
    if let Some(address) = arguments.pci {
        let card = Vfio::open(address)?;
        if card.isolation() == Isolation::None {
            eprintln!(
                "tigonctl: no IOMMU: {address} works with physical addresses and can reach \
                 all memory of this machine"
            );
        }
        return Ok(Box::new(card));
    }
    let Some(socket) = &arguments.socket else {
        bail!("which card? Name its socket with --socket PATH or its place with --pci ADDRESS");
    };
    Ok(Box::new(VfioUser::connect(socket)?))
}

/// Connects to the card that the arguments name.
pub fn connect(arguments: &Arguments, mut config: Config) -> Result<AnyNic> {
    if arguments.consumer_by_register {
        config.send_consumer = SendConsumer::Register;
    }
    if arguments.polling {
        config.notice = Notice::Polling;
    }
    Ok(Nic::probe(transport(arguments)?, config)?)
}

/// Services the card for a time, or until the stop flag is set.
pub fn discard_for(nic: &mut AnyNic, time: Duration, stop: &AtomicBool) -> Result<()> {
    let start = Instant::now();
    while start.elapsed() < time && !stop.load(Ordering::Relaxed) {
        discard(nic)?;
    }
    Ok(())
}

/// Services the card for a moment; received frames are discarded.
pub fn discard(nic: &mut AnyNic) -> Result<()> {
    nic.wait(Duration::from_millis(20))?;
    nic.service()?;
    nic.receive(64, |_| Ok(()))?;
    Ok(())
}

/// A time from the command line.
pub fn seconds(value: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(value).with_context(|| format!("{value} is no time in seconds"))
}
