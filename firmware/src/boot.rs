//! From reset to the dispatch loop.
//!
//! The order of register accesses is that of vendor firmware (hardware reference, both
//! sections 19, and the advice of section 18), as far as this firmware does the same.
//! Nothing of CPU B: it stays halted.

use crate::dma::States;
use crate::layout::{self, DROP_COUNTS, HANDLER_COUNTS, INFORMATION, LAST_EVENT};
use crate::log::log_info;
use crate::{
    Firmware, direct, events, fatal, filter, host_events, link, phy, receive, send, statistics,
    timer, trace,
};
use embedded_hal::delay::DelayNs;
use host_interface::event::EventCode;
use host_interface::extension::{
    self, BadConfig, BootSource, Extension, FatalCode, State, Variant,
};
use host_interface::gencom::Gencom;
use host_interface::info::INFO_BYTES;
use host_interface::trace::Topic;
use tigon2_chip::bits::{AssistState, CpuState, DmaState, MacRxState, MacTxState};
use tigon2_chip::memory::{
    MAC_STATISTICS, MAC_STATISTICS_BYTES, PACKET_MEMORY_END, SRAM_MAX_BYTES, block,
};
use tigon2_chip::{Cpu, Register, mac};
use tigon2_hal::timer::Delay;
use tigon2_hal::{Bus, semaphore};

/// Smallest SRAM that has room for the tables and the packet buffers.
const SRAM_MIN_BYTES: u32 = 0x8_0000;
/// Prescaler of an 86 to 88 MHz core: the timer counts microseconds (7, C).
const PRESCALER: u32 = 0x55;
/// The timer's prescaler field in `R[50]`.
const PRESCALER_MASK: u32 = 0x7F;

/// The very first accesses: what must be done before the stack grows beyond the scratch
/// pad. Returns the base K of the descriptor and buffer block.
#[inline(never)]
pub fn claim<B: Bus>(bus: &mut B) -> u32 {
    bus.write(Register::UnknownEc, mac::UNKNOWN_EC_VALUE);
    let started = CpuState::new().with_started(true).into_bits();
    bus.modify(Register::CpuAState, started, started);
    let bytes = probe_sram(bus);
    let block = layout::block_base(bytes);
    bus.write(Register::SpillBaseA, block::spill_base(Cpu::A, block));
    bus.write(Register::SpillBaseB, block::spill_base(Cpu::B, block));
    let halt = CpuState::new().with_halt(true).into_bits();
    bus.modify(Register::CpuBState, halt, halt);
    let source = bus.load(Extension::BootSource.nic_address());
    for word in Extension::ALL {
        bus.store(word.nic_address(), 0);
    }
    // Only a word that the boot code wrote for this very start counts: what an earlier
    // one left in SRAM has lost its mark.
    if let Some(source) = BootSource::from_word(source)
        && source.handed_over()
    {
        let source = source.with_handed_over(false);
        bus.store(Extension::BootSource.nic_address(), source.signed());
    }
    bus.store(Extension::SramBytes.nic_address(), bytes);
    // No event can be posted before there is a ring.
    bus.store(LAST_EVENT, 0);
    trace::start(bus);
    block
}

/// Finds the size of SRAM by its aliases (reference 2).
fn probe_sram<B: Bus>(bus: &mut B) -> u32 {
    const PATTERN: u32 = 0x5447_5253;
    let mut size = 0x4_0000;
    while size < SRAM_MAX_BYTES {
        let double = if size + size < SRAM_MAX_BYTES {
            size + size
        } else {
            0
        };
        let (saved, saved_double) = (bus.load(size), bus.load(double));
        bus.store(double, 0);
        bus.store(size, PATTERN);
        let wrapped = bus.load(double) == PATTERN;
        bus.store(double, saved_double);
        bus.store(size, saved);
        if wrapped {
            break;
        }
        size += size;
    }
    size
}

