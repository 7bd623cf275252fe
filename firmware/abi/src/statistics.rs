//! The statistics block: 256 words that the firmware keeps for the host.
//!
//! Host/NIC software interface, "Statistics block". The order is a fact of the interface:
//! word numbers are those of the public driver header `if_tireg.h` (FreeBSD), whose
//! comments count right up to the histogram. The names are this project's own.
//! The counters that the MAC itself keeps in NIC memory are another block: hardware
//! reference, section 10.5.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Words of the block.
pub const WORDS: usize = 256;
/// Bytes of the block.
pub const BYTES: usize = 1024;

/// A 64-bit counter as two words, high word first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Counter64 {
    /// Bits 63:32.
    pub high: u32,
    /// Bits 31:0.
    pub low: u32,
}

impl Counter64 {
    /// The two words of a value.
    pub const fn new(value: u64) -> Self {
        Counter64 {
            high: (value >> 32) as u32,
            low: value as u32,
        }
    }

    /// The value.
    pub const fn get(self) -> u64 {
        (self.high as u64) << 32 | self.low as u64
    }

    /// Adds to the value and wraps; without 64-bit arithmetic, which the chip lacks.
    pub const fn add(&mut self, amount: u32) {
        let (low, carry) = self.low.overflowing_add(amount);
        self.low = low;
        self.high = self.high.wrapping_add(carry as u32);
    }

    /// Subtracts from the value, likewise.
    pub const fn subtract(&mut self, amount: u32) {
        let (low, borrow) = self.low.overflowing_sub(amount);
        self.low = low;
        self.high = self.high.wrapping_sub(borrow as u32);
    }
}

/// A field of the block, for programs that print it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The field's name as it is spelled in [`Statistics`].
    pub name: &'static str,
    /// Its first word in the block.
    pub word: usize,
    /// Its number of words; 2 is a [`Counter64`], except for the MAC address.
    pub words: usize,
}

