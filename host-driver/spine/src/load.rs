//! Loads extensions onto a running card, and unloads them.
//!
//! [`host_interface::spine`] is the interface to the firmware. The loader writes everything through
//! the window while frames flow; a command then makes the firmware take it over in one step. A
//! domain keeps its piece of the arena until the firmware has answered that the domain is unloaded.

mod endpoints;
mod error;
pub mod lease;
pub mod peer;
mod place;
mod region;

pub use crate::guard::{Guard, Term};
pub use endpoints::{EndpointConfig, EndpointCounts, handlers_of};
pub use error::LoadError;

use self::place::{ALIGNMENT, Extent, Piece, free_place};
use crate::exports::{Exported, Exports};
use crate::link::{self, Place, Runtime};
use crate::policy::Policy;
use crate::sign;
use crate::verify::{self, Proof};
use host_interface::extension::{Extension, VERSION_WITH_SPINE};
use host_interface::spine::counts::{self, Counts};
use host_interface::spine::rings::ENDPOINTS;
use host_interface::spine::{
    ARGUMENT_WORDS, BlockWord, Command, DOMAIN_COUNTS, DOMAINS, DomainWord, GUARD_TERMS, GUARDS,
    LAYOUT, MESSAGE, Outcome, TERM_BYTES, TERMS, domain_word, guard, may_call,
};
use spine_image::Section;

/// A card's memory and its mailboxes, as a driver has them.
pub trait Card {
    /// What goes wrong on the way.
    type Error: std::error::Error;

    /// Reads words of NIC memory.
    ///
    /// # Errors
    /// If the card is gone.
    fn read(&mut self, address: u32, out: &mut [u32]) -> Result<(), Self::Error>;

    /// Writes words of NIC memory.
    ///
    /// # Errors
    /// If the card is gone.
    fn write(&mut self, address: u32, words: &[u32]) -> Result<(), Self::Error>;

    /// Writes a mailbox by its number.
    ///
    /// # Errors
    /// If the card is gone.
    fn ring(&mut self, mailbox: u32) -> Result<(), Self::Error>;

    /// Writes both words of a mailbox; the low one, which rings, last.
    ///
    /// # Errors
    /// If the card is gone.
    fn post(&mut self, mailbox: u32, high: u32, low: u32) -> Result<(), Self::Error>;

    /// Lets the card work for a moment; `false` when it has had enough time for an answer, after
    /// `turns` of them.
    fn wait(&mut self, turns: u32) -> bool;

    /// Leaves the window to a peer, at a NIC address: whatever this host reads and writes from now on
    /// goes by [requests](crate::access).
    ///
    /// # Errors
    /// If the card is gone.
    fn lease_window(&mut self, address: u32) -> Result<(), Self::Error>;

    /// Uses the window again.
    fn take_back_window(&mut self);
}

/// What the host knows of a card's extensions.
#[derive(Debug)]
pub struct Loader {
    block: u32,
    arena: Extent,
    /// What is free for text in CPU A's scratch pad.
    pad: Extent,
    mailbox: u32,
    peer_page: u32,
    runtime: Runtime,
    command: u32,
    pieces: [Option<Piece>; DOMAINS as usize],
    exports: Exports,
    /// What each domain may be leased.
    leases: [lease::Granted; DOMAINS as usize],
    /// What stands in the doorbells of endpoints.
    doorbells: [u16; ENDPOINTS as usize],
}

