//! Options of every command that runs the card.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use host_driver::Config;
use host_driver::nic::{ChecksumOffload, MAX_MTU, SendRingPlace};

/// The heading of these options.
pub const HEADING: &str = "Running the card";

/// Options of every command that runs traffic. They come last in a command's options, because
/// their heading applies to all options after it.
#[derive(Debug, Args)]
#[command(next_help_heading = HEADING)]
pub struct RunOptions {
    /// The firmware (tg2.bin).
    #[arg(long, value_name = "FILE")]
    pub firmware: Option<PathBuf>,
    /// Let the card boot the firmware in its own EEPROM.
    #[arg(long, conflicts_with = "firmware")]
    pub own: bool,
    /// Start that firmware only if it is signed with this public key.
    #[arg(
        long,
        value_name = "FILE",
        requires = "own",
        conflicts_with = "firmware"
    )]
    pub require_key: Option<PathBuf>,
    /// The firmware's ELF file: its log is printed at the end.
    #[arg(long, value_name = "FILE", env = "TIGON_ELF")]
    pub elf: Option<PathBuf>,
    /// Accept all frames on the wire, not only the card's own.
    #[arg(long)]
    pub promiscuous: bool,
    /// How long to wait for the link, in seconds.
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    pub link_timeout: u64,
    /// Frames of up to 9000 bytes, with the jumbo ring.
    #[arg(long)]
    pub jumbo: bool,
    /// Largest packet, in bytes; above 2030 with the jumbo ring.
    #[arg(long, value_name = "BYTES", conflicts_with = "jumbo",
          value_parser = clap::value_parser!(u16).range(68..=MAX_MTU as i64))]
    pub mtu: Option<u16>,
    /// Receive frames of up to this many bytes in the mini ring.
    #[arg(long, value_name = "BYTES", num_args = 0..=1, default_missing_value = "128",
          value_parser = clap::value_parser!(u16).range(60..=1024))]
    pub mini: Option<u16>,
    /// Send with this VLAN tag, which the card inserts, and receive frames with it.
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(u16).range(1..=4094))]
    pub vlan: Option<u16>,
    /// Let the card compute the checksums in both directions.
    #[arg(long, value_name = "WHICH", value_enum, num_args = 0..=1,
          default_missing_value = "linux")]
    pub offload: Option<Offload>,
    /// Keep the send ring in the card's memory.
    #[arg(long)]
    pub card_send_ring: bool,
    /// Loop frames back at the card's end of the cable.
    #[arg(long)]
    pub loopback: bool,
    /// Reserve this many KB for extensions, beside the firmware's arena.
    #[arg(long, value_name = "KB", default_value = "0",
          value_parser = clap::value_parser!(u16).range(0..=256))]
    pub arena: u16,
    /// What the firmware traces: the mask of gencom word 644.
    #[arg(long, value_name = "MASK", value_parser = number, default_value = "0")]
    pub trace_mask: u32,
}

/// The checksums that the card computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Offload {
    /// TCP and UDP without the pseudo-header, as Linux requests.
    Linux,
    /// TCP, UDP and IPv4, with the pseudo-header.
    Full,
}

/// A number, hexadecimal with `0x`.
pub fn number(text: &str) -> Result<u32, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|_| format!("{text} is no number of 32 bits"))
}

impl RunOptions {
    /// Applies the options to a configuration.
    pub fn apply(&self, config: &mut Config) {
        if self.jumbo {
            config.mtu = MAX_MTU;
        }
        if let Some(mtu) = self.mtu {
            config.mtu = mtu;
        }
        config.mini = self.mini;
        config.vlan = self.vlan.is_some();
        let offload = match self.offload {
            None => ChecksumOffload::NONE,
            Some(Offload::Linux) => ChecksumOffload::LINUX,
            Some(Offload::Full) => ChecksumOffload::FULL,
        };
        config.send_checksums = offload;
        config.receive_checksums = offload;
        if self.card_send_ring {
            config.send_ring_place = SendRingPlace::Card;
        }
        config.link = config.link.with_loopback(self.loopback);
        config.arena = self.arena;
        config.trace_mask = self.trace_mask;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Arguments, Command};

    #[test]
    fn choices_become_a_configuration() {
        let words = "tigonctl --pci 00:03.0 stats --firmware x --jumbo --mini --vlan 5 \
                     --offload --card-send-ring --loopback --arena 128 --trace-mask 0x10";
        let arguments =
            Arguments::read(words.split_whitespace().map(Into::into)).expect("good words");
        let Command::Stats(options) = &arguments.command else {
            panic!("another command");
        };
        let mut config = Config::default();
        options.run.apply(&mut config);
        assert_eq!(
            (config.mtu, config.mini, config.vlan),
            (9000, Some(128), true)
        );
        assert_eq!(config.send_checksums, ChecksumOffload::LINUX);
        assert_eq!(config.send_ring_place, SendRingPlace::Card);
        assert!(config.link.gigabit.loopback());
        assert_eq!((config.arena, config.trace_mask), (128, 16));
        for wrong in [
            "tigonctl --pci 3 info",
            "tigonctl stats --own --firmware x",
            "tigonctl flash --eeprom x install y --slot 2",
            "tigonctl flash --board 12ae info",
            "tigonctl stats --firmware x --require-key k",
            "tigonctl --pci 00:03.0 --socket s info",
            "tigonctl stats --firmware x --mtu 9001",
            "tigonctl stats --firmware x --vlan 0",
            "tigonctl stats --firmware x --trace-mask 0x1ffffffff",
        ] {
            assert!(
                Arguments::read(wrong.split_whitespace().map(Into::into)).is_err(),
                "{wrong}"
            );
        }
    }
}
