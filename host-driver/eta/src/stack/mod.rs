//! TCP/IP for many connections: smoltcp, with a socket set per connection.
//!
//! smoltcp walks a whole socket set for every packet and every poll. Here each connection has a
//! set of its own; a table of flows finds the set that a frame concerns, and a [`wheel::Wheel`]
//! those whose timers expire. So what a packet costs does not depend on the connections.
//!
//! ```text
//!   frame ── sort ──┬─ flow known ─────────► the connection's set ──► ready
//!                   ├─ SYN, port listened on ► a new connection's set, if the backlog has room
//!                   └─ anything else ─────────► an empty set: ARP, pings, resets
//!   wheel ─ timer ─────────────────────────► ready ──► the engine serves it, then it transmits
//! ```

pub(crate) mod frame;
pub(crate) mod in_place;
mod ingress;
pub(crate) mod options;
mod ports;
mod transmit;
pub(crate) mod wheel;

use std::collections::{HashMap, VecDeque};
use std::net::Ipv4Addr;

use dti::layout::Status;
use host_driver::stack::Identity;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::Device;
use smoltcp::socket::tcp::{self, State};
use smoltcp::time::Instant as StackInstant;
use smoltcp::wire::{EthernetAddress, IpAddress, IpCidr, IpEndpoint, Ipv4Cidr};

use frame::Flow;
use in_place::{Payload, Stream};
use options::Options;
pub(crate) use ports::Listening;
use ports::Ports;
use wheel::{Timer, Wheel};

/// Ended connections that are kept against late segments; beyond them the oldest is forgotten.
const TIME_WAIT_CONNECTIONS: usize = 512;
/// Milliseconds after which a connection that its application has left is reset, if the peer
/// does not end it.
const ORPHAN_TIME: u64 = 20_000;
/// Milliseconds in which a connection must come to be.
const HALF_OPEN_TIME: u64 = 10_000;

/// A connection's place.
pub(crate) type Id = u32;

/// Who is told of a connection's progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    pub(crate) application: u32,
    pub(crate) socket: u32,
}

/// Whose a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holder {
    /// An application's.
    Owner(Owner),
    /// Not accepted yet: the listening port's.
    Port(u16),
    /// Nobody's: it ends by itself.
    Nobody,
}

/// A connection.
struct Slot {
    set: SocketSet<'static>,
    handle: SocketHandle,
    flow: Flow,
    holder: Holder,
    /// The timer on the wheel that counts.
    timer: Option<u64>,
    /// The tick at which it is given up, whatever it does.
    deadline: Option<u64>,
    /// It stands in the queue of ready ones.
    ready: bool,
    /// It was counted in the backlog as established.
    waiting: bool,
    /// The highest sequence number of the peer, and the highest that it has acknowledged.
    highest: Option<u32>,
    acknowledged: Option<u32>,
    /// What it sends.
    stream: Stream,
}

/// What the stack has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct StackStatistics {
    /// Frames received.
    pub frames: u64,
    /// Socket sets that were looked at, for frames, timers and operations.
    pub looked_at: u64,
    /// Connections that exist now, with those that end.
    pub connections: u64,
    /// Connections opened, from both sides.
    pub opened: u64,
    /// SYNs that were dropped because the backlog was full.
    pub refused: u64,
    /// SYNs for connections that exist: repeated ones, or a peer that has forgotten.
    pub unanswered: u64,
    /// Connections forgotten early in TIME-WAIT.
    pub forgotten: u64,
    /// Connections reset because they did not come to be, or did not end, in time.
    pub timed_out: u64,
    /// Bytes that smoltcp moved for payload that stands elsewhere.
    pub placeholders: u64,
    /// Payload bytes copied into frames because the wire only takes whole ones.
    pub filled: u64,
}

