//! The QEMU options that attach the card to a `qemu-system-x86_64`.
//!
//! QEMU 10.1 and later have a vfio-user client, `vfio-user-pci`, which is used where it is
//! available; otherwise the overlay's `tigon2-vfio-user` with the library of `qemu/client`.

use crate::process;
use anyhow::{Context, Result, bail};
use serde_json::json;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// QEMU's own client device.
const STOCK: &str = "vfio-user-pci";
/// Ours.
const OURS: &str = "tigon2-vfio-user";

/// The first card's slot on the PC's PCI bus; what else the guest has gets lower ones
/// by itself.
const FIRST_SLOT: usize = 0x10;
/// The chip set is at the end of the bus.
const SLOTS: usize = 0x1F - FIRST_SLOT;

const LIMIT: Duration = Duration::from_secs(30);

/// The words of QEMU's command line for the card number `index` behind `socket`. Cards
/// are found by a guest in the order of their numbers, as devices `card0`, `card1`, ...
///
/// `client` is the library that [`crate::tools::build_client`] builds.
///
/// # Errors
/// If `qemu` cannot be run or has no device for a card, or there is no slot left.
pub fn card_device(qemu: &Path, client: &Path, socket: &Path, index: usize) -> Result<Vec<String>> {
    let list = process::output(
        Command::new(qemu).args(["-machine", "none", "-device", "help"]),
        LIMIT,
    )
    .with_context(|| format!("{} does not tell its devices", qemu.display()))?;
    let device = choose(&list).with_context(|| {
        format!(
            "{} has neither {STOCK} nor {OURS}: it cannot be given a card",
            qemu.display()
        )
    })?;
    words(device, client, socket, index)
}

/// The better one of the devices in the answer to `-device help`.
fn choose(list: &str) -> Option<&'static str> {
    let has = |device: &&str| list.contains(&format!("name \"{device}\""));
    [STOCK, OURS].into_iter().find(has)
}

fn words(device: &str, client: &Path, socket: &Path, index: usize) -> Result<Vec<String>> {
    if index >= SLOTS {
        bail!("a guest has room for {SLOTS} cards");
    }
    let (id, slot) = (format!("card{index}"), format!("{:#x}", FIRST_SLOT + index));
    let socket = text(socket)?;
    let value = if device == STOCK {
        json!({
            "driver": device,
            "id": id,
            "addr": slot,
            "socket": { "type": "unix", "path": socket },
        })
        .to_string()
    } else {
        // In this form of QEMU's options a comma is written twice.
        let (socket, client) = (socket.replace(',', ",,"), text(client)?.replace(',', ",,"));
        format!("{device},id={id},addr={slot},socket={socket},library={client}")
    };
    Ok(vec!["-device".into(), value])
}

fn text(path: &Path) -> Result<&str> {
    path.to_str()
        .with_context(|| format!("{} is not UTF-8", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN_ZERO: &str = "name \"e1000\", bus PCI\nname \"tigon2-vfio-user\", bus PCI\n";

    #[test]
    fn the_stock_device_is_taken_where_it_is_there() {
        assert_eq!(choose(TEN_ZERO), Some(OURS));
        let later = format!("{TEN_ZERO}name \"vfio-user-pci\", bus PCI\n");
        assert_eq!(choose(&later), Some(STOCK));
        assert_eq!(choose("name \"e1000\", bus PCI\n"), None);
    }

    #[test]
    fn our_device_is_told_its_socket_and_its_library() -> Result<()> {
        let (client, socket) = (Path::new("/a/client.so"), Path::new("/b,c/sock"));
        assert_eq!(
            words(OURS, client, socket, 1)?,
            [
                "-device",
                "tigon2-vfio-user,id=card1,addr=0x11,socket=/b,,c/sock,library=/a/client.so",
            ]
        );
        Ok(())
    }

    #[test]
    fn the_stock_device_is_told_its_socket() -> Result<()> {
        let words = words(STOCK, Path::new("/a"), Path::new("/b,c/sock"), 0)?;
        let value: serde_json::Value = serde_json::from_str(&words[1])?;
        assert_eq!(value["driver"], "vfio-user-pci");
        assert_eq!(value["socket"]["path"], "/b,c/sock");
        assert_eq!(value["addr"], "0x10");
        Ok(())
    }

    #[test]
    fn a_bus_has_an_end() {
        assert!(words(OURS, Path::new("/a"), Path::new("/b"), SLOTS - 1).is_ok());
        assert!(words(OURS, Path::new("/a"), Path::new("/b"), SLOTS).is_err());
    }
}
