//! The layout of SRAM.
//!
//! ```text
//! 0x00_0000  mailboxes, gencom, command ring          (the host sees them in its BAR)
//! 0x00_2000  send BDs, 512 x 16                       (hardware reference, section 2.1)
//! 0x00_4000  image and variables                      (linker/*.x)
//! 0x01_A580  indirection table and verdicts, where the variant has receive queues
//! 0x01_AE00  their hash tables: while queues are open, also in place of the classic return BDs
//! 0x01_B000  the tables below; with endpoints, whose image is longer, from 0x02_0A00 on
//! K          descriptor and buffer block              (hardware reference, section 2.2)
//! 0x20_0000  end of packet memory
//! ```
//!
//! The tables lie at fixed addresses, apart from Rust's variables, because the DMA channels and
//! the host write them.

use host_interface::extension::Reserved;
use host_interface::queue::{QUEUES_MAX, block::BLOCK_BYTES, control::CONTROL_BYTES};
use host_interface::{custom_counters, eudp, log, spine};
use tigon2_chip::mac::RX_RING_BYTES;
use tigon2_chip::memory::{FIRMWARE_BASE, PACKET_MEMORY_END, block};

/// Send BDs in NIC memory: a ring of 128, 256 or 512 entries of 16 bytes lies at the end of this
/// region.
pub const SEND_BDS: u32 = 0x2000;
/// Bytes of [`SEND_BDS`].
pub const SEND_BYTES: u32 = 0x2000;
/// First byte of the tables, end of the image.
pub const TABLES: u32 = 0x1_B000 + LONGER;
/// Bytes by which the image may be longer than that of other variants; all that lies behind it moves
/// up, and the packet buffers give way. `build.rs` has the same for the linker.
const LONGER: u32 = if EUDP != 0 {
    0x6900
} else if SPINE != 0 {
    0x800
} else {
    0
};
/// Where the firmware builds return BDs, a ring beside the host's: [`RETURN_SLOTS`] of 32 bytes.
/// An entry of the host's ring uses the slot of its number modulo the number of slots.
pub const RETURN_BDS: u32 = TABLES;
/// Return BD slots: two for each write descriptor, see `path::receive`.
pub const RETURN_SLOTS: u32 = 128;
/// Bytes of [`RETURN_BDS`].
pub const RETURN_BYTES: u32 = RETURN_SLOTS * 32;
/// Copies of the standard receive BDs, each in the slot of its index.
pub const STANDARD_BDS: u32 = RETURN_BDS + RETURN_BYTES;
/// Bytes of [`STANDARD_BDS`], 512 x 32.
pub const STANDARD_BYTES: u32 = 512 * 32;
/// Room for the jumbo receive BDs, 256 x 64.
pub const JUMBO_BDS: u32 = STANDARD_BDS + STANDARD_BYTES;
/// Bytes of [`JUMBO_BDS`].
pub const JUMBO_BYTES: u32 = 256 * 64;
/// Room for the mini receive BDs, 1024 x 32.
pub const MINI_BDS: u32 = JUMBO_BDS + JUMBO_BYTES;
/// Bytes of [`MINI_BDS`].
pub const MINI_BYTES: u32 = 1024 * 32;
/// Payloads of small write transfers, 32 bytes for each DMA write descriptor.
pub const STAGING: u32 = MINI_BDS + MINI_BYTES;
/// Bytes of [`STAGING`].
pub const STAGING_BYTES: u32 = 64 * 32;
/// The statistics block as the host gets it.
pub const STATISTICS: u32 = STAGING + STAGING_BYTES;
/// The host's general information block, fetched at start.
pub const INFORMATION: u32 = STATISTICS + 1024;
/// Handler counts for the host.
pub const HANDLER_COUNTS: u32 = INFORMATION + 0x500;
/// Drop counts for the host.
pub const DROP_COUNTS: u32 = HANDLER_COUNTS + 0x80;
/// The trace ring.
pub const TRACE: u32 = DROP_COUNTS + 0x80;
/// Bytes of the trace ring, a power of two.
pub const TRACE_BYTES: u32 = 128 * 32;
/// The state that reporting a fatal error needs, see [`last_event`](super::last_event).
pub const LAST_EVENT: u32 = TRACE + TRACE_BYTES;
/// Handler counts at the time when the profile was last cleared.
pub const PROFILE: u32 = LAST_EVENT + 32;
/// Words that both CPUs see, see [`shared`](super::shared).
pub const SHARED: u32 = PROFILE + 0x80;
/// End of the shared words.
pub const SHARED_END: u32 = SHARED + 0x80;
/// The log block: the message rings and their levels.
pub const LOG: u32 = SHARED_END;
/// Custom counters of a changed handler, see `record::custom_counters`.
pub const CUSTOM_COUNTERS: u32 = LOG + log::BLOCK_BYTES;
/// End of classic mode's tables.
pub const CLASSIC_END: u32 = CUSTOM_COUNTERS + custom_counters::BYTES;

