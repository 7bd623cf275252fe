//! The host of a card under load: the setup of its driver.

use host_driver::Config;
use host_driver::nic::{GiveBack, JumboRing};

/// Longest frame of the calibration's mini ring, without CRC.
const MINI: u16 = 198;
/// Buffers of its standard ring, and of its mini ring.
const BUFFERS: u16 = 256;

/// The host that a card is measured with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Host {
    /// This project's driver with its own rings.
    #[default]
    Driver,
    /// That of the timing model's calibration: 256 standard and 256 mini buffers, a jumbo
    /// ring that stays empty at this MTU, and the card is told of buffers once a service.
    Calibration,
}

impl Host {
    /// The driver's configuration, with one DMA channel at a time if `one_dma`.
    pub(super) fn config(self, one_dma: bool) -> Config {
        let usual = Config::default();
        let config = Config {
            mode: usual.mode.with_one_dma(one_dma),
            ..usual
        };
        match self {
            Host::Driver => config,
            Host::Calibration => Config {
                receive_buffers: BUFFERS,
                mini: Some(MINI),
                mini_buffers: BUFFERS,
                jumbo: JumboRing::Normal,
                give_back: GiveBack::EachTime,
                ..config
            },
        }
    }
}
