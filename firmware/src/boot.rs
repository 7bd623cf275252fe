//! From reset to the dispatch loop.
//!
//! The order of register accesses follows vendor firmware (hardware reference, both sections 19,
//! and the advice of section 18) wherever this firmware does the same. CPU A starts CPU B once the
//! state that CPU B needs is ready; CPU B then prepares its own part.

use crate::control::{host_events, link};
use crate::events;
use crate::io::states::{ReadStates, WriteStates};
use crate::io::{direct, filter, loadable};
use crate::memory::config::Config;
use crate::memory::last_event::LAST_EVENT;
use crate::memory::layout::{
    self, DROP_COUNTS, EUDP, EUDP_SHARED, EUDP_SHARED_END, HANDLER_COUNTS, INFORMATION,
    QUEUE_BLOCK, QUEUE_SHARED, QUEUE_SHARED_END, QUEUES, SHARED, SHARED_END, SPINE, SPINE_SHARED,
    SPINE_SHARED_END,
};
use crate::memory::overlay;
use crate::memory::shared::ANSWER;
use crate::memory::statistics::count;
use crate::path::receive::{self, queues};
use crate::path::send;
use crate::record::log::{log_debug, log_info};
use crate::record::{custom_counters, trace};
use crate::sides::{SideA, SideB, eudp, fatal, spine, statistics, timer};
use embedded_hal::delay::DelayNs;
use host_interface::event::EventCode;
use host_interface::extension::{
    self, BadConfig, BootSource, Extension, FatalCode, Reserved, State, Variant,
};
use host_interface::gencom::Gencom;
use host_interface::info::INFO_BYTES;
use host_interface::trace::Topic;
use tigon2_chip::bits::{AssistState, CpuState, DmaState, MacRxState, MacTxState};
use tigon2_chip::events::HARDWARE_BITS;
use tigon2_chip::memory::{
    MAC_STATISTICS, MAC_STATISTICS_BYTES, PACKET_MEMORY_END, SRAM_MAX_BYTES, block,
};
use tigon2_chip::{Cpu, Register, mac};
use tigon2_hal::events::Dispatch;
use tigon2_hal::timer::Delay;
use tigon2_hal::{Bus, semaphore};

/// Smallest SRAM that has room for the tables and the packet buffers.
const SRAM_MIN_BYTES: u32 = 0x8_0000;
/// Prescaler of an 86 to 88 MHz core: the timer counts microseconds (7, C).
const PRESCALER: u32 = 0x55;
/// The timer's prescaler field in `R[50]`.
const PRESCALER_MASK: u32 = 0x7F;

/// Makes the very first accesses: what has to happen before the stack grows beyond the scratch
/// pad. Returns the base K of the descriptor and buffer block.
#[inline(never)]
pub fn claim<B: Dispatch>(bus: &mut B) -> u32 {
    bus.write(Register::UnknownEc, mac::UNKNOWN_EC_VALUE);
    let started = CpuState::new().with_started(true).into_bits();
    bus.modify(Register::CpuAState, started, started);
    let bytes = probe_sram(bus);
    let reserved = match SPINE {
        0 => 0,
        _ => {
            let asked = bus.load(Extension::Arena.nic_address());
            layout::reserved(bytes, Reserved::bytes_asked(asked))
        }
    };
    let block = layout::block_base(bytes, reserved);
    bus.write(Register::SpillBaseA, block::spill_base(Cpu::A, block));
    bus.write(Register::SpillBaseB, block::spill_base(Cpu::B, block));
    let halt = CpuState::new().with_halt(true).into_bits();
    bus.modify(Register::CpuBState, halt, halt);
    let source = bus.load(Extension::BootSource.nic_address());
    for address in (SHARED..SHARED_END).step_by(4) {
        bus.store(address, 0);
    }
    if QUEUES != 0 {
        for address in (QUEUE_SHARED..QUEUE_SHARED_END).step_by(4) {
            bus.store(address, 0);
        }
        queues::open::describe(bus);
    }
    if SPINE != 0 {
        for address in (SPINE_SHARED..SPINE_SHARED_END).step_by(4) {
            bus.store(address, 0);
        }
    }
    if EUDP != 0 {
        for address in (EUDP_SHARED..EUDP_SHARED_END).step_by(4) {
            bus.store(address, 0);
        }
    }
    for word in Extension::ALL {
        bus.store(word.nic_address(), 0);
    }
    // Only a word that the boot code wrote for this start counts. A word that an earlier start left
    // in SRAM has lost its mark.
    if let Some(source) = BootSource::from_word(source)
        && source.handed_over()
    {
        let source = source.with_handed_over(false);
        bus.store(Extension::BootSource.nic_address(), source.signed());
    }
    bus.store(Extension::SramBytes.nic_address(), bytes);
    if SPINE != 0 {
        bus.store(Extension::Arena.nic_address(), reserved >> 10);
    }
    // No event can be posted before the ring exists.
    bus.store(LAST_EVENT.state(), 0);
    trace::start(bus);
    block
}

