//! Who owns the card's function: endpoints, regions and address handles are written here alone.

use crate::address::{AddressHandle, Destination, Headers};
use crate::card::{Access, Card, Memory};
use crate::config::{CutThrough, EndpointConfig};
use crate::endpoint::Endpoint;
use crate::error::EudpError;
use crate::region::Region;
use host_interface::eudp::{
    BlockWord, COMPLETION_BYTES, Command, DESCRIPTOR_BYTES, DESCRIPTORS_MAX, ENDPOINTS,
    EndpointWord, HANDLES, LAYOUT, LEAD_OF_BUS, Outcome, REGIONS, Refusal, SLOTS, TRACE,
    TRACE_BYTES, endpoint_word, handle_word, region_word,
};
use host_interface::eudp::{HandleWord, RegionWord};
use host_interface::extension::{Extension, MAGIC};
use std::os::fd::OwnedFd;

pub(crate) type Failed<C> = EudpError<<C as Card>::Error, <<C as Card>::Memory as Memory>::Error>;

/// Frames for endpoints that were not delivered, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// Lengths or the sum of a header were wrong.
    pub bad_header: u32,
    /// No descriptor was posted.
    pub no_buffer: u32,
    /// The UDP checksum was wrong.
    pub bad_sum: u32,
    /// The descriptor named memory that is not the endpoint's, too little of it, or some that could not be
    /// written.
    pub bad_region: u32,
    /// Datagrams with fragments that overlap.
    pub overlap: u32,
    /// Fragments for which the card had no room to remember their datagram.
    pub no_context: u32,
    /// Datagrams whose fragments did not all come in time.
    pub expired: u32,
    /// Datagrams that were taken to be for a [connected](EndpointConfig::connected) endpoint, and
    /// are for another port.
    pub misplaced: u32,
    /// Fragments that came twice.
    pub duplicate: u32,
    /// Datagrams that were in a [pool](crate::Pool), and are for a port without an endpoint.
    pub unclaimed: u32,
}

/// The card's endpoints, regions and address handles.
#[derive(Debug)]
pub struct Eudp {
    block: u32,
    mailbox: u32,
    doorbells: u32,
    commands: u32,
    endpoints: u32,
    regions: u64,
    handles: u64,
}

impl Eudp {
    /// Finds the firmware's block.
    ///
    /// # Errors
    /// If the firmware has no endpoints, or others than this host knows.
    pub fn find<C: Card>(card: &mut C) -> Result<Eudp, Failed<C>> {
        let mut words = [0; 2];
        let of =
            |card: &mut C, at: u32, out: &mut [u32]| card.read(at, out).map_err(EudpError::Card);
        of(card, Extension::Magic.nic_address(), &mut words[..1])?;
        of(card, Extension::Eudp.nic_address(), &mut words[1..])?;
        let [magic, block] = words;
        if magic != MAGIC || block == 0 {
            return Err(EudpError::NoEndpoints);
        }
        let mut head = [0; 3];
        of(card, block + BlockWord::Layout as u32, &mut head)?;
        let [layout, mailbox, doorbells] = head;
        if layout != LAYOUT {
            return Err(EudpError::Layout(layout));
        }
        let mut last = [0];
        of(card, block + BlockWord::Answer as u32, &mut last)?;
        Ok(Eudp {
            block,
            mailbox,
            doorbells,
            commands: last[0] >> 16,
            endpoints: 0,
            regions: 0,
            handles: 0,
        })
    }

    /// When frames leave from now on, those of all endpoints. Whether frames are written while they
    /// arrive changes with the next buffer that is lent.
    ///
    /// # Errors
    /// If the card is gone.
    pub fn set_cut_through<C: Card>(
        &mut self,
        card: &mut C,
        when: CutThrough,
    ) -> Result<(), Failed<C>> {
        let lead = match when {
            CutThrough::Off => 0,
            CutThrough::OfBus => LEAD_OF_BUS,
            CutThrough::Lead(bytes) => bytes,
        };
        self.write(card, BlockWord::Lead as u32, &[lead])
    }

    /// Opens an endpoint.
    ///
    /// # Errors
    /// If there is no room, or the firmware refuses.
    pub fn open<C: Card>(
        &mut self,
        card: &mut C,
        config: EndpointConfig,
    ) -> Result<Endpoint<C::Memory>, Failed<C>> {
        self.open_at(card, config, u32::from(config.port))
    }

