//! The E-UDP block in NIC memory: endpoints for datagrams without the kernel.
//!
//! "Exploiting NIC architectural support for enhancing IP based protocols" and its E-UDP. A
//! process posts descriptors that name *regions* of its memory and an *address handle*; it rings a
//! mailbox of its endpoint, and the firmware moves the data between these regions and the wire.
//! Regions, handles and endpoints are written by who owns the card's function alone.
//! The owner of a region or a handle is written last, and the row stays as it is until that endpoint
//! is closed: the firmware keeps copies.
//!
//! ```text
//!   +0x0000  words of the block                         BlockWord
//!   +0x0080  endpoint 0, 64 bytes, by the host          EndpointWord
//!   +0x0480  region 0, 16 bytes, by the host            RegionWord
//!   +0x0880  address handle 0, 64 bytes, by the host    HandleWord
//!   +0x1880  L2 queues: endpoint 0 to send, to receive; 16 descriptors of 80 bytes each
//!   +0xB880  trace: the last 1024 transitions, a byte each as in `frame_pipeline::trace`
//!   +0xBC80  end
//! ```
//!
//! A mailbox's word has the endpoint's producers: descriptors to send in bits 31:16, to receive in
//! bits 15:0, both counted from 0 on when it was opened, modulo 2^16.
//!
//! # Two-level queues
//!
//! Descriptor n stands in slot n modulo [`SLOTS`] of its L2 queue in NIC memory, where the process
//! writes it itself (*push*), or in entry n modulo [`EndpointWord::Descriptors`] of its L1 queue in
//! the process's memory, from where the firmware fetches it (*pull*): up to [`SLOTS`] with one
//! transfer, when few are left in NIC memory: [`HALF`] to send, [`FEW`] to receive. Its last word,
//! [`posted`], says that the slot has this descriptor; without it the firmware pulls.
//!
//! ```text
//!   L1, at Queues:       | to send: Descriptors entries | to receive: as many |
//!                              │ pull                          │ pull
//!   L2, in NIC memory:   | 16 slots |                    | 16 slots |
//!                              ▲ push                          ▲ push
//! ```
//!
//! A descriptor is pushed only when all that were left to be pulled are done: so what is pulled
//! never lies over what was pushed.
//!
//! The host writes [`BlockWord::Argument`], then [`BlockWord::Command`], then mailbox
//! [`BlockWord::Mailbox`]; the firmware answers with [`BlockWord::Result`], then
//! [`BlockWord::Answer`], which is the command word. No command word is used twice in a row: its
//! upper half is a number.

pub mod arrivals;

use tigon2_chip::mailbox::COUNT;
use tigon2_chip::table;

/// Layout of the block.
pub const LAYOUT: u32 = 9;
/// Endpoints.
pub const ENDPOINTS: u32 = 16;
/// Regions in all.
pub const REGIONS: u32 = 64;
/// Address handles in all.
pub const HANDLES: u32 = 64;
/// Descriptors of an L2 queue, a power of two.
pub const SLOTS: u32 = 16;
/// As many or fewer to send that are left in NIC memory have the firmware pull as many.
pub const HALF: u32 = SLOTS / 2;
/// As many or fewer to receive have it pull all that there is room for.
pub const FEW: u32 = 4;
/// The most descriptors of an L1 queue.
pub const DESCRIPTORS_MAX: u32 = 1 << 14;
/// Pieces of memory that a descriptor names, at most.
pub const SEGMENTS: u32 = 8;
/// Bytes of data in a descriptor itself, at most.
pub const INLINE_BYTES: u32 = SEGMENTS * SEGMENT_BYTES;
/// Bytes of the longest datagram's data.
pub const DATAGRAM_MAX: u32 = 65_507;
/// [`BlockWord::Lead`]: as many bytes as frames of this length need on the card's bus, by the
/// firmware's tables.
pub const LEAD_OF_BUS: u32 = u32::MAX;
/// Mailbox of the commands.
pub const COMMAND_MAILBOX: u32 = 15;
/// Mailbox of endpoint 0; those of the others follow.
pub const MAILBOX: u32 = 16;
/// In [`EndpointWord::Port`], where no VLAN has these bits: instead of a port the endpoint has the *pool*
/// of its address and VLAN. Fragments that come before their UDP header, from a source to which no
/// endpoint is connected, are put into its memory.
pub const POOL: u32 = 0xF000_0000;
/// Descriptors of a pool have cookies below this number.
pub const POOL_BUFFERS: u32 = 1 << 8;