/// Receive queues that the host can open; 0 in firmware without them: the uniprocessor variant has
/// no room in its scratch pad, those with extensions and with endpoints none in CPU B's, that with
/// hot code or state in SRAM none there, and the firmware for more CPUs does not sort frames.
pub const QUEUES: usize = if HAS_QUEUES { QUEUES_MAX } else { 0 };

#[cfg(target_arch = "mips")]
const HAS_QUEUES: bool = cfg!(receive_queues) && !hot_parts_in_sram();
#[cfg(not(target_arch = "mips"))]
const HAS_QUEUES: bool = true;

/// Whether hot code or state is linked for SRAM, see `build.rs`. Not on the computer, where this
/// and all that depends on it would be compiled again for each value of the variable.
#[cfg(target_arch = "mips")]
const fn hot_parts_in_sram() -> bool {
    match option_env!("TIGON_PLACEMENT") {
        Some(placement) => !matches!(placement.as_bytes(), b"scratch" | b""),
        None => false,
    }
}

/// BDs of a queue in NIC memory, at most; as many return BD slots exist.
pub const QUEUE_WINDOW: u32 = 128;
/// Shift of a queue's number to the offset of its rings.
pub const QUEUE_SHIFT: u32 = 13;
/// Rings of the queues, 8 KB each: [`QUEUE_WINDOW`] copies of BDs, then as many return BD slots.
/// They lie where classic mode has its copies of BDs, which the firmware fetches again when the
/// queues close.
pub const QUEUE_RINGS: u32 = STANDARD_BDS;
/// Offset of a queue's return slots from its copies of BDs.
pub const QUEUE_SLOTS: u32 = QUEUE_WINDOW * 32;
/// The tables for the hash, 16 words for each half byte of input. Most of them lie where classic
/// mode builds its return BDs, [`RETURN_BDS`].
pub const HASH_TABLES: u32 = STANDARD_BDS - 72 * 64;
/// Where flows are looked up.
#[derive(Clone, Copy, Debug)]
pub struct FlowTables {
    /// The rows of bytes for IPv4 addresses and ports, 0 if there is no room for them.
    pub rows: u32,
    /// Each CPU's cache of flows.
    pub caches: [u32; 2],
    /// Bytes of each, a power of two; 0 if there is no room for caches.
    pub cache_bytes: u32,
}

impl FlowTables {
    /// Bytes of the rows.
    const ROWS: u32 = 12 * 1024;
    /// Most bytes of a cache.
    const MOST: u32 = 8 * 1024;

    /// The tables beside `open` queues: they lie where the other queues would have their rings.
    pub const fn beside(open: u32) -> FlowTables {
        let room = (QUEUES_MAX as u32 - open) << QUEUE_SHIFT;
        if room == 0 {
            return FlowTables {
                rows: 0,
                caches: [0, 0],
                cache_bytes: 0,
            };
        }
        let (rows, end) = if room > Self::ROWS {
            (STAGING - Self::ROWS, STAGING - Self::ROWS)
        } else {
            (0, STAGING)
        };
        let each = (room - (STAGING - end)) / 2;
        let cache_bytes = if each > Self::MOST {
            Self::MOST
        } else {
            1 << each.ilog2()
        };
        FlowTables {
            rows,
            caches: [end - cache_bytes, end - 2 * cache_bytes],
            cache_bytes,
        }
    }
}

