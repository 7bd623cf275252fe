//! State words of transfers, as in vendor firmware.
//!
//! Hardware reference, section 6.1. The host chooses FIFO thresholds and swaps in gencom.

use host_interface::OperatingMode;
use host_interface::gencom::Gencom;
use tigon2_chip::bits::DmaState;
use tigon2_hal::Bus;

/// Bits of a data state word that control the channel's checksum.
pub struct Sum;

impl Sum {
    /// The channel adds the bytes to its sum.
    pub const ON: u32 = DmaState::new().with_checksum(true).into_bits();
    /// With [`ON`](Self::ON): the sum restarts at 0, at the first bytes of a frame.
    pub const BEGINS: u32 = DmaState::new().with_restart_checksum(true).into_bits();
    /// With [`ON`](Self::ON): the channel returns the sum with the descriptor, see
    /// [`DescriptorRing::store_sum`](tigon2_hal::assist::DescriptorRing::store_sum).
    pub const STORED: u32 = DmaState::new().with_store_checksum(true).into_bits();
}

/// The fields that gencom's DMA configurations may set: FIFO threshold and 32-bit PCI.
const CONFIGURABLE: u32 = DmaState::new()
    .with_threshold(31)
    .with_force_32bit(true)
    .into_bits();
const START: DmaState = DmaState::new().with_start(true);

/// State words of transfers from the host, those of vendor firmware (6.1).
#[derive(Clone, Copy, Debug)]
pub struct ReadStates {
    /// Reading BDs.
    pub words: u32,
    /// Reading a fragment of a frame.
    pub data: u32,
    /// Reading the last fragment of a frame: also advances the MAC's TX producer.
    pub last: u32,
}

impl ReadStates {
    /// From the gencom DMA configuration, and from whether each kind of data is transferred without
    /// byte swap.
    pub const fn new(read: u32, words_no_swap: bool, data_no_swap: bool) -> ReadStates {
        let read = read & CONFIGURABLE;
        let data = START.with_no_swap(data_no_swap);
        ReadStates {
            words: read | START.with_no_swap(words_no_swap).into_bits(),
            data: read | data.into_bits(),
            last: read | data.with_end_of_frame(true).into_bits(),
        }
    }

    /// From the host's configuration in gencom.
    pub fn configured<B: Bus>(bus: &mut B) -> ReadStates {
        let config = bus.load(Gencom::DmaReadConfig.nic_address());
        let mode = OperatingMode::from_bits(bus.load(Gencom::OperatingMode.nic_address()));
        ReadStates::new(config, !mode.byte_swap_bd(), !mode.byte_swap_data())
    }
}

/// State words of transfers to the host, those of vendor firmware (6.1).
#[derive(Clone, Copy, Debug)]
pub struct WriteStates {
    /// Writing BDs, indices, events, statistics.
    pub words: u32,
    /// Writing a received frame: also frees it in the receive buffer.
    pub data: u32,
}

impl WriteStates {
    /// From the gencom DMA configuration, and from whether each kind of data is transferred without
    /// byte swap.
    pub const fn new(write: u32, words_no_swap: bool, data_no_swap: bool) -> WriteStates {
        let write = write & CONFIGURABLE;
        let end = START.with_end_of_frame(true);
        let data = end.with_no_swap(data_no_swap).with_free_rx_buffer(true);
        WriteStates {
            words: write | end.with_no_swap(words_no_swap).into_bits(),
            data: write | data.into_bits(),
        }
    }

    /// From the host's configuration in gencom.
    pub fn configured<B: Bus>(bus: &mut B) -> WriteStates {
        let config = bus.load(Gencom::DmaWriteConfig.nic_address());
        let mode = OperatingMode::from_bits(bus.load(Gencom::OperatingMode.nic_address()));
        WriteStates::new(config, !mode.byte_swap_bd(), !mode.byte_swap_data())
    }
}