    /// The same at a port, or at [`POOL`](host_interface::eudp::POOL).
    pub(crate) fn open_at<C: Card>(
        &mut self,
        card: &mut C,
        config: EndpointConfig,
        port: u32,
    ) -> Result<Endpoint<C::Memory>, Failed<C>> {
        if !(576..=9000).contains(&config.mtu) {
            return Err(EudpError::Mtu(config.mtu));
        }
        if let Some(vlan) = config.vlan.filter(|vlan| !(1..=4094).contains(vlan)) {
            return Err(EudpError::Vlan(vlan));
        }
        let each = config.descriptors;
        if !each.is_power_of_two() || !(SLOTS..=DESCRIPTORS_MAX).contains(&each) {
            return Err(EudpError::Descriptors(each));
        }
        let number = free(u64::from(self.endpoints), ENDPOINTS, "endpoints")?;
        let (completions, host) = allocate(card, 2 * each * COMPLETION_BYTES)?;
        let (queues, queues_host) = allocate(card, 2 * each * DESCRIPTOR_BYTES)?;
        let row = [
            u32::from(config.address),
            u32::from(config.vlan.unwrap_or(0)) << 16 | port,
            config.mtu,
            config.checksum as u32,
            (host >> 32) as u32,
            host as u32,
            2 * each,
        ];
        self.write(card, endpoint_word(number, EndpointWord::Address), &row)?;
        let row = [(queues_host >> 32) as u32, queues_host as u32, each];
        self.write(card, endpoint_word(number, EndpointWord::QueuesHigh), &row)?;
        let connected = config.connected.map_or(0, u32::from);
        let at = endpoint_word(number, EndpointWord::Connected);
        self.write(card, at, &[connected])?;
        self.command(card, Command::Open, number)?;
        self.endpoints |= 1 << number;
        let doorbell = self.doorbells + number;
        Ok(Endpoint::new(
            self.block,
            number,
            doorbell,
            config,
            (completions, queues),
        ))
    }

    /// Closes an endpoint. Then the card touches neither its completions nor its regions any more.
    ///
    /// # Errors
    /// If the card is gone or does not answer: then its memory must not be used otherwise.
    pub fn close<C: Card>(
        &mut self,
        card: &mut C,
        endpoint: Endpoint<C::Memory>,
    ) -> Result<(), Failed<C>> {
        let number = endpoint.number();
        self.command(card, Command::Close, number)?;
        self.endpoints &= !(1 << number);
        for region in endpoint.regions() {
            self.regions &= !(1 << region);
            let owner = region_word(region, RegionWord::Owner);
            self.write(card, owner, &[0])?;
        }
        for handle in endpoint.handles() {
            self.handles &= !(1 << handle);
            let owner = handle_word(*handle, HandleWord::Owner);
            self.write(card, owner, &[0])?;
        }
        let mut taken = Ok(());
        for memory in endpoint.mapped() {
            taken = taken.and(card.unmap(memory).map_err(EudpError::Card));
        }
        taken
    }

    /// Lets an endpoint use a memory file of the process's own, of whole pages and sealed against
    /// shrinking and growing. The process keeps its mapping of it, and the card is done with it when
    /// the endpoint is closed.
    ///
    /// # Errors
    /// If there is no room, it is no such file, or this way to the card has no memory of others.
    pub fn register_file<C: Card>(
        &mut self,
        card: &mut C,
        endpoint: &mut Endpoint<C::Memory>,
        file: OwnedFd,
        access: Access,
    ) -> Result<Region, Failed<C>> {
        free(self.regions, REGIONS, "regions")?;
        let memory = card.map(file, access).map_err(EudpError::Card)?;
        let region = self.register(card, endpoint, &memory);
        // Also if that has failed: what the card may have of it ends with the endpoint.
        endpoint.keep(memory);
        region
    }

    /// Lets an endpoint use memory. It stays mapped until the endpoint is closed.
    ///
    /// # Errors
    /// If there is no room, or the memory is not in one piece for the card.
    pub fn register<C: Card>(
        &mut self,
        card: &mut C,
        endpoint: &mut Endpoint<C::Memory>,
        memory: &C::Memory,
    ) -> Result<Region, Failed<C>> {
        let number = free(self.regions, REGIONS, "regions")?;
        let bytes = memory.bytes();
        let host = memory.address(0, bytes).map_err(EudpError::Memory)?;
        let bytes = bytes as u32;
        let row = [
            (host >> 32) as u32,
            host as u32,
            bytes,
            endpoint.number() + 1,
        ];
        self.write(card, region_word(number, RegionWord::High), &row)?;
        self.regions |= 1 << number;
        Ok(endpoint.add_region(number, memory))
    }

    /// An address handle of an endpoint.
    ///
    /// # Errors
    /// If there is no room.
    pub fn address<C: Card>(
        &mut self,
        card: &mut C,
        endpoint: &mut Endpoint<C::Memory>,
        to: &Destination,
    ) -> Result<AddressHandle, Failed<C>> {
        let number = free(self.handles, HANDLES, "address handles")?;
        let config = endpoint.config();
        let headers = Headers::new(config.station, config.address, config.port, to);
        let row = headers.row(config.vlan);
        self.write(card, handle_word(number, HandleWord::Headers), &row)?;
        // The process may name it already: from now on the card keeps what the row says.
        let owner = handle_word(number, HandleWord::Owner);
        self.write(card, owner, &[endpoint.number() + 1])?;
        self.handles |= 1 << number;
        Ok(endpoint.add_handle(number, to.dont_fragment))
    }

