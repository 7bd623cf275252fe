//! The messages of the vfio-user protocol, each layout defined once.
//!
//! Source: the public "vfio-user Protocol Specification" of libvfio-user. All integers are in the
//! byte order of the machine, since both peers run on it. A message is a header and a payload:
//!
//! ```text
//!   0      2        4      8       12      16
//!   | id   | command | size | flags | errno | payload ...
//!                      \ of the whole message, header included
//! ```
//!
//! Payload structures hold unchecked words; the receiver must validate them before use.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Major version of the protocol that both sides of this crate speak.
pub const VERSION_MAJOR: u16 = 0;
/// Highest minor version that this crate speaks.
pub const VERSION_MINOR: u16 = 1;
/// Size of [`Header`] in bytes; also the smallest possible message.
pub const HEADER_BYTES: usize = size_of::<Header>();
/// Largest `count` of a data transfer unless the peer says otherwise, in bytes.
pub const DEFAULT_MAX_TRANSFER: usize = 1 << 20;
/// Least `max_data_xfer_size` that a client may name, in bytes: with less, moving a frame
/// would be a conversation.
pub const MIN_TRANSFER: usize = 4096;
/// Room beside the data of the largest message (header and fixed payload), in bytes.
pub const MESSAGE_OVERHEAD: usize = 4096;
/// Largest message that this crate accepts, header included, in bytes.
pub const MAX_MESSAGE_BYTES: usize = DEFAULT_MAX_TRANSFER + MESSAGE_OVERHEAD;
/// Most file descriptors that this crate accepts with one message.
pub const MAX_MESSAGE_FDS: usize = 8;

/// The commands of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Command {
    /// 1: client to server, first message: version and capabilities.
    Version = 1,
    /// 2: client to server: a range of DMA addresses becomes valid.
    DmaMap = 2,
    /// 3: client to server: a range of DMA addresses is no longer valid.
    DmaUnmap = 3,
    /// 4: client to server: number of regions and interrupts.
    DeviceGetInfo = 4,
    /// 5: client to server: size and access of one region.
    DeviceGetRegionInfo = 5,
    /// 6: client to server: file descriptors in place of region accesses (not offered).
    DeviceGetRegionIoFds = 6,
    /// 7: client to server: one kind of interrupt.
    DeviceGetIrqInfo = 7,
    /// 8: client to server: connect, mask, unmask or trigger interrupts.
    DeviceSetIrqs = 8,
    /// 9: client to server: read a region.
    RegionRead = 9,
    /// 10: client to server: write a region.
    RegionWrite = 10,
    /// 11: server to client: read the client's memory.
    DmaRead = 11,
    /// 12: server to client: write the client's memory.
    DmaWrite = 12,
    /// 13: client to server: reset the device.
    DeviceReset = 13,
    /// 15: client to server: several small region writes in one message.
    RegionWriteMulti = 15,
}

impl Command {
    /// Every command, in the order of its number.
    pub const ALL: [Command; 14] = [
        Command::Version,
        Command::DmaMap,
        Command::DmaUnmap,
        Command::DeviceGetInfo,
        Command::DeviceGetRegionInfo,
        Command::DeviceGetRegionIoFds,
        Command::DeviceGetIrqInfo,
        Command::DeviceSetIrqs,
        Command::RegionRead,
        Command::RegionWrite,
        Command::DmaRead,
        Command::DmaWrite,
        Command::DeviceReset,
        Command::RegionWriteMulti,
    ];

    /// The command with this number, if there is one.
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|c| *c as u16 == number)
    }
}

/// Flag bits of [`Header::flags`].
pub mod flags {
    /// Bits 0-3: type of the message.
    pub const TYPE: u32 = 0xF;
    /// Type 0: a command.
    pub const COMMAND: u32 = 0;
    /// Type 1: a reply.
    pub const REPLY: u32 = 1;
    /// Bit 4: the sender of this command wants no reply ("posted").
    pub const NO_REPLY: u32 = 1 << 4;
    /// Bit 5: this reply reports a failure; `error` holds an errno or 0.
    pub const ERROR: u32 = 1 << 5;
}

/// Start of every message.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Header {
    /// 0x00 chosen by the sender of a command, repeated in its reply
    pub id: u16,
    /// 0x02 number of a [`Command`]
    pub command: u16,
    /// 0x04 bytes of the whole message, header included
    pub size: u32,
    /// 0x08 see [`flags`]
    pub flags: u32,
    /// 0x0C errno of a failed command, in its reply
    pub error: u32,
}

impl Header {
    /// Is this a reply (and not a command)?
    pub fn is_reply(&self) -> bool {
        self.flags & flags::TYPE == flags::REPLY
    }

