//! Commands about the card itself.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use host_driver::Config;
use host_driver::nic::Identity;
use host_driver::status::CardAnswer;
use serde_json::{Value, json};

use super::cli::Arguments;
use super::connect::connect;
use super::look::Source;
use super::output::{Output, link_text, station_text};
use super::session::read_firmware;

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

/// `info` for a card that another process drives, with its firmware and link.
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

/// A card's identity, for programs and for people.
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