/// The stack. It does no I/O and reads no clock: frames and time are given to it.
pub(crate) struct Stack {
    interface: Interface,
    now: StackInstant,
    /// For frames that belong to no connection.
    nobody: SocketSet<'static>,
    address: Ipv4Cidr,
    slots: Vec<Option<Box<Slot>>>,
    free: Vec<Id>,
    flows: HashMap<Flow, Id>,
    ports: Ports,
    ready: VecDeque<Id>,
    /// Connections that could not send for want of a neighbour's station address.
    unresolved: Vec<Id>,
    /// Connections in TIME-WAIT that nobody holds, oldest first.
    time_wait: VecDeque<(Id, Flow)>,
    wheel: Wheel,
    expired: Vec<Timer>,
    /// Connections that wait until the wire reads their payload no more, and what the wire had
    /// returned when they were last looked at.
    held: Vec<Id>,
    returned: u64,
    scratch: Vec<u8>,
    pub(crate) statistics: StackStatistics,
}

impl Stack {
    /// A stack with an address on a wire. `seed` makes the first sequence numbers.
    pub(crate) fn new(wire: &mut impl Device, identity: Identity, seed: u64) -> Self {
        let mut config = Config::new(EthernetAddress(identity.station).into());
        config.random_seed = seed;
        let mut interface = Interface::new(config, wire, StackInstant::ZERO);
        interface.update_ip_addrs(|addresses| {
            // The list is empty and holds at least one.
            let _ = addresses.push(IpCidr::Ipv4(identity.address));
        });
        Self {
            interface,
            now: StackInstant::ZERO,
            nobody: SocketSet::new(Vec::new()),
            address: identity.address,
            slots: Vec::new(),
            free: Vec::new(),
            flows: HashMap::new(),
            ports: Ports::default(),
            ready: VecDeque::new(),
            unresolved: Vec::new(),
            time_wait: VecDeque::new(),
            wheel: Wheel::new(),
            expired: Vec::new(),
            held: Vec::new(),
            returned: 0,
            scratch: Vec::new(),
            statistics: StackStatistics::default(),
        }
    }

    /// Ticks of the wheel: milliseconds that have passed.
    fn tick(&self) -> u64 {
        u64::try_from(self.now.total_millis()).unwrap_or(0)
    }

    /// The ports, for those who bind and listen.
    pub(crate) fn ports(&mut self) -> &mut Ports {
        &mut self.ports
    }

    fn slot(&mut self, id: Id) -> Option<&mut Slot> {
        self.slots.get_mut(id as usize)?.as_deref_mut()
    }