/// The queue block, see [`host_interface::queue::block`].
pub const QUEUE_BLOCK: u32 = CLASSIC_END.next_multiple_of(32);
/// The queue control block as it was read from the host.
pub const QUEUE_CONTROL: u32 = QUEUE_BLOCK + BLOCK_BYTES;
/// Words of the queues that both CPUs see.
pub const QUEUE_SHARED: u32 = QUEUE_CONTROL + CONTROL_BYTES as u32;
/// End of those.
pub const QUEUE_SHARED_END: u32 = QUEUE_SHARED + 0x80;
/// The indirection table, a byte for each entry. It and the verdicts lie close in front of the
/// hash tables, so that one register leads to all of them.
pub const INDIRECTION: u32 = VERDICTS - 128;
/// Verdicts on the next frames, a ring of [`VERDICT_SLOTS`] of 8 bytes each: a frame has the slot of
/// its position modulo their number.
pub const VERDICTS: u32 = HASH_TABLES - VERDICT_SLOTS * 8;
/// Slots of [`VERDICTS`], a power of two.
pub const VERDICT_SLOTS: u32 = 256;
/// Verdicts that CPU A makes at once when there are fewer.
pub const CLAIMED: u32 = 16;
/// Frames that CPU A claims at once, those of fewer verdicts than [`CLAIMED`] in front among them:
/// more than two runs deliver. Meanwhile CPU B classifies ahead of them.
pub const CLAIMED_MOST: u32 = 128;
/// How far CPU B classifies ahead of the frames that CPU A has claimed: the slots of the frames in
/// front are still in use.
pub const AHEAD_MOST: u32 = VERDICT_SLOTS - CLAIMED_MOST;

/// Offset in [`VERDICTS`] of the verdict on a frame, by its descriptor's offset in the MAC's ring.
#[inline(always)]
pub const fn verdict_offset(descriptor: u32) -> u32 {
    const { assert!(tigon2_chip::mac::DESCRIPTOR_BYTES == 8) };
    descriptor & (VERDICT_SLOTS * 8 - 1)
}

/// Room for handlers that come later, see `io::loadable`.
pub const LOADABLE: u32 = QUEUE_SHARED_END.next_multiple_of(32);
/// Bytes of it: `TIGON_LOADABLE_BYTES` when the firmware is built, 0 unless that is set, and
/// with more CPUs than two, whose tables have no such rows. On a host, for tests, there is
/// always some.
pub const LOADABLE_BYTES: u32 = match option_env!("TIGON_LOADABLE_BYTES") {
    Some(bytes) if cfg!(any(feature = "uniprocessor", feature = "parallel")) => number(bytes),
    _ if cfg!(target_arch = "mips") => 0,
    _ => 0x100,
};
/// End of the tables.
pub const TABLES_END: u32 = LOADABLE + LOADABLE_BYTES;

/// Distance of the block's base K from the lowest alias of SRAM below
/// [`PACKET_MEMORY_END`]: vendor's choice (hardware reference, section 2.2), or as much more
/// as what comes later has asked for; the packet buffers give way.
pub const BLOCK_OFFSET: u32 = if SPINE != 0 {
    VENDOR_OFFSET + SPINE_BYTES
} else if EUDP != 0 {
    VENDOR_OFFSET + LONGER + EUDP_BYTES
} else if TABLES_END <= VENDOR_OFFSET {
    VENDOR_OFFSET
} else {
    TABLES_END.next_multiple_of(block::ALIGNMENT)
};
/// Vendor's.
const VENDOR_OFFSET: u32 = 0x2_F000;

