//! An endpoint of a story, and what is due of it.

use super::mishaps::Mishaps;
use super::wire::{Assembled, peer_address};
use super::{EndpointStory, endpoints};
use crate::explore::ExploreError;
use crate::transport::{SharedMachine, SimTransport};
use crate::workload::datagram::PEER as STATION;
use eudp::{AddressHandle, Card as _, Destination, Endpoint, EndpointConfig, Eudp, Region, Status};
use host_driver::nic::EndpointCard;
use host_driver::{DmaMemory, Nic};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;
use tigon2_chip::mac::RxError;

/// Memory of an endpoint: places to send from, and to receive into.
pub(super) const PLACE: usize = 20_480;
pub(super) const PLACES: u32 = 20;
pub(super) const BUFFER: usize = 9216;
pub(super) const BUFFERS: u32 = 24;
const MEMORY: usize = PLACES as usize * PLACE + BUFFERS as usize * BUFFER;
/// Buffers in memory that comes and goes: their numbers follow those of the others. And places to send
/// from there.
const GONE_BUFFERS: u32 = 4;
const GONE_PLACES: u32 = 2;
const GONE: usize = GONE_BUFFERS as usize * BUFFER + GONE_PLACES as usize * PLACE;
/// The port of endpoint 0, and the peer's.
pub(super) const PORT: u16 = 4711;
pub(super) const PEER_PORT: u16 = 9;
/// The last byte of the address from which endpoint 0 gets fragments, and no other endpoint.
pub(super) const CONNECTED: u8 = 10;

/// A datagram that is due on the wire.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) number: u32,
    pub(super) data: Vec<u8>,
    /// Its place, until its descriptor is completed.
    pub(super) place: Option<u32>,
    /// Whether some of its memory may be gone: then it need not leave, unless it is said to be done.
    pub(super) is_gone: bool,
}

/// Memory that comes and goes.
pub(super) struct Gone {
    pub(super) memory: DmaMemory,
    pub(super) region: Region,
    /// Whether the card can reach it now.
    is_there: bool,
    /// Where it may be sent from.
    pub(super) places: Vec<u32>,
    /// Buffers that are not posted.
    pub(super) buffers: Vec<u32>,
}

impl Gone {
    /// Where a buffer is in it.
    pub(super) const fn at_buffer(buffer: u32) -> usize {
        (buffer - BUFFERS) as usize * BUFFER
    }

    /// Where a place is in it.
    pub(super) const fn at_place(place: u32) -> usize {
        GONE_BUFFERS as usize * BUFFER + place as usize * PLACE
    }

    /// It goes, or comes back.
    pub(super) fn turn(&mut self, machine: &SharedMachine) {
        self.is_there = !self.is_there;
        if self.is_there {
            machine.lock().map(self.memory.clone());
        } else {
            machine.lock().unmap(&self.memory);
        }
    }
}

/// An endpoint, and what is due.
pub(super) struct Side {
    pub(super) number: u8,
    pub(super) endpoint: Endpoint<DmaMemory>,
    pub(super) memory: DmaMemory,
    pub(super) region: Region,
    pub(super) gone: Option<Gone>,
    pub(super) peer: AddressHandle,
    /// Places that may be sent from.
    pub(super) places: Vec<u32>,
    pub(super) posted: u32,
    pub(super) on_wire: VecDeque<Outgoing>,
    /// Descriptors of which some memory comes and goes, by their places, and their places there.
    pub(super) unreadable: BTreeMap<u32, u32>,
    /// Places of those that did not leave in their turn, and are not completed yet.
    pub(super) skipped: BTreeSet<u32>,
    pub(super) sent: u32,
    pub(super) assembled: Assembled,
    /// Datagrams that are on their way in.
    pub(super) into: VecDeque<Vec<u8>>,
    /// The one that is in fragments, and frames of it that are not on the wire yet.
    pub(super) parted: Option<Vec<u8>>,
    pub(super) fragments: VecDeque<(Vec<u8>, RxError)>,
    pub(super) offered: u32,
    pub(super) buffers: Vec<u32>,
    pub(super) came: u32,
    pub(super) lost: u32,
    /// Datagrams that were seen on the wire.
    pub(super) left: u32,
}

