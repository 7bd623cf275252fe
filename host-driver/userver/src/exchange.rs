//! The states of a connection: "Scalable networking for next-generation computing platforms",
//! Figure 3.

use std::path::Path;
use std::time::Instant;

use dusi::{DusiError, Event, Region, Socket, Status, Ual};

use crate::LONGEST_REQUEST;
use crate::cache::below;
use crate::connection::Connection;
use crate::loader::Loaded;
use crate::reply::{Content, Reply, reply};
use crate::request::{Parsed, Request, bad, parse};
use crate::server::Server;

/// Bytes of a connection's receive region, and of its header region.
const REGION_BYTES: usize = 2048;

/// Where the bytes behind a header are.
enum Body {
    Nothing,
    /// First byte in the cache.
    Cached(u64),
    /// In a region of the connection's own.
    Alone(Region),
    /// Right behind the header.
    Text(String),
}

impl Server {
    pub(crate) fn accepted(&mut self, event: Event) -> Result<(), DusiError> {
        self.accepting = self.accepting.saturating_sub(1);
        let Some(socket) = event.child else {
            return Ok(());
        };
        self.statistics.accepted += 1;
        let Some((input, header)) = self.regions()? else {
            self.statistics.refused += 1;
            return self.ual.close(socket, (self.closes, 0));
        };
        self.ual.receive(socket, &input, (self.reads, 0))?;
        let now = Instant::now();
        let connection = Connection {
            since: Some(now),
            deadline: now + self.settings.limits.patience,
            input,
            header,
            alone: None,
            pending: Vec::new(),
            waits: None,
            transmits: 0,
            eager: false,
            receiving: true,
            ended: false,
            last: false,
            shut: false,
            closing: false,
        };
        self.connections.insert(socket, connection);
        self.fresh += 1;
        Ok(())
    }

    /// A connection had its first reply, or has ended without one.
    fn served(&mut self, since: Option<Instant>) {
        if let Some(since) = since {
            let now = Instant::now();
            self.fresh -= 1;
            self.scheduling.served(now - since, now);
        }
    }

    /// Regions for a connection; none if there is no memory left.
    fn regions(&mut self) -> Result<Option<(Region, Region)>, DusiError> {
        if let Some(spare) = self.spare.pop_front() {
            return Ok(Some(spare));
        }
        let Some(input) = self.memory(REGION_BYTES)? else {
            return Ok(None);
        };
        match self.memory(REGION_BYTES)? {
            Some(header) => Ok(Some((input, header))),
            None => {
                // Fresh: no operation uses it. If the work queue is full it is lost.
                let _ = self.ual.deregister(input);
                Ok(None)
            }
        }
    }

