//! This project's own words in the gencom block: NIC 0x2A0-0x2FF, BAR 0x6A0-0x6FF.
//!
//! No driver or vendor firmware uses this part of gencom. The firmware writes [`Extension::Magic`]
//! last, once all other words are valid; a driver that does not find it there must ignore the
//! other words. All addresses are NIC addresses.

pub use crate::handlers::{HANDLER_COUNT, HANDLERS, Handler};
use tigon2_chip::table;

table! {
    /// A word of the extension; the value of a variant is its NIC address. The host only reads
    /// them, except [`Extension::State`] and [`Extension::Arena`].
    pub enum Extension: u16 with access {
        /// BAR 0x6A0: [`MAGIC`] once the other words are valid.
        Magic: R = 0x2A0,
        /// BAR 0x6A4: [`VERSION`] of this layout.
        Version: R = 0x2A4,
        /// BAR 0x6A8: [`State`] of the firmware.
        State: RW = 0x2A8,
        /// BAR 0x6AC: [`FatalCode`] after a fatal error, else 0.
        FatalCode: R = 0x2AC,
        /// BAR 0x6B0: a number that goes with the fatal code.
        FatalArgument: R = 0x2B0,
        /// BAR 0x6B4: code address near the fatal error; bit 0 is set when CPU B met it.
        FatalCpuPc: R = 0x2B4,
        /// BAR 0x6B8: send ring consumer index, for drivers that read it by MMIO.
        SendConsumer: R = 0x2B8,
        /// BAR 0x6BC: NIC address of the log block ([`crate::log`]), 0 if there is none.
        LogBlock: R = 0x2BC,
        /// BAR 0x6C0: NIC address of the firmware's [custom counters](crate::custom_counters), 0 if
        /// there are none.
        CustomCounters: R = 0x2C0,
        /// BAR 0x6C4: NIC address of the queue block ([`crate::queue`]), 0 if there are no queues.
        Queues: R = 0x2C4,
        /// BAR 0x6C8: NIC address of the SPINE block ([`crate::spine`]), 0 if the firmware loads no
        /// extensions.
        Spine: R = 0x2C8,
        /// BAR 0x6CC: NIC address of the E-UDP block ([`crate::eudp`]), 0 if the firmware has no
        /// endpoints.
        Eudp: R = 0x2CC,
        /// BAR 0x6D0: NIC address of [`HANDLER_COUNT`] words: how often each handler ran, in
        /// the order of [`HANDLERS`].
        HandlerCounts: R = 0x2D0,
        /// BAR 0x6D4: NIC address of [`DROP_COUNT`] words: frames dropped for each reason, in
        /// the order of [`DROPS`].
        DropCounts: R = 0x2D4,
        /// BAR 0x6D8: [`Variant`] of the firmware.
        Variant: R = 0x2D8,
        /// BAR 0x6DC: idle turns of CPU A's dispatch loop; wraps.
        IdleA: R = 0x2DC,
        /// BAR 0x6E0: idle turns of CPU B's dispatch loop; wraps.
        IdleB: R = 0x2E0,
        /// BAR 0x6E4: NIC address where the transmit buffer starts.
        TransmitBuffer: R = 0x2E4,
        /// BAR 0x6E8: NIC address where the transmit buffer ends and the receive buffer starts.
        ReceiveBuffer: R = 0x2E8,
        /// BAR 0x6EC: bytes of SRAM that the firmware found.
        SramBytes: R = 0x2EC,
        /// BAR 0x6F0: [`BootSource`], if the boot code started the firmware, else 0.
        BootSource: R = 0x2F0,
        /// BAR 0x6F4: [`BootReport`], if the boot code started nothing, else 0.
        BootReport: R = 0x2F4,
        /// BAR 0x6F8: NIC address of the block of [loadable handlers](crate::loadable), 0 if the
        /// firmware has no room for them.
        Loadable: R = 0x2F8,
        /// BAR 0x6FC: [`Reserved`], by the host before it starts the firmware. The firmware writes
        /// back what it has reserved.
        Arena: RW = 0x2FC,
    }
}

/// NIC address of the first word.
pub const BASE: u32 = 0x2A0;
/// NIC address after the last word.
pub const END: u32 = 0x300;
/// The value of [`Extension::Magic`]: "TGRS".
pub const MAGIC: u32 = 0x5447_5253;
/// The value of [`Extension::Version`].
pub const VERSION: u32 = 4;
/// The first version with [`Extension::LogBlock`].
pub const VERSION_WITH_LOG_BLOCK: u32 = 2;

/// The first version with [`Extension::Queues`], that of the first firmware with a queue block.
/// Earlier versions leave the word 0.
pub const VERSION_WITH_QUEUES: u32 = 3;

