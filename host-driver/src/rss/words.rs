//! Parses and formats settings as text, for people and programs.

use flow_classify::{ClassifierKind, HashTypes, IndirectionTable, Key};
use host_interface::queue::{KEY_BYTES, TABLE_ENTRIES};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::RssError;
use crate::nic::{Classification, QueueSettings};

/// Words that are no settings.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WordsError {
    /// No classifier of this name.
    #[error("{0} is no classifier: single, source-address, toeplitz, round-robin")]
    Classifier(String),
    /// No type of hash of this name.
    #[error("{0} is no type of hash: {names}", names = NAMES.join(", "))]
    Field(String),
    /// Not the digits of a key.
    #[error("a key is published, symmetric or {KEY_BYTES} bytes in hexadecimal digits, not {0}")]
    Key(String),
    /// A key of another length.
    #[error("a key has {KEY_BYTES} bytes, not {0}")]
    KeyLength(usize),
    /// Not a list of queues.
    #[error("{0} is no list of queues, such as 0,1,2,3")]
    Table(String),
    /// A table that does not fill the card's.
    #[error("a table has {TABLE_ENTRIES} entries, or so many that they divide it, not {0}")]
    TableLength(usize),
    /// Not a list of weights.
    #[error("{0} is no list of weights, such as 3,1")]
    Weights(String),
    /// Weights for other queues.
    #[error("{weights} weights for {queues} queues: one each, not all 0")]
    WeightCount {
        /// How many there are.
        weights: usize,
        /// How many queues.
        queues: u8,
    },
    /// Settings that a card would refuse.
    #[error(transparent)]
    Settings(#[from] RssError),
}

/// The types of hash, in the order of their bits.
const NAMES: [&str; 6] = [
    "ipv4", "tcp-ipv4", "udp-ipv4", "ipv6", "tcp-ipv6", "udp-ipv6",
];

/// How a card's queues are chosen, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RssWords {
    /// Open queues.
    pub queues: u8,
    /// The classifier's name.
    pub classifier: String,
    /// The types of hash that are made, by their names.
    pub fields: Vec<String>,
    /// The key, in hexadecimal digits.
    pub key: String,
    /// The queue of each entry.
    pub table: Vec<u8>,
}

impl RssWords {
    /// Those of a classification with so many queues.
    #[must_use]
    pub fn of(classification: &Classification, queues: u8) -> Self {
        let bits = classification.hash_types.into_bits();
        let fields = NAMES.iter().enumerate();
        let fields = fields.filter(|(bit, _)| bits & 1 << bit != 0);
        let key = classification.key.0.iter();
        Self {
            queues,
            classifier: classification.kind.name().to_owned(),
            fields: fields.map(|(_, name)| (*name).to_owned()).collect(),
            key: key.map(|byte| format!("{byte:02x}")).collect(),
            table: classification.table(queues).entries().to_vec(),
        }
    }

    /// What they say.
    ///
    /// # Errors
    /// [`WordsError`].
    pub fn classification(&self) -> Result<Classification, WordsError> {
        let classification = Classification {
            kind: classifier(&self.classifier)?,
            hash_types: fields(self.fields.iter().map(String::as_str))?,
            key: key(&self.key)?,
            table: Some(table(&self.table, self.queues)?),
        };
        classification.rss(self.queues)?;
        Ok(classification)
    }
}

impl From<&QueueSettings> for RssWords {
    fn from(settings: &QueueSettings) -> Self {
        Self::of(&settings.classification, settings.queues)
    }
}

/// The classifier of a name.
///
/// # Errors
/// [`WordsError::Classifier`].
pub fn classifier(name: &str) -> Result<ClassifierKind, WordsError> {
    let kinds = ClassifierKind::ALL.into_iter();
    let mut kinds = kinds.filter(|kind| kind.name() == name);
    kinds
        .next()
        .ok_or_else(|| WordsError::Classifier(name.to_owned()))
}

/// The types of hash of these names.
///
/// # Errors
/// [`WordsError::Field`].
pub fn fields<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<HashTypes, WordsError> {
    let mut bits = 0;
    for name in names {
        let bit = NAMES.iter().position(|known| *known == name);
        bits |= 1 << bit.ok_or_else(|| WordsError::Field(name.to_owned()))?;
    }
    Ok(HashTypes::from_bits(bits))
}

/// A key: `published`, `symmetric`, or hexadecimal digits, with colons between bytes or not.
///
/// # Errors
/// [`WordsError::Key`], [`WordsError::KeyLength`].
pub fn key(text: &str) -> Result<Key, WordsError> {
    match text {
        "published" => return Ok(Key::PUBLISHED),
        "symmetric" => return Ok(Key::SYMMETRIC),
        _ => {}
    }
    let wrong = || WordsError::Key(text.to_owned());
    let digits: Vec<u8> = text
        .chars()
        .filter(|c| *c != ':')
        .map(|c| c.to_digit(16).map(|digit| digit as u8).ok_or_else(wrong))
        .collect::<Result<_, _>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(wrong());
    }
    let bytes: Vec<u8> = pairs.iter().map(|[high, low]| high << 4 | low).collect();
    let length = bytes.len();
    let bytes = bytes
        .try_into()
        .map_err(|_| WordsError::KeyLength(length))?;
    Ok(Key(bytes))
}

