//! Names, addresses and bits of the chip for the commands in `boards/tigon2/gdb/tigon.py`, written
//! as JSON from the crates that define them.

use host_interface::bd::{BdErrors, BdFlags};
use host_interface::extension::{self, Extension};
use host_interface::gencom::Gencom;
use host_interface::queue::{self, BlockWord, QueueCounter, RearmWord, block};
use host_interface::{log, trace};
use serde_json::{Value, json};
use tigon2_chip::events::EventBit;
use tigon2_chip::mailbox::Mailbox;
use tigon2_chip::{Register, dma, mac, memory};

/// Everything, as `tigon.json` holds it.
pub fn facts() -> Value {
    json!({
        "registers_base": memory::REGISTERS_BASE,
        "firmware_base": memory::FIRMWARE_BASE,
        "registers": list(Register::ALL, |register| json!({
            "name": register.name(), "offset": register.offset(),
            "access": register.access().name(),
        })),
        "events": list(EventBit::ALL, |event| json!({
            "name": event.name(), "bit": event.number(),
        })),
        "mailboxes": list(Mailbox::ALL, |mailbox| json!({
            "name": mailbox.name(), "bit": mailbox.number(),
        })),
        "words": shared_words(),
        "magic": extension::MAGIC,
        "build_id": log::BUILD_ID,
        "chip_rings": chip_rings(),
        "pointer_flags": mac::POINTER_FLAGS,
        "host_rings": host_rings(),
        "queues": queues(),
        "trace_entry": trace::ENTRY_BYTES,
        "bd_flags": bd_flags(),
        "bd_errors": bd_errors(),
    })
}

fn list<T: Copy>(all: &[T], entry: impl Fn(T) -> Value) -> Value {
    all.iter().map(|one| entry(*one)).collect()
}

/// Gencom and this project's extension of it.
fn shared_words() -> Value {
    let gencom = Gencom::ALL.iter().map(|w| (w.name(), w.nic_address()));
    let extension = Extension::ALL.iter().map(|w| (w.name(), w.nic_address()));
    gencom
        .chain(extension)
        .map(|(name, address)| json!({"name": name, "address": address}))
        .collect()
}

/// The rings whose ends are registers (reference 6.3, 10.1).
fn chip_rings() -> Value {
    let ring = |name, producer: Register, consumer: Register, bytes: u32, entry: u32| {
        json!({
            "name": name, "producer": producer.name(), "consumer": consumer.name(),
            "bytes": bytes, "entry": entry,
        })
    };
    let (read, write) = (dma::RING_BYTES, dma::DESCRIPTOR_BYTES);
    json!([
        ring(
            "DMA read",
            Register::AssistReadProducer,
            Register::AssistReadConsumer,
            read,
            write
        ),
        ring(
            "DMA write",
            Register::AssistWriteProducer,
            Register::AssistWriteConsumer,
            read,
            write
        ),
        ring(
            "MAC transmit",
            Register::TxDescriptorProducer,
            Register::TxDescriptorConsumer,
            mac::TX_RING_BYTES,
            mac::DESCRIPTOR_BYTES
        ),
        ring(
            "MAC receive",
            Register::RxDescriptorProducer,
            Register::RxDescriptorConsumer,
            mac::RX_RING_BYTES,
            mac::DESCRIPTOR_BYTES
        ),
    ])
}

/// The host's rings, by the words in NIC memory that hold their ends; an end that only
/// host memory holds is `null`.
fn host_rings() -> Value {
    let ring = |name, producer: Option<u32>, consumer: Option<u32>| {
        json!({
            "name": name, "producer": producer, "consumer": consumer,
        })
    };
    let mailbox = |mailbox: Mailbox| Some(mailbox.nic_address());
    let gencom = |word: Gencom| Some(word.nic_address());
    json!([
        ring(
            "command",
            mailbox(Mailbox::CommandProducer),
            gencom(Gencom::CommandConsumer)
        ),
        ring(
            "send",
            mailbox(Mailbox::SendProducer),
            Some(Extension::SendConsumer.nic_address())
        ),
        ring("standard", mailbox(Mailbox::StandardProducer), None),
        ring("jumbo", mailbox(Mailbox::JumboProducer), None),
        ring("mini", mailbox(Mailbox::MiniProducer), None),
        ring(
            "receive return",
            None,
            gencom(Gencom::ReceiveReturnConsumer)
        ),
        ring("event", None, gencom(Gencom::EventConsumer)),
    ])
}

/// Where the firmware keeps what it says of its receive queues.
fn queues() -> Value {
    let counter =
        |name: &str, counter: QueueCounter| json!({"name": name, "offset": counter as u32});
    let send = Mailbox::SendProducer;
    json!({
        "block": Extension::Queues.nic_address(),
        "most": queue::QUEUES_MAX,
        "open": BlockWord::Open as u32,
        "buffer_mailbox": BlockWord::BufferMailbox as u32,
        "rearm_mailbox": BlockWord::RearmMailbox as u32,
        "mailboxes": send.nic_address() - 8 * send.number(),
        "stay_polled": RearmWord::new().with_stay_polled(true).into_bits(),
        "consumer": RearmWord::new().with_consumer(u16::MAX).into_bits(),
        "first": block::FIRST_COUNTERS,
        "bytes": block::COUNTERS_BYTES,
        "counters": [
            counter("frames", QueueCounter::Frames),
            counter("interrupts", QueueCounter::Interrupts),
        ],
        "drops": [
            QueueCounter::NoBuffer as u32, QueueCounter::ReturnRingFull as u32,
            QueueCounter::BufferTooSmall as u32, QueueCounter::Fault as u32,
        ],
    })
}

fn bd_flags() -> Value {
    let flag = |name: &str, flags: BdFlags| json!({"name": name, "mask": flags.into_bits()});
    let none = BdFlags::new();
    json!([
        flag("transport_checksum", none.with_transport_checksum(true)),
        flag("ip_checksum", none.with_ip_checksum(true)),
        flag("end", none.with_end(true)),
        flag("more", none.with_more(true)),
        flag("jumbo_ring", none.with_jumbo_ring(true)),
        flag("ip_fragment", none.with_ip_fragment(true)),
        flag("ip_fragment_end", none.with_ip_fragment_end(true)),
        flag("vlan_tag", none.with_vlan_tag(true)),
        flag("error", none.with_error(true)),
        flag("coalesce_now", none.with_coalesce_now(true)),
        flag("mini_ring", none.with_mini_ring(true)),
    ])
}

fn bd_errors() -> Value {
    let error = |name: &str, errors: BdErrors| json!({"name": name, "mask": errors.into_bits()});
    let none = BdErrors::new();
    json!([
        error("crc", none.with_crc(true)),
        error("collision", none.with_collision(true)),
        error("link_lost", none.with_link_lost(true)),
        error("phy_decode", none.with_phy_decode(true)),
        error("odd_nibbles", none.with_odd_nibbles(true)),
        error("mac_abort", none.with_mac_abort(true)),
        error("runt", none.with_runt(true)),
        error("truncated", none.with_truncated(true)),
        error("giant", none.with_giant(true)),
    ])
}