/// All the rest, up to the dispatch loop, with the block of [`claim`]. After a fatal error
/// nothing is let through.
pub fn run<B: Bus>(firmware: &mut Firmware<B>, block: u32) {
    firmware.place(block);
    let bytes = firmware.bus.load(Extension::SramBytes.nic_address());
    if bytes < SRAM_MIN_BYTES {
        return fatal::report(firmware, FatalCode::Memory, bytes);
    }
    await_host(&mut firmware.bus);
    quiet(firmware);
    firmware.config.load_gencom(&mut firmware.bus);
    if fetch_information(firmware).is_err() {
        return;
    }
    let judged = firmware.config.load_information(&mut firmware.bus);
    host_events::prepare(firmware);
    if let Err(bad) = judged {
        return fatal::report(firmware, FatalCode::Configuration, bad as u32);
    }
    configure(firmware);
    prepare_mac(firmware);
    prepare_dma(firmware);
    prepare_events(firmware);
    filter::set_station(&mut firmware.bus);
    phy::bring_up(firmware);
    let tx_lengths = u32::from(mac::VLAN_TYPE) << 16 | u32::from(mac::TX_LENGTHS);
    firmware.bus.write(Register::TxLengths, tx_lengths);
    firmware.bus.write(Register::MacThresholds, mac::THRESHOLDS);
    statistics::clear(firmware);
    statistics::clear_profile(firmware);
    link::renew(firmware, link::Renew::Both);
    timer::start(firmware);
    announce(firmware);
}

/// Firmware that the host has loaded finds gencom filled in. One that the boot code
/// started waits for that.
fn await_host<B: Bus>(bus: &mut B) {
    let state = Extension::State.nic_address();
    if bus.load(Extension::BootSource.nic_address()) == 0 {
        return;
    }
    bus.store(Extension::Version.nic_address(), extension::VERSION);
    bus.store(state, State::AwaitingHost as u32);
    while bus.load(state) == State::AwaitingHost as u32 {}
}

/// Stops what an earlier life may have left running.
fn quiet<B: Bus>(firmware: &mut Firmware<B>) {
    let bus = &mut firmware.bus;
    semaphore::free(bus);
    bus.modify(Register::MiscConfig, PRESCALER_MASK, PRESCALER);
    bus.write(Register::Timer, 0);
    bus.write(Register::AssistState, 0);
    let reset = DmaState::new().with_reset(true).into_bits();
    bus.write(Register::DmaWriteState, reset);
    bus.write(Register::DmaReadState, reset);
    // No wrap at buffer ends while the bases are 0 (6.4, C).
    bus.write(Register::TxBase, 0);
    bus.write(Register::RxBase, 0);
    Delay(bus).delay_us(100);
}

/// Fetches the general information block without the assist (6.1, "direct use").
fn fetch_information<B: Bus>(firmware: &mut Firmware<B>) -> Result<(), ()> {
    let place = firmware.config.information;
    if place.is_none() {
        fatal::report(
            firmware,
            FatalCode::Configuration,
            BadConfig::NoInformation as u32,
        );
        return Err(());
    }
    let bus = &mut firmware.bus;
    let read = bus.load(Gencom::DmaReadConfig.nic_address());
    let write = bus.load(Gencom::DmaWriteConfig.nic_address());
    let mode = firmware.config.mode;
    firmware.states = States::new(read, write, !mode.byte_swap_bd(), !mode.byte_swap_data());
    let state = firmware.states.read_words;
    let bytes = INFO_BYTES as u32;
    if let Err(state) = direct::transfer(bus, direct::READ, place, INFORMATION, bytes, state) {
        fatal::report(firmware, FatalCode::DmaRead, state);
        return Err(());
    }
    Ok(())
}

/// Divides the packet memory and hands the configuration to both sides.
fn configure<B: Bus>(firmware: &mut Firmware<B>) {
    let base = firmware.block + block::PACKET_BUFFERS;
    let share = firmware.bus.load(Gencom::TransmitShare.nic_address());
    let boundary = base + transmit_bytes(PACKET_MEMORY_END - base, share);
    let mode = firmware.config.mode;
    firmware.interrupt.configure(mode);
    send::configure(firmware, base, boundary);
    receive::configure(firmware, boundary);
    firmware
        .bus
        .store(Extension::TransmitBuffer.nic_address(), base);
    firmware
        .bus
        .store(Extension::ReceiveBuffer.nic_address(), boundary);
}

/// The transmit side's bytes of a packet memory, by its share in 64ths. Either side gets
/// at least 8 of them, so that the longest frame fits; a share of 0 means the drivers'
/// default.
fn transmit_bytes(bytes: u32, share: u32) -> u32 {
    const DEFAULT: u32 = 21;
    const LEAST: u32 = 8;
    let share = match share {
        0 => DEFAULT,
        share if share < LEAST => LEAST,
        share if share > 64 - LEAST => 64 - LEAST,
        share => share,
    };
    // Multiplied by adding, since the chip cannot; in units of 8 bytes.
    let part = bytes >> 6;
    let mut sum = 0;
    for bit in 0..6 {
        if share & (1 << bit) != 0 {
            sum += part << bit;
        }
    }
    sum & !7
}