/// A table of these queues, repeated to its full length.
///
/// # Errors
/// [`WordsError::TableLength`]; [`RssError::TableEntry`] for a queue that is not open.
pub fn table(queues: &[u8], open: u8) -> Result<IndirectionTable, WordsError> {
    let length = queues.len();
    if length == 0 || !TABLE_ENTRIES.is_multiple_of(length) {
        return Err(WordsError::TableLength(length));
    }
    let mut entries = [0; TABLE_ENTRIES];
    for (entry, queue) in entries.iter_mut().zip(queues.iter().cycle()) {
        *entry = *queue;
    }
    IndirectionTable::new(entries, open.into())
        .map_err(|entry| RssError::TableEntry { entry }.into())
}

/// A table from a list such as `0,1,2,3`.
///
/// # Errors
/// As [`table`]; [`WordsError::Table`].
pub fn table_of(text: &str, open: u8) -> Result<IndirectionTable, WordsError> {
    let wrong = || WordsError::Table(text.to_owned());
    let entries = text.split(',').map(|entry| entry.trim().parse());
    let entries: Vec<u8> = entries.collect::<Result<_, _>>().map_err(|_| wrong())?;
    table(&entries, open)
}

/// A table in which each queue has as many entries as its weight says, from a list such as
/// `3,1`.
///
/// # Errors
/// [`WordsError::Weights`], [`WordsError::WeightCount`].
pub fn weights(text: &str, queues: u8) -> Result<IndirectionTable, WordsError> {
    let wrong = || WordsError::Weights(text.to_owned());
    let weights = text.split(',').map(|weight| weight.trim().parse());
    let weights: Vec<u32> = weights.collect::<Result<_, _>>().map_err(|_| wrong())?;
    let fits = weights.len() == usize::from(queues);
    let table = IndirectionTable::weighted(&weights).filter(|_| fits);
    table.ok_or(WordsError::WeightCount {
        weights: weights.len(),
        queues,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_go_through_words_unchanged() {
        let settings = QueueSettings::new(3);
        let words = RssWords::from(&settings);
        assert_eq!(words.fields, ["ipv4", "tcp-ipv4", "ipv6", "tcp-ipv6"]);
        assert_eq!(&words.key[..8], "6d5a56da");
        assert_eq!(words.table[..4], [0, 1, 2, 0]);
        let back = words.classification().expect("good words");
        assert_eq!(RssWords::of(&back, 3), words);
        assert_eq!(back.key, Key::PUBLISHED);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let said = |error: WordsError| error.to_string();
        assert_eq!(
            said(key("6d5a").expect_err("short")),
            "a key has 40 bytes, not 2"
        );
        assert_eq!(
            said(key(&"00".repeat(41)).expect_err("long")),
            "a key has 40 bytes, not 41"
        );
        for text in ["secret", "6d5", "0x6d"] {
            let error = said(key(text).expect_err("no digits"));
            assert!(error.ends_with(&format!("not {text}")), "{error}");
        }
        let colons = ["6d:5a"; 20].join(":");
        assert_eq!(key(&colons), Ok(Key::SYMMETRIC));
        assert_eq!(
            said(table_of("0,1,2", 4).expect_err("no divisor")),
            "a table has 128 entries, or so many that they divide it, not 3"
        );
        assert_eq!(
            said(table_of("0,4", 4).expect_err("not open")),
            "table entry 1 names a queue that is not open"
        );
        assert!(matches!(table_of("0,x", 4), Err(WordsError::Table(_))));
        assert!(matches!(table_of("", 4), Err(WordsError::Table(_))));
        assert_eq!(
            said(weights("1,2", 3).expect_err("too few")),
            "2 weights for 3 queues: one each, not all 0"
        );
        assert!(weights("0,0", 2).is_err() && weights("-1,2", 2).is_err());
        assert!(said(fields(["tcp"]).expect_err("no type")).contains("tcp-ipv4"));
        assert!(said(classifier("rss").expect_err("none")).contains("toeplitz"));
        let mut words = RssWords::from(&QueueSettings::new(3));
        words.classifier = "source-address".to_owned();
        assert_eq!(
            said(words.classification().expect_err("three")),
            "3 queues: source-address needs a power of two"
        );
    }

    #[test]
    fn weights_share_the_table_out() {
        let table = weights("3,1", 2).expect("two queues");
        let first = table.entries().iter().filter(|queue| **queue == 0).count();
        assert_eq!(first, 96);
    }
}
