//! Sets up the guest's network: it loads the kernel's driver and brings up a device with an
//! address.

use super::Guest;
use anyhow::{Context, Result, bail};
use std::time::Duration;

/// How long the driver and the firmware may take until the link is there. The
/// firmware needs a tenth of a second of it.
const LINK: Duration = Duration::from_secs(30);

impl Guest {
    /// Loads the kernel's driver; the cards become `eth0`, `eth1` and so on.
    ///
    /// # Errors
    /// When it does not take every card; with what the kernel says of them.
    pub fn load_driver(&self, cards: usize) -> Result<()> {
        let loaded = self.run("modprobe acenic", LINK)?;
        let devices = self.sh("ls /sys/class/net")?;
        let missing = (0..cards).find(|number| {
            let name = format!("eth{number}");
            !devices.split_whitespace().any(|device| device == name)
        });
        if let Some(number) = missing {
            bail!(
                "the driver does not take card {number}: {}{}",
                loaded.stderr,
                self.driver_words()?
            );
        }
        Ok(())
    }

    /// Brings a device up with an address (`10.0.0.1/24`) and waits for its link.
    ///
    /// # Errors
    /// When it does not come up, with what the kernel says of it.
    pub fn bring_up(&self, device: &str, address: &str) -> Result<()> {
        self.sh(&format!(
            "ip address add {address} dev {device} && ip link set {device} up"
        ))
        .with_context(|| self.driver_words().unwrap_or_default())?;
        self.await_carrier(device, LINK)
    }

    /// Waits until a device has a link.
    ///
    /// # Errors
    /// When it does not come in time, with what the kernel says of it.
    pub fn await_carrier(&self, device: &str, limit: Duration) -> Result<()> {
        // The card's driver does not tell the kernel of its carrier, but it tells
        // ethtool of its speed.
        let carrier = format!(
            "i=0; until ethtool {device} | grep -q 'Speed: [1-9]'; do \
             i=$((i+1)); [ $i -gt {} ] && exit 1; sleep 0.1; done",
            limit.as_millis() / 100
        );
        // The loop counts its sleeps only, and on a busy machine the rest of
        // it takes its time too.
        if self.run(&carrier, 3 * limit)?.status != 0 {
            bail!(
                "{device} has no link; the kernel says: {}",
                self.driver_words()?
            );
        }
        Ok(())
    }

    /// What the kernel has said of the driver and its cards, lately.
    fn driver_words(&self) -> Result<String> {
        self.sh("dmesg | grep -iE 'acenic|eth[0-9]|firmware' | tail -n 8; true")
    }
}
