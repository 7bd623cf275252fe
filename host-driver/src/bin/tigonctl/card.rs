//! Commands that look at the card itself.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use host_driver::flash::signature::TrustedKey;
use host_driver::nic::{Identity, Link, Notice, SendConsumer};
use host_driver::status::CardAnswer;
use host_driver::transport::vfio::{Isolation, Vfio};
use host_driver::transport::vfio_user::VfioUser;
use host_driver::{Config, Nic, Transport};
use serde_json::{Value, json};

use super::cli::{Arguments, RunOptions};
use super::look::Source;
use super::output::Output;
use super::{log, stats};

/// A card, wherever it is.
pub type AnyNic = Nic<Box<dyn Transport>>;

/// Refuses to look at a card through another process.
fn needs_the_card(arguments: &Arguments) -> Result<()> {
    if arguments.attach.is_some() {
        bail!("this needs the card itself; through --attach it can only be looked at");
    }
    Ok(())
}

/// Opens the way to the card that the arguments name.
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

/// Reads a firmware file.
pub fn read_firmware(path: &Path) -> Result<Vec<u8>> {
    let file = std::fs::read(path).with_context(|| format!("firmware {}", path.display()))?;
    host_interface::image::Image::parse(&file)
        .with_context(|| format!("firmware {} is refused", path.display()))?;
    Ok(file)
}

/// Connects, loads, opens and waits for the link.
pub fn bring_up(arguments: &Arguments, options: &RunOptions) -> Result<AnyNic> {
    // First what can fail without a card.
    needs_the_card(arguments)?;
    if options.firmware.is_none() && !options.own {
        bail!("which firmware? Name a file with --firmware FILE or take the card's --own");
    }
    let firmware = options.firmware.as_deref().map(read_firmware).transpose()?;
    let elf = options.elf.as_deref();
    let texts = elf.map(log::read_texts).transpose()?;
    let mut config = Config::default();
    options.apply(&mut config);
    let key = options.require_key.as_deref();
    config.required_key = key.map(TrustedKey::required).transpose()?;
    let mut nic = connect(arguments, config)?;
    match &firmware {
        Some(firmware) => nic.load(firmware)?,
        None => {
            nic.boot()?;
        }
    }
    // Not when the work is done.
    if let (Some(elf), Some(texts), Some(block)) = (elf, &texts, nic.log_block()?) {
        let named = || format!("ELF file {}", elf.display());
        texts.check(block.build).with_context(named)?;
    }
    nic.open()?;
    nic.set_all_multicast(true)?;
    if options.promiscuous {
        nic.set_promiscuous(true)?;
    }
    nic.wait_link(Duration::from_secs(options.link_timeout))?;
    Ok(nic)
}

/// Prints the log if there are texts, all counts, and halts the card.
pub fn finish(mut nic: AnyNic, options: &RunOptions, output: &Output) -> Result<()> {
    if let Some(elf) = &options.elf {
        log::print_rest(&mut nic, elf, output)?;
    }
    let statistics = nic.statistics()?;
    stats::print(&statistics, output)?;
    nic.shut_down()?;
    Ok(())
}

/// An address as people write it.
pub fn station_text(station: [u8; 6]) -> String {
    station.map(|byte| format!("{byte:02x}")).join(":")
}

/// The link as people name it.
pub fn link_text(link: Link) -> &'static str {
    match link {
        Link::Down => "down",
        Link::Gigabit => "1000 Mb/s",
        Link::Fast => "10/100 Mb/s",
    }
}

/// `tigonctl info`
pub fn info(arguments: &Arguments, output: &Output) -> Result<()> {
    if arguments.attach.is_some() {
        return attached_info(arguments, output);
    }
    let nic = connect(arguments, Config::default())?;
    let (value, text) = identity(nic.identity());
    output.result("info", value, &text);
    nic.shut_down()?;
    Ok(())
}

/// The same of a card that another process drives, and what it runs.
fn attached_info(arguments: &Arguments, output: &Output) -> Result<()> {
    let card: CardAnswer = Source::open(arguments)?.card()?;
    let (mut value, mut text) = identity(&card.identity);
    let link = link_text(card.link);
    value["driver"] = card.process.into();
    value["firmware_version"] = card.firmware_version.clone().into();
    value["link"] = serde_json::to_value(card.link)?;
    text += &format!(
        "\ndriven by process {}: firmware {}, link {link}",
        card.process, card.firmware_version
    );
    if card.station != card.identity.station {
        let station = station_text(card.station);
        text += &format!(", as station {station}");
        value["station_in_use"] = station.into();
    }
    output.result("info", value, &text);
    Ok(())
}

/// What a card is, for programs and for people.
fn identity(identity: &Identity) -> (Value, String) {
    let station = station_text(identity.station);
    let bits = if identity.bus_64bit { 64 } else { 32 };
    let megahertz = if identity.bus_66mhz { 66 } else { 33 };
    let text = format!(
        "card {:04x}:{:04x}, Tigon II revision {}, station {station}, {bits}-bit PCI at {megahertz} MHz",
        identity.vendor, identity.device, identity.revision,
    );
    let value = json!({
        "vendor": identity.vendor,
        "device": identity.device,
        "revision": identity.revision,
        "station": station,
        "bus_bits": bits,
        "bus_mhz": megahertz,
    });
    (value, text)
}

/// `tigonctl reset`
pub fn reset(arguments: &Arguments, output: &Output) -> Result<()> {
    connect(arguments, Config::default())?.shut_down()?;
    output.result("reset", json!({}), "reset, both CPUs halted");
    Ok(())
}

/// `tigonctl load`
pub fn load(arguments: &Arguments, firmware: &Path, output: &Output) -> Result<()> {
    let file = read_firmware(firmware)?;
    let mut nic = connect(arguments, Config::default())?;
    let start = Instant::now();
    nic.load(&file)?;
    let milliseconds = start.elapsed().as_millis();
    let version = nic.firmware_version();
    let ours = nic.has_extension();
    let origin = if ours { "tigon-rs" } else { "other" };
    let text = format!("firmware {version} ({origin}) operational after {milliseconds} ms");
    let value = json!({
        "version": version,
        "extension": ours,
        "milliseconds": u64::try_from(milliseconds).unwrap_or(u64::MAX),
    });
    output.result("load", value, &text);
    nic.shut_down()?;
    Ok(())
}

/// Serves the card for a time, or until it is told to stop.
pub fn discard_for(nic: &mut AnyNic, time: Duration, stop: &AtomicBool) -> Result<()> {
    let start = Instant::now();
    while start.elapsed() < time && !stop.load(Ordering::Relaxed) {
        discard(nic)?;
    }
    Ok(())
}

/// Serves the card for a moment; what it receives is thrown away.
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
