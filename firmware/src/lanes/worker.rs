//! A CPU that receives and sends, and does nothing else.

use super::turn::{Lane, Setting};
use super::{receive, send};
use host_interface::extension::Extension;
use tigon2_chip::Cpu;
use tigon2_chip::beyond;
use tigon2_chip::events::{EventBit, SOFTWARE_BITS};
use tigon2_chip::memory::{REGISTERS_BASE, block};
use tigon2_hal::assist::HostAddress;
use tigon2_hal::events::Dispatch;
use tigon2_hal::requests::Words;

/// What CPU A told at the start.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// State word of a received frame's transfer, and of return BDs.
    pub write_data: u32,
    /// The latter.
    pub write_words: u32,
    /// State word of a fragment of a frame that is sent.
    pub read_data: u32,
    /// State word of the last one.
    pub read_last: u32,
    /// NIC address of the send BDs.
    pub send_bds: u32,
    /// Entries of the host's rings minus one.
    pub send_mask: u32,
    /// Of the return ring.
    pub return_mask: u32,
    /// Of the standard ring.
    pub standard_mask: u32,
    /// Of the mini ring.
    pub mini_mask: u32,
    /// The host's return ring.
    pub returns: HostAddress,
    /// Bytes of a frame that are not handed on.
    pub cut: u32,
    /// Where the transmit buffer begins.
    pub buffer: u32,
    /// Where it ends.
    pub buffer_end: u32,
}

/// Everything that a worker knows, in its scratch pad.
#[derive(Debug)]
pub struct Worker<B: Dispatch> {
    /// The chip, and what is pending.
    pub bus: B,
    pub(super) settings: Settings,
    pub(super) receive: Lane,
    pub(super) receive_ring: u32,
    pub(super) send: Lane,
    pub(super) send_ring: u32,
    pub(super) receive_plan: receive::Plan,
    pub(super) send_plan: send::Plan,
    /// Whether a frame waits for BDs.
    pub(super) starved: bool,
    /// Address of this CPU's event register.
    event: u32,
}

impl<B: Dispatch> Worker<B> {
    /// Before anything is known.
    pub const fn new(bus: B) -> Worker<B> {
        Worker {
            bus,
            settings: Settings {
                write_data: 0,
                write_words: 0,
                read_data: 0,
                read_last: 0,
                send_bds: 0,
                send_mask: 0,
                return_mask: 0,
                standard_mask: 0,
                mini_mask: 0,
                returns: HostAddress::NULL,
                cut: 0,
                buffer: 0,
                buffer_end: 0,
            },
            receive: Lane::new(Words::WRITE),
            receive_ring: 0,
            send: Lane::new(Words::READ),
            send_ring: 0,
            receive_plan: receive::Planned::NONE,
            send_plan: send::NOTHING,
            starved: false,
            event: 0,
        }
    }

    /// Takes part, as CPU `number`: 2 is CPU C.
    pub fn join(&mut self, number: u32) {
        let bus = &mut self.bus;
        self.settings = Settings {
            write_data: Setting::WriteData.get(bus),
            write_words: Setting::WriteWords.get(bus),
            read_data: Setting::ReadData.get(bus),
            read_last: Setting::ReadLast.get(bus),
            send_bds: Setting::SendBds.get(bus),
            send_mask: Setting::SendMask.get(bus),
            return_mask: Setting::ReturnMask.get(bus),
            standard_mask: Setting::StandardMask.get(bus),
            mini_mask: Setting::MiniMask.get(bus),
            returns: HostAddress {
                high: Setting::ReturnHigh.get(bus),
                low: Setting::ReturnLow.get(bus),
            },
            cut: Setting::Cut.get(bus),
            buffer: bus.load(Extension::TransmitBuffer.nic_address()),
            buffer_end: bus.load(Extension::ReceiveBuffer.nic_address()),
        };
        let (cpus, block) = (Setting::Cpus.get(bus), Setting::Block.get(bus));
        self.receive
            .join(number, cpus, block + block::DMA_WRITE_RING);
        self.receive_ring = block + block::MAC_RX_RING;
        self.send.join(number, cpus, block + block::DMA_READ_RING);
        self.send_ring = block + block::MAC_TX_RING;
        let further = number.wrapping_sub(Cpu::C as u32);
        self.event = REGISTERS_BASE + beyond::event(Cpu::C) + (further << 4);
        bus.set(EventBit::DoorbellB);
        // The bell is on: the first thing is to look whose turn it is.
        bus.store(self.event, SOFTWARE_BITS);
    }

    fn answer(&mut self) {
        let bell = EventBit::DoorbellB.mask();
        self.bus.store(self.event, SOFTWARE_BITS & !bell);
    }
}

/// Somebody has rung: a turn, a request, BDs.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_w.text"))]
pub extern "C" fn worker_bell<B: Dispatch>(w: &mut Worker<B>) {
    w.answer();
    let bus = &mut w.bus;
    let mut run_receive = false;
    // What needs no run is told from what does by few loads: bells are for both lanes.
    let had = w.receive.mine;
    if w.receive.take(bus) {
        if !had || w.receive.is_asked(bus) {
            // Requests have no event of their own.
            run_receive = true;
        }
        if w.starved {
            bus.set(EventBit::ReceiveComplete);
        }
    }
    if w.send.take(bus) {
        bus.set(EventBit::SendDataReady);
        send::run(w);
    }
    if run_receive {
        receive::run(w);
    }
}

/// Receive Complete, and what else is this CPU's turn.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_w.text"))]
pub extern "C" fn worker_receive<B: Dispatch>(w: &mut Worker<B>) {
    receive::run(w);
    // The other one next, so that neither starves.
    if w.send.mine {
        send::run(w);
    }
}

/// Send Data Ready.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_w.text"))]
pub extern "C" fn worker_send<B: Dispatch>(w: &mut Worker<B>) {
    send::run(w);
}