/// A decimal number.
const fn number(text: &str) -> u32 {
    let (digits, mut value, mut index) = (text.as_bytes(), 0, 0);
    while index < digits.len() {
        assert!(digits[index].is_ascii_digit(), "a number of bytes");
        value = 10 * value + (digits[index] - b'0') as u32;
        index += 1;
    }
    value
}

/// 1 in firmware that loads extensions, else 0.
pub const SPINE: usize = cfg!(feature = "spine") as usize;
/// Words of SPINE that both CPUs see: behind the tables, which lie higher by [`LONGER`].
pub const SPINE_SHARED: u32 = VENDOR_OFFSET + 0x400;
/// End of those.
pub const SPINE_SHARED_END: u32 = SPINE_SHARED + 0x80;
/// The SPINE block, see [`host_interface::spine`].
pub const SPINE_BLOCK: u32 = SPINE_SHARED_END.next_multiple_of(32);
/// Guards as they count, a row of [`spine::GUARD_BYTES`] for each.
pub const SPINE_GUARDS: u32 = SPINE_BLOCK + spine::BLOCK_BYTES;
/// The slots of frames on their way, a word for each.
pub const SPINE_QUEUE: u32 = SPINE_GUARDS + spine::GUARDS * spine::GUARD_BYTES;
/// Whom each handler lets call it, a word for each: by the domain's number times 8, and its own.
pub const SPINE_CALLERS: u32 = SPINE_QUEUE + POOL_QUEUE * 4;
/// What CPU B fetches from the host's rings: [`MESSAGE_REQUESTS`] of 8 bytes.
pub const SPINE_REQUESTS: u32 = SPINE_CALLERS + spine::DOMAINS * spine::HANDLERS * 4;
/// Requests that may be under way, a power of two.
pub const MESSAGE_REQUESTS: u32 = 8;
/// The data of a message that CPU B is to fetch: host address, NIC address, bytes.
pub const SPINE_DATA_REQUEST: u32 = SPINE_REQUESTS + MESSAGE_REQUESTS * 8;
/// Of each message from the host, what CPU A knows of it.
pub const SPINE_IN_ENTRIES: u32 = SPINE_DATA_REQUEST + 16;
/// Of each message from handlers, the endpoint that it is for.
pub const SPINE_OUT_TO: u32 = SPINE_IN_ENTRIES + IN_SLOTS * 4;
/// The endpoints' mailboxes as they were seen last, two words for each.
pub const SPINE_BELLS: u32 = SPINE_OUT_TO + OUT_SLOTS * 4;
/// Procedures that extensions export: 8 bytes for each.
pub const SPINE_EXPORTS: u32 = SPINE_BELLS + spine::rings::MAILBOXES * 8;
/// The last run that has called one: words of CPU A's.
pub const SPINE_CALL: u32 = SPINE_EXPORTS + spine::EXPORTS * 8;
/// Bytes of these.
pub const SPINE_CALL_BYTES: u32 = 16;
/// What becomes of what a run had that was cut off, a word for each domain.
pub const SPINE_WHEN_CUT: u32 = SPINE_CALL + SPINE_CALL_BYTES;
/// When the run began whose time is taken, and the number of the run when times were asked for.
pub const SPINE_TIMED: u32 = SPINE_WHEN_CUT + 4 * spine::DOMAINS;
/// Messages from the host, from handlers, and of handlers to their own domain: a ring each.
pub const MESSAGES_IN: u32 = (SPINE_TIMED + 8).next_multiple_of(spine::rings::MESSAGE_BYTES);
/// Slots of [`MESSAGES_IN`], a power of two.
pub const IN_SLOTS: u32 = 16;
/// See [`MESSAGES_IN`].
pub const MESSAGES_OUT: u32 = MESSAGES_IN + IN_SLOTS * spine::rings::MESSAGE_BYTES;
/// Slots of [`MESSAGES_OUT`], a power of two.
pub const OUT_SLOTS: u32 = 16;
/// See [`MESSAGES_IN`].
pub const MESSAGES_POSTED: u32 = MESSAGES_OUT + OUT_SLOTS * spine::rings::MESSAGE_BYTES;
/// Slots of [`MESSAGES_POSTED`], a power of two.
pub const POST_SLOTS: u32 = 4;
/// Frames on their way from CPU A to CPU B, and those that domains keep: [`POOL_SLOTS`], and one
/// more in which a frame lies that goes round the end of the receive buffer.
pub const POOL: u32 =
    (MESSAGES_POSTED + POST_SLOTS * spine::rings::MESSAGE_BYTES).next_multiple_of(POOL_SLOT);
