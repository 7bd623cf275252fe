//! A UDP server: sockets with bounded buffers, each with a thread that takes datagrams from it.

use super::account::Activity;
use super::headers::{Kind, look};
use super::kernel::{Effects, Kernel, Then};
use super::lock::Lock;
use super::source::FIRST_PORT;

/// Datagrams that a socket holds.
const BUFFER: usize = 64;
/// From so many on a policy that heeds it stops taking frames (Mogul and Ramakrishnan,
/// "Eliminating receive livelock", section 6.6.1), until there are only [`LOW`].
const HIGH: usize = BUFFER * 3 / 4;
/// See [`HIGH`].
const LOW: usize = BUFFER / 4;

#[derive(Clone, Debug, Default)]
struct Socket {
    waiting: usize,
    lock: Lock,
    cpu: Option<usize>,
    inhibited: bool,
    delivered: u64,
    dropped: u64,
}

/// The server: socket `n` is bound to port [`FIRST_PORT`]` + n` and served by thread `n`.
#[derive(Clone, Debug)]
pub struct Datagrams {
    sockets: Vec<Socket>,
}

impl Datagrams {
    /// A server with so many sockets.
    pub fn new(sockets: usize) -> Datagrams {
        Datagrams {
            sockets: vec![Socket::default(); sockets],
        }
    }

    /// Datagrams that the application got.
    pub fn delivered(&self) -> u64 {
        self.sockets.iter().map(|socket| socket.delivered).sum()
    }

    /// Datagrams that the application got from each socket.
    pub fn delivered_by(&self) -> Vec<u64> {
        self.sockets.iter().map(|socket| socket.delivered).collect()
    }

    /// Datagrams that a socket had no room for, after all work but the application's.
    pub fn dropped(&self) -> u64 {
        self.sockets.iter().map(|socket| socket.dropped).sum()
    }

    /// Whether frames should stay where they are for a while: those of a queue, which are
    /// all one socket's, or of any.
    pub fn is_inhibited(&self, queue: Option<usize>) -> bool {
        match queue {
            Some(queue) => self.sockets[queue].inhibited,
            None => self.sockets.iter().any(|socket| socket.inhibited),
        }
    }

    /// The protocols' part of a received frame, on a CPU.
    pub fn packet(&mut self, kernel: &mut Kernel, cpu: usize, frame: &[u8]) -> Effects {
        kernel.enter_stack(cpu);
        let protocol_ns = kernel.profile.packet.protocol_ns;
        kernel.charge(cpu, Activity::Protocol, protocol_ns);
        let Kind::Udp { service } = look(frame) else {
            return Effects::default();
        };
        let at = usize::from(service.wrapping_sub(FIRST_PORT));
        let Some(socket) = self.sockets.get_mut(at) else {
            return Effects::default();
        };
        socket.touch(kernel, cpu);
        if socket.waiting >= BUFFER {
            socket.dropped += 1;
            return Effects::default();
        }
        socket.waiting += 1;
        socket.inhibited |= socket.waiting >= HIGH;
        Effects {
            wake: vec![at],
            ..Effects::default()
        }
    }

    /// A thread takes its socket's next datagram; None if it sleeps.
    pub fn begin(&mut self, kernel: &mut Kernel, cpu: usize, thread: usize) -> Option<Effects> {
        let socket = &mut self.sockets[thread];
        socket.waiting = socket.waiting.checked_sub(1)?;
        if socket.waiting <= LOW {
            socket.inhibited = false;
        }
        kernel.leave_stack(cpu);
        socket.touch(kernel, cpu);
        let time = kernel.profile.application.datagram_ns;
        kernel.charge(cpu, Activity::Application, time);
        Some(Effects {
            then: Then::Thread(thread),
            ..Effects::default()
        })
    }

    /// A thread has dealt with a datagram.
    pub fn finish(&mut self, thread: usize) {
        self.sockets[thread].delivered += 1;
    }
}

impl Socket {
    /// The socket's lines and its lock.
    fn touch(&mut self, kernel: &mut Kernel, cpu: usize) {
        let miss_ns = kernel.profile.cache.datagram_miss_ns;
        let hold = kernel.profile.locks.ring_ns;
        kernel.enter(cpu, (&mut self.lock, &mut self.cpu), hold, miss_ns);
    }
}