    /// Is this a command?
    pub fn is_command(&self) -> bool {
        self.flags & flags::TYPE == flags::COMMAND
    }

    /// Does the sender of this command want no reply?
    pub fn is_posted(&self) -> bool {
        self.flags & flags::NO_REPLY != 0
    }

    /// The failure that a reply reports: an errno, 0 where the peer gave none.
    pub fn failure(&self) -> Option<u32> {
        (self.flags & flags::ERROR != 0).then_some(self.error)
    }
}

/// Start of the payload of VERSION; JSON text with a final NUL may follow.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct VersionHeader {
    /// 0x00 incompatible with every other major version
    pub major: u16,
    /// 0x02 the reply's is at most the proposed one
    pub minor: u16,
}

/// Payload of DMA_MAP. The reply has none.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct DmaMap {
    /// 0x00 bytes of this structure
    pub argsz: u32,
    /// 0x04 see [`dma_flags`]
    pub flags: u32,
    /// 0x08 where the range starts in the file that came along, in bytes
    pub offset: u64,
    /// 0x10 first DMA address
    pub address: u64,
    /// 0x18 bytes
    pub size: u64,
}

/// Flags of [`DmaMap`].
pub mod dma_flags {
    /// Bit 0: the device may read the range.
    pub const READ: u32 = 1;
    /// Bit 1: the device may write the range.
    pub const WRITE: u32 = 1 << 1;
}

/// Payload of DMA_UNMAP and of its reply.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct DmaUnmap {
    /// 0x00 most bytes of reply payload that the sender takes
    pub argsz: u32,
    /// 0x04 see [`unmap_flags`]
    pub flags: u32,
    /// 0x08 first DMA address, as it was mapped
    pub address: u64,
    /// 0x10 bytes, as it was mapped
    pub size: u64,
}

/// Flags of [`DmaUnmap`].
pub mod unmap_flags {
    /// Bit 0: answer with a bitmap of dirty pages (not offered by this server).
    pub const GET_DIRTY_BITMAP: u32 = 1;
    /// Bit 1: unmap every range; address and size are 0.
    pub const ALL: u32 = 1 << 1;
}

/// Payload of DEVICE_GET_INFO and of its reply.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct DeviceInfo {
    /// 0x00 most bytes of reply payload; in the reply: bytes of the full payload
    pub argsz: u32,
    /// 0x04 see [`device_flags`]
    pub flags: u32,
    /// 0x08 number of regions
    pub num_regions: u32,
    /// 0x0C number of kinds of interrupt
    pub num_irqs: u32,
}

/// Flags of [`DeviceInfo`].
pub mod device_flags {
    /// Bit 0: DEVICE_RESET works.
    pub const RESET: u32 = 1;
    /// Bit 1: a PCI device: regions and interrupts have the numbers of PCI.
    pub const PCI: u32 = 1 << 1;
}

/// Payload of DEVICE_GET_REGION_INFO and of its reply.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct RegionInfo {
    /// 0x00 most bytes of reply payload; in the reply: bytes of the full payload
    pub argsz: u32,
    /// 0x04 see [`region_flags`]
    pub flags: u32,
    /// 0x08 the region, see [`region`]
    pub index: u32,
    /// 0x0C where a list of capabilities starts, 0 for none
    pub cap_offset: u32,
    /// 0x10 bytes
    pub size: u64,
    /// 0x18 offset for mmap
    pub offset: u64,
}

/// Flags of [`RegionInfo`].
pub mod region_flags {
    /// Bit 0: may be read.
    pub const READ: u32 = 1;
    /// Bit 1: may be written.
    pub const WRITE: u32 = 1 << 1;
    /// Bit 2: may be mapped (never set by this server).
    pub const MMAP: u32 = 1 << 2;
    /// Bit 3: capabilities follow (never set by this server).
    pub const CAPS: u32 = 1 << 3;
}

/// Numbers of the regions of a PCI device.
pub mod region {
    /// Base address register 0; the others follow.
    pub const BAR0: u32 = 0;
    /// Expansion ROM.
    pub const ROM: u32 = 6;
    /// Configuration space.
    pub const CONFIG: u32 = 7;
    /// Behind those that every PCI device has (VGA is the last): what the device's emulator
    /// has counted, as text `name=value name=value ..` that ends with a zero.
    pub const COUNTS: u32 = 9;
    /// Number of regions (BAR 0-5, ROM, configuration, VGA, counts).
    pub const COUNT: u32 = 10;
}

