//! TCP/IP for many connections: smoltcp, with a socket set per connection.
//!
//! smoltcp walks a whole socket set for every packet and every poll. Here each connection has a
//! set of its own; a table of flows finds the set that a frame concerns, and a timer wheel those
//! whose timers expire. So what a packet costs does not depend on the connections.
//!
//! ```text
//!   frame ── sort ──┬─ flow known ─────────► the connection's set ──► ready
//!                   ├─ SYN, port listened on ► a new connection's set, if the backlog has room
//!                   └─ anything else ─────────► one set: ARP, pings, datagrams, resets
//!   wheel ─ timer ─────────────────────────► ready ──► the caller serves it, then it transmits
//! ```
//!
//! The stack does no I/O and reads no clock: [`Stack::at`] tells it the time, [`Stack::receive`]
//! gives it a wire's frames, [`Stack::next_ready`] says which connections have something to do, and
//! [`Stack::transmit`] sends what they have to send. A packet processing engine serves
//! applications with it, and [`super::service`] its measuring protocol.

mod datagrams;
mod frame;
mod hash;
pub mod in_place;
mod ingress;
mod lifecycle;
mod options;
mod ports;
mod transmit;
mod wheel;

use std::collections::{HashMap, VecDeque};

use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::Device;
use smoltcp::socket::tcp;
use smoltcp::time::Instant as StackInstant;
use smoltcp::wire::{EthernetAddress, IpCidr, Ipv4Cidr};

use super::Identity;
use frame::Flow;
use hash::Toeplitz;
use in_place::Stream;
pub use lifecycle::ConnectError;
pub use options::{Congestion, Options};
pub use ports::Ports;
use wheel::{Timer, Wheel};

/// Milliseconds in which a connection must come to be.
const HALF_OPEN_TIME: u64 = 10_000;

/// A connection's place.
pub type Id = u32;

/// Who is told of a connection's progress: two numbers of the caller's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The application.
    pub application: u32,
    /// Its socket.
    pub socket: u32,
}

/// Whose a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
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
    options: Options,
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

/// The stack.
pub struct Stack {
    interface: Interface,
    now: StackInstant,
    /// For frames that belong to no connection, with the datagram sockets.
    nobody: SocketSet<'static>,
    address: Ipv4Cidr,
    slots: Vec<Option<Box<Slot>>>,
    free: Vec<Id>,
    flows: HashMap<Flow, Id, Toeplitz>,
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
    statistics: StackStatistics,
}

impl Stack {
    /// A stack with an address on a wire. `seed` makes the first sequence numbers and the key of
    /// the flow table.
    pub fn new(wire: &mut impl Device, identity: Identity, seed: u64) -> Self {
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
            flows: HashMap::with_hasher(Toeplitz::of_seed(seed)),
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

    /// What it has done so far.
    #[must_use]
    pub fn statistics(&self) -> StackStatistics {
        self.statistics
    }

    /// Ticks of the wheel: milliseconds that have passed.
    fn tick(&self) -> u64 {
        u64::try_from(self.now.total_millis()).unwrap_or(0)
    }

    /// The ports, for those who bind and listen.
    pub fn ports(&mut self) -> &mut Ports {
        &mut self.ports
    }

    fn slot(&mut self, id: Id) -> Option<&mut Slot> {
        self.slots.get_mut(id as usize)?.as_deref_mut()
    }

    /// A connection's socket.
    pub fn socket(&mut self, id: Id) -> Option<&mut tcp::Socket<'static>> {
        let slot = self.slot(id)?;
        Some(slot.set.get_mut(slot.handle))
    }

    /// A connection's socket, and what it sends.
    pub fn sending(&mut self, id: Id) -> Option<(&mut tcp::Socket<'static>, &mut Stream)> {
        let slot = self.slot(id)?;
        Some((slot.set.get_mut(slot.handle), &mut slot.stream))
    }

    /// A connection waits until the wire has returned its payload.
    pub fn hold(&mut self, id: Id) {
        if !self.held.contains(&id) {
            self.held.push(id);
        }
    }

    /// The wire has returned so much: true if connections waited for it.
    pub fn returned(&mut self, returned: u64) -> bool {
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
    pub fn holder(&mut self, id: Id) -> Option<Holder> {
        Some(self.slot(id)?.holder)
    }

    /// Lets the caller serve a connection soon.
    pub fn make_ready(&mut self, id: Id) {
        if let Some(slot) = self.slot(id)
            && !std::mem::replace(&mut slot.ready, true)
        {
            self.ready.push_back(id);
        }
    }

    /// Connections that are to be served.
    #[must_use]
    pub fn ready(&self) -> usize {
        self.ready.len()
    }

    /// The next connection to serve.
    pub fn next_ready(&mut self) -> Option<Id> {
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

    fn insert(
        &mut self,
        socket: tcp::Socket<'static>,
        options: Options,
        flow: Flow,
        holder: Holder,
    ) -> Id {
        let mut set = SocketSet::new(Vec::new());
        let handle = set.add(socket);
        let slot = Slot {
            set,
            handle,
            flow,
            options,
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
    fn remove(&mut self, id: Id) {
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
}