/// Frames that the pool holds: on their way, or kept.
pub const POOL_SLOTS: u32 = 12;
/// Frames that may be on their way.
pub const POOL_QUEUE: u32 = 8;
/// Bytes of a frame in the pool.
pub const POOL_FRAME: u32 = 1536;
/// Bytes of a slot: its length, and the frame.
pub const POOL_SLOT: u32 = 2048;
/// The peer page, see [`spine::peer`].
pub const PEER_PAGE: u32 = POOL + (POOL_SLOTS + 1) * POOL_SLOT;
/// What extensions are loaded into: up to K.
pub const ARENA: u32 = PEER_PAGE + spine::peer::PAGE_BYTES;
/// End of that, if the host has nothing [reserved](Reserved).
pub const ARENA_END: u32 = if SPINE == 0 { ARENA } else { BLOCK_OFFSET };
/// Bytes that the host may reserve behind that, at most.
pub const RESERVE_MOST: u32 = if SPINE == 0 {
    0
} else {
    (Reserved::MOST as u32) << 10
};
/// Bytes in front of K: the arena has room for the router's two tables of 16 KB. With 512 KB of SRAM
/// the packet buffers keep 220 KB.
const SPINE_BYTES: u32 = 0x1_5000;

/// 1 in firmware with endpoints for datagrams, else 0.
pub const EUDP: usize = cfg!(feature = "eudp") as usize;
/// Words of E-UDP that both CPUs see.
pub const EUDP_SHARED: u32 = VENDOR_OFFSET + LONGER;
/// End of those.
pub const EUDP_SHARED_END: u32 = EUDP_SHARED + 0x40;
/// The E-UDP block, see [`host_interface::eudp`].
pub const EUDP_BLOCK: u32 = EUDP_SHARED_END;
/// What CPU B knows of the endpoints' descriptors to send, 16 bytes for each endpoint.
pub const EUDP_QUEUES: u32 = EUDP_BLOCK + eudp::BLOCK_BYTES;
/// The last transitions of CPU B's machines.
pub const EUDP_TRACE: u32 = EUDP_BLOCK + eudp::TRACE;
/// The last transitions of CPU A's machines, in firmware that records them: in front of the words of
/// E-UDP, where nothing else is.
pub const EUDP_ARRIVALS: u32 = EUDP_SHARED - eudp::arrivals::BYTES;
/// Datagrams that come in fragments, a row of [`EUDP_ASSEMBLY_BYTES`] for each.
pub const EUDP_ASSEMBLIES: u32 = EUDP_QUEUES + 16 * eudp::ENDPOINTS;
/// Datagrams in fragments that are known at a time.
pub const ASSEMBLIES: u32 = 8;
/// Bytes of a row, a power of two.
pub const EUDP_ASSEMBLY_BYTES: u32 = 256;
/// A word for what is read for a frame that was given up.
pub const EUDP_UNWANTED: u32 = EUDP_ASSEMBLIES + ASSEMBLIES * EUDP_ASSEMBLY_BYTES;
/// Completions that are held for others, two in each of [`PAIR_ROWS`].
pub const EUDP_PAIRS: u32 = (EUDP_UNWANTED + 4).next_multiple_of(2 * eudp::COMPLETION_BYTES);
/// Rows of those.
pub const PAIR_ROWS: u32 = 4;
/// Bytes from [`EUDP_SHARED`] to K.
const EUDP_BYTES: u32 = 0xC700;