impl Loader {
    /// Finds the block of the firmware that runs, in which nothing is loaded.
    ///
    /// # Errors
    /// [`LoadError::NoSpine`], [`LoadError::Layout`], [`LoadError::Card`].
    pub fn find<C: Card>(card: &mut C) -> Result<Loader, LoadError<C::Error>> {
        let mut word = |address: u32| -> Result<u32, LoadError<C::Error>> {
            let mut out = [0];
            card.read(address, &mut out).map_err(LoadError::Card)?;
            let [word] = out;
            Ok(word)
        };
        let magic = word(Extension::Magic.nic_address())?;
        let version = word(Extension::Version.nic_address())?;
        let block = word(Extension::Spine.nic_address())?;
        let known = magic == host_interface::extension::MAGIC && version >= VERSION_WITH_SPINE;
        if !known || block == 0 {
            return Err(LoadError::NoSpine);
        }
        let layout = word(block + BlockWord::Layout as u32)?;
        if layout != LAYOUT {
            return Err(LoadError::Layout(layout));
        }
        let table = word(block + BlockWord::Imports as u32)?;
        let count = word(block + BlockWord::ImportCount as u32)?.min(0x100);
        let imports = (0..count).map(|number| word(table + 4 * number));
        let imports = imports.collect::<Result<_, _>>()?;
        Ok(Loader {
            block,
            arena: Extent {
                start: word(block + BlockWord::Arena as u32)?,
                bytes: word(block + BlockWord::ArenaBytes as u32)?,
            },
            pad: Extent {
                start: word(block + BlockWord::Pad as u32)?,
                bytes: word(block + BlockWord::PadBytes as u32)?,
            },
            mailbox: word(block + BlockWord::Mailbox as u32)?,
            peer_page: word(block + BlockWord::PeerPage as u32)?,
            runtime: Runtime { imports },
            command: word(block + BlockWord::Command as u32)?,
            pieces: [None; DOMAINS as usize],
            exports: Exports::default(),
            leases: Default::default(),
            doorbells: [0; ENDPOINTS as usize],
        })
    }

    /// Whether the card still runs the firmware that the last command went to: one that was
    /// started anew has forgotten it, and all domains.
    ///
    /// # Errors
    /// [`LoadError::Card`].
    pub fn is_current<C: Card>(&self, card: &mut C) -> Result<bool, LoadError<C::Error>> {
        let mut words = [0; 2];
        let [block, answer] = &mut words;
        card.read(Extension::Spine.nic_address(), std::slice::from_mut(block))
            .map_err(LoadError::Card)?;
        let at = self.block + BlockWord::Answer as u32;
        card.read(at, std::slice::from_mut(answer))
            .map_err(LoadError::Card)?;
        Ok(words == [self.block, self.command])
    }

    /// Bytes of the arena that are free, in all.
    pub fn free(&self) -> u32 {
        let used = self.pieces.iter().flatten().map(|piece| piece.bytes);
        self.arena.bytes - used.sum::<u32>()
    }