    fn memory(&mut self, bytes: usize) -> Result<Option<Region>, DusiError> {
        match self.ual.register(bytes) {
            Ok(region) => Ok(Some(region)),
            Err(DusiError::Exhausted(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn received(&mut self, event: Event) -> Result<(), DusiError> {
        let Some(connection) = self.connections.get_mut(&event.socket) else {
            return Ok(());
        };
        connection.receiving = false;
        if event.status != Status::Ok {
            self.statistics.given_up += u64::from(event.status == Status::Reset);
            return self.close(event.socket);
        }
        connection.ended = event.length == 0;
        if connection.pending.is_empty() && connection.since.is_none() {
            // The first byte of a request on a connection that was idle.
            connection.deadline = Instant::now() + self.settings.limits.patience;
        }
        let start = connection.pending.len();
        connection.pending.resize(start + event.length, 0);
        self.ual
            .read(&connection.input, &mut connection.pending[start..])?;
        if connection.transmits > 0 || connection.waits.is_some() || connection.last {
            // After the reply that is under way.
            if connection.transmits > 0 && !std::mem::replace(&mut connection.eager, true) {
                self.eager += 1;
            }
            return Ok(());
        }
        self.proceed(event.socket)
    }

    /// Answers the first request received, or asks for more of it.
    fn proceed(&mut self, socket: Socket) -> Result<(), DusiError> {
        let Some(connection) = self.connections.get_mut(&socket) else {
            return Ok(());
        };
        let request = match parse(&connection.pending) {
            Parsed::Whole(request) => {
                connection.pending.drain(..request.bytes);
                request
            }
            Parsed::Partial if connection.ended => return self.close(socket),
            Parsed::Partial if connection.pending.len() < LONGEST_REQUEST => {
                if connection.pending.is_empty() && connection.since.is_none() {
                    connection.deadline = Instant::now() + self.settings.limits.idle;
                }
                connection.receiving = true;
                return self.ual.receive(socket, &connection.input, (self.reads, 0));
            }
            Parsed::Partial => Box::new(bad("431 Request Header Fields Too Large")),
            Parsed::Bad => Box::new(bad("400 Bad Request")),
        };
        let path = match (request.refusal, &request.path) {
            (Some(refusal), _) => {
                return self.give(socket, &request, &Content::Nothing(refusal), Body::Nothing);
            }
            (None, None) => {
                let nothing = Content::Nothing("400 Bad Request");
                return self.give(socket, &request, &nothing, Body::Nothing);
            }
            (None, Some(path)) => path,
        };
        let dynamic = self.settings.dynamic.as_ref();
        if let Some(text) = dynamic.and_then(|page| page.make(path)) {
            let content = Content::Page(text.len() as u64);
            return self.give(socket, &request, &content, Body::Text(text));
        }
        let below = below(path);
        let Some(name) = below.as_deref().and_then(Path::to_str) else {
            let nothing = Content::Nothing("404 Not Found");
            return self.give(socket, &request, &nothing, Body::Nothing);
        };
        if let Some(place) = self.cache.find(name) {
            let content = Content::File(place.meta);
            return self.give(socket, &request, &content, Body::Cached(place.offset));
        }
        self.serial += 1;
        if !self.loader.ask(self.serial, name) {
            let content = Content::Nothing("503 Service Unavailable");
            return self.give(socket, &request, &content, Body::Nothing);
        }
        self.statistics.loads += 1;
        self.loading.insert(self.serial, socket);
        connection.waits = Some((self.serial, request));
        Ok(())
    }

    /// A file has been read, or not.
    pub(crate) fn loaded(&mut self, serial: u64, loaded: Loaded) -> Result<(), DusiError> {
        let Some(socket) = self.loading.remove(&serial) else {
            return Ok(());
        };
        let Some(connection) = self.connections.get_mut(&socket) else {
            return Ok(());
        };
        let Some((_, request)) = connection.waits.take_if(|(own, _)| *own == serial) else {
            return Ok(());
        };
        if connection.closing {
            return Ok(());
        }
        let (content, body) = match loaded {
            Loaded::Cached(place) => (Content::File(place.meta), Body::Cached(place.offset)),
            Loaded::Nothing => (Content::Nothing("404 Not Found"), Body::Nothing),
            Loaded::TooLarge => (Content::Nothing("503 Service Unavailable"), Body::Nothing),
            Loaded::Alone(bytes, meta) => match self.memory(bytes.len())? {
                Some(region) => {
                    self.ual.write(&region, &bytes)?;
                    (Content::File(meta), Body::Alone(region))
                }
                None => (Content::Nothing("503 Service Unavailable"), Body::Nothing),
            },
        };
        self.give(socket, &request, &content, body)
    }

    /// Sends a reply.
    fn give(
        &mut self,
        socket: Socket,
        request: &Request,
        content: &Content,
        body: Body,
    ) -> Result<(), DusiError> {
        let Some(connection) = self.connections.get_mut(&socket) else {
            return Ok(());
        };
        let Reply { mut header, part } = reply(request, content);
        let (offset, bytes) = (part.0 as usize, part.1 as usize);
        if let Body::Text(text) = &body
            && bytes > 0
        {
            header.push_str(text);
        }
        connection.last = !request.persistent;
        let now = Instant::now();
        connection.deadline = self.settings.limits.reply(now, part.1);
        self.ual.write(&connection.header, header.as_bytes())?;
        let done = (self.writes, 0);
        let transmit = if self.settings.in_place {
            Ual::transmit_in_place
        } else {
            Ual::transmit_part
        };
        let text = (0, header.len());
        transmit(&mut self.ual, socket, &connection.header, text, done)?;
        connection.transmits = 1;
        let ual = &mut self.ual;
        match body {
            Body::Cached(start) if bytes > 0 => {
                let range = (start as usize + offset, bytes);
                transmit(ual, socket, &self.cached, range, done)?;
                connection.transmits += 1;
            }
            Body::Alone(region) => {
                if bytes > 0 {
                    transmit(ual, socket, &region, (offset, bytes), done)?;
                    connection.transmits += 1;
                }
                connection.alone = Some(region);
            }
            _ => {}
        }
        self.statistics.requests += 1;
        if connection.last {
            // Behind the reply, without waiting until that has gone.
            return self.ual.shutdown(socket, (self.closes, 0));
        }
        if connection.pending.is_empty() && !connection.ended {
            // The next request alone wakes the server: a reply's completion does not matter before.
            connection.receiving = true;
            return self.ual.receive(socket, &connection.input, (self.reads, 0));
        }
        connection.eager = true;
        self.eager += 1;
        Ok(())
    }

    /// The sending direction has ended; the connection ends when all of it is done.
    pub(crate) fn shut(&mut self, event: Event) -> Result<(), DusiError> {
        let Some(connection) = self.connections.get_mut(&event.socket) else {
            return Ok(());
        };
        connection.shut = true;
        if connection.transmits == 0 || event.status != Status::Ok {
            return self.close(event.socket);
        }
        Ok(())
    }

    pub(crate) fn transmitted(&mut self, event: Event) -> Result<(), DusiError> {
        let Some(connection) = self.connections.get_mut(&event.socket) else {
            return Ok(());
        };
        connection.transmits -= 1;
        if event.status != Status::Ok {
            let first = event.status == Status::Reset && !connection.closing;
            self.statistics.given_up += u64::from(first);
            return self.close(event.socket);
        }
        if connection.transmits > 0 || connection.closing {
            return Ok(());
        }
        self.eager -= usize::from(std::mem::take(&mut connection.eager));
        let since = connection.since.take();
        if let Some(alone) = connection.alone.take() {
            self.give_back(alone);
        }
        self.served(since);
        let Some(connection) = self.connections.get_mut(&event.socket) else {
            return Ok(());
        };
        if connection.last {
            // Else the shutdown's event closes.
            return if connection.shut {
                self.close(event.socket)
            } else {
                Ok(())
            };
        }
        if connection.receiving {
            connection.deadline = Instant::now() + self.settings.limits.idle;
            return Ok(());
        }
        self.proceed(event.socket)
    }

    fn give_back(&mut self, region: Region) {
        // No operation uses it. If the work queue is full it is lost; the server keeps room.
        let _ = self.ual.deregister(region);
    }

    fn close(&mut self, socket: Socket) -> Result<(), DusiError> {
        if let Some(connection) = self.connections.get_mut(&socket)
            && !connection.closing
        {
            connection.closing = true;
            self.ual.close(socket, (self.closes, 0))?;
        }
        Ok(())
    }

    /// Ends the connections whose time is over.
    pub(crate) fn end_slow(&mut self, now: Instant) -> Result<(), DusiError> {
        let slow = |(socket, connection): (&Socket, &Connection)| {
            let over = connection.deadline <= now && !connection.closing;
            (over && connection.waits.is_none()).then_some(*socket)
        };
        let slow: Vec<_> = self.connections.iter().filter_map(slow).collect();
        for socket in slow {
            if self.ual.room()? == 0 {
                // At the next look.
                return Ok(());
            }
            self.statistics.timed_out += 1;
            self.close(socket)?;
        }
        Ok(())
    }

    /// The engine uses the regions no more: cancelled operations have completed before.
    pub(crate) fn closed(&mut self, socket: Socket) -> Result<(), DusiError> {
        if let Some(connection) = self.connections.remove(&socket) {
            self.eager -= usize::from(connection.eager);
            self.served(connection.since);
            self.spare.push_back((connection.input, connection.header));
            if let Some(alone) = connection.alone {
                self.give_back(alone);
            }
            if let Some((serial, _)) = connection.waits {
                self.loading.remove(&serial);
            }
            self.statistics.closed += 1;
        }
        Ok(())
    }
}