/// Bytes of an endpoint's row and of an address handle's.
pub const ROW_BYTES: u32 = 64;
/// Bytes of a region's row.
pub const REGION_BYTES: u32 = 16;
/// Bytes of a descriptor.
pub const DESCRIPTOR_BYTES: u32 = 16 + SEGMENTS * SEGMENT_BYTES;
/// Bytes of a piece of memory in a descriptor: region in bits 31:16 and length in bits 15:0 of the
/// first word, the offset in the region in the second.
pub const SEGMENT_BYTES: u32 = 8;
/// Bytes of a queue in NIC memory.
pub const QUEUE_BYTES: u32 = SLOTS * DESCRIPTOR_BYTES;
/// Bytes of a completion in the host's memory.
pub const COMPLETION_BYTES: u32 = 32;

const ENDPOINT_ROWS: u32 = 0x80;
const REGION_ROWS: u32 = ENDPOINT_ROWS + ENDPOINTS * ROW_BYTES;
const HANDLE_ROWS: u32 = REGION_ROWS + REGIONS * REGION_BYTES;
const QUEUES: u32 = HANDLE_ROWS + HANDLES * ROW_BYTES;
/// Offset of the trace.
pub const TRACE: u32 = QUEUES + ENDPOINTS * 2 * QUEUE_BYTES;
/// Bytes of the trace, a power of two.
pub const TRACE_BYTES: u32 = 1024;
/// Bytes of the block.
pub const BLOCK_BYTES: u32 = TRACE + TRACE_BYTES;

table! {
    /// A word of the block; the value of a variant is its offset.
    pub enum BlockWord: u32 {
        /// [`LAYOUT`].
        Layout = 0x00,
        /// Number of the mailbox of commands.
        Mailbox = 0x04,
        /// Number of endpoint 0's mailbox.
        Doorbells = 0x08,
        /// By the host: a number in bits 31:16, [`Command`] in bits 15:0.
        Command = 0x0C,
        /// By the host: the endpoint that the command is about.
        Argument = 0x10,
        /// The command that is done.
        Answer = 0x14,
        /// [`Outcome`] of it.
        Result = 0x18,
        /// By the host: bytes of a frame that are fetched before it leaves; 0 for all of it, as
        /// long as nothing else is written; [`LEAD_OF_BUS`]. Read at each frame.
        Lead = 0x1C,
        /// Frames that left while they were being fetched; wraps.
        CutThrough = 0x20,
        /// Frames that were cut off on the wire and sent again; wraps.
        Aborted = 0x24,
        /// Transitions that the machines' tables exclude: a fault of the firmware.
        Faults = 0x28,
        /// Transitions that CPU B's machines took; wraps. The trace has the last ones.
        Steps = 0x2C,
        /// Transfers of descriptors from the processes' memory; wraps.
        Pulls = 0x30,
        /// NIC address of the [transitions of CPU A's machines](arrivals); 0 in firmware that does not
        /// record them.
        Arrivals = 0x34,
        /// Frames for an endpoint that were not delivered, by [`Refusal`]: the first of its words.
        Refused = 0x40,
    }
}

table! {
    /// What the host asks for.
    pub enum Command: u32 {
        /// Open an endpoint by its row. Its queues are empty.
        Open = 1,
        /// Close an endpoint. When it is answered, the card touches none of its memory any more.
        Close = 2,
    }
}

table! {
    /// What came of a command.
    pub enum Outcome: u32 {
        /// It is done.
        Done = 0,
        /// There is no such command.
        NoCommand = 1,
        /// There is no such endpoint.
        NoEndpoint = 2,
        /// The endpoint is open already, or it is not open.
        WrongState = 3,
        /// The row has no completion queue, or an unusable one.
        NoCompletions = 4,
        /// Another endpoint has this port.
        PortTaken = 5,
        /// The row has unusable L1 queues.
        NoQueues = 6,
    }
}

table! {
    /// Why a frame for an endpoint was not delivered, by its word's offset from
    /// [`BlockWord::Refused`].
    pub enum Refusal: u32 {
        /// Its lengths or the sum of its header are wrong.
        BadHeader = 0x00,
        /// No descriptor was posted.
        NoBuffer = 0x04,
        /// The UDP checksum is wrong.
        BadSum = 0x08,
        /// The descriptor names memory that is not the endpoint's, too little of it, or some that cannot be
        /// written.
        BadRegion = 0x0C,
        /// A fragment has bytes that others brought already, and others: its datagram is dropped.
        Overlap = 0x10,
        /// As many datagrams are put together as can be at a time, or one has too many gaps.
        NoContext = 0x14,
        /// A datagram's fragments did not come in time.
        Expired = 0x18,
        /// Fragments were put into the memory of an endpoint that is connected to their source, and
        /// the datagram is for another port.
        Misplaced = 0x1C,
        /// A fragment came twice.
        Duplicate = 0x20,
        /// Fragments were put into the [pool](POOL), and no endpoint has their datagram's port.
        Unclaimed = 0x24,
    }
}

