//! The paper's server: threads that send files, each with a loop of `select` and `accept`.
//!
//! ```text
//!   select ──► accept, if the listening socket is ready (another thread may be faster)
//!      ▲  └──► read ──► request ──► sendfile or sendmsg, close      for each ready connection
//!      └──────────┴─────────────────────────────┘
//! ```
//!
//! A thread owns the connections that it has accepted. Several instances, each with a separate
//! port, share the threads evenly (paper, Fig. 8).

use super::account::Activity;
use super::connections::{Connections, Outcome};
use super::kernel::{Effects, Kernel, Then};
use super::lock::Lock;
use std::collections::{BTreeSet, VecDeque};

/// How the server sends files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendCall {
    /// `sendfile`: nothing is copied.
    Sendfile,
    /// `sendmsg`: each byte is.
    Sendmsg,
}

/// A listening socket.
#[derive(Debug, Default)]
struct Listener {
    /// Connections that can be accepted.
    queue: VecDeque<usize>,
    lock: Lock,
    cpu: Option<usize>,
}

/// What a thread does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Select,
    Accept,
    Read(usize),
    Request(usize),
    Send(usize),
}

#[derive(Debug)]
struct Thread {
    listener: usize,
    /// Connections that it has accepted and not closed.
    connections: usize,
    /// Those of them that have something to read.
    readable: BTreeSet<usize>,
    /// What its last `select` has found.
    jobs: VecDeque<Step>,
    step: Option<Step>,
}

/// The server.
pub struct Web {
    /// Its connections.
    pub tcp: Connections,
    listeners: Vec<Listener>,
    threads: Vec<Thread>,
    file: Vec<u8>,
    call: SendCall,
    /// Requests that were served.
    pub served: u64,
    /// Calls of `accept` that came too late.
    pub refused: u64,
    /// Frames of no connection.
    pub strays: u64,
}

impl Web {
    /// A server with `threads` threads over the listening sockets of `tcp`.
    pub fn new(tcp: Connections, listeners: usize, threads: usize, file: Vec<u8>) -> Web {
        let thread = |thread: usize| Thread {
            listener: thread % listeners,
            connections: 0,
            readable: BTreeSet::new(),
            jobs: VecDeque::new(),
            step: None,
        };
        Web {
            tcp,
            listeners: (0..listeners).map(|_| Listener::default()).collect(),
            threads: (0..threads).map(thread).collect(),
            file,
            call: SendCall::Sendfile,
            served: 0,
            refused: 0,
            strays: 0,
        }
    }

    /// The same with another call.
    #[must_use]
    pub fn sending_by(mut self, call: SendCall) -> Web {
        self.call = call;
        self
    }

    /// Time that CPUs have waited for listening sockets.
    pub fn listener_wait(&self) -> u64 {
        self.listeners
            .iter()
            .map(|listener| listener.lock.waited())
            .sum()
    }

    /// The protocols' part of a received frame, on a CPU.
    pub fn packet(&mut self, kernel: &mut Kernel, cpu: usize, frame: Vec<u8>) -> Effects {
        kernel.enter_stack(cpu);
        kernel.touch_stack(cpu);
        let costs = kernel.profile.packet;
        let now = kernel.cpus[cpu].clock();
        // The segment may be the connection's last.
        let known = self.tcp.find(&frame).0;
        let known = known.and_then(|at| self.tcp.get(at));
        let mut guarded = known.map_or_else(Default::default, |found| (found.lock, found.cpu));
        let (outcome, frames) = self.tcp.receive(now, frame);
        let work = costs.protocol_ns + frames.len() as u64 * costs.segment_ns;
        if outcome.listening {
            self.listen(kernel, cpu, &outcome, work);
        } else if let Some(connection) = outcome.connection {
            let miss_ns = kernel.profile.cache.connection_miss_ns;
            let end_ns = if outcome.over { costs.close_ns } else { 0 };
            let (lock, last) = &mut guarded;
            kernel.enter(cpu, (lock, last), work + end_ns, miss_ns);
            kernel.charge(cpu, Activity::Protocol, end_ns);
            if !outcome.over
                && let Some(connection) = self.tcp.get(connection)
            {
                (connection.lock, connection.cpu) = guarded;
            }
        }
        kernel.charge(cpu, Activity::Protocol, costs.protocol_ns);
        let sending = frames.len() as u64 * costs.segment_ns;
        kernel.charge(cpu, Activity::Transmit, sending);
        self.strays += u64::from(outcome.stray);
        Effects {
            frames,
            wake: self.woken(&outcome),
            then: Then::Nobody,
        }
    }

    /// A connection comes in: the listening socket's matter.
    fn listen(&mut self, kernel: &mut Kernel, cpu: usize, outcome: &Outcome, work: u64) {
        let Some(connection) = outcome.connection else {
            return;
        };
        let at = self.tcp.listener(connection);
        let listener = &mut self.listeners[at];
        let (cache, more) = (kernel.profile.cache, kernel.profile.locks.listener_ns);
        let guarded = (&mut listener.lock, &mut listener.cpu);
        kernel.enter(cpu, guarded, work + more, cache.listener_miss_ns);
        kernel.charge(cpu, Activity::Protocol, more);
        if let Some(connection) = self.tcp.get(connection) {
            kernel.touch(cpu, &mut connection.cpu, cache.connection_miss_ns);
        }
        if outcome.acceptable {
            self.listeners[at].queue.push_back(connection);
        }
    }

