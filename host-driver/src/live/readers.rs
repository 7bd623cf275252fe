//! The driver's side: a queue and a thread for each reader.

use std::io::{self, BufWriter, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::record::{Direction, MOST_FRAME, Record};
use crate::capture::now;

/// Most readers of a card.
pub const MOST_READERS: usize = 4;
/// Most frames in a reader's queue.
pub const MOST_FRAMES: usize = 8192;
/// Most bytes in a reader's queue.
pub const MOST_BYTES: usize = 16 << 20;
/// How often a thread without frames checks whether its reader is still there.
const LOOK: Duration = Duration::from_millis(50);
/// A reader that takes nothing for this long is dropped.
const STALL: Duration = Duration::from_secs(30);
/// How long an ending driver waits for its readers to take the queued frames.
const FAREWELL: Duration = Duration::from_millis(500);

/// A frame in a queue.
struct Sighting {
    direction: Direction,
    time: Duration,
    bytes: Arc<[u8]>,
}

/// Counts that both sides of a queue share.
#[derive(Default)]
struct Tally {
    /// Bytes in the queue.
    queued: AtomicUsize,
    /// Frames that found no room.
    dropped: AtomicU64,
}

struct Reader {
    wanted: Option<Direction>,
    /// None when the driver ends.
    queue: Option<SyncSender<Sighting>>,
    tally: Arc<Tally>,
    /// Shutting it down ends a blocked write.
    stream: UnixStream,
    thread: Option<JoinHandle<()>>,
}

/// All readers of a card; every thread that moves frames has a clone.
#[derive(Clone, Default)]
pub struct Readers(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// The number of readers; at 0, no lock is taken.
    count: AtomicUsize,
    readers: Mutex<Vec<Reader>>,
}

impl Shared {
    fn readers(&self) -> MutexGuard<'_, Vec<Reader>> {
        // A panic of another holder leaves the list intact.
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Readers {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.count.load(Ordering::Relaxed)
    }

    /// Whether there is room for one more reader.
    ///
    /// # Errors
    /// When there are [`MOST_READERS`].
    pub fn has_room(&self) -> io::Result<()> {
        self.remove_ended();
        if self.count() >= MOST_READERS {
            let text = format!("there are {MOST_READERS} captures of this card already");
            return Err(io::Error::other(text));
        }
        Ok(())
    }

    /// Writes the frames of one or both directions to `stream` from now on, as [records](Record),
    /// until its reader shuts it down or closes it.
    ///
    /// # Errors
    /// When there are [`MOST_READERS`] already; what the system says.
    pub fn add(&self, stream: UnixStream, wanted: Option<Direction>) -> io::Result<()> {
        self.has_room()?;
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(STALL))?;
        let (queue, frames) = sync_channel(MOST_FRAMES);
        let tally = Arc::new(Tally::default());
        let (own, own_tally) = (stream.try_clone()?, tally.clone());
        let thread = std::thread::Builder::new()
            .name("capture".into())
            .spawn(move || {
                // A reader that has gone, or that takes nothing, gets no more frames.
                let _ = write_frames(own, &frames, &own_tally);
            })?;
        let mut readers = self.0.readers();
        readers.push(Reader {
            wanted,
            queue: Some(queue),
            tally,
            stream,
            thread: Some(thread),
        });
        self.0.count.store(readers.len(), Ordering::Relaxed);
        Ok(())
    }

    /// Passes a frame to every reader of its direction; calls `copy` if there is one. Waits only
    /// for other threads that offer a frame.
    pub fn offer(&self, direction: Direction, copy: impl FnOnce() -> Option<Vec<u8>>) {
        let wants = |reader: &Reader| reader.wanted.is_none_or(|wanted| wanted == direction);
        if self.count() == 0 {
            return;
        }
        let readers = self.0.readers();
        if !readers.iter().any(wants) {
            return;
        }
        let Some(bytes) = copy() else {
            return;
        };
        let (time, bytes): (_, Arc<[u8]>) = (now(), bytes.into());
        for reader in readers.iter().filter(|reader| wants(reader)) {
            reader.take(Sighting {
                direction,
                time,
                bytes: bytes.clone(),
            });
        }
    }

    /// Removes readers that have gone.
    pub fn remove_ended(&self) {
        let ended = |reader: &mut Reader| {
            let thread = reader.thread.as_ref();
            thread.is_none_or(JoinHandle::is_finished)
        };
        let mut readers = self.0.readers();
        let ended: Vec<Reader> = readers.extract_if(.., ended).collect();
        self.0.count.store(readers.len(), Ordering::Relaxed);
        // Their threads are joined without the lock.
        drop(readers);
        drop(ended);
    }
}

impl Reader {
    fn take(&self, sighting: Sighting) {
        let length = sighting.bytes.len();
        let queued = self.tally.queued.load(Ordering::Relaxed);
        let fits = queued + length <= MOST_BYTES && length <= MOST_FRAME;
        // The adding side holds the lock; the other side subtracts after the frame is queued.
        self.tally.queued.fetch_add(length, Ordering::Relaxed);
        let sent = match &self.queue {
            Some(queue) if fits => queue.try_send(sighting),
            _ => Err(TrySendError::Full(sighting)),
        };
        if sent.is_err() {
            self.tally.queued.fetch_sub(length, Ordering::Relaxed);
            self.tally.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.queue = None;
        let Some(thread) = self.thread.take() else {
            return;
        };
        let end = Instant::now() + FAREWELL;
        while !thread.is_finished() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        // A write that still blocks fails now.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
        let _ = thread.join();
    }
}

/// Writes frames until the reader has enough or the driver ends, then the queued frames and the
/// end record.
fn write_frames(stream: UnixStream, frames: &Receiver<Sighting>, tally: &Tally) -> io::Result<()> {
    let mut sink = BufWriter::new(&stream);
    let mut written = 0;
    let mut last_look = Instant::now();
    loop {
        let sighting = match frames.try_recv() {
            Ok(sighting) => Ok(sighting),
            Err(_) => {
                sink.flush()?;
                frames.recv_timeout(LOOK)
            }
        };
        match sighting {
            Ok(sighting) => write_one(&mut sink, sighting, tally, &mut written)?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if last_look.elapsed() >= LOOK {
            if has_enough(&stream)? {
                break;
            }
            last_look = Instant::now();
        }
    }
    // No more than were queued, in case the driver continues.
    for sighting in frames.try_iter().take(MOST_FRAMES) {
        write_one(&mut sink, sighting, tally, &mut written)?;
    }
    let end: Record<&[u8]> = Record::End {
        frames: written,
        dropped: tally.dropped.load(Ordering::Relaxed),
    };
    end.write(&mut sink)?;
    sink.flush()
}

fn write_one(
    sink: &mut impl Write,
    sighting: Sighting,
    tally: &Tally,
    written: &mut u64,
) -> io::Result<()> {
    let Sighting {
        direction,
        time,
        bytes,
    } = sighting;
    let length = bytes.len();
    let frame = Record::Frame {
        direction,
        time,
        bytes,
    };
    frame.write(sink)?;
    tally.queued.fetch_sub(length, Ordering::Relaxed);
    *written += 1;
    Ok(())
}

/// Whether the reader has shut its side down, has gone, or sends data, which no reader does.
fn has_enough(stream: &UnixStream) -> io::Result<bool> {
    let mut fds = [PollFd::new(stream, PollFlags::IN)];
    let ready = poll(&mut fds, Some(&Timespec::default()))?;
    Ok(ready > 0)
}
