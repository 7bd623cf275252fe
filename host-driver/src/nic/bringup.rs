//! Brings a PCI function up to running firmware, as kernel drivers do.
//!
//! Host/NIC software interface, "What an unmodified driver does at start": identify, reset, halt,
//! read the station address, load through the window, fill in gencom, start CPU A. [`super::Nic`]
//! calls these functions in order.

use host_interface::extension::{Extension, Reserved};
use host_interface::gencom::{Gencom, mac_words};
use host_interface::image::{HIGHEST, Image};
use host_interface::{DmaConfig, bar, pci};
use serde::{Deserialize, Serialize};
use tigon2_chip::Cpu;
use tigon2_chip::bits::{
    AssistState, CpuState, MiscConfig, MiscHostControl, MiscLocalControl, REVISION_TIGON_II,
};
use tigon2_chip::registers::Register;

use super::config::{Config, Notice};
use super::error::NicError;
use super::sizes::FRAME_OVERHEAD;
use super::window;
use crate::transport::Transport;

/// Configuration space: command and status.
const PCI_COMMAND: u32 = 0x04;
/// Command bits: memory space, bus master, parity and system error response.
const PCI_COMMAND_BITS: u32 = 0x0002 | 0x0004 | 0x0040 | 0x0100;
/// Configuration space: cache line size (in words), latency timer.
const PCI_CACHE_LINE: u32 = 0x0C;
/// SRAM bank size code that drivers write: 512 KB (Hardware reference, section 9).
const SRAM_BANK: u8 = 2;
/// First NIC address that drivers clear: the send ring.
const CLEAR_FROM: u32 = 0x2000;
/// DMA thresholds that drivers write, in 32-bit words.
const DMA_THRESHOLD: u8 = 8;
/// The value of PciState in drivers: bus commands, no limit on bursts.
const PCI_STATE: u32 = 0x7602_0000;
/// The driver's number of this interface.
const INTERFACE_INDEX: u32 = 1;

/// The identity of a card, known before firmware runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// PCI vendor.
    pub vendor: u16,
    /// PCI device.
    pub device: u16,
    /// Chip revision: 6 is Tigon II.
    pub revision: u8,
    /// Station address from the serial EEPROM.
    pub station: [u8; 6],
    /// Whether the bus is 64 bits wide.
    pub bus_64bit: bool,
    /// Whether the bus runs at 66 MHz.
    pub bus_66mhz: bool,
}

/// Checks the ids in configuration space; writes nothing.
pub(super) fn identify<T: Transport>(transport: &mut T) -> Result<(u16, u16), NicError> {
    let ids = transport.config_read(0)?;
    let (vendor, device) = (ids as u16, (ids >> 16) as u16);
    if pci::ACCEPTED.contains(&(vendor, device)) {
        Ok((vendor, device))
    } else {
        Err(NicError::UnknownDevice { vendor, device })
    }
}

/// Enables the function, resets the chip and leaves both CPUs halted. Returns the chip's revision.
pub(super) fn reset<T: Transport>(transport: &mut T) -> Result<u8, NicError> {
    transport.reset()?;
    let command = transport.config_read(PCI_COMMAND)?;
    // The upper half is status: writing ones would clear it.
    transport.config_write(PCI_COMMAND, command & 0xFFFF | PCI_COMMAND_BITS)?;
    let line = transport.config_read(PCI_CACHE_LINE)? & 0xFFFF_0000;
    let words = u32::from(pci::CACHE_LINE_BYTES) / 4;
    transport.config_write(
        PCI_CACHE_LINE,
        line | u32::from(pci::LATENCY_TIMER) << 8 | words,
    )?;

    restart(transport)?;
    let host_control = Register::MiscHostControl.offset();
    let revision = MiscHostControl::from_bits(transport.read(host_control)?).revision();
    if revision != REVISION_TIGON_II {
        return Err(NicError::WrongRevision { found: revision });
    }
    halt(transport)?;
    let local = MiscLocalControl::new().with_sram_bank(SRAM_BANK);
    transport.write(Register::MiscLocalControl.offset(), local.into_bits())?;
    let config = MiscConfig::new().with_synchronous_sram(true);
    transport.write(Register::MiscConfig.offset(), config.into_bits())?;
    Ok(revision)
}

/// Resets the chip as the last access to a card that boots by itself.
pub(super) fn restart<T: Transport>(transport: &mut T) -> Result<(), NicError> {
    // The first two writes are mirrored in the top byte, so that they work in either byte order.
    let mirrored = |control: MiscHostControl| control.into_bits() * 0x0100_0001;
    let host_control = Register::MiscHostControl.offset();
    let strobe = MiscHostControl::new().with_reset(true);
    transport.write(host_control, mirrored(strobe))?;
    transport.read(host_control)?;
    let order = MiscHostControl::new()
        .with_clear_interrupt(true)
        .with_word_swap(true);
    transport.write(host_control, mirrored(order))?;
    Ok(())
}

/// Halts both CPUs.
pub(super) fn halt<T: Transport>(transport: &mut T) -> Result<(), NicError> {
    for cpu in [Cpu::A, Cpu::B] {
        let register = Register::cpu_state(cpu).offset();
        let state = CpuState::from_bits(transport.read(register)?).with_halt(true);
        transport.write(register, state.into_bits())?;
    }
    transport.write(bar::MAILBOX_HOST_INTERRUPT, 0)?;
    Ok(())
}