/// The first version with [`Extension::Spine`]. Earlier versions leave the word 0.
pub const VERSION_WITH_SPINE: u32 = 4;

/// Whether a host of this version understands a firmware of another one: version 1 lacks only the
/// log's words, version 2 only the queues', version 3 only SPINE's.
pub const fn is_known(version: u32) -> bool {
    version >= 1 && version <= VERSION_WITH_SPINE
}

impl Extension {
    /// The word's NIC address.
    pub const fn nic_address(self) -> u32 {
        self as u32
    }

    /// The word's offset in BAR 0.
    pub const fn bar_offset(self) -> u32 {
        self as u32 + crate::bar::DIRECT
    }
}

table! {
    /// The state of the firmware: [`Extension::State`].
    pub enum State: u32 {
        /// It is starting.
        Boot = 0,
        /// It is in its dispatch loop; the host's stack is down, so frames are dropped.
        Running = 1,
        /// It is in its dispatch loop and the host's stack is up.
        StackUp = 2,
        /// It hit a fatal error and both CPUs are halted.
        Fatal = 3,
        /// The boot code started it and no host has configured it: it continues when the host has
        /// filled gencom and writes [`State::Boot`] here.
        AwaitingHost = 4,
    }
}

table! {
    /// Why the firmware stopped: [`Extension::FatalCode`].
    pub enum FatalCode: u32 {
        /// It has not stopped.
        None = 0,
        /// A Rust panic; the argument is the source line.
        Panic = 1,
        /// An event without a handler; the argument is its number.
        UnexpectedEvent = 2,
        /// The read channel's error bits; the argument is its state.
        DmaRead = 3,
        /// The write channel's error bits; the argument is its state.
        DmaWrite = 4,
        /// The host's configuration is unusable; the argument is a [`BadConfig`].
        Configuration = 5,
        /// No usable SRAM; the argument is the size found.
        Memory = 6,
        /// The MAC reports an impossible state; the argument is that state.
        Mac = 7,
        /// The stack overran its guard; the argument is the word found there.
        StackOverflow = 8,
        /// CPU B did not start; the argument is its state.
        CpuB = 9,
    }
}

table! {
    /// Why a configuration is unusable: the argument of [`FatalCode::Configuration`].
    pub enum BadConfig: u32 {
        /// There is no general information block.
        NoInformation = 1,
        /// There is no event ring, or no place for its producer index.
        NoEventRing = 2,
        /// The send ring has neither 128, 256 nor 512 entries.
        SendRingSize = 3,
        /// The send ring in host memory has no address.
        NoSendRing = 4,
        /// The send ring in NIC memory is not within 0x2000..0x4000, or not aligned.
        NicSendRing = 5,
        /// The standard ring is disabled or has no address.
        NoStandardRing = 6,
        /// The standard ring takes no Ethernet frame.
        StandardRingSize = 7,
        /// The mini ring's buffers are useless: no bytes, or more than a standard frame.
        MiniRingSize = 8,
        /// There is no receive return ring, or no place for its producer index.
        NoReturnRing = 9,
        /// The receive return ring has neither 1024 nor 2048 entries, or 1024 with a mini ring.
        ReturnRingSize = 10,
        /// Checksum and VLAN flags differ between the receive rings.
        InconsistentFlags = 11,
        /// An address is no multiple of 4, so word transfers cannot reach it.
        Misaligned = 12,
        /// Receive checksums are combined with byte enables on the PCI bus.
        ByteEnables = 13,
    }
}

table! {
    /// Why the firmware dropped a frame.
    pub enum DropReason: u32 {
        /// Receive: the host's stack is down.
        StackDown = 0,
        /// Receive: the MAC marked an error.
        BadFrame = 1,
        /// Receive: longer than the interface's MTU.
        TooLong = 2,
        /// Receive: shorter than an Ethernet header.
        TooShort = 3,
        /// Receive: a multicast address without a subscriber.
        NotSubscribed = 4,
        /// Receive: the ring for this length has no BD.
        NoReceiveBd = 5,
        /// Receive: the buffer is smaller than the frame.
        BufferTooSmall = 6,
        /// Receive: the return ring is full.
        ReturnRingFull = 7,
        /// Send: a BD of zero bytes, or a frame without an end.
        BadSendBd = 8,
        /// Send: longer than the transmit buffer.
        SendTooLong = 9,
        /// Send: the link is down.
        LinkDown = 10,
        /// Send: its data could not be read from the host's memory.
        SendFault = 11,
        /// Receive: it could not be written to the host's memory.
        ReceiveFault = 12,
    }
}

