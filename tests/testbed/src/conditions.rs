//! The conditions of a card that decide its figures: DMA channels and host.

use clap::ValueEnum;
use host_driver::Config;
use serde::{Deserialize, Serialize};
use std::fmt;
use tigon2_sim::workload::host::Host;
use tigon2_sim::workload::testbench::Setup;

/// How many DMA channels move data at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DmaChannels {
    /// Both, whenever both have work
    #[default]
    Both,
    /// One at a time: bit 6 of the operating mode, as in the timing model's calibration
    One,
}

impl DmaChannels {
    /// Whether it is one at a time.
    pub fn is_one(self) -> bool {
        self == DmaChannels::One
    }

    /// The configuration of a driver.
    pub fn of(config: &Config) -> DmaChannels {
        if config.mode.one_dma() {
            DmaChannels::One
        } else {
            DmaChannels::Both
        }
    }

    /// The driver's usual choices, and this one.
    pub fn config(self) -> Config {
        let usual = Config::default();
        Config {
            mode: usual.mode.with_one_dma(self.is_one()),
            ..usual
        }
    }
}

impl fmt::Display for DmaChannels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DmaChannels::Both => "both DMA channels at once",
            DmaChannels::One => "one DMA channel at a time",
        })
    }
}

/// Whose host the simulated card has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostKind {
    /// This project's driver with its own rings
    #[default]
    Driver,
    /// That of the timing model's calibration: 256 + 256 buffers, mini and jumbo rings, buffers
    /// given back once a service
    Calibration,
}

/// What simulated figures are measured under.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Conditions {
    /// The DMA channels.
    pub dma_channels: DmaChannels,
    /// The host.
    pub host: HostKind,
}

impl Conditions {
    /// An experiment under these.
    pub fn of<'a>(&self, setup: Setup<'a>) -> Setup<'a> {
        Setup {
            one_dma: self.dma_channels.is_one(),
            host: match self.host {
                HostKind::Driver => Host::Driver,
                HostKind::Calibration => Host::Calibration,
            },
            ..setup
        }
    }
}

impl fmt::Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = match self.host {
            HostKind::Driver => "this project's driver",
            HostKind::Calibration => "the calibration's host",
        };
        write!(f, "measured with {}, {host}", self.dma_channels)
    }
}
