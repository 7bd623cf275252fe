//! The card as a network interface.
//!
//! [`Nic::probe`] identifies and resets a card, [`Nic::load`] puts firmware on it,
//! [`Nic::open`] lets frames through. Then [`Nic::wait`] or a poll of
//! [`Nic::interrupt_fd`], [`Nic::service`], [`Nic::receive`] and [`Nic::queue`] with
//! [`Nic::submit`] move frames in batches: one mailbox write for all that was
//! queued. Nothing that the card says is believed unchecked.
//!
//! ```text
//!  probe ──> halted ──load──> running ──open──> open ──close──> running
//!               ^                 |               |
//!               └──── recover: reset, load, open ─┘
//! ```

use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use host_interface::bar;
use host_interface::extension::{self, Extension};
use host_interface::gencom::Gencom;
use host_interface::image::Image;
use tigon2_chip::Cpu;
use tigon2_chip::registers::Register;

use crate::dma::DmaMemory;
use crate::eeprom;
use crate::transport::{Transport, TransportError};

mod bringup;
mod commands;
mod config;
mod drops;
mod error;
mod events;
mod log;
mod memory;
mod receive;
mod send;
mod statistics;
mod window;

pub use bringup::Identity;
pub use config::{Coalescing, Config, Notice, SendConsumer, SendRingSize};
pub use drops::{DropCounts, DropReason};
pub use error::{CardState, FatalReport, NicError};
pub use events::Link;
pub use memory::SLOT_BYTES;
pub use receive::ReceivedFrame;
pub use send::{MAX_FRAGMENTS, MIN_FRAME};
pub use statistics::{DriverCounters, NicStatistics};

use events::EventLog;
use memory::Memory;
use receive::ReceiveRings;
use send::SendRing;

/// How often a wait for the firmware looks at its report.
const LOOK: Duration = Duration::from_millis(20);
/// Longest sleep of a polling driver between two looks.
const POLL_PAUSE: Duration = Duration::from_micros(50);

/// How far a card is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Halted,
    Running,
    Open,
}

impl Phase {
    fn name(self) -> &'static str {
        match self {
            Self::Halted => "halted",
            Self::Running => "running but not open",
            Self::Open => "open",
        }
    }
}

/// An AceNIC behind a transport.
pub struct Nic<T: Transport> {
    transport: T,
    config: Config,
    identity: Identity,
    memory: Memory,
    phase: Phase,
    send: SendRing,
    receive: ReceiveRings,
    events: EventLog,
    command_producer: u32,
    last_command: u8,
    counters: DriverCounters,
    drops: DropCounts,
    /// The firmware file, kept for [`Nic::recover`].
    image: Vec<u8>,
    /// The firmware is this project's: the extension words are valid.
    ours: bool,
    promiscuous: bool,
    all_multicast: bool,
}

impl<T: Transport> Nic<T> {
    /// Identifies a card, resets it and reads its station address. The card is
    /// halted then and DMA memory is known to it.
    ///
    /// # Errors
    /// [`NicError::UnknownDevice`] before anything is written if the function is
    /// something else; [`NicError::WrongRevision`], [`NicError::Eeprom`], or what the
    /// transport says.
    pub fn probe(mut transport: T, config: Config) -> Result<Self, NicError> {
        let (vendor, device) = bringup::identify(&mut transport)?;
        let revision = bringup::reset(&mut transport)?;
        let station = eeprom::station_address(&mut transport)?;
        let pci =
            tigon2_chip::bits::PciState::from_bits(transport.read(Register::PciState.offset())?);
        let memory = Memory::allocate(&mut transport, &config)?;
        let largest = largest_frame(&config);
        Ok(Self {
            identity: Identity {
                vendor,
                device,
                revision,
                station,
                bus_64bit: !pci.bus_32bit(),
                bus_66mhz: pci.bus_66mhz(),
            },
            phase: Phase::Halted,
            send: SendRing::new(config.send_ring.entries(), largest),
            receive: ReceiveRings::new(config.receive_buffers, SLOT_BYTES),
            events: EventLog::default(),
            command_producer: 0,
            last_command: 0,
            counters: DriverCounters::default(),
            drops: DropCounts::default(),
            image: Vec::new(),
            ours: false,
            promiscuous: false,
            all_multicast: false,
            transport,
            config,
            memory,
        })
    }

    /// What the card is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The configuration in use.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The station address.
    pub fn station(&self) -> [u8; 6] {
        self.identity.station
    }

    /// The transport, for what this interface does not offer.
    pub fn transport(&mut self) -> &mut T {
        &mut self.transport
    }