table! {
    /// A word of an endpoint's row, by its offset.
    pub enum EndpointWord: u32 {
        /// Its IPv4 address.
        Address = 0x00,
        /// Its port, in bits 15:0, and its VLAN in bits 31:16, 0 for none: it takes frames of this
        /// VLAN alone. A pool has [`POOL`] and its VLAN.
        Port = 0x04,
        /// Bytes of an IP packet that the wire takes: 1500, 9000.
        Mtu = 0x08,
        /// [`Checksum`].
        Checksum = 0x0C,
        /// Host address of the completion queue, high word.
        CompletionsHigh = 0x10,
        /// Low word.
        CompletionsLow = 0x14,
        /// Its entries, a power of two.
        Completions = 0x18,
        /// By the firmware: datagrams that were fetched, counted modulo 2^16.
        Sent = 0x1C,
        /// Host address of the L1 queues, high word: that to send, and behind it that to receive.
        QueuesHigh = 0x24,
        /// Low word.
        QueuesLow = 0x28,
        /// Descriptors of each of them, a power of two from [`SLOTS`] to [`DESCRIPTORS_MAX`]; 0 for
        /// none: then there are no more than [`SLOTS`] at a time, all of them pushed.
        Descriptors = 0x2C,
        /// By the firmware: descriptors to send whose completion was queued, modulo 2^16.
        Reported = 0x30,
        /// Between the CPUs: the first descriptor to receive that is to be pulled in bits 15:0, and
        /// how many in bits 31:16.
        Wanted = 0x34,
        /// By the firmware: descriptors to send that are in slots, or were, modulo 2^16.
        Filled = 0x38,
        /// The source whose fragments are this endpoint's as long as the one with the UDP header
        /// has not come, if no other endpoint of its address has the same; 0 for none.
        Connected = 0x3C,
    }
}

table! {
    /// How the UDP checksum of what an endpoint sends is made.
    pub enum Checksum: u32 {
        /// There is none, RFC 768.
        None = 0,
        /// By the DMA engine: a frame leaves when it is whole, and of a datagram in fragments the one
        /// with the UDP header last.
        Full = 1,
        /// The same, but the fragment with the UDP header leaves first: all data is fetched once for
        /// the sum, and again with each fragment.
        Leading = 2,
    }
}

table! {
    /// A word of a region's row, by its offset.
    pub enum RegionWord: u32 {
        /// Host address, high word.
        High = 0x00,
        /// Low word.
        Low = 0x04,
        /// Its bytes.
        Bytes = 0x08,
        /// Number of the endpoint that it belongs to, plus 1; 0 for none.
        Owner = 0x0C,
    }
}

table! {
    /// A word of an address handle's row, by its offset. The headers stand as they are sent:
    /// Ethernet, IPv4 without options, UDP. The firmware fills in lengths, identification, the
    /// destination's port and sums.
    pub enum HandleWord: u32 {
        /// The headers: 42 bytes, and 2 of nothing.
        Headers = 0x00,
        /// The sum, not inverted, of the IP header's halfwords but those that the firmware fills in.
        IpSum = 0x2C,
        /// The sum of the pseudo-header and of the source port, without the length.
        UdpSum = 0x30,
        /// The next identification, in bits 15:0. The firmware counts, in its own copy of the row as
        /// long as it has one.
        Identification = 0x34,
        /// Number of the endpoint that it belongs to, plus 1; 0 for none.
        Owner = 0x38,
        /// The VLAN tag of its frames, in bits 31:16; 0 for none.
        Tag = 0x3C,
    }
}

table! {
    /// A word of a descriptor, by its offset.
    pub enum DescriptorWord: u32 {
        /// The process's own word, which comes back with the completion.
        Cookie = 0x00,
        /// [`to_word`]: the pieces, and where a datagram goes.
        To = 0x04,
        /// To send: bytes of data in bits 15:0. Bits 31:16 have the first two bytes of data in the
        /// descriptor itself: a frame's headers have 42 bytes, so the other bytes share words as
        /// they do in the frame.
        Length = 0x08,
        /// By the process: [`posted`]. By the firmware, when the descriptor is done: its [`Status`].
        Status = 0x0C,
        /// The pieces of memory, or the data itself from its third byte on.
        Data = 0x10,
    }
}

/// [`DescriptorWord::To`]: the number of pieces, 0 for data in the descriptor itself, in bits 31:24;
/// and to send the address handle in bits 23:16 and the destination's port in bits 15:0.
pub const fn to_word(pieces: u32, handle: u32, port: u16) -> u32 {
    pieces << 24 | handle << 16 | port as u32
}

/// The pieces of a descriptor's [`to_word`].
pub const fn pieces_of(to: u32) -> u32 {
    to >> 24
}