    /// Loads a container; returns the domain's number, and what was proven of it.
    ///
    /// # Errors
    /// Which of the walls refused it, and why.
    pub fn load<C: Card>(
        &mut self,
        card: &mut C,
        container: &[u8],
        policy: &Policy,
        build_id: &[u8; 16],
    ) -> Result<(u32, Proof), LoadError<C::Error>> {
        let image = sign::trusted(container, build_id)?;
        let grant = policy.grant(&image.trailer().signer, image.grade())?;
        let free = self.pieces.iter().position(Option::is_none);
        let domain = free.ok_or(LoadError::NoDomain)? as u32;
        let needs = link::bytes(&image);
        let arena = free_place(self.arena, self.pieces().map(|piece| piece.extent()), needs);
        let pad = self.pad_place(image.section(Section::Text).len() as u32);
        let place = Place {
            base: arena.start,
            room: arena.bytes,
            pad: pad.map(|pad| pad.start),
        };
        let linked = link::link(&image, &self.runtime, self.exports.all(), grant, place)?;
        let proof = verify::verify(&linked, grant.stack)?;
        let mut row = vec![
            (DomainWord::Text, linked.text_base),
            (DomainWord::TextEnd, linked.text_base + linked.text),
            (DomainWord::Init, linked.init),
            (DomainWord::Watchdog, grant.watchdog),
            (DomainWord::Patience, grant.patience),
            (DomainWord::EntryCount, linked.entries.len() as u32),
        ];
        row.sort_by_key(|(word, _)| *word as u32);
        let mut words: Vec<u32> = row.into_iter().map(|(_, value)| value).collect();
        words.extend(&linked.entries);
        let at = self.block + domain_word(domain, DomainWord::Text);
        card.write(linked.base, &linked.words)
            .map_err(LoadError::Card)?;
        card.write(at, &words).map_err(LoadError::Card)?;
        let at = self.block + domain_word(domain, DomainWord::Floor);
        const { assert!(DomainWord::Floor as u32 + 4 == DomainWord::TextCopy as u32) };
        let copy = pad.map_or(0, |_| linked.base);
        card.write(at, &[policy.floor(), copy])
            .map_err(LoadError::Card)?;
        card.write(self.block + may_call(domain), &[linked.may_call])
            .map_err(LoadError::Card)?;
        self.ask(card, Command::Load, domain)?;
        let entries = linked.entries.iter();
        let stack = entries.filter_map(|entry| proof.stack.get(entry)).max();
        let exported = image.exports().map(|export| Exported {
            name: export.name.to_owned(),
            domain,
            stack: stack.copied().unwrap_or(0),
        });
        self.exports.add(domain, exported, linked.may_call);
        if let Some(leases) = self.leases.get_mut(domain as usize) {
            *leases = lease::Granted::by(grant);
        }
        if let Some(piece) = self.pieces.get_mut(domain as usize) {
            let bytes = needs.next_multiple_of(ALIGNMENT);
            *piece = Some(Piece {
                region: arena.start + needs - image.region(),
                region_bytes: image.region(),
                pad: pad.unwrap_or_default(),
                ..Piece::of(arena.start, bytes)
            });
        }
        Ok((domain, proof))
    }

    /// Unloads a domain; its guards go with it.
    ///
    /// # Errors
    /// [`LoadError::NotLoaded`], [`LoadError::Imported`], or what the firmware says.
    pub fn unload<C: Card>(
        &mut self,
        card: &mut C,
        domain: u32,
    ) -> Result<(), LoadError<C::Error>> {
        let place = self.pieces.get(domain as usize).copied().flatten();
        if place.is_none() {
            return Err(LoadError::NotLoaded(domain));
        }
        if let Some(user) = self.exports.user_of(domain) {
            return Err(LoadError::Imported { domain, user });
        }
        self.ask_until_done(card, Command::Unload, domain)?;
        self.exports.remove(domain);
        if let Some(piece) = self.pieces.get_mut(domain as usize) {
            *piece = None;
        }
        Ok(())
    }

    /// Lets a domain run again that was suspended.
    ///
    /// # Errors
    /// What the firmware says.
    pub fn resume<C: Card>(
        &mut self,
        card: &mut C,
        domain: u32,
    ) -> Result<(), LoadError<C::Error>> {
        self.ask(card, Command::Resume, domain)
    }

    /// Waits for the firmware to answer: the runs that had begun are over.
    ///
    /// # Errors
    /// [`LoadError::NoAnswer`], [`LoadError::Card`].
    pub fn synchronize<C: Card>(&mut self, card: &mut C) -> Result<(), LoadError<C::Error>> {
        self.ask(card, Command::Synchronize, 0)
    }

    /// Hands a message to a handler: its run is over when this returns, and what it has asked for
    /// is done. What it has to say lies in its region.
    ///
    /// # Errors
    /// [`LoadError::TooMany`] for more than 60 arguments, [`LoadError::NotLoaded`], or what the
    /// firmware says: [`Outcome::NoHandler`], [`Outcome::Cut`].
    pub fn send<C: Card>(
        &mut self,
        card: &mut C,
        domain: u32,
        handler: u8,
        arguments: &[u32],
    ) -> Result<(), LoadError<C::Error>> {
        if arguments.len() > ARGUMENT_WORDS as usize {
            return Err(LoadError::TooMany {
                what: "arguments of a message",
                count: arguments.len(),
                most: ARGUMENT_WORDS,
            });
        }
        let place = self.pieces.get(domain as usize).copied().flatten();
        if place.is_none() {
            return Err(LoadError::NotLoaded(domain));
        }
        card.write(self.block + MESSAGE, arguments)
            .map_err(LoadError::Card)?;
        let argument = (arguments.len() as u32) << 16 | u32::from(handler) << 8 | domain;
        self.ask(card, Command::Message, argument)
    }