    /// Frames for endpoints that were not delivered.
    ///
    /// # Errors
    /// If the card is gone.
    pub fn refusals<C: Card>(&mut self, card: &mut C) -> Result<Refusals, Failed<C>> {
        let mut of = |refusal: Refusal| self.word(card, BlockWord::Refused as u32 + refusal as u32);
        Ok(Refusals {
            bad_header: of(Refusal::BadHeader)?,
            no_buffer: of(Refusal::NoBuffer)?,
            bad_sum: of(Refusal::BadSum)?,
            bad_region: of(Refusal::BadRegion)?,
            overlap: of(Refusal::Overlap)?,
            no_context: of(Refusal::NoContext)?,
            expired: of(Refusal::Expired)?,
            misplaced: of(Refusal::Misplaced)?,
            duplicate: of(Refusal::Duplicate)?,
            unclaimed: of(Refusal::Unclaimed)?,
        })
    }

    /// Frames that left while they were being fetched, those that were cut off on the wire and sent
    /// again, and transitions that no table has: the last are 0 unless the firmware is at fault.
    ///
    /// # Errors
    /// If the card is gone.
    pub fn cuts<C: Card>(&mut self, card: &mut C) -> Result<[u32; 3], Failed<C>> {
        Ok([
            self.word(card, BlockWord::CutThrough as u32)?,
            self.word(card, BlockWord::Aborted as u32)?,
            self.word(card, BlockWord::Faults as u32)?,
        ])
    }

    /// Transfers by which the card has fetched descriptors from the processes' memory; wraps.
    ///
    /// # Errors
    /// If the card is gone.
    pub fn pulls<C: Card>(&mut self, card: &mut C) -> Result<u32, Failed<C>> {
        self.word(card, BlockWord::Pulls as u32)
    }

    /// The transitions that CPU B's machines have taken from number `from` on, as bytes of
    /// `frame_pipeline::trace`; fewer if the card has forgotten the first ones. Call it while the
    /// card rests.
    ///
    /// # Errors
    /// If the card is gone.
    pub fn trace<C: Card>(&mut self, card: &mut C, from: u32) -> Result<Vec<u8>, Failed<C>> {
        let steps = self.word(card, BlockWord::Steps as u32)?;
        let count = steps.wrapping_sub(from).min(TRACE_BYTES);
        let mut words = [0; TRACE_BYTES as usize / 4];
        let read = card.read(self.block + TRACE, &mut words);
        read.map_err(EudpError::Card)?;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        let at = |number: u32| bytes[(number & (TRACE_BYTES - 1)) as usize];
        Ok((0..count)
            .map(|n| at(steps.wrapping_sub(count).wrapping_add(n)))
            .collect())
    }

    fn word<C: Card>(&mut self, card: &mut C, offset: u32) -> Result<u32, Failed<C>> {
        let mut word = [0];
        let read = card.read(self.block + offset, &mut word);
        read.map_err(EudpError::Card)?;
        Ok(word[0])
    }

    fn write<C: Card>(
        &mut self,
        card: &mut C,
        offset: u32,
        words: &[u32],
    ) -> Result<(), Failed<C>> {
        let written = card.write(self.block + offset, words);
        written.map_err(EudpError::Card)
    }

    /// Has the firmware do something, and waits for its answer.
    fn command<C: Card>(
        &mut self,
        card: &mut C,
        command: Command,
        argument: u32,
    ) -> Result<(), Failed<C>> {
        self.commands = self.commands % 0xFFFF + 1;
        let asked = self.commands << 16 | command as u32;
        self.write(card, BlockWord::Argument as u32, &[argument])?;
        self.write(card, BlockWord::Command as u32, &[asked])?;
        card.ring(self.mailbox, 1).map_err(EudpError::Card)?;
        let mut turns = 0;
        while self.word(card, BlockWord::Answer as u32)? != asked {
            if !card.wait(turns) {
                return Err(EudpError::NoAnswer);
            }
            turns += 1;
        }
        match self.word(card, BlockWord::Result as u32)? {
            done if done == Outcome::Done as u32 => Ok(()),
            other => Err(EudpError::Refused(
                Outcome::from_number(other).unwrap_or(Outcome::NoCommand),
            )),
        }
    }
}

/// Memory in one piece for the card, and its address.
fn allocate<C: Card>(card: &mut C, bytes: u32) -> Result<(C::Memory, u64), Failed<C>> {
    let memory = card.allocate(bytes as usize).map_err(EudpError::Card)?;
    let host = memory.address(0, bytes as usize);
    Ok((memory, host.map_err(EudpError::Memory)?))
}

/// The lowest number below `most` that is not in use.
fn free<E: std::error::Error, M: std::error::Error>(
    used: u64,
    most: u32,
    what: &'static str,
) -> Result<u32, EudpError<E, M>> {
    let number = used.trailing_ones();
    if number < most {
        Ok(number)
    } else {
        Err(EudpError::TooMany { what, most })
    }
}
