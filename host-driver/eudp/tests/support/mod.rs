//! A card of words whose firmware does at once what it is asked for.

use eudp::{Access, Card, Endpoint, EndpointConfig, Eudp, Memory, Region};
use host_interface::eudp::{BlockWord, COMMAND_MAILBOX, Command, LAYOUT, MAILBOX};
use host_interface::extension::{Extension, MAGIC};
use std::cell::RefCell;
use std::collections::HashMap;
use std::convert::Infallible;
use std::os::fd::OwnedFd;
use std::rc::Rc;

/// Where the block of endpoints is.
pub const BLOCK: u32 = 0x1_0000;
/// Bytes of a memory file.
pub const MAPPED: usize = 1 << 14;

/// Words that both sides see.
#[derive(Clone, Debug)]
pub struct Words(Rc<RefCell<Vec<u32>>>, Access);

impl Words {
    fn new(bytes: usize, access: Access) -> Words {
        Words(Rc::new(RefCell::new(vec![0; bytes / 4])), access)
    }
}

impl Memory for Words {
    type Error = Infallible;

    fn bytes(&self) -> usize {
        4 * self.0.borrow().len()
    }

    fn access(&self) -> Access {
        self.1
    }

    fn address(&self, offset: usize, _: usize) -> Result<u64, Infallible> {
        Ok(offset as u64)
    }

    fn read_words(&self, offset: usize, out: &mut [u32]) -> Result<(), Infallible> {
        out.copy_from_slice(&self.0.borrow()[offset / 4..][..out.len()]);
        Ok(())
    }

    fn write_words(&self, offset: usize, words: &[u32]) -> Result<(), Infallible> {
        self.0.borrow_mut()[offset / 4..][..words.len()].copy_from_slice(words);
        Ok(())
    }

    fn read_bytes(&self, offset: usize, out: &mut [u8]) -> Result<(), Infallible> {
        let words = self.0.borrow();
        for (at, byte) in (offset..).zip(out) {
            *byte = words[at / 4].to_be_bytes()[at % 4];
        }
        Ok(())
    }

    fn write_bytes(&self, offset: usize, bytes: &[u8]) -> Result<(), Infallible> {
        let mut words = self.0.borrow_mut();
        for (at, byte) in (offset..).zip(bytes) {
            let mut word = words[at / 4].to_be_bytes();
            word[at % 4] = *byte;
            words[at / 4] = u32::from_be_bytes(word);
        }
        Ok(())
    }
}

/// The card.
#[derive(Debug)]
pub struct Fake {
    words: HashMap<u32, u32>,
    /// Doorbells of endpoints: mailbox and word.
    pub rung: Vec<(u32, u32)>,
    /// Memory files that it has.
    pub mapped: usize,
    /// Memory that it was asked for.
    pub allocated: Vec<Words>,
}

impl Fake {
    /// Firmware with endpoints.
    pub fn new() -> Fake {
        let words = [
            (Extension::Magic.nic_address(), MAGIC),
            (Extension::Eudp.nic_address(), BLOCK),
            (BLOCK + BlockWord::Layout as u32, LAYOUT),
            (BLOCK + BlockWord::Mailbox as u32, COMMAND_MAILBOX),
            (BLOCK + BlockWord::Doorbells as u32, MAILBOX),
        ];
        Fake {
            words: HashMap::from(words),
            rung: Vec::new(),
            mapped: 0,
            allocated: Vec::new(),
        }
    }
}

impl Card for Fake {
    type Error = Infallible;
    type Memory = Words;

    fn read(&mut self, address: u32, out: &mut [u32]) -> Result<(), Infallible> {
        for (at, word) in (address..).step_by(4).zip(out) {
            *word = self.words.get(&at).copied().unwrap_or(0);
        }
        Ok(())
    }

    fn write(&mut self, address: u32, words: &[u32]) -> Result<(), Infallible> {
        self.words
            .extend((address..).step_by(4).zip(words.to_vec()));
        Ok(())
    }

    fn ring(&mut self, mailbox: u32, word: u32) -> Result<(), Infallible> {
        if mailbox == COMMAND_MAILBOX {
            let mut asked = [0];
            self.read(BLOCK + BlockWord::Command as u32, &mut asked)?;
            self.write(BLOCK + BlockWord::Answer as u32, &asked)?;
        } else {
            self.rung.push((mailbox, word));
        }
        Ok(())
    }

    fn allocate(&mut self, bytes: usize) -> Result<Words, Infallible> {
        let memory = Words::new(bytes, Access::ReadWrite);
        self.allocated.push(memory.clone());
        Ok(memory)
    }

    fn map(&mut self, _: OwnedFd, access: Access) -> Result<Words, Infallible> {
        self.mapped += 1;
        Ok(Words::new(MAPPED, access))
    }

    fn unmap(&mut self, _: &Words) -> Result<(), Infallible> {
        let mut done = [0];
        self.read(BLOCK + BlockWord::Answer as u32, &mut done)?;
        let is_closed = done[0] & 0xFFFF == Command::Close as u32;
        assert!(is_closed, "the card may still use it");
        self.mapped -= 1;
        Ok(())
    }

    fn wait(&mut self, _: u32) -> bool {
        false
    }
}

/// An endpoint with memory, on such a card.
pub struct Local {
    pub card: Fake,
    pub eudp: Eudp,
    pub endpoint: Endpoint<Words>,
    pub region: Region,
}

impl Local {
    pub fn new() -> Local {
        let mut card = Fake::new();
        let mut eudp = Eudp::find(&mut card).expect("it has endpoints");
        let endpoint = eudp.open(&mut card, EndpointConfig::default());
        let mut endpoint = endpoint.expect("there is room");
        let memory = card.allocate(1 << 16).expect("memory");
        let region = eudp.register(&mut card, &mut endpoint, &memory);
        Local {
            card,
            eudp,
            endpoint,
            region: region.expect("there is room"),
        }
    }
}