/// The address handle.
pub const fn handle_of(to: u32) -> u32 {
    to >> 16 & 0xFF
}

/// The port.
pub const fn port_of(to: u32) -> u32 {
    to & 0xFFFF
}

table! {
    /// What became of a descriptor.
    pub enum Status: u32 {
        /// Its data was fetched and leaves, or a datagram is in its memory.
        Done = 0,
        /// It names memory or an address handle that is not the endpoint's, or more than there is.
        BadDescriptor = 1,
        /// The host's memory could not be read.
        Unreadable = 2,
        /// There is no link.
        LinkDown = 3,
        /// Fragments of a datagram were put into its memory, and the datagram was given up.
        Incomplete = 4,
        /// A datagram came, and the memory could not be written.
        Unwritable = 5,
    }
}

table! {
    /// A word of a completion in the host's memory, by its offset.
    pub enum CompletionWord: u32 {
        /// The descriptor's.
        Cookie = 0x00,
        /// [`Kind`] in bits 31:16, [`Status`] in bits 15:0.
        KindAndStatus = 0x04,
        /// Bytes of data.
        Length = 0x08,
        /// Received: the source's IPv4 address.
        Address = 0x0C,
        /// Received: the source's port in bits 31:16, [`Verdict`] in bits 7:0. Pooled: the cookie of
        /// the pool's descriptor in bits 15:8.
        PortAndVerdict = 0x10,
        /// Pooled: the memory of the endpoint's descriptor, the two words of its only piece.
        Piece = 0x14,
        /// How many completions there are with this one, since the endpoint was opened: the entry
        /// is new when this is the number that comes next.
        Number = 0x1C,
    }
}

table! {
    /// What was completed.
    pub enum Kind: u32 {
        /// A descriptor to send.
        Sent = 0,
        /// A descriptor to receive.
        Received = 1,
        /// The same, but its datagram is in the memory of a descriptor of the pool's, which gets no
        /// completion.
        Pooled = 2,
    }
}

table! {
    /// What is known of a received datagram's checksum.
    pub enum Verdict: u32 {
        /// The sender made none.
        Absent = 0,
        /// It is right.
        Right = 1,
    }
}

/// Offset of a word of an endpoint's row.
pub const fn endpoint_word(endpoint: u32, word: EndpointWord) -> u32 {
    ENDPOINT_ROWS + (endpoint << 6) + word as u32
}

/// Offset of a word of a region's row.
pub const fn region_word(region: u32, word: RegionWord) -> u32 {
    REGION_ROWS + (region << 4) + word as u32
}

/// Offset of a word of an address handle's row.
pub const fn handle_word(handle: u32, word: HandleWord) -> u32 {
    HANDLE_ROWS + (handle << 6) + word as u32
}

/// Offset of a descriptor to send.
pub const fn send_slot(endpoint: u32, number: u32) -> u32 {
    slot(QUEUES, endpoint, number)
}

/// Offset of a descriptor to receive.
pub const fn receive_slot(endpoint: u32, number: u32) -> u32 {
    slot(QUEUES + QUEUE_BYTES, endpoint, number)
}

/// The chip cannot multiply.
const fn slot(first: u32, endpoint: u32, number: u32) -> u32 {
    let number = number & (SLOTS - 1);
    first + (endpoint << 11) + (endpoint << 9) + (number << 6) + (number << 4)
}

/// The last word of descriptor `number`'s head, when its slot has it.
pub const fn posted(number: u32) -> u32 {
    POSTED | number & 0xFFFF
}

/// No [`Status`] has this bit.
const POSTED: u32 = 1 << 31;

const _: () = {
    assert!(ROW_BYTES == 1 << 6 && REGION_BYTES == 1 << 4);
    assert!(DESCRIPTOR_BYTES == (1 << 6) + (1 << 4));
    assert!(2 * QUEUE_BYTES == (1 << 11) + (1 << 9));
    assert!(SLOTS.is_power_of_two() && INLINE_BYTES == 64);
    assert!(slot(QUEUES, ENDPOINTS, 0) == TRACE);
    assert!(HandleWord::Headers as u32 + 44 <= HandleWord::IpSum as u32);
    assert!(MAILBOX + ENDPOINTS == COUNT && COMMAND_MAILBOX < MAILBOX);
    assert!(BlockWord::Refused as u32 + Refusal::Unclaimed as u32 + 4 <= ENDPOINT_ROWS);
    assert!(EndpointWord::Connected as u32 + 4 <= ROW_BYTES);
    assert!(DESCRIPTORS_MAX <= 1 << 15 && DESCRIPTORS_MAX.is_multiple_of(SLOTS));
    assert!(BLOCK_BYTES == 0xBC80);
};
