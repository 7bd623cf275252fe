//! `tigonctl rings`: prints producer, consumer and fill level of each ring.

use anyhow::Result;
use host_interface::bar;
use host_interface::extension::Extension;
use host_interface::gencom::Gencom;
use serde_json::json;
use tigon2_chip::registers::Register;

use super::cli::Arguments;
use super::look::Source;
use super::output::Output;

/// A ring of the card, from its registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Its name.
    pub name: &'static str,
    /// The next entry to fill.
    pub producer: u32,
    /// The next entry to take.
    pub consumer: u32,
    /// Entries between them.
    pub fill: u32,
    /// The number of entries.
    pub size: u32,
}

/// The words of a ring's producer and consumer, and their kind.
struct Place {
    name: &'static str,
    /// Offsets in BAR 0 of both words.
    words: [u32; 2],
    /// Bytes of an entry, if the words are NIC addresses of entries; indices have none.
    bytes: Option<u32>,
    entries: u32,
}

/// A ring in the host's memory or in gencom: both words are indices.
const fn counted(name: &'static str, words: [u32; 2], entries: u32) -> Place {
    Place {
        name,
        words,
        bytes: None,
        entries,
    }
}

/// A ring of the chip in SRAM, aligned to its own length (hardware reference, section 2.2): both
/// words are addresses.
const fn addressed(
    name: &'static str,
    producer: Register,
    consumer: Register,
    bytes: u32,
    entries: u32,
) -> Place {
    Place {
        name,
        words: [producer.offset(), consumer.offset()],
        bytes: Some(bytes),
        entries,
    }
}

const RINGS: [Place; 6] = [
    counted(
        "send",
        [
            bar::MAILBOX_SEND_PRODUCER,
            Extension::SendConsumer.bar_offset(),
        ],
        512,
    ),
    counted(
        "command",
        [
            bar::MAILBOX_COMMAND_PRODUCER,
            Gencom::CommandConsumer.bar_offset(),
        ],
        64,
    ),
    addressed(
        "dma read",
        Register::AssistReadProducer,
        Register::AssistReadConsumer,
        32,
        64,
    ),
    addressed(
        "dma write",
        Register::AssistWriteProducer,
        Register::AssistWriteConsumer,
        32,
        64,
    ),
    addressed(
        "mac transmit",
        Register::TxDescriptorProducer,
        Register::TxDescriptorConsumer,
        8,
        256,
    ),
    addressed(
        "mac receive",
        Register::RxDescriptorProducer,
        Register::RxDescriptorConsumer,
        8,
        512,
    ),
];

impl Place {
    /// The ring with these values of its words.
    fn ring(&self, words: [u32; 2]) -> Ring {
        // The lowest bits of an address may be flags; the highest are the ring's place.
        let index = |word: u32| word / self.bytes.unwrap_or(1) % self.entries;
        let [producer, consumer] = words.map(index);
        Ring {
            name: self.name,
            producer,
            consumer,
            fill: (producer + self.entries - consumer) % self.entries,
            size: self.entries,
        }
    }

    /// The NIC addresses of the entries, if the words are addresses.
    fn addresses(&self, words: [u32; 2]) -> Option<[u32; 2]> {
        let bytes = self.bytes?;
        Some(words.map(|word| word - word % bytes))
    }
}

/// Producer and consumer words of each ring.
fn read_words(source: &mut Source) -> Result<Vec<[u32; 2]>> {
    let offsets: Vec<u32> = RINGS.iter().flat_map(|place| place.words).collect();
    let words = source.registers(&offsets)?;
    Ok(words.as_chunks().0.to_vec())
}

/// The rings of a card.
pub fn read_rings(source: &mut Source) -> Result<Vec<Ring>> {
    let words = read_words(source)?;
    let rings = RINGS.iter().zip(words);
    Ok(rings.map(|(place, words)| place.ring(words)).collect())
}

/// `tigonctl rings`
pub fn rings(arguments: &Arguments, addresses: bool, output: &Output) -> Result<()> {
    let words = read_words(&mut Source::open(arguments)?)?;
    let mut heading = format!(
        "{:<14} {:>8} {:>8} {:>6} {:>6}",
        "ring", "producer", "consumer", "fill", "of"
    );
    if addresses {
        heading += &format!(" {:>11} {:>11}", "producer at", "consumer at");
    }
    let mut lines = vec![heading];
    let mut list = Vec::new();
    for (place, words) in RINGS.iter().zip(words) {
        let ring = place.ring(words);
        let mut line = format!(
            "{:<14} {:>8} {:>8} {:>6} {:>6}",
            ring.name, ring.producer, ring.consumer, ring.fill, ring.size
        );
        let mut value = json!({
            "name": ring.name,
            "producer": ring.producer,
            "consumer": ring.consumer,
            "fill": ring.fill,
            "size": ring.size,
        });
        if addresses && let Some([producer, consumer]) = place.addresses(words) {
            line += &format!(" {producer:>#11x} {consumer:>#11x}");
            value["producer_address"] = producer.into();
            value["consumer_address"] = consumer.into();
        }
        lines.push(line);
        list.push(value);
    }
    output.result("rings", json!({ "rings": list }), &lines.join("\n"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> &'static Place {
        let place = RINGS.iter().find(|place| place.name == name);
        place.expect("a ring")
    }

    /// The state of a card after a few pings: the command must print entries, not addresses.
    #[test]
    fn an_address_in_a_ring_is_an_entry() {
        let ring = place("mac receive").ring([0x13_2028 | 4, 0x13_2018]);
        assert_eq!((ring.producer, ring.consumer, ring.fill), (5, 3, 2));
        let words = [0x13_3160, 0x13_37E0];
        let ring = place("dma read").ring(words);
        assert_eq!((ring.producer, ring.consumer), (11, 63));
        assert_eq!(ring.fill, 12, "round the end");
        assert_eq!(place("dma read").addresses(words), Some(words));
        let flags = place("mac transmit").addresses([0x13_182C, 0x13_1828]);
        assert_eq!(flags, Some([0x13_1828; 2]));
    }

    #[test]
    fn an_index_stays_one() {
        let ring = place("send").ring([3, 510]);
        assert_eq!((ring.producer, ring.consumer, ring.fill), (3, 510, 5));
        assert_eq!(place("send").addresses([3, 510]), None);
    }
}