    /// True if the firmware is this project's, with its extension words.
    pub fn has_extension(&self) -> bool {
        self.ours
    }

    /// Frames that were dropped, by reason.
    pub fn drops(&self) -> &DropCounts {
        &self.drops
    }

    /// Counts frames that the user of this driver could not take or give.
    pub fn count_drops(&mut self, reason: DropReason, frames: u64) {
        self.drops.add(reason, frames);
    }

    /// Asks an idle card whether it is still well: the way to it holds and the
    /// firmware has left no report of its end.
    ///
    /// # Errors
    /// [`NicError::FirmwareFatal`] or what the transport says.
    pub fn look_alive(&mut self) -> Result<(), NicError> {
        if self.ours {
            self.check_fatal()?;
        }
        Ok(())
    }

    /// The link as last reported.
    pub fn link(&self) -> Link {
        self.events.link
    }

    /// Loads a firmware file (`tg2.bin`) and waits until it is operational.
    ///
    /// # Errors
    /// [`NicError::Image`] before the card is touched if the file is not usable;
    /// [`NicError::FirmwareFatal`] with the firmware's own report,
    /// [`NicError::FirmwareSilent`], or what the transport says.
    pub fn load(&mut self, file: &[u8]) -> Result<(), NicError> {
        let image = Image::parse(file)?;
        if self.phase != Phase::Halted {
            bringup::reset(&mut self.transport)?;
            self.phase = Phase::Halted;
        }
        self.forget();
        self.memory.prepare(&self.config)?;
        bringup::load(&mut self.transport, &image)?;
        bringup::configure(
            &mut self.transport,
            &self.config,
            &self.memory,
            self.identity.station,
        )?;
        bringup::start(&mut self.transport, image.start())?;
        self.phase = Phase::Running;
        self.image = file.to_vec();
        let result = self.await_firmware();
        if result.is_err() {
            // Nothing may write to this process's memory behind its back.
            let _ = bringup::halt(&mut self.transport);
            self.phase = Phase::Halted;
        }
        result
    }

    /// Begins anew with empty rings.
    fn forget(&mut self) {
        let largest = largest_frame(&self.config);
        self.send = SendRing::new(self.config.send_ring.entries(), largest);
        self.receive = ReceiveRings::new(self.config.receive_buffers, SLOT_BYTES);
        self.events = EventLog::default();
        self.command_producer = 0;
        self.last_command = 0;
        self.ours = false;
    }