    /// Whose `select` a segment ends: of all threads of a listening socket, or of a
    /// connection's own.
    fn woken(&mut self, outcome: &Outcome) -> Vec<usize> {
        let Some(connection) = outcome.connection else {
            return Vec::new();
        };
        let mut woken = Vec::new();
        if outcome.acceptable {
            let listener = self.tcp.listener(connection);
            let threads = self.threads.iter().enumerate();
            let hear = threads.filter(|(_, thread)| thread.listener == listener);
            woken.extend(hear.map(|(at, _)| at));
        }
        if outcome.readable
            && let Some(owner) = self.tcp.get(connection).and_then(|found| found.owner)
        {
            self.threads[owner].readable.insert(connection);
            woken.push(owner);
        }
        woken
    }

    /// Begins a thread's next piece of work on a CPU and charges it; None if it sleeps.
    pub fn begin(&mut self, kernel: &mut Kernel, cpu: usize, at: usize) -> Option<Effects> {
        let costs = kernel.profile.application;
        let thread = &mut self.threads[at];
        let listening = !self.listeners[thread.listener].queue.is_empty();
        let step = thread.jobs.pop_front().unwrap_or(Step::Select);
        if step == Step::Select && !listening && thread.readable.is_empty() {
            return None;
        }
        thread.step = Some(step);
        kernel.leave_stack(cpu);
        let mut frames = Vec::new();
        match step {
            Step::Select => {
                let descriptors = thread.connections as u64 + 1;
                let time = costs.select_ns + descriptors * costs.descriptor_ns;
                kernel.charge(cpu, Activity::Application, time);
            }
            Step::Accept => {
                kernel.touch_stack(cpu);
                let listener = &mut self.listeners[thread.listener];
                let (cache, hold) = (kernel.profile.cache, kernel.profile.locks.accept_ns);
                let guarded = (&mut listener.lock, &mut listener.cpu);
                kernel.enter(cpu, guarded, hold, cache.listener_miss_ns);
                kernel.charge(cpu, Activity::Application, costs.accept_ns);
                match listener.queue.pop_front() {
                    None => self.refused += 1,
                    Some(connection) => self.accepted(kernel, cpu, at, connection),
                }
            }
            Step::Read(connection) => {
                self.touch(kernel, cpu, connection, costs.read_ns);
                kernel.charge(cpu, Activity::Application, costs.read_ns);
                if self.tcp.read(connection) {
                    self.threads[at].jobs.push_front(Step::Request(connection));
                }
            }
            Step::Request(connection) => {
                kernel.charge(cpu, Activity::Application, costs.request_ns);
                self.threads[at].jobs.push_front(Step::Send(connection));
            }
            Step::Send(connection) => frames = self.send(kernel, cpu, at, connection),
        }
        Some(Effects {
            frames,
            wake: Vec::new(),
            then: Then::Thread(at),
        })
    }

    fn accepted(&mut self, kernel: &mut Kernel, cpu: usize, at: usize, connection: usize) {
        let Some(accepted) = self.tcp.get(connection) else {
            return;
        };
        accepted.owner = Some(at);
        let miss_ns = kernel.profile.cache.connection_miss_ns;
        kernel.touch(cpu, &mut accepted.cpu, miss_ns);
        let thread = &mut self.threads[at];
        thread.connections += 1;
        // The request may be there already; `select` will find it.
        if self.tcp.is_readable(connection) {
            self.threads[at].readable.insert(connection);
        }
    }

    /// The lines of a connection and its lock for a call of `hold` nanoseconds.
    fn touch(&mut self, kernel: &mut Kernel, cpu: usize, connection: usize, hold: u64) {
        if let Some(connection) = self.tcp.get(connection) {
            let miss_ns = kernel.profile.cache.connection_miss_ns;
            kernel.enter(cpu, connection.guarded(), hold, miss_ns);
        }
    }

    fn send(&mut self, kernel: &mut Kernel, cpu: usize, at: usize, to: usize) -> Vec<Vec<u8>> {
        let now = kernel.cpus[cpu].clock();
        let frames = self.tcp.respond(now, to, &self.file);
        kernel.touch_stack(cpu);
        let costs = kernel.profile.application;
        let segments = frames.len() as u64 * kernel.profile.packet.segment_ns;
        let copy = match self.call {
            SendCall::Sendfile => 0,
            SendCall::Sendmsg => self.file.len() as u64 * costs.copy_ps_per_byte / 1000,
        };
        self.touch(kernel, cpu, to, costs.send_ns + copy + segments);
        kernel.charge(cpu, Activity::Application, costs.send_ns);
        kernel.charge(cpu, Activity::Copy, copy);
        // In the thread's time: part of Ta, as in the paper's model.
        kernel.charge(cpu, Activity::Application, segments);
        let thread = &mut self.threads[at];
        thread.connections = thread.connections.saturating_sub(1);
        self.served += 1;
        frames
    }

    /// A thread's piece of work is done.
    pub fn finish(&mut self, at: usize) {
        let thread = &mut self.threads[at];
        if thread.step.take() == Some(Step::Select) {
            if !self.listeners[thread.listener].queue.is_empty() {
                thread.jobs.push_back(Step::Accept);
            }
            let readable = std::mem::take(&mut thread.readable);
            thread.jobs.extend(readable.into_iter().map(Step::Read));
        }
    }
}