table! {
    /// How a firmware is partitioned: [`Extension::Variant`].
    pub enum Variant: u32 {
        /// All handlers run on CPU A.
        Uniprocessor = 1,
        /// The handlers are divided between both CPUs.
        Parallel = 2,
    }
}

/// All of [`DropReason`] in their order.
pub const DROPS: &[DropReason] = DropReason::ALL;

/// The number of reasons.
pub const DROP_COUNT: usize = DROPS.len();

impl DropReason {
    /// Whether it concerns a frame from the host; otherwise a frame from the wire.
    pub const fn is_send(self) -> bool {
        matches!(
            self,
            DropReason::BadSendBd
                | DropReason::SendTooLong
                | DropReason::LinkDown
                | DropReason::SendFault
        )
    }
}

/// Where the boot code found the firmware: [`Extension::BootSource`].
#[bitfield_struct::bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct BootSource {
    /// bits 7:0: the slot.
    pub slot: u8,
    /// bit 8: the image is not confirmed; a trial boot was counted.
    pub trial: bool,
    /// bit 9: the firmware has not read this word yet.
    pub handed_over: bool,
    #[bits(6)]
    __: u8,
    /// bits 31:16: [`BOOT_TAG`].
    tag: u16,
}

/// Why the boot code started nothing: [`Extension::BootReport`].
#[bitfield_struct::bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct BootReport {
    /// bits 3:0: why slot 0 was not started, a number of the boot code.
    #[bits(4)]
    pub slot_0: u8,
    /// bits 7:4: why slot 1 was not started.
    #[bits(4)]
    pub slot_1: u8,
    /// bit 8: the EEPROM is blank, which is no failure.
    pub blank: bool,
    #[bits(7)]
    __: u8,
    /// bits 31:16: [`BOOT_TAG`].
    tag: u16,
}

/// Memory for extensions beside the [arena](crate::spine) that the firmware has anyway:
/// [`Extension::Arena`]. It is taken from the packet buffers.
#[bitfield_struct::bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct Reserved {
    /// bits 15:0: KB.
    pub kilobytes: u16,
    /// bits 31:16: [`Reserved::TAG`] if the host asks for it, 0 if the firmware answers.
    tag: u16,
}

impl Reserved {
    /// Distinguishes the host's word from other contents of SRAM.
    const TAG: u16 = 0xA4E0;
    /// The most that is reserved.
    pub const MOST: u16 = 256;
    /// The unit.
    pub const STEP: u16 = 4;

    /// What a host asks for.
    pub const fn asked(kilobytes: u16) -> u32 {
        Reserved::new()
            .with_kilobytes(kilobytes)
            .with_tag(Reserved::TAG)
            .into_bits()
    }

    /// The bytes that a word asks for: 0 if it is none of a host's, or asks for what cannot be.
    pub const fn bytes_asked(word: u32) -> u32 {
        let asked = Reserved::from_bits(word);
        let kilobytes = asked.kilobytes();
        let is_possible = kilobytes <= Reserved::MOST && kilobytes & (Reserved::STEP - 1) == 0;
        if asked.tag() == Reserved::TAG && is_possible {
            (kilobytes as u32) << 10
        } else {
            0
        }
    }
}

/// Distinguishes the boot code's words from other contents of SRAM.
pub const BOOT_TAG: u16 = 0xB007;

impl BootSource {
    /// The word as the boot code writes it.
    pub const fn signed(self) -> u32 {
        self.with_tag(BOOT_TAG).into_bits()
    }

    /// The source in a word, if the boot code wrote it.
    pub const fn from_word(word: u32) -> Option<BootSource> {
        let source = BootSource::from_bits(word);
        if source.tag() == BOOT_TAG {
            Some(source)
        } else {
            None
        }
    }
}

impl BootReport {
    /// The word as the boot code writes it.
    pub const fn signed(self) -> u32 {
        self.with_tag(BOOT_TAG).into_bits()
    }

    /// The report in a word, if the boot code wrote it.
    pub const fn from_word(word: u32) -> Option<BootReport> {
        let report = BootReport::from_bits(word);
        if report.tag() == BOOT_TAG {
            Some(report)
        } else {
            None
        }
    }
}

const _: () = {
    let mut index = 0;
    while index < Extension::ALL.len() {
        let address = Extension::ALL[index].nic_address();
        assert!(address.is_multiple_of(4) && address >= BASE && address < END);
        index += 1;
    }
    assert!(BASE > crate::gencom::Gencom::ReceiveReturnConsumer.nic_address());
    assert!(END == crate::gencom::BASE + crate::gencom::BYTES);
};

#[cfg(test)]
mod tests;