/// Base K of the descriptor and buffer block for an SRAM of `bytes`, of which the host has reserved
/// some in front of it: the block ends at [`PACKET_MEMORY_END`] and begins behind the tables, in an
/// alias where SRAM is smaller than 2 MB.
pub const fn block_base(bytes: u32, reserved: u32) -> u32 {
    let used = if bytes > PACKET_MEMORY_END {
        PACKET_MEMORY_END
    } else {
        bytes
    };
    PACKET_MEMORY_END - used + BLOCK_OFFSET + reserved
}

/// What is reserved of the bytes that a host asks for, at most [`RESERVE_MOST`]: all or none. The
/// packet buffers keep at least [`BUFFERS_LEAST`].
pub const fn reserved(bytes: u32, asked: u32) -> u32 {
    let buffers = block_base(bytes, asked) + block::PACKET_BUFFERS;
    if buffers <= PACKET_MEMORY_END - BUFFERS_LEAST {
        asked
    } else {
        0
    }
}

/// With 512 KB the packet buffers still get more than half of it, or nearly that.
const BUFFERS_LEAST: u32 = if SPINE == 0 && EUDP == 0 {
    0x4_0000
} else if SPINE != 0 {
    0x3_7000
} else {
    0x3_8000
};

const _: () = {
    assert!(SEND_BDS + SEND_BYTES <= FIRMWARE_BASE);
    assert!(TABLES > FIRMWARE_BASE);
    assert!(TABLES_END <= BLOCK_OFFSET);
    assert!(LOG.is_multiple_of(32) && RETURN_BDS.is_multiple_of(32));
    assert!(INFORMATION.is_multiple_of(8) && STAGING.is_multiple_of(32));
    assert!(LOADABLE_BYTES.is_multiple_of(32));
    assert!(TRACE_BYTES.is_power_of_two());
    assert!(BLOCK_OFFSET.is_multiple_of(block::ALIGNMENT));
    assert!(SPINE == 0 || TABLES_END <= SPINE_SHARED);
    assert!(SPINE == 0 || ARENA + 0x8800 <= ARENA_END);
    assert!(EUDP == 0 || TABLES_END <= EUDP_SHARED && SPINE == 0);
    assert!(cfg!(not(feature = "transitions")) || TABLES_END <= EUDP_ARRIVALS);
    let pairs_end = EUDP_PAIRS + PAIR_ROWS * 2 * eudp::COMPLETION_BYTES;
    assert!(pairs_end <= EUDP_SHARED + EUDP_BYTES);
    assert!(POOL_SLOT.is_power_of_two() && POOL_FRAME + 8 <= POOL_SLOT);
    assert!(QUEUE_SLOTS * 2 == 1 << QUEUE_SHIFT);
    assert!(QUEUE_RINGS + ((QUEUES_MAX as u32) << QUEUE_SHIFT) == STAGING);
    assert!(VERDICT_SLOTS.is_power_of_two() && VERDICT_SLOTS * 8 <= RX_RING_BYTES);
    assert!(QUEUE_CONTROL.is_multiple_of(8) && QUEUE_BLOCK.is_multiple_of(4));
    let buffers = block_base(0x8_0000, 0) + block::PACKET_BUFFERS;
    assert!(PACKET_MEMORY_END - buffers >= BUFFERS_LEAST);
    assert!(((Reserved::STEP as u32) << 10).is_multiple_of(block::ALIGNMENT));
    // With 1 MB all of it may be reserved.
    assert!(reserved(0x10_0000, RESERVE_MOST) == RESERVE_MOST);
};

#[cfg(all(test, not(any(feature = "spine", feature = "eudp"))))]
mod tests {
    use super::*;

    /// Reference 2.2: K is 0x12F000 with 1 MB of SRAM.
    #[test]
    fn the_block_is_where_the_reference_puts_it() {
        assert_eq!(block_base(0x10_0000, 0), 0x12_F000);
        assert_eq!(block_base(0x8_0000, 0), 0x1A_F000);
        assert_eq!(block_base(0x20_0000, 0), 0x2_F000);
        assert_eq!(block_base(0x80_0000, 0), 0x2_F000);
    }
}