/// Whether a buffer's memory comes and goes.
pub(super) const fn is_gone(buffer: u32) -> bool {
    buffer >= BUFFERS
}

impl Side {
    /// Opens endpoint `number` of a story on its card.
    pub(super) fn open(
        number: u8,
        (nic, eudp): (&mut Nic<SimTransport>, &mut Eudp),
        (story, mishaps): (&EndpointStory, &Mishaps),
        machine: &SharedMachine,
    ) -> Result<Side, ExploreError> {
        let station = nic.station();
        let lent = &mut EndpointCard(nic);
        let EndpointStory {
            mtu,
            checksum,
            descriptors,
            pushed,
            ..
        } = *story;
        let connected = mishaps.have_parted();
        let config = EndpointConfig {
            station,
            address: Ipv4Addr::new(10, 0, 0, 1),
            port: PORT + u16::from(number),
            vlan: None,
            mtu,
            checksum,
            descriptors,
            pushed,
            connected: connected.then(|| peer_address(CONNECTED + number)),
        };
        let mut endpoint = eudp.open(lent, config).map_err(endpoints)?;
        let memory = lent.allocate(MEMORY)?;
        let region = eudp.register(lent, &mut endpoint, &memory);
        let region = region.map_err(endpoints)?;
        let gone = if mishaps.have_gone_memory() {
            let memory = lent.allocate(GONE)?;
            let region = eudp.register(lent, &mut endpoint, &memory);
            let mut gone = Gone {
                memory,
                region: region.map_err(endpoints)?,
                is_there: true,
                places: (0..GONE_PLACES).collect(),
                buffers: (BUFFERS..BUFFERS + GONE_BUFFERS).collect(),
            };
            gone.turn(machine);
            Some(gone)
        } else {
            None
        };
        let to = Destination {
            station: STATION,
            address: peer_address(number),
            lifetime: 64,
            dont_fragment: false,
        };
        let peer = eudp.address(lent, &mut endpoint, &to);
        Ok(Side {
            number,
            endpoint,
            memory,
            region,
            gone,
            peer: peer.map_err(endpoints)?,
            places: (0..PLACES).collect(),
            posted: 0,
            on_wire: VecDeque::new(),
            unreadable: BTreeMap::new(),
            skipped: BTreeSet::new(),
            sent: 0,
            assembled: Assembled::default(),
            into: VecDeque::new(),
            parted: None,
            fragments: VecDeque::new(),
            offered: 0,
            buffers: (0..BUFFERS).collect(),
            came: 0,
            lost: 0,
            left: 0,
        })
    }

    /// The descriptor of a place is completed: whether that may be said of its datagram.
    pub(super) fn complete(&mut self, place: u32, status: Status) -> bool {
        let there = self.unreadable.remove(&place);
        let may_fail = there.is_some();
        if let Some(gone) = &mut self.gone {
            gone.places.extend(there);
        }
        let is_done = status == Status::Done;
        let mut due = self.on_wire.iter_mut();
        if let Some(due) = due.find(|due| due.place == Some(place)) {
            due.place = None;
            due.is_gone = !is_done;
        }
        let was_skipped = self.skipped.remove(&place);
        is_done && !was_skipped || status == Status::Unreadable && may_fail
    }

    /// Those in front of a datagram that has left need not leave any more, if their memory was gone.
    pub(super) fn skip_to(&mut self, data: &[u8]) {
        while let Some(due) = self.on_wire.front()
            && due.is_gone
            && due.data != data
        {
            self.skipped.extend(due.place);
            self.on_wire.pop_front();
        }
    }

    /// Datagrams that are on their way in.
    pub(super) fn missing(&self) -> usize {
        self.into.len() + usize::from(self.parted.is_some())
    }

    /// Whether something is still due.
    pub(super) fn is_busy(&self, count: u32) -> bool {
        self.sent < count
            || self.on_wire.iter().any(|due| !due.is_gone)
            || self.came + self.lost < count
    }
}