/// Payload of DEVICE_GET_IRQ_INFO and of its reply.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct IrqInfo {
    /// 0x00 most bytes of reply payload; in the reply: bytes of the full payload
    pub argsz: u32,
    /// 0x04 see [`irq_info_flags`]
    pub flags: u32,
    /// 0x08 kind of interrupt, see [`irq`]
    pub index: u32,
    /// 0x0C number of interrupts of this kind
    pub count: u32,
}

/// Flags of [`IrqInfo`].
pub mod irq_info_flags {
    /// Bit 0: signalled by eventfd.
    pub const EVENTFD: u32 = 1;
    /// Bit 1: MASK and UNMASK work.
    pub const MASKABLE: u32 = 1 << 1;
    /// Bit 2: masks itself when triggered.
    pub const AUTOMASKED: u32 = 1 << 2;
    /// Bit 3: set up as a whole.
    pub const NORESIZE: u32 = 1 << 3;
}

/// Numbers of the kinds of interrupt of a PCI device.
pub mod irq {
    /// The level-triggered pin.
    pub const INTX: u32 = 0;
    /// Message-signalled.
    pub const MSI: u32 = 1;
    /// Number of kinds of a PCI device (INTx, MSI, MSI-X, error, request).
    pub const COUNT: u32 = 5;
}

/// Start of the payload of DEVICE_SET_IRQS; with `DATA_BOOL`, `count` bytes follow.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct IrqSet {
    /// 0x00 bytes of this structure and of the data after it
    pub argsz: u32,
    /// 0x04 one data flag and one action flag of [`irq_set_flags`]
    pub flags: u32,
    /// 0x08 kind of interrupt, see [`irq`]
    pub index: u32,
    /// 0x0C first interrupt of the kind
    pub start: u32,
    /// 0x10 number of interrupts
    pub count: u32,
}

/// Flags of [`IrqSet`].
pub mod irq_set_flags {
    /// Bit 0: no data.
    pub const DATA_NONE: u32 = 1;
    /// Bit 1: a byte each, not 0: act.
    pub const DATA_BOOL: u32 = 1 << 1;
    /// Bit 2: an eventfd each came along; without any: disconnect.
    pub const DATA_EVENTFD: u32 = 1 << 2;
    /// Bit 3: mask.
    pub const ACTION_MASK: u32 = 1 << 3;
    /// Bit 4: unmask.
    pub const ACTION_UNMASK: u32 = 1 << 4;
    /// Bit 5: trigger, or say what a trigger signals.
    pub const ACTION_TRIGGER: u32 = 1 << 5;
}

/// Payload of REGION_READ and REGION_WRITE and their replies; data may follow.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct RegionAccess {
    /// 0x00 offset in the region, in bytes
    pub offset: u64,
    /// 0x08 the region
    pub region: u32,
    /// 0x0C bytes of data
    pub count: u32,
}

/// Payload of DMA_READ and DMA_WRITE and their replies; data may follow.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct DmaAccess {
    /// 0x00 DMA address
    pub address: u64,
    /// 0x08 bytes of data
    pub count: u64,
}

/// One write of REGION_WRITE_MULTI; the payload is a 64-bit number of them, then they.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct MultiWrite {
    /// 0x00 offset in the region, in bytes
    pub offset: u64,
    /// 0x08 the region
    pub region: u32,
    /// 0x0C bytes of data, at most 8
    pub count: u32,
    /// 0x10 the data, from the first byte on
    pub data: [u8; 8],
}

const _: () = {
    assert!(HEADER_BYTES == 16);
    assert!(size_of::<VersionHeader>() == 4);
    assert!(size_of::<DmaMap>() == 32);
    assert!(size_of::<DmaUnmap>() == 24);
    assert!(size_of::<DeviceInfo>() == 16);
    assert!(size_of::<RegionInfo>() == 32);
    assert!(size_of::<IrqInfo>() == 16);
    assert!(size_of::<IrqSet>() == 20);
    assert!(size_of::<RegionAccess>() == 16);
    assert!(size_of::<DmaAccess>() == 16);
    assert!(size_of::<MultiWrite>() == 24);
};

/// Appends a whole message to `out`: header, payload, data.
///
/// The size is filled in; `payload` and `data` together are at most
/// [`MAX_MESSAGE_BYTES`] (the callers check the length of what they are given).
pub fn encode(
    out: &mut Vec<u8>,
    id: u16,
    command: Command,
    flags: u32,
    payload: &(impl IntoBytes + Immutable + ?Sized),
    data: &[u8],
) {
    let payload = payload.as_bytes();
    let size = HEADER_BYTES + payload.len() + data.len();
    debug_assert!(size <= MAX_MESSAGE_BYTES);
    let header = Header {
        id,
        command: command as u16,
        size: size as u32,
        flags,
        error: 0,
    };
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(payload);
    out.extend_from_slice(data);
}