/// Finds the size of SRAM by its aliases (reference 2).
fn probe_sram<B: Dispatch>(bus: &mut B) -> u32 {
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

/// Does the rest, up to the dispatch loop, with the block that [`claim`] returned. `start_b` makes
/// CPU B run [`join`]. After a fatal error no event is enabled.
pub fn run<B: Dispatch>(a: &mut SideA<B>, block: u32, start_b: impl FnOnce(&mut B)) {
    a.place(block);
    let bytes = a.io.bus.load(Extension::SramBytes.nic_address());
    if bytes < SRAM_MIN_BYTES {
        return fatal::report(a, FatalCode::Memory, bytes);
    }
    await_host(&mut a.io.bus);
    quiet(a);
    a.config.load_gencom(&mut a.io.bus);
    if fetch_information(a).is_err() {
        return;
    }
    let judged = a.config.load_information(&mut a.io.bus);
    host_events::prepare(&mut a.io, &a.config);
    if let Err(bad) = judged {
        return fatal::report(a, FatalCode::Configuration, bad as u32);
    }
    configure(a);
    prepare_mac(a);
    prepare_dma(a);
    prepare_events(a);
    start_b(&mut a.io.bus);
    if let Err(state) = wait_for_b(a) {
        return fatal::report(a, FatalCode::CpuB, state);
    }
    enable_dma(a);
    filter::set_station(&mut a.io.bus);
    let medium = link::phy::bring_up(&mut a.io.bus);
    a.link.set_medium(medium);
    let tx_lengths = u32::from(mac::VLAN_TYPE) << 16 | u32::from(mac::TX_LENGTHS);
    a.io.bus.write(Register::TxLengths, tx_lengths);
    a.io.bus.write(Register::MacThresholds, mac::THRESHOLDS);
    statistics::clear(a);
    statistics::clear_profile(a);
    link::renew(&mut a.link, &mut a.io, link::Renew::Both);
    statistics::follow_link(a);
    timer::start(a);
    announce(a);
}

/// Prepares CPU B's part after CPU A has prepared the chip: its rings and its copy of the host's
/// configuration. Then enables its events.
pub fn join<B: Dispatch>(b: &mut SideB<B>) {
    let block = layout::block_base(
        b.io.bus.load(Extension::SramBytes.nic_address()),
        spine::load::reserved(&mut b.io.bus),
    );
    let alone = b.io.bus.core(|core| core.is_alone());
    if !alone {
        let started = CpuState::new().with_started(true).into_bits();
        b.io.bus.modify(Register::CpuBState, started, started);
        b.io.bus.prepare(Cpu::B);
    }
    if SPINE != 0 {
        overlay::lead_to_bell();
    }
    b.place(block);
    let bus = &mut b.io.bus;
    let mut config = Config::new();
    config.load_gencom(bus);
    // CPU A has validated it.
    let _ = config.load_information(bus);
    let base = bus.load(Extension::TransmitBuffer.nic_address());
    let boundary = bus.load(Extension::ReceiveBuffer.nic_address());
    b.io.states = ReadStates::configured(bus);
    b.io.read_ring.reset(&mut b.io.bus);
    b.buffer_fetch.configure(&config);
    send::configure(&mut b.send, &mut b.io, &config, base, boundary);
    statistics::clear_b(b);
    timer::start_send(b);
    b.io.bus
        .core(|core| core.mask |= const { events::handled(Cpu::B) & HARDWARE_BITS });
    log_debug!(
        "send path ready, transmit buffer {=u32:#x} to {=u32:#x}",
        base,
        boundary
    );
    ANSWER.set(&b.io.me, &mut b.io.bus, JOINED);
}

/// Starts CPU B at an address (3.4, C).
pub fn start_cpu_b<B: Bus>(bus: &mut B, entry: u32) {
    bus.write(Register::CpuBPc, entry);
    bus.write(Register::CpuBState, 0);
}

/// What CPU B writes as its answer, unasked, when it has joined.
const JOINED: u32 = u32::MAX;

/// Waits until CPU B has joined. Returns CPU B's state if it does not.
fn wait_for_b<B: Dispatch>(a: &mut SideA<B>) -> Result<(), u32> {
    /// Milliseconds. The chip takes less than one; an emulator whose CPUs are threads on a busy
    /// computer has taken twenty. CPU A has nothing else to do, and a driver waits longer.
    const PATIENCE: u32 = 1000;
    for _ in 0..PATIENCE {
        if ANSWER.get(&mut a.io.bus) == JOINED {
            return Ok(());
        }
        Delay(&mut a.io.bus).delay_ms(1);
    }
    Err(a.io.bus.read(Register::CpuBState))
}

/// The host fills gencom before it starts firmware that it loaded itself. Firmware that the boot
/// code started waits for the host here.
fn await_host<B: Bus>(bus: &mut B) {
    let state = Extension::State.nic_address();
    if bus.load(Extension::BootSource.nic_address()) == 0 {
        return;
    }
    bus.store(Extension::Version.nic_address(), extension::VERSION);
    bus.store(state, State::AwaitingHost as u32);
    while bus.load(state) == State::AwaitingHost as u32 {}
}

/// Stops whatever earlier firmware left running.
fn quiet<B: Dispatch>(a: &mut SideA<B>) {
    let bus = &mut a.io.bus;
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
fn fetch_information<B: Dispatch>(a: &mut SideA<B>) -> Result<(), ()> {
    let place = a.config.information;
    if place.is_null() {
        fatal::report(a, FatalCode::Configuration, BadConfig::NoInformation as u32);
        return Err(());
    }
    let bus = &mut a.io.bus;
    a.io.states = WriteStates::configured(bus);
    // The read channel is CPU B's, but CPU B does not run yet.
    let state = ReadStates::configured(bus).words;
    let bytes = INFO_BYTES as u32;
    if let Err(state) = direct::transfer(bus, direct::READ, place, INFORMATION, bytes, state) {
        fatal::report(a, FatalCode::DmaRead, state);
        return Err(());
    }
    Ok(())
}

/// Divides the packet memory and hands the configuration to both sides.
fn configure<B: Dispatch>(a: &mut SideA<B>) {
    let base = a.block + block::PACKET_BUFFERS;
    let share = a.io.bus.load(Gencom::TransmitShare.nic_address());
    let boundary = base + transmit_bytes(PACKET_MEMORY_END - base, share);
    let mode = a.config.mode;
    a.io.interrupt.configure(mode);
    a.send_index.configure(&a.config);
    receive::configure(&mut a.receive, &mut a.io, &a.config, boundary);
    a.io.bus
        .store(Extension::TransmitBuffer.nic_address(), base);
    a.io.bus
        .store(Extension::ReceiveBuffer.nic_address(), boundary);
}

/// Bytes of packet memory for the transmit side, from its share in 64ths. Each side gets at least
/// 8 of them, so that the longest frame fits; a share of 0 selects the drivers' default.
fn transmit_bytes(bytes: u32, share: u32) -> u32 {
    const DEFAULT: u32 = 21;
    const LEAST: u32 = 8;
    let share = match share {
        0 => DEFAULT,
        share if share < LEAST => LEAST,
        share if share > 64 - LEAST => 64 - LEAST,
        share => share,
    };
    // The chip cannot multiply, so this adds, in units of 8 bytes.
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
fn prepare_mac<B: Dispatch>(a: &mut SideA<B>) {
    let block = a.block;
    let buffers = block + block::PACKET_BUFFERS;
    let boundary = a.io.bus.load(Extension::ReceiveBuffer.nic_address());
    let bus = &mut a.io.bus;
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
        for word in (ring..ring + bytes).step_by(4) {
            bus.store(word, 0);
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

/// Prepares the write ring; CPU B prepares the read ring. It is unknown from which register the
/// chip takes their base, so all candidates were written before (6.3).
fn prepare_dma<B: Dispatch>(a: &mut SideA<B>) {
    let assist = AssistState::new().with_unknown_5(true);
    a.io.bus.write(Register::AssistState, assist.into_bits());
    a.io.write_ring.reset(&mut a.io.bus);
}

/// Enables the assist for both rings.
fn enable_dma<B: Dispatch>(a: &mut SideA<B>) {
    let mut assist = AssistState::new().with_unknown_5(true).with_enable(true);
    a.io.bus.write(Register::AssistState, assist.into_bits());
    if a.config.mode.one_dma() {
        assist.set_one_at_a_time(true);
        a.io.bus.write(Register::AssistState, assist.into_bits());
    }
}

/// Prepares the event register, the mailboxes and the multicast hash.
fn prepare_events<B: Dispatch>(a: &mut SideA<B>) {
    let bus = &mut a.io.bus;
    for register in [
        Register::MulticastHash0,
        Register::MulticastHash1,
        Register::MulticastHash2,
        Register::MulticastHash3,
    ] {
        bus.write(register, 0);
    }
    bus.prepare(Cpu::A);
    bus.write(Register::MailboxEventA, u32::MAX);
    bus.store(Gencom::CommandConsumer.nic_address(), 0);
    bus.store(Gencom::GigabitLinkState.nic_address(), 0);
    bus.store(Gencom::FastLinkState.nic_address(), 0);
}

/// Reports to the host that the firmware is operational, and enables the events.
fn announce<B: Dispatch>(a: &mut SideA<B>) {
    let variant = if a.io.bus.core(|core| core.is_alone()) {
        Variant::Uniprocessor
    } else {
        Variant::Parallel
    };
    custom_counters::prepare(&mut a.io.bus);
    loadable::prepare(&mut a.io.bus);
    if SPINE != 0 {
        spine::load::describe(&mut a.io.bus);
    }
    if EUDP != 0 {
        eudp::command::describe(&mut a.io.bus);
    }
    for (word, value) in [
        (Extension::Version, extension::VERSION),
        (Extension::State, State::Running as u32),
        (Extension::HandlerCounts, HANDLER_COUNTS),
        (Extension::DropCounts, DROP_COUNTS),
        (Extension::Variant, variant as u32),
        (Extension::Queues, if QUEUES == 0 { 0 } else { QUEUE_BLOCK }),
        (Extension::Magic, extension::MAGIC),
    ] {
        a.io.bus.store(word.nic_address(), value);
    }
    count!(a.io.bus, event_firmware_operational);
    a.io.post(EventCode::FirmwareOperational, 0);
    let bytes = a.io.bus.load(Extension::SramBytes.nic_address());
    let boundary = a.io.bus.load(Extension::ReceiveBuffer.nic_address());
    let arguments = [extension::VERSION, bytes, a.block, boundary];
    trace::record(&mut a.io.bus, Topic::Boot, 0, arguments);
    a.io.bus
        .core(|core| core.mask |= const { events::handled(Cpu::A) & HARDWARE_BITS });
    // The host may have rung before CPU B was there to hear it.
    a.io.ring_b();
    log_info!("firmware operational, block at {=u32:#x}", a.block);
}

#[cfg(test)]
mod tests;