/// The MAC's registers and rings (10.1).
fn prepare_mac<B: Bus>(firmware: &mut Firmware<B>) {
    let block = firmware.block;
    let buffers = block + block::PACKET_BUFFERS;
    let boundary = firmware.bus.load(Extension::ReceiveBuffer.nic_address());
    let bus = &mut firmware.bus;
    bus.write(Register::MacThresholds, 0);
    bus.write(
        Register::MacTxState,
        MacTxState::new().with_reset(true).into_bits(),
    );
    bus.write(
        Register::MacRxState,
        MacRxState::new().with_reset(true).into_bits(),
    );
    for ring in [block + block::MAC_TX_RING, block + block::MAC_RX_RING] {
        let bytes = if ring == block + block::MAC_TX_RING {
            block::MAC_TX_RING_BYTES
        } else {
            block::MAC_RX_RING_BYTES
        };
        for descriptor in (ring..ring + bytes).step_by(8) {
            bus.store(descriptor, 0);
            bus.store(descriptor + 4, 0);
        }
    }
    bus.write(Register::Unknown23c, 0);
    for address in (MAC_STATISTICS..MAC_STATISTICS + MAC_STATISTICS_BYTES).step_by(4) {
        bus.store(address, 0);
    }
    for register in [Register::RxBase, Register::RxProducer, Register::RxConsumer] {
        bus.write(register, boundary);
    }
    for register in [Register::TxBase, Register::TxProducer, Register::TxConsumer] {
        bus.write(register, buffers);
    }
}

/// The DMA rings. Where the chip takes their base from is unknown; all bases it could
/// come from were written before (6.3).
fn prepare_dma<B: Bus>(firmware: &mut Firmware<B>) {
    let Firmware {
        bus,
        config,
        read_ring,
        write_ring,
        ..
    } = firmware;
    let mut assist = AssistState::new().with_unknown_5(true);
    bus.write(Register::AssistState, assist.into_bits());
    read_ring.reset(bus);
    write_ring.reset(bus);
    assist.set_enable(true);
    bus.write(Register::AssistState, assist.into_bits());
    if config.mode.one_dma() {
        assist.set_one_at_a_time(true);
        bus.write(Register::AssistState, assist.into_bits());
    }
}

/// The event register, the mailboxes and the multicast hash.
fn prepare_events<B: Bus>(firmware: &mut Firmware<B>) {
    let bus = &mut firmware.bus;
    for register in [
        Register::MulticastHash0,
        Register::MulticastHash1,
        Register::MulticastHash2,
        Register::MulticastHash3,
        Register::EventA,
    ] {
        bus.write(register, 0);
    }
    bus.write(Register::MailboxEventA, u32::MAX);
    bus.store(Gencom::CommandConsumer.nic_address(), 0);
    bus.store(Gencom::GigabitLinkState.nic_address(), 0);
    bus.store(Gencom::FastLinkState.nic_address(), 0);
}

/// Tells the host that the firmware is there, and lets the events through.
fn announce<B: Bus>(firmware: &mut Firmware<B>) {
    for (word, value) in [
        (Extension::Version, extension::VERSION),
        (Extension::State, State::Running as u32),
        (Extension::HandlerCounts, HANDLER_COUNTS),
        (Extension::DropCounts, DROP_COUNTS),
        (Extension::Variant, Variant::Uniprocessor as u32),
        (Extension::Magic, extension::MAGIC),
    ] {
        firmware.bus.store(word.nic_address(), value);
    }
    statistics::count!(firmware, event_firmware_operational);
    host_events::post(firmware, EventCode::FirmwareOperational, 0);
    let bytes = firmware.bus.load(Extension::SramBytes.nic_address());
    let boundary = firmware.bus.load(Extension::ReceiveBuffer.nic_address());
    let arguments = [extension::VERSION, bytes, firmware.block, boundary];
    trace::record(&mut firmware.bus, Topic::Boot, 0, arguments);
    firmware.mask = events::HANDLED;
    log_info!("firmware operational, block at {=u32:#x}", firmware.block);
}

#[cfg(test)]
mod tests {
    use super::transmit_bytes;

    #[test]
    fn the_transmit_share_is_in_64ths_and_kept_within_bounds() {
        let bytes = 0xC_C000;
        for share in 8..=56 {
            assert_eq!(
                transmit_bytes(bytes, share),
                bytes / 64 * share / 8 * 8,
                "{share}"
            );
        }
        assert_eq!(transmit_bytes(bytes, 0), transmit_bytes(bytes, 21));
        assert_eq!(transmit_bytes(bytes, 1), transmit_bytes(bytes, 8));
        assert_eq!(transmit_bytes(bytes, u32::MAX), transmit_bytes(bytes, 56));
    }
}
