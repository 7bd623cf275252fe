//! The server: a socket, one client at a time, a device behind a lock.
//!
//! ```text
//!   server's thread                          any other thread (a vCPU)
//!   ---------------                          -------------------------
//!   read all that the socket holds           has the device's lock
//!   take the device's lock                   DmaTable::read / write:
//!     every command of the batch, in order     mapped: memcpy
//!   release it, send the replies               else:   message, wait for reply
//!   look at the interrupt pin again          Interrupts::set_level
//! ```
//!
//! A third thread, the door, accepts clients meanwhile. These rules decide who may hold the
//! device, and for how long:
//!
//! | a client that | |
//! | --- | --- |
//! | sends nothing, or only VERSION | holds nothing; 64 of them at a time, each is disconnected after `handshake_timeout` or when more connect |
//! | has sent a command | holds the device, for any length of time if it owes nothing |
//! | owes the rest of a message, room for a reply, the answer to a DMA message | is disconnected after `patience`, or after `contested_patience` if another waits that has sent VERSION; three DMA accesses that it does not answer are forgiven |

use crate::channel::{Arrival, Channel};
use crate::desk::Desk;
use crate::device::{Device, DeviceLayout, DeviceLock};
use crate::disconnect::Disconnect;
use crate::dispatch::{self, Session};
use crate::dma::DmaTable;
use crate::door::Door;
use crate::interrupt::Interrupts;
use crate::listener::{BindError, Listener};
use crate::message::DEFAULT_MAX_TRANSFER;
use crate::patience::Patience;
use crate::socket;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Replies that may pile up before the device's lock is released, in bytes.
const MAX_REPLY_BYTES: usize = DEFAULT_MAX_TRANSFER / 4;

/// What a server serves, and how patient it is.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Regions and interrupts of the device.
    pub layout: DeviceLayout,
    /// From an unmask of the pin to the check of its level.
    pub unmask_delay: Duration,
    /// How long a client may owe the rest of a message, room for a reply, or the answer to
    /// DMA (all of an access, however many messages it takes).
    pub patience: Duration,
    /// The same while another client waits.
    pub contested_patience: Duration,
    /// How long a client that holds nothing may be silent: until its VERSION, and from the
    /// answer to that until its first command.
    pub handshake_timeout: Duration,
}

impl ServerConfig {
    /// The usual patience with a device of this layout.
    pub fn new(layout: DeviceLayout) -> Self {
        Self {
            layout,
            unmask_delay: Interrupts::UNMASK_DELAY,
            patience: Duration::from_secs(5),
            contested_patience: Duration::from_millis(600),
            handshake_timeout: Duration::from_secs(5),
        }
    }
}

/// Counters of a server since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounters {
    /// Connections accepted.
    pub connections: u64,
    /// Commands done, without VERSION.
    pub commands: u64,
    /// Commands that failed.
    pub errors: u64,
    /// Times that the device's lock was taken for commands.
    pub batches: u64,
}

#[derive(Debug, Default)]
struct Counters {
    connections: AtomicU64,
    commands: AtomicU64,
    errors: AtomicU64,
    batches: AtomicU64,
}

/// A vfio-user server on a socket. Its file goes away with it.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    config: ServerConfig,
    dma: DmaTable,
    interrupts: Interrupts,
    wake: Arc<OwnedFd>,
    counters: Arc<Counters>,
}

impl Server {
    /// Makes the socket `path` and listens: clients may connect at once, they are
    /// served when [`run`](Self::run) runs. A socket left over by a server that is
    /// gone is replaced.
    pub fn bind(path: impl AsRef<Path>, config: ServerConfig) -> Result<Self, BindError> {
        let path = path.as_ref();
        let wake = socket::waker().map_err(|errno| BindError::new(path, errno.into()))?;
        Ok(Self {
            listener: Listener::bind(path)?,
            dma: DmaTable::new(),
            interrupts: Interrupts::new(config.unmask_delay),
            wake: Arc::new(wake),
            counters: Arc::default(),
            config,
        })
    }

    /// The socket's file.
    pub fn path(&self) -> &Path {
        self.listener.path()
    }

    /// The clients' memory. Empty while there is no client.
    pub fn dma(&self) -> DmaTable {
        self.dma.clone()
    }

    /// The interrupts, for the threads that set them.
    pub fn interrupts(&self) -> Interrupts {
        self.interrupts.clone()
    }