/// Whether CPU A has halted.
pub(super) fn is_halted<T: Transport>(transport: &mut T) -> Result<bool, NicError> {
    let state = transport.read(Register::cpu_state(Cpu::A).offset())?;
    Ok(state >> 16 != 0)
}

/// Clears NIC memory and copies the image. CPU A must be halted.
pub(super) fn load<T: Transport>(transport: &mut T, image: &Image<'_>) -> Result<(), NicError> {
    window::clear(transport, CLEAR_FROM, HIGHEST - CLEAR_FROM)?;
    let words: Vec<u32> = image.words().map(|(_, word)| word).collect();
    window::write(transport, image.load(), &words)?;
    Ok(())
}

/// Writes the configuration to gencom.
pub(super) fn configure<T: Transport>(
    transport: &mut T,
    config: &Config,
    info: u64,
    station: [u8; 6],
) -> Result<(), NicError> {
    // Clears what an earlier firmware left: its commands, indices and report.
    let zeros = [0; 64];
    transport.write_block(bar::GENCOM, &zeros)?;
    transport.write_block(bar::COMMAND_RING, &zeros)?;
    if config.arena != 0 {
        let asked = Reserved::asked(config.arena);
        transport.write(Extension::Arena.bar_offset(), asked)?;
    }
    fill_gencom(transport, config, info, station)
}

/// As [`configure`], for firmware that already runs and uses the extension words.
pub(super) fn configure_own<T: Transport>(
    transport: &mut T,
    config: &Config,
    info: u64,
    station: [u8; 6],
) -> Result<(), NicError> {
    let zeros = [0; 64];
    let gencom = (host_interface::extension::BASE - host_interface::gencom::BASE) / 4;
    transport.write_block(bar::GENCOM, &zeros[..gencom as usize])?;
    transport.write_block(bar::COMMAND_RING, &zeros)?;
    clear_mailboxes(transport)?;
    fill_gencom(transport, config, info, station)
}

fn fill_gencom<T: Transport>(
    transport: &mut T,
    config: &Config,
    info: u64,
    station: [u8; 6],
) -> Result<(), NicError> {
    let mode = config
        .mode
        .with_byte_swap_bd(false)
        .with_byte_swap_data(cfg!(target_endian = "little"))
        .with_word_swap_bd(true);
    let dma = DmaConfig::new()
        .with_threshold_words(DMA_THRESHOLD)
        .into_bits();
    let (mac_high, mac_low) = mac_words(station);
    let words = [
        (Gencom::OperatingMode, mode.into_bits()),
        (Gencom::MacAddressHigh, mac_high),
        (Gencom::MacAddressLow, mac_low),
        (Gencom::InfoHigh, (info >> 32) as u32),
        (Gencom::InfoLow, info as u32),
        (Gencom::DmaReadConfig, dma),
        (Gencom::DmaWriteConfig, dma),
        (
            Gencom::TransmitShare,
            u32::from(config.transmit_share.min(63)),
        ),
        (Gencom::TraceMask, config.trace_mask),
        (Gencom::InterfaceIndex, INTERFACE_INDEX),
        (
            Gencom::InterfaceMtu,
            u32::from(config.mtu) + u32::from(FRAME_OVERHEAD),
        ),
        (
            Gencom::MaskInterrupts,
            u32::from(config.notice == Notice::Polling),
        ),
    ];
    let tuning = config.coalescing.words();
    let link = config.link.words();
    for (word, value) in words.into_iter().chain(tuning).chain(link) {
        transport.write(word.bar_offset(), value)?;
    }
    transport.write(Register::PciState.offset(), PCI_STATE)?;
    Ok(())
}

/// Starts CPU A.
pub(super) fn start<T: Transport>(transport: &mut T, start: u32) -> Result<(), NicError> {
    clear_mailboxes(transport)?;
    start_cpu(transport, start)
}

fn clear_mailboxes<T: Transport>(transport: &mut T) -> Result<(), NicError> {
    for mailbox in [
        bar::MAILBOX_HOST_INTERRUPT,
        bar::MAILBOX_COMMAND_PRODUCER,
        bar::MAILBOX_SEND_PRODUCER,
        bar::MAILBOX_STANDARD_PRODUCER,
        bar::MAILBOX_JUMBO_PRODUCER,
        bar::MAILBOX_MINI_PRODUCER,
    ] {
        transport.write(mailbox, 0)?;
    }
    Ok(())
}

fn start_cpu<T: Transport>(transport: &mut T, start: u32) -> Result<(), NicError> {
    transport.write(Register::cpu_pc(Cpu::A).offset(), start)?;
    let assist = AssistState::new().with_enable(true);
    transport.write(Register::AssistState.offset(), assist.into_bits())?;
    let register = Register::cpu_state(Cpu::A).offset();
    let state = CpuState::from_bits(transport.read(register)?)
        .with_halt(false)
        .with_step(false);
    transport.write(register, state.into_bits() & 0xFFFF)?;
    transport.flush()?;
    Ok(())
}