macro_rules! statistics {
    ($( $(#[$doc:meta])* $name:ident: $kind:ty, )+) => {
        /// The statistics block: 1024 bytes at the start of the general information block.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
        )]
        #[repr(C)]
        pub struct Statistics {
            $( $(#[$doc])* pub $name: $kind, )+
        }

        /// All fields in their order.
        pub const FIELDS: &[Field] = &[
            $( Field {
                name: stringify!($name),
                word: core::mem::offset_of!(Statistics, $name) / 4,
                words: size_of::<$kind>() / 4,
            }, )+
        ];
    };
}

statistics! {
    /// word 0: ethernet-like MIB: frames with an odd number of nibbles.
    alignment_errors: u32,
    /// word 1: ethernet-like MIB: frames with a wrong CRC.
    fcs_errors: u32,
    /// word 2: ethernet-like MIB: frames sent after one collision.
    single_collision_frames: u32,
    /// word 3: ethernet-like MIB: frames sent after more collisions.
    multiple_collision_frames: u32,
    /// word 4: ethernet-like MIB: SQE test errors.
    sqe_test_errors: u32,
    /// word 5: ethernet-like MIB: frames that found the medium busy.
    deferred_transmissions: u32,
    /// word 6: ethernet-like MIB: collisions after the slot time.
    late_collisions: u32,
    /// word 7: ethernet-like MIB: frames given up after too many collisions.
    excessive_collisions: u32,
    /// word 8: ethernet-like MIB: frames not sent for an internal error.
    internal_transmit_errors: u32,
    /// word 9: ethernet-like MIB: carrier lost while sending.
    carrier_sense_errors: u32,
    /// word 10: ethernet-like MIB: received frames that were too long.
    frames_too_long: u32,
    /// word 11: ethernet-like MIB: frames not received for an internal error.
    internal_receive_errors: u32,
    /// word 12: interface: the index that the host gave.
    if_index: u32,
    /// word 13: interface: type.
    if_type: u32,
    /// word 14: interface: MTU.
    if_mtu: u32,
    /// word 15: interface: bits per second.
    if_speed: u32,
    /// word 16: interface: wanted state: 1 up, 2 down, 3 testing.
    if_admin_status: u32,
    /// word 17: interface: state: 1 up, 2 down, 3 testing, 4 unknown, 5 dormant.
    if_operational_status: u32,
    /// word 18: interface: time of the last change of state.
    if_last_change: u32,
    /// word 19: interface: good frames that were dropped on receive.
    in_discards: u32,
    /// word 20: interface: bad frames received.
    in_errors: u32,
    /// word 21: interface: frames of an unknown protocol.
    in_unknown_protocols: u32,
    /// word 22: interface: good frames that were not sent.
    out_discards: u32,
    /// word 23: interface: frames not sent for an error.
    out_errors: u32,
    /// word 24: interface: length of the output queue.
    out_queue_length: u32,
    /// words 25..=26: interface: MAC address in 8 bytes.
    physical_address: [u32; 2],
    /// words 27..=34: interface: description in 32 bytes.
    description: [u32; 8],
    /// word 35: nothing: aligns the 64-bit counters.
    alignment: u32,
    /// words 36..=37: bytes received.
    in_octets: Counter64,
    /// words 38..=39: unicast frames received.
    in_unicast: Counter64,
    /// words 40..=41: multicast frames received.
    in_multicast: Counter64,
    /// words 42..=43: broadcast frames received.
    in_broadcast: Counter64,
    /// words 44..=45: bytes sent.
    out_octets: Counter64,
    /// words 46..=47: unicast frames sent.
    out_unicast: Counter64,
    /// words 48..=49: multicast frames sent.
    out_multicast: Counter64,
    /// words 50..=51: broadcast frames sent.
    out_broadcast: Counter64,
    /// word 52: interface: report link changes.
    link_trap_enable: u32,
    /// word 53: interface: speed in Mb/s.
    high_speed: u32,
    /// word 54: interface: promiscuous mode.
    promiscuous: u32,
    /// word 55: interface: a connector is there; follows the link.
    connector_present: u32,
    /// word 56: commands seen: host state.
    command_host_state: u32,
    /// word 57: commands seen: FDR filtering.
    command_fdr_filtering: u32,
    /// word 58: commands seen: set standard producer.
    command_set_standard_producer: u32,
    /// word 59: commands seen: update statistics.
    command_update_statistics: u32,
    /// word 60: commands seen: reset jumbo ring.
    command_reset_jumbo_ring: u32,
    /// word 61: commands seen: add multicast address.
    command_add_multicast: u32,
    /// word 62: commands seen: delete multicast address.
    command_delete_multicast: u32,
    /// word 63: commands seen: promiscuous mode.
    command_promiscuous: u32,
    /// word 64: commands seen: link negotiation.
    command_link_negotiation: u32,
    /// word 65: commands seen: set MAC address.
    command_set_mac_address: u32,
    /// word 66: commands seen: clear profile.
    command_clear_profile: u32,
    /// word 67: commands seen: all-multicast mode.
    command_all_multicast: u32,
    /// word 68: commands seen: clear statistics.
    command_clear_statistics: u32,
    /// word 69: commands seen: set jumbo producer.
    command_set_jumbo_producer: u32,
    /// word 70: commands seen: set mini producer.
    command_set_mini_producer: u32,
    /// word 71: commands seen: refresh statistics.
    command_refresh_statistics: u32,
    /// word 72: commands seen: unknown.
    command_unknown: u32,
    /// word 73: events sent: firmware operational.
    event_firmware_operational: u32,
    /// word 74: events sent: statistics updated.
    event_statistics_updated: u32,
    /// word 75: events sent: link state changed.
    event_link_state: u32,
    /// word 76: events sent: error.
    event_error: u32,
    /// word 77: events sent: multicast list updated.
    event_multicast_updated: u32,
    /// word 78: events sent: jumbo ring reset.
    event_jumbo_ring_reset: u32,
    /// word 79: ring updates: send producer, by the host.
    send_producer_updates: u32,
    /// word 80: ring updates: send consumer, to the host.
    send_consumer_updates: u32,
    /// word 81: ring updates: receive return producer, to the host.
    return_producer_updates: u32,
    /// word 82: interrupts raised.
    interrupts: u32,
    /// word 83: interrupts not raised because the host was in its handler or had masked them.
    avoided_interrupts: u32,
    /// word 84: updates because the event threshold was reached.
    event_threshold_hits: u32,
    /// word 85: updates because the send BD threshold was reached.
    send_threshold_hits: u32,
    /// word 86: updates because the receive BD threshold was reached.
    receive_threshold_hits: u32,
    /// word 87: DMA read attentions: overrun.
    dma_read_overruns: u32,
    /// word 88: DMA read attentions: underrun.
    dma_read_underruns: u32,
    /// word 89: DMA write attentions: overrun.
    dma_write_overruns: u32,
    /// word 90: DMA write attentions: underrun.
    dma_write_underruns: u32,
    /// word 91: DMA write attentions: master abort.
    dma_write_master_aborts: u32,
    /// word 92: DMA read attentions: master abort.
    dma_read_master_aborts: u32,
    /// word 93: no free DMA write descriptor.
    dma_write_ring_full: u32,
    /// word 94: no free DMA read descriptor.
    dma_read_ring_full: u32,
    /// word 95: no room in the event ring.
    event_ring_full: u32,
    /// word 96: no room for an event producer update.
    event_producer_ring_full: u32,
    /// word 97: no free MAC TX descriptor.
    mac_transmit_ring_full: u32,
    /// word 98: no room in the transmit buffer for a frame: tried again.
    transmit_buffer_retries: u32,
    /// word 99: no free DMA write descriptor for a received frame.
    no_write_descriptors: u32,
    /// word 100: no receive BD for a frame.
    no_receive_bds: u32,
    /// word 101: no room in the receive return ring.
    no_return_space: u32,
    /// word 102: send BDs in NIC memory now.
    send_bds: u32,
    /// word 103: standard receive BDs in NIC memory now.
    receive_bds: u32,
    /// word 104: jumbo receive BDs in NIC memory now.
    jumbo_receive_bds: u32,
    /// word 105: mini receive BDs in NIC memory now.
    mini_receive_bds: u32,
    /// word 106: receive BDs now, in all.
    total_receive_bds: u32,
    /// word 107: send BDs now, in all.
    total_send_bds: u32,
    /// word 108: frames that went to the jumbo ring for lack of others.
    jumbo_spill_over: u32,
    /// word 109: SBus hangs cleared.
    sbus_hang_cleared: u32,
    /// word 110: events that had to wait.
    events_delayed: u32,
    /// word 111: received frames with a late collision.
    mac_late_collisions: u32,
    /// word 112: received frames during which the link was lost.
    mac_link_lost: u32,
    /// word 113: received frames that the PHY could not decode.
    mac_phy_decode_errors: u32,
    /// word 114: received frames that the MAC gave up.
    mac_aborts: u32,
    /// word 115: received frames cut for lack of resources.
    mac_truncated: u32,
    /// word 116: unicast frames dropped by the filter.
    mac_dropped_unicast: u32,
    /// word 117: multicast frames dropped by the filter.
    mac_dropped_multicast: u32,
    /// word 118: flow control frames received.
    mac_flow_control: u32,
    /// word 119: frames dropped for lack of space in the receive buffer.
    mac_dropped_no_space: u32,
    /// word 120: collisions.
    mac_collisions: u32,
    /// word 121: MAC RX attentions in all.
    mac_receive_attentions: u32,
    /// word 122: MAC RX attentions: link.
    mac_link_attentions: u32,
    /// word 123: MAC RX attentions: sync.
    mac_sync_attentions: u32,
    /// word 124: MAC RX attentions: code word.
    mac_config_attentions: u32,
    /// word 125: times that the MAC was reset.
    mac_resets: u32,
    /// word 126: MAC RX attentions: no descriptor.
    mac_descriptor_attentions: u32,
    /// word 127: MAC RX attentions: no buffer.
    mac_buffer_attentions: u32,
    /// word 128: recoveries with no frame in the buffer.
    mac_zero_frame_cleanups: u32,
    /// word 129: recoveries with one frame in the buffer.
    mac_one_frame_cleanups: u32,
    /// word 130: recoveries with more frames in the buffer.
    mac_multiple_frame_cleanups: u32,
    /// word 131: recoveries by the timer.
    mac_timer_cleanups: u32,
    /// word 132: recoveries after DMA.
    mac_dma_cleanups: u32,
    /// words 133..=147: frames sent after 1..=15 collisions.
    collision_histogram: [u32; 15],
    /// word 148: MAC TX attentions in all.
    mac_transmit_attentions: u32,
    /// words 149..=180: profile counters.
    profile: [u32; 32],
    /// words 181..=255: nothing: fills the block to 1024 bytes.
    padding: [u32; 75],
}

impl Statistics {
    /// All zeros.
    pub const ZERO: Statistics = zerocopy::transmute!([0u32; WORDS]);

    /// The block in 256 words.
    pub const fn from_words(words: [u32; WORDS]) -> Self {
        zerocopy::transmute!(words)
    }

    /// The block as words in NIC order.
    pub const fn words(&self) -> &[u32; WORDS] {
        zerocopy::transmute_ref!(self)
    }
}

impl Default for Statistics {
    fn default() -> Self {
        Statistics::ZERO
    }
}

const _: () = {
    use core::mem::offset_of;
    assert!(size_of::<Statistics>() == BYTES && BYTES == 4 * WORDS);
    // Anchors: the first word of each group of the interface.
    assert!(offset_of!(Statistics, if_index) == 4 * 12);
    assert!(offset_of!(Statistics, in_octets) == 4 * 36);
    assert!(offset_of!(Statistics, link_trap_enable) == 4 * 52);
    assert!(offset_of!(Statistics, command_host_state) == 4 * 56);
    assert!(offset_of!(Statistics, event_firmware_operational) == 4 * 73);
    assert!(offset_of!(Statistics, send_producer_updates) == 4 * 79);
    assert!(offset_of!(Statistics, interrupts) == 4 * 82);
    assert!(offset_of!(Statistics, event_threshold_hits) == 4 * 84);
    assert!(offset_of!(Statistics, dma_read_overruns) == 4 * 87);
    assert!(offset_of!(Statistics, dma_write_ring_full) == 4 * 93);
    assert!(offset_of!(Statistics, mac_late_collisions) == 4 * 111);
    assert!(offset_of!(Statistics, mac_dropped_unicast) == 4 * 116);
    assert!(offset_of!(Statistics, mac_receive_attentions) == 4 * 121);
    assert!(offset_of!(Statistics, collision_histogram) == 4 * 133);
    assert!(offset_of!(Statistics, mac_transmit_attentions) == 4 * 148);
    assert!(offset_of!(Statistics, profile) == 4 * 149);
};

#[cfg(test)]
mod tests;