    /// A handle that stops the server from another thread.
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle {
            wake: self.wake.clone(),
            counters: self.counters.clone(),
        }
    }

    /// Serves one client after the other on this thread, until it is stopped. A second
    /// thread receives them.
    ///
    /// An error means that the socket can no longer accept clients.
    pub fn run<L: DeviceLock>(&mut self, lock: &mut L) -> io::Result<()> {
        let desk = Desk::new()?;
        let config = &self.config;
        let patience = Arc::new(Patience::new(config.patience, config.contested_patience));
        let this = &*self;
        std::thread::scope(|scope| {
            // Also when the device panics: the scope waits for the door.
            let wake = WakeAtEnd(&this.wake);
            let door = Door::new(
                &this.listener,
                &this.wake,
                &desk,
                &patience,
                config.handshake_timeout,
                &this.counters.connections,
            );
            let door = std::thread::Builder::new()
                .name("vfio-user-door".into())
                .spawn_scoped(scope, || door.run())?;
            while let Some(arrival) = desk.next() {
                if this.serve(arrival, &patience, lock) == Disconnect::Stopped {
                    break;
                }
                desk.leave();
            }
            drop(wake);
            let ended = door.join();
            ended.unwrap_or_else(|_| Err(io::Error::other("the door's thread panicked")))
        })
    }

    /// Serves on a thread of its own.
    pub fn spawn<L>(mut self, mut lock: L) -> io::Result<ServerThread>
    where
        L: DeviceLock + Send + 'static,
    {
        let stop = self.stop_handle();
        let path = self.path().to_owned();
        let thread = std::thread::Builder::new()
            .name("vfio-user".into())
            .spawn(move || self.run(&mut lock))?;
        Ok(ServerThread {
            stop,
            path,
            thread: Some(thread),
        })
    }

    /// Serves one client until it is gone, and cleans up after it.
    fn serve<L: DeviceLock>(
        &self,
        arrival: Arrival,
        patience: &Arc<Patience>,
        lock: &mut L,
    ) -> Disconnect {
        let channel = Channel::new(arrival, self.wake.clone(), patience.clone());
        let channel = Arc::new(channel);
        self.dma.set_channel(Some(channel.clone()));
        lock.with(Device::connected);
        let why = self.converse(&channel, lock);
        // Wakes a thread that waits for a DMA reply, perhaps with the device's lock.
        channel.close(why.clone());
        self.dma.set_channel(None);
        self.dma.unmap_all();
        self.interrupts.disconnect();
        lock.with(|device| device.disconnected(&why));
        why
    }

    /// Does batches of commands until the connection ends.
    fn converse<L: DeviceLock>(&self, channel: &Channel, lock: &mut L) -> Disconnect {
        let mut session = Session {
            layout: &self.config.layout,
            dma: &self.dma,
            interrupts: &self.interrupts,
            errors: 0,
        };
        let mut out = Vec::new();
        loop {
            let deadline = self.interrupts.next_recheck();
            let mut commands = match channel.next_commands(deadline) {
                Ok(commands) => commands,
                Err(why) => {
                    if let Disconnect::Size(header) = &why {
                        out.clear();
                        dispatch::refuse(header, Errno::INVAL, &mut out);
                        // The connection ends anyway.
                        let _ = channel.send(&out);
                    }
                    return why;
                }
            };
            self.interrupts.recheck(Instant::now());
            while !commands.is_empty() {
                out.clear();
                let errors = session.errors;
                let before = commands.len();
                lock.with(|device| {
                    while out.len() < MAX_REPLY_BYTES
                        && let Some(message) = commands.pop_front()
                    {
                        session.handle(device, message, &mut out);
                    }
                    device.batch_done();
                });
                let count = |counter: &AtomicU64, n| counter.fetch_add(n, Ordering::Relaxed);
                count(&self.counters.batches, 1);
                count(&self.counters.commands, (before - commands.len()) as u64);
                count(&self.counters.errors, session.errors - errors);
                if let Err(why) = channel.send(&out) {
                    return why;
                }
            }
        }
    }
}

/// Ends the other threads of a server when it is dropped.
struct WakeAtEnd<'a>(&'a OwnedFd);

impl Drop for WakeAtEnd<'_> {
    fn drop(&mut self) {
        socket::wake(self.0);
    }
}

/// Stops a [`Server`] from any thread; may be cloned.
#[derive(Clone, Debug)]
pub struct StopHandle {
    wake: Arc<OwnedFd>,
    counters: Arc<Counters>,
}

impl StopHandle {
    /// Tells the server to end: its client is cut off, threads that wait for a DMA
    /// reply get an error, [`Server::run`] returns. Does not wait.
    pub fn stop(&self) {
        socket::wake(&*self.wake);
    }

    /// Counters of the server.
    pub fn counters(&self) -> ServerCounters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ServerCounters {
            connections: read(&self.counters.connections),
            commands: read(&self.counters.commands),
            errors: read(&self.counters.errors),
            batches: read(&self.counters.batches),
        }
    }
}

/// A server on its own thread. Dropping it stops the server and waits for it.
#[derive(Debug)]
pub struct ServerThread {
    stop: StopHandle,
    path: PathBuf,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl ServerThread {
    /// The socket's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A handle that stops the server.
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// Stops the server and waits for its end.
    ///
    /// The caller must not hold the device's lock: the server may be waiting for it.
    pub fn stop(mut self) -> io::Result<()> {
        self.finish()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.stop.stop();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(io::Error::other("the device panicked")),
            None => Ok(()),
        }
    }
}

impl Drop for ServerThread {
    fn drop(&mut self) {
        // The thread cannot report an error here; `stop` reports it.
        let _ = self.finish();
    }
}