    fn await_firmware(&mut self) -> Result<(), NicError> {
        let start = Instant::now();
        let mut looked = start;
        while !self.events.operational {
            self.wait(LOOK)?;
            self.take_events()?;
            if self.events.errors > 0 {
                return Err(self.refused());
            }
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                self.check_fatal()?;
            }
            if !self.events.operational && start.elapsed() >= self.config.firmware_timeout {
                return Err(NicError::FirmwareSilent {
                    after: self.config.firmware_timeout,
                    state: self.card_state()?,
                });
            }
        }
        self.ours = self.extension(Extension::Magic)? == extension::MAGIC
            && self.extension(Extension::Version)? == extension::VERSION;
        Ok(())
    }

    /// Gives the card receive buffers and lets frames through.
    ///
    /// # Errors
    /// [`NicError::WrongState`] if no firmware is running; what the firmware or the
    /// transport says.
    pub fn open(&mut self) -> Result<(), NicError> {
        self.need(Phase::Running)?;
        self.receive
            .fill(&self.memory.control, &self.memory.receive)?;
        self.tell_receive(true)?;
        self.clear_statistics()?;
        self.set_stack(true)?;
        self.phase = Phase::Open;
        if self.promiscuous {
            self.set_promiscuous(true)?;
        }
        if self.all_multicast {
            self.set_all_multicast(true)?;
        }
        Ok(())
    }

    /// Waits until the card reports a link.
    ///
    /// # Errors
    /// [`NicError::NoLink`] after `timeout`; what the card or the transport says.
    pub fn wait_link(&mut self, timeout: Duration) -> Result<Link, NicError> {
        let start = Instant::now();
        loop {
            self.service()?;
            if self.events.link != Link::Down {
                return Ok(self.events.link);
            }
            if start.elapsed() >= timeout {
                self.check_fatal()?;
                return Err(NicError::NoLink { after: timeout });
            }
            self.wait(LOOK)?;
        }
    }

    /// Stops frames. Receive buffers stay with the card until it is loaded again.
    ///
    /// # Errors
    /// [`NicError::WrongState`] if the card is not open; what the firmware or the
    /// transport says.
    pub fn close(&mut self) -> Result<(), NicError> {
        self.need(Phase::Open)?;
        self.set_stack(false)?;
        self.phase = Phase::Running;
        Ok(())
    }

    /// Halts the card and gives the transport back.
    ///
    /// # Errors
    /// What the transport says.
    pub fn shut_down(mut self) -> Result<T, NicError> {
        if self.phase == Phase::Open {
            // A card that no longer answers is halted all the same.
            let _ = self.close();
        }
        bringup::halt(&mut self.transport)?;
        self.transport.flush()?;
        Ok(self.transport)
    }

    /// Resets the card after a failure, loads the same firmware and opens it again if
    /// it was open. Frames that were with the card are lost and counted.
    ///
    /// # Errors
    /// [`NicError::WrongState`] if no firmware was ever loaded; what the loading says.
    pub fn recover(&mut self) -> Result<(), NicError> {
        if self.image.is_empty() {
            return Err(NicError::WrongState {
                is: "empty",
                needs: "loaded once",
            });
        }
        let was_open = self.phase == Phase::Open;
        let lost = u64::from(self.send.outstanding());
        self.drops.add(DropReason::LostInReset, lost);
        self.counters.recoveries += 1;
        let file = std::mem::take(&mut self.image);
        // Load resets a card that is not halted.
        let result = self.load(&file);
        self.image = file;
        result?;
        if was_open {
            self.open()?;
        }
        Ok(())
    }

    fn need(&self, phase: Phase) -> Result<(), NicError> {
        if self.phase == phase {
            return Ok(());
        }
        Err(NicError::WrongState {
            is: self.phase.name(),
            needs: phase.name(),
        })
    }

    /// A descriptor that becomes readable when the card has raised its interrupt.
    /// After it, call [`Nic::wait`] with no time, and then [`Nic::service`].
    pub fn interrupt_fd(&self) -> Option<BorrowedFd<'_>> {
        self.transport.interrupt_fd()
    }

    /// Waits until the card may have something, at most for `timeout`. True if it
    /// has: an interrupt, which is acknowledged here, or, when polling, an index that
    /// moved. Look at the rings after it: what comes later interrupts again.
    ///
    /// # Errors
    /// What the transport says.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool, NicError> {
        self.transport.flush()?;
        match self.config.notice {
            Notice::Interrupt => {
                let came = self.transport.wait_interrupt(timeout)?;
                if came {
                    self.counters.interrupts += 1;
                    self.acknowledge()?;
                }
                Ok(came)
            }
            Notice::Polling => {
                let start = Instant::now();
                loop {
                    if self.has_work()? {
                        return Ok(true);
                    }
                    let left = timeout.saturating_sub(start.elapsed());
                    if left.is_zero() {
                        return Ok(false);
                    }
                    // An in-process engine gets its time in here.
                    self.transport.wait_interrupt(left.min(POLL_PAUSE))?;
                }
            }
        }
    }

    /// Takes the interrupt away on the card and lets the next one through, before the
    /// indices are looked at. [`Nic::wait`] does it; this is for those who learn of
    /// interrupts in another way, and does no harm twice.
    ///
    /// # Errors
    /// What the transport says.
    pub fn acknowledge(&mut self) -> Result<(), NicError> {
        if self.config.notice == Notice::Interrupt {
            self.transport.write(bar::MAILBOX_HOST_INTERRUPT, 0)?;
            self.transport.unmask_interrupt()?;
            // The write may be posted. Until it has arrived the firmware keeps quiet
            // about what it does meanwhile, and whoever looked at the indices before
            // that would sleep through it. Reading the mailbox back waits for it.
            self.transport.read(bar::MAILBOX_HOST_INTERRUPT)?;
        }
        Ok(())
    }

    fn has_work(&self) -> Result<bool, NicError> {
        let control = &self.memory.control;
        let received = control.read_word(memory::RETURN_PRODUCER)?;
        Ok(self.receive.available(received)? > 0 || self.events.pending(control)?)
    }

    /// Handles events and takes sent BDs back. Bounded: it looks at each index once.
    ///
    /// # Errors
    /// [`NicError::BadIndex`] if the card reports an index that cannot be,
    /// [`NicError::Stuck`] or [`NicError::FirmwareFatal`] if sent BDs have not come
    /// back for too long; what the transport says.
    pub fn service(&mut self) -> Result<(), NicError> {
        self.take_events()?;
        self.reclaim()?;
        self.watch()
    }

    fn take_events(&mut self) -> Result<(), NicError> {
        if let Some(consumer) = self.events.take(&self.memory.control)? {
            self.transport
                .write(Gencom::EventConsumer.bar_offset(), consumer)?;
        }
        Ok(())
    }

    fn reclaim(&mut self) -> Result<(), NicError> {
        if self.send.outstanding() == 0 {
            return Ok(());
        }
        let reported = if self.ours && self.config.send_consumer == SendConsumer::Register {
            self.extension(Extension::SendConsumer)?
        } else {
            self.memory.control.read_word(memory::SEND_CONSUMER)?
        };
        self.send.reclaim(reported)?;
        Ok(())
    }

    /// The watchdog: sent BDs must come back while there is a link.
    fn watch(&mut self) -> Result<(), NicError> {
        let after = self.send.progress.elapsed();
        if self.send.outstanding() == 0 || after < self.config.watchdog {
            return Ok(());
        }
        self.check_fatal()?;
        if self.events.link == Link::Down {
            // Nothing leaves a card without a link; the clock starts when it is back.
            self.send.progress = Instant::now();
            return Ok(());
        }
        Err(NicError::Stuck {
            what: "sent BDs do not come back",
            after,
            state: self.card_state()?,
        })
    }

    /// Send BDs that are free now.
    pub fn send_room(&self) -> u32 {
        self.send.free()
    }

    /// Send BDs that are with the card.
    pub fn send_outstanding(&self) -> u32 {
        self.send.outstanding()
    }

    /// Queues a frame of one or more fragments, copying it once. False if the ring is
    /// full. The card learns of it with [`Nic::submit`].
    ///
    /// # Errors
    /// [`NicError::BadFrame`] for a frame that cannot be sent, [`NicError::WrongState`].
    pub fn queue(&mut self, fragments: &[IoSlice<'_>]) -> Result<bool, NicError> {
        self.need(Phase::Open)?;
        let queued = self
            .send
            .queue(&self.memory.control, &self.memory.send, fragments)?;
        if queued {
            self.counters.frames_sent += 1;
            self.counters.bytes_sent += fragments
                .iter()
                .map(|fragment| fragment.len() as u64)
                .sum::<u64>();
        }
        Ok(queued)
    }

    /// Lets `fill` put a frame straight into the next send slot: it gets the memory,
    /// the offset and the room, and gives the length (0: there was no frame). None if
    /// the ring is full, else the length.
    ///
    /// # Errors
    /// What `fill` says, as [`NicError::Io`]; [`NicError::BadFrame`],
    /// [`NicError::WrongState`].
    pub fn queue_with(
        &mut self,
        fill: impl FnOnce(&DmaMemory, usize, usize) -> io::Result<usize>,
    ) -> Result<Option<usize>, NicError> {
        self.need(Phase::Open)?;
        let queued = self
            .send
            .queue_with(&self.memory.control, &self.memory.send, fill)?;
        if let Some(bytes) = queued.filter(|bytes| *bytes > 0) {
            self.counters.frames_sent += 1;
            self.counters.bytes_sent += bytes as u64;
        }
        Ok(queued)
    }

    /// Tells the card of everything that was queued, with one mailbox write.
    ///
    /// # Errors
    /// What the transport says.
    pub fn submit(&mut self) -> Result<(), NicError> {
        if let Some(producer) = self.send.ring_due() {
            self.transport.write(bar::MAILBOX_SEND_PRODUCER, producer)?;
            self.counters.send_rings += 1;
        }
        self.transport.flush()?;
        Ok(())
    }

    /// Queues frames in order as long as there is room and tells the card once.
    /// Gives how many were queued.
    ///
    /// # Errors
    /// As [`Nic::queue`]; frames before a bad one are sent.
    pub fn send_batch(&mut self, frames: &[&[IoSlice<'_>]]) -> Result<usize, NicError> {
        let mut count = 0;
        let mut result = Ok(count);
        for fragments in frames {
            match self.queue(fragments) {
                Ok(true) => count += 1,
                Ok(false) => break,
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        self.submit()?;
        result.map(|_| count)
    }

    /// Hands at most `budget` received frames to `deliver`, in order, and gives their
    /// buffers back to the card. Gives how many return BDs were taken.
    ///
    /// # Errors
    /// [`NicError::BadIndex`] or [`NicError::Nonsense`] if the card reports what
    /// cannot be, what `deliver` says, or what the transport says.
    pub fn receive(
        &mut self,
        budget: u32,
        mut deliver: impl FnMut(ReceivedFrame<'_>) -> Result<(), NicError>,
    ) -> Result<u32, NicError> {
        let control = &self.memory.control;
        let reported = control.read_word(memory::RETURN_PRODUCER)?;
        let available = self.receive.available(reported)?;
        let taken = available.min(budget);
        for _ in 0..taken {
            let bytes =
                self.receive
                    .take(control, &self.memory.receive, &mut self.drops, &mut deliver)?;
            if bytes > 0 {
                self.counters.frames_received += 1;
                self.counters.bytes_received += bytes as u64;
            }
        }
        if taken > 0 {
            self.tell_receive(taken == available)?;
        }
        Ok(taken)
    }

    /// Copies at most `budget` received frames out.
    ///
    /// # Errors
    /// As [`Nic::receive`].
    pub fn receive_batch(&mut self, budget: u32) -> Result<Vec<Vec<u8>>, NicError> {
        let mut frames = Vec::new();
        self.receive(budget, |frame| {
            frames.push(frame.to_vec()?);
            Ok(())
        })?;
        Ok(frames)
    }

    /// Waits until every frame that was submitted has left the card's memory: all
    /// BDs are back and the MAC's transmit ring is empty.
    ///
    /// # Errors
    /// As [`Nic::service`]; [`NicError::Stuck`] if it takes longer than `timeout`.
    pub fn drain(&mut self, timeout: Duration) -> Result<(), NicError> {
        let start = Instant::now();
        loop {
            self.service()?;
            if self.send.outstanding() == 0 && self.transmit_ring_is_empty()? {
                return Ok(());
            }
            if start.elapsed() >= timeout {
                self.check_fatal()?;
                return Err(NicError::Stuck {
                    what: "frames do not leave",
                    after: timeout,
                    state: self.card_state()?,
                });
            }
            self.wait(LOOK / 4)?;
        }
    }

    /// Reference 10.1: R[F0] is the producer, R[F4] the consumer with flags in bits
    /// 2:0 (C).
    fn transmit_ring_is_empty(&mut self) -> Result<bool, NicError> {
        let producer = self
            .transport
            .read(Register::TxDescriptorProducer.offset())?;
        let consumer = self
            .transport
            .read(Register::TxDescriptorConsumer.offset())?;
        Ok(producer & !7 == consumer & !7)
    }

    /// Tells the card which buffers and return BDs it has back.
    fn tell_receive(&mut self, all: bool) -> Result<(), NicError> {
        if let Some(producer) = self.receive.ring_due(false) {
            self.transport
                .write(bar::MAILBOX_STANDARD_PRODUCER, producer)?;
        }
        if let Some(consumer) = self.receive.tell_due(all) {
            self.transport
                .write(Gencom::ReceiveReturnConsumer.bar_offset(), consumer)?;
        }
        Ok(())
    }

    /// Receive buffers that are with the card.
    pub fn receive_outstanding(&self) -> usize {
        self.receive.outstanding()
    }

    fn extension(&mut self, word: Extension) -> Result<u32, TransportError> {
        self.transport.read(word.bar_offset())
    }

    /// The registers that say what a card is doing.
    ///
    /// # Errors
    /// What the transport says.
    pub fn card_state(&mut self) -> Result<CardState, NicError> {
        let signed_in = self.extension(Extension::Magic)? == extension::MAGIC;
        Ok(CardState {
            cpu_a_state: self.transport.read(Register::cpu_state(Cpu::A).offset())?,
            cpu_a_pc: self.transport.read(Register::cpu_pc(Cpu::A).offset())?,
            events: self.transport.read(Register::event(Cpu::A).offset())?,
            firmware_state: if signed_in {
                Some(self.extension(Extension::State)?)
            } else {
                None
            },
        })
    }

    /// Looks whether the firmware has left a report of its end.
    ///
    /// # Errors
    /// [`NicError::FirmwareFatal`] if it has; what the transport says.
    pub fn check_fatal(&mut self) -> Result<(), NicError> {
        // The magic word is written when the firmware is ready, and a firmware may die
        // before that; gencom was cleared before it was started, so a state of FATAL
        // with a code is its own word in any case. Other firmware never writes here.
        if self.extension(Extension::State)? != extension::State::Fatal.number() {
            return Ok(());
        }
        let report = FatalReport {
            code: self.extension(Extension::FatalCode)?,
            argument: self.extension(Extension::FatalArgument)?,
            cpu_pc: self.extension(Extension::FatalCpuPc)?,
        };
        Err(NicError::FirmwareFatal(report))
    }

    fn refused(&self) -> NicError {
        NicError::FirmwareRefused {
            reason: self.events.last_error.unwrap_or("unknown error"),
            command: self.last_command,
        }
    }
}

/// Longest frame that is sent, without CRC: a VLAN tag may be among it.
fn largest_frame(config: &Config) -> usize {
    usize::from(config.mtu) + usize::from(memory::FRAME_OVERHEAD)
}