    /// A connection's socket.
    pub(crate) fn socket(&mut self, id: Id) -> Option<&mut tcp::Socket<'static>> {
        let slot = self.slot(id)?;
        Some(slot.set.get_mut(slot.handle))
    }

    /// A connection's socket, and what it sends.
    pub(crate) fn sending(&mut self, id: Id) -> Option<(&mut tcp::Socket<'static>, &mut Stream)> {
        let slot = self.slot(id)?;
        Some((slot.set.get_mut(slot.handle), &mut slot.stream))
    }

    /// Says where a connection's payload stands.
    pub(crate) fn set_payload(&mut self, id: Id, payload: Payload) {
        if let Some(slot) = self.slot(id) {
            slot.stream.set_payload(payload);
        }
    }

    /// A connection waits until the wire has returned its payload.
    pub(crate) fn hold(&mut self, id: Id) {
        if !self.held.contains(&id) {
            self.held.push(id);
        }
    }

    /// The wire has returned so much: true if connections waited for it.
    pub(crate) fn returned(&mut self, returned: u64) -> bool {
        if self.held.is_empty() || self.returned == returned {
            return false;
        }
        self.returned = returned;
        for id in std::mem::take(&mut self.held) {
            self.make_ready(id);
        }
        true
    }

    /// Whose a connection is.
    pub(crate) fn holder(&mut self, id: Id) -> Option<Holder> {
        Some(self.slot(id)?.holder)
    }

    /// Lets the engine serve a connection soon.
    pub(crate) fn make_ready(&mut self, id: Id) {
        if let Some(slot) = self.slot(id)
            && !std::mem::replace(&mut slot.ready, true)
        {
            self.ready.push_back(id);
        }
    }

    /// Connections that are to be served.
    pub(crate) fn ready(&self) -> usize {
        self.ready.len()
    }

    /// The next connection to serve.
    pub(crate) fn next_ready(&mut self) -> Option<Id> {
        while let Some(id) = self.ready.pop_front() {
            // Others have ended, or their places have others who will come themselves.
            if let Some(slot) = self.slot(id)
                && std::mem::take(&mut slot.ready)
            {
                return Some(id);
            }
        }
        None
    }

    fn insert(&mut self, socket: tcp::Socket<'static>, flow: Flow, holder: Holder) -> Id {
        let mut set = SocketSet::new(Vec::new());
        let handle = set.add(socket);
        let slot = Slot {
            set,
            handle,
            flow,
            holder,
            timer: None,
            deadline: None,
            ready: false,
            waiting: false,
            highest: None,
            acknowledged: None,
            stream: Stream::default(),
        };
        let id = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as Id
        });
        self.slots[id as usize] = Some(Box::new(slot));
        self.flows.insert(flow, id);
        self.statistics.connections += 1;
        self.statistics.opened += 1;
        id
    }

    /// Makes room for the next connection of the same addresses and ports. One that an application
    /// holds stays until that is closed, and hears nothing more.
    fn displace(&mut self, id: Id) {
        match self.slot(id).map(|slot| (slot.holder, slot.flow)) {
            Some((Holder::Owner(_), flow)) => {
                self.flows.remove(&flow);
            }
            Some(_) => self.remove(id),
            None => {}
        }
    }

    /// Forgets a connection without a word to the peer.
    pub(crate) fn remove(&mut self, id: Id) {
        let Some(slot) = self.slots.get_mut(id as usize).and_then(Option::take) else {
            return;
        };
        self.free.push(id);
        // Another connection may have displaced it.
        if self.flows.get(&slot.flow) == Some(&id) {
            self.flows.remove(&slot.flow);
        }
        self.statistics.connections -= 1;
        if let Holder::Port(port) = slot.holder {
            self.ports.left(port, id, slot.waiting);
        }
    }

    /// Opens a connection; an error is why it cannot.
    pub(crate) fn connect(
        &mut self,
        owner: Owner,
        options: &Options,
        bound: Option<u16>,
        peer: (Ipv4Addr, u16),
    ) -> Result<Id, Status> {
        let (peer, peer_port) = peer;
        let unroutable = peer.is_unspecified() || peer.is_broadcast() || peer.is_multicast();
        if peer_port == 0 || unroutable {
            return Err(Status::Invalid);
        }
        if !self.address.contains_addr(&peer) || peer == self.address.address() {
            return Err(Status::Unreachable);
        }
        let flow = |port| Flow {
            peer,
            peer_port,
            port,
        };
        let port = match bound {
            Some(port) if self.flows.contains_key(&flow(port)) => return Err(Status::PortInUse),
            Some(port) => port,
            None => {
                let flows = &self.flows;
                let free = |port| !flows.contains_key(&flow(port));
                self.ports.ephemeral(free).ok_or(Status::PortInUse)?
            }
        };
        let mut socket = options.socket();
        let to = IpEndpoint::new(IpAddress::Ipv4(peer), peer_port);
        let asked = socket.connect(self.interface.context(), to, port);
        asked.map_err(|_| Status::Invalid)?;
        let id = self.insert(socket, flow(port), Holder::Owner(owner));
        // The tick that has begun does not count.
        let deadline = self.tick() + 1 + u64::from(options.connect_timeout);
        self.limit(id, Some(deadline));
        self.make_ready(id);
        Ok(id)
    }

    /// Gives a connection up at a tick, or not by itself.
    pub(crate) fn limit(&mut self, id: Id, deadline: Option<u64>) {
        if let Some(slot) = self.slot(id) {
            slot.deadline = deadline;
        }
    }

    /// Whether a connection's time is over.
    pub(crate) fn is_late(&mut self, id: Id) -> bool {
        let now = self.tick();
        let deadline = self.slot(id).and_then(|slot| slot.deadline);
        deadline.is_some_and(|deadline| deadline <= now)
    }

    /// The next connection of a listening port becomes the owner's.
    pub(crate) fn take_waiting(&mut self, port: u16, owner: Owner) -> Option<Id> {
        let id = self.ports.take_waiting(port)?;
        let slot = self.slot(id)?;
        slot.holder = Holder::Owner(owner);
        self.make_ready(id);
        Some(id)
    }

    /// A connection loses its owner. A finished conversation ends in order; any other is reset.
    pub(crate) fn abandon(&mut self, id: Id) {
        let deadline = self.tick() + ORPHAN_TIME;
        let Some(slot) = self.slot(id) else {
            return;
        };
        let (before, waiting) = (slot.holder, slot.waiting);
        slot.holder = Holder::Nobody;
        slot.deadline = Some(deadline);
        let socket = slot.set.get_mut::<tcp::Socket<'_>>(slot.handle);
        slot.stream.acknowledged(socket.send_queue());
        match socket.state() {
            // Its memory is the application's again.
            _ if slot.stream.is_elsewhere() => socket.abort(),
            State::FinWait1
            | State::FinWait2
            | State::Closing
            | State::LastAck
            | State::TimeWait => {}
            State::CloseWait if socket.recv_queue() == 0 => socket.close(),
            _ => socket.abort(),
        }
        if let Holder::Port(port) = before {
            self.ports.left(port, id, waiting);
        }
        self.make_ready(id);
    }

    /// A listening port ends, with what waits there.
    pub(crate) fn unlisten(&mut self, port: u16) {
        for id in self.ports.unlisten(port) {
            self.abandon(id);
        }
    }

    /// A connection of nobody or of a port moves on: it ends, or it waits to be accepted. The
    /// owner of the listening socket that has more to accept, if so.
    pub(crate) fn settle(&mut self, id: Id) -> Option<Owner> {
        let late = self.is_late(id);
        let slot = self.slot(id)?;
        let socket = slot.set.get_mut::<tcp::Socket<'_>>(slot.handle);
        match (slot.holder, socket.state()) {
            (Holder::Owner(_), _) => None,
            (Holder::Port(port), State::Established | State::CloseWait) if !slot.waiting => {
                slot.waiting = true;
                slot.deadline = None;
                self.ports.established(port, id)
            }
            // smoltcp lets a connection listen again that was reset before it came to be.
            (_, State::Closed | State::Listen) => {
                // A reset that is still to be sent has a peer.
                if socket.remote_endpoint().is_none() {
                    self.remove(id);
                }
                None
            }
            (_, State::TimeWait) => {
                if slot.deadline.take().is_some() {
                    let flow = slot.flow;
                    self.time_wait.push_back((id, flow));
                    self.bound_time_wait();
                }
                None
            }
            _ if late => {
                socket.abort();
                slot.deadline = None;
                self.statistics.timed_out += 1;
                None
            }
            _ => None,
        }
    }

    fn bound_time_wait(&mut self) {
        while self.time_wait.len() > TIME_WAIT_CONNECTIONS {
            let Some((id, flow)) = self.time_wait.pop_front() else {
                return;
            };
            // Most have ended by themselves, and their places may be others' now.
            let same = |slot: &mut Slot| {
                let socket = slot.set.get::<tcp::Socket<'_>>(slot.handle);
                slot.flow == flow && socket.state() == State::TimeWait
            };
            if self.slot(id).is_some_and(same) {
                self.remove(id);
                self.statistics.forgotten += 1;
            }
        }
    }
}