    /// Installs guards, in their order, in place of those that there were.
    ///
    /// # Errors
    /// [`LoadError::TooMany`], or what the firmware says.
    pub fn set_guards<C: Card>(
        &mut self,
        card: &mut C,
        guards: &[Guard],
    ) -> Result<(), LoadError<C::Error>> {
        let too_many = |what, count, most| Err(LoadError::TooMany { what, count, most });
        if guards.len() > GUARDS as usize {
            return too_many("guards", guards.len(), GUARDS);
        }
        for (number, one) in (0..).zip(guards) {
            if one.terms.len() > TERMS as usize {
                return too_many("comparisons of a guard", one.terms.len(), TERMS);
            }
            let mut words = vec![one.domain << 8 | u32::from(one.handler)];
            for term in &one.terms {
                words.extend([term.offset, term.mask, term.value]);
            }
            words.resize(((GUARD_TERMS + TERMS * TERM_BYTES) / 4) as usize, 0);
            let at = self.block + guard(number);
            card.write(at, &words).map_err(LoadError::Card)?;
        }
        let at = self.block + BlockWord::Guards as u32;
        card.write(at, &[guards.len() as u32])
            .map_err(LoadError::Card)?;
        self.ask(card, Command::SetGuards, 0)
    }

    /// What a domain and its handlers did.
    ///
    /// # Errors
    /// [`LoadError::Card`].
    pub fn counts<C: Card>(
        &self,
        card: &mut C,
        domain: u32,
    ) -> Result<Counts, LoadError<C::Error>> {
        let mut words = [0; counts::WORDS];
        let at = self.block + DOMAIN_COUNTS + domain * counts::BYTES;
        card.read(at, &mut words).map_err(LoadError::Card)?;
        Ok(Counts(words))
    }

    /// What the domains have.
    fn pieces(&self) -> impl Iterator<Item = &Piece> {
        self.pieces.iter().flatten()
    }

    fn ask<C: Card>(
        &mut self,
        card: &mut C,
        command: Command,
        domain: u32,
    ) -> Result<(), LoadError<C::Error>> {
        let number = (self.command >> 16).wrapping_add(1) & 0xFFFF;
        self.command = number << 16 | command as u32;
        let at = |word: BlockWord| self.block + word as u32;
        let both = [self.command, domain];
        const { assert!(BlockWord::Command as u32 + 4 == BlockWord::Argument as u32) };
        card.write(at(BlockWord::Argument), &both[1..])
            .map_err(LoadError::Card)?;
        card.write(at(BlockWord::Command), &both[..1])
            .map_err(LoadError::Card)?;
        card.ring(self.mailbox).map_err(LoadError::Card)?;
        let mut turns = 0;
        loop {
            let mut answer = [0; 2];
            card.read(at(BlockWord::Answer), &mut answer)
                .map_err(LoadError::Card)?;
            let [done, result] = answer;
            if done == self.command {
                return match Outcome::from_number(result) {
                    Some(Outcome::Done) => Ok(()),
                    Some(other) => Err(LoadError::Refused(other)),
                    None => Err(LoadError::NoAnswer),
                };
            }
            if !card.wait(turns) {
                return Err(LoadError::NoAnswer);
            }
            turns += 1;
        }
    }
}

const _: () = assert!(BlockWord::Answer as u32 + 4 == BlockWord::Result as u32);
