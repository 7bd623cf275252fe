//! A card that another process emulates, by vfio-user over a unix socket.
//!
//! Register writes are posted (nothing waits for them) and sent together; a read sends them first.
//! DMA memory is a memory file that the server maps. The card's interrupt pin is an eventfd; the
//! server masks it when it fires, as VFIO does.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;
use vfio_user_nic::dma::DmaRange;
use vfio_user_nic::message::{irq, region};
use vfio_user_nic::{Client, ClientError, Poster};

use super::{Access, Bell, Port, Transport, TransportError, Vector, port};
use crate::dma::DmaMemory;

/// Timeout of the connection and of each request.
const TIMEOUT: Duration = Duration::from_secs(5);
/// First DMA address: above 4 GB, so that both halves of an address are used.
const FIRST_IOVA: u64 = 0x1_0000_0000;
/// Unmapped bytes between two pieces of DMA memory, so that overruns are noticed.
const GAP_BYTES: u64 = 0x1_0000;
/// Bytes of BAR0.
const BAR_BYTES: u32 = host_interface::bar::BYTES;
/// Limit of the emulator's counts.
const MAX_COUNTS_BYTES: usize = 0x1_0000;
/// Bytes of configuration space that are used.
const CONFIG_BYTES: u32 = 256;

/// A connection to an emulated card.
pub struct VfioUser {
    card: Arc<Card>,
    next_iova: u64,
    /// Bytes of the region with the emulator's counts; 0 without one.
    counts_bytes: usize,
}

/// State that the transport and its ports share; the last of them releases the card.
struct Card {
    /// Locked for a request and its reply. Posted writes of ports do not take this lock.
    client: Mutex<Client>,
    interrupt: OwnedFd,
    /// The card's memory, kept while the server may use it.
    memory: Mutex<Vec<DmaMemory>>,
}

/// A thread's own access to the card.
struct VfioUserPort {
    /// Posted writes go straight to the socket, between the messages of other threads.
    poster: Poster,
    card: Arc<Card>,
}

impl Card {
    fn client(&self) -> MutexGuard<'_, Client> {
        // A panic of another holder leaves a client whose messages were sent completely or not at
        // all.
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, bar_offset: u32, out: &mut [u32]) -> Result<(), TransportError> {
        check(bar_offset, out.len(), BAR_BYTES)?;
        let mut bytes = vec![0; out.len() * 4];
        self.client()
            .region_read(region::BAR0, bar_offset.into(), &mut bytes)
            .map_err(|error| convert("a register read", error))?;
        for (word, bytes) in out.iter_mut().zip(bytes.chunks_exact(4)) {
            let mut four = [0; 4];
            four.copy_from_slice(bytes);
            *word = u32::from_le_bytes(four);
        }
        Ok(())
    }
}

impl VfioUser {
    /// Connects to the card's socket and checks that it is a card.
    ///
    /// # Errors
    /// [`TransportError::Unreachable`] if nothing listens there, [`TransportError::NotACard`] if
    /// the server exports no such PCI device.
    pub fn connect(path: &Path) -> Result<Self, TransportError> {
        let place = path.display().to_string();
        let client = Client::connect(path, TIMEOUT).map_err(|error| match error {
            ClientError::Connect { source, .. } => TransportError::Unreachable {
                place: place.clone(),
                reason: source.to_string(),
            },
            other => not_a_card(&place, &other.to_string()),
        })?;
        Self::attach(client).map_err(|error| match error {
            AttachError::NotACard(reason) => not_a_card(&place, &reason),
            AttachError::Transport(error) => error,
        })
    }

    fn attach(mut client: Client) -> Result<Self, AttachError> {
        let stranger = |error: ClientError| match error {
            ClientError::Io(_) | ClientError::Disconnected => {
                AttachError::Transport(convert("DEVICE_GET_INFO", error))
            }
            other => AttachError::NotACard(other.to_string()),
        };
        let bar = client.region_info(region::BAR0).map_err(stranger)?;
        if bar.size != u64::from(BAR_BYTES) {
            return Err(AttachError::NotACard(format!(
                "its BAR0 has {} bytes, not {BAR_BYTES}",
                bar.size
            )));
        }
        let config = client.region_info(region::CONFIG).map_err(stranger)?;
        if config.size < u64::from(CONFIG_BYTES) {
            return Err(AttachError::NotACard("no PCI configuration space".into()));
        }
        let pin = client.irq_info(irq::INTX).map_err(stranger)?;
        if pin.count == 0 {
            return Err(AttachError::NotACard("it has no interrupt pin".into()));
        }
        // Another server may lack this region, or have something else there.
        let counts = client.region_info(region::COUNTS);
        let counts_bytes = counts.map_or(0, |info| usize::try_from(info.size).unwrap_or(0));
        let interrupt = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| AttachError::Transport(TransportError::Io(error.into())))?;
        client
            .set_irq_eventfd(irq::INTX, Some(interrupt.as_fd()))
            .map_err(|error| AttachError::Transport(convert("DEVICE_SET_IRQS", error)))?;
        Ok(Self {
            card: Arc::new(Card {
                client: Mutex::new(client),
                interrupt,
                memory: Mutex::new(Vec::new()),
            }),
            next_iova: FIRST_IOVA,
            counts_bytes,
        })
    }
}

enum AttachError {
    NotACard(String),
    Transport(TransportError),
}

fn not_a_card(place: &str, reason: &str) -> TransportError {
    TransportError::NotACard {
        place: place.to_owned(),
        reason: reason.to_owned(),
    }
}

fn convert(what: &'static str, error: ClientError) -> TransportError {
    match error {
        ClientError::Timeout(_) => TransportError::Timeout {
            what,
            after: TIMEOUT,
        },
        ClientError::Refused { errno, .. } => TransportError::Refused {
            what,
            reason: errno.to_string(),
        },
        ClientError::Io(error) => TransportError::Io(error),
        other => TransportError::Gone(other.to_string()),
    }
}

fn check(offset: u32, words: usize, limit: u32) -> Result<(), TransportError> {
    let bytes = u32::try_from(words.saturating_mul(4)).unwrap_or(u32::MAX);
    let fits = offset.checked_add(bytes).is_some_and(|end| end <= limit);
    if fits && offset.is_multiple_of(4) {
        Ok(())
    } else {
        Err(TransportError::BadOffset(offset))
    }
}

impl VfioUser {
    /// Gives memory to the card, to read and perhaps to write.
    fn share(&mut self, memory: DmaMemory) -> Result<DmaMemory, TransportError> {
        let range = DmaRange {
            iova: memory.iova(),
            size: memory.len() as u64,
            readable: true,
            writable: memory.access() == Access::ReadWrite,
        };
        self.card
            .client()
            .dma_map(range, Some((memory.fd(), 0)))
            .map_err(|error| convert("DMA memory", error))?;
        self.next_iova += memory.len() as u64 + GAP_BYTES;
        let all = self.card.memory.lock();
        all.unwrap_or_else(PoisonError::into_inner)
            .push(memory.clone());
        Ok(memory)
    }
}

impl Transport for VfioUser {
    fn read(&mut self, bar_offset: u32) -> Result<u32, TransportError> {
        let mut word = [0];
        self.read_block(bar_offset, &mut word)?;
        Ok(word[0])
    }

    fn write(&mut self, bar_offset: u32, value: u32) -> Result<(), TransportError> {
        check(bar_offset, 1, BAR_BYTES)?;
        self.card
            .client()
            .region_post(region::BAR0, bar_offset.into(), &value.to_le_bytes())
            .map_err(|error| convert("a register write", error))
    }

    fn write_block(&mut self, bar_offset: u32, words: &[u32]) -> Result<(), TransportError> {
        check(bar_offset, words.len(), BAR_BYTES)?;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.card
            .client()
            .region_post(region::BAR0, bar_offset.into(), &bytes)
            .map_err(|error| convert("a memory write", error))
    }

    fn read_block(&mut self, bar_offset: u32, out: &mut [u32]) -> Result<(), TransportError> {
        self.card.read(bar_offset, out)
    }

    fn flush(&mut self) -> Result<(), TransportError> {
        self.card
            .client()
            .flush()
            .map_err(|error| convert("posted writes", error))
    }

    fn config_read(&mut self, offset: u32) -> Result<u32, TransportError> {
        check(offset, 1, CONFIG_BYTES)?;
        let mut bytes = [0; 4];
        self.card
            .client()
            .region_read(region::CONFIG, offset.into(), &mut bytes)
            .map_err(|error| convert("a configuration read", error))?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn config_write(&mut self, offset: u32, value: u32) -> Result<(), TransportError> {
        check(offset, 1, CONFIG_BYTES)?;
        self.card
            .client()
            .region_write(region::CONFIG, offset.into(), &value.to_le_bytes())
            .map_err(|error| convert("a configuration write", error))
    }

    fn allocate(&mut self, bytes: usize) -> Result<DmaMemory, TransportError> {
        let memory = DmaMemory::new(bytes, self.next_iova)?;
        self.share(memory)
    }

    fn map(&mut self, file: OwnedFd, access: Access) -> Result<DmaMemory, TransportError> {
        let memory = DmaMemory::of_file(file, self.next_iova)?;
        self.share(memory.for_card(access))
    }

    fn unmap(&mut self, memory: &DmaMemory) -> Result<(), TransportError> {
        self.card
            .client()
            .dma_unmap(memory.iova(), memory.len() as u64)
            .map_err(|error| convert("DMA memory", error))?;
        let all = self.card.memory.lock();
        all.unwrap_or_else(PoisonError::into_inner)
            .retain(|one| one.iova() != memory.iova());
        Ok(())
    }

    fn wait(&mut self, vector: Vector, timeout: Duration) -> Result<bool, TransportError> {
        vector.must_be_pin()?;
        self.flush()?;
        // The usual case under load costs one system call.
        if port::consume(&self.card.interrupt)? {
            return Ok(true);
        }
        if timeout.is_zero() {
            return Ok(false);
        }
        let mut client = self.card.client();
        let mut fds = [
            PollFd::new(&self.card.interrupt, PollFlags::IN),
            PollFd::new(&*client, PollFlags::IN),
        ];
        match poll(&mut fds, Some(&port::timespec(timeout))) {
            Ok(0) | Err(Errno::INTR) => return Ok(false),
            Ok(_) => {}
            Err(error) => return Err(TransportError::Io(error.into())),
        }
        let [_, socket] = &fds;
        if !socket.revents().is_empty() {
            // The server sent a message, or closed the connection.
            client
                .serve(Duration::ZERO)
                .map_err(|error| convert("an interrupt", error))?;
        }
        port::consume(&self.card.interrupt)
    }

    fn vector_fd(&self, vector: Vector) -> Option<BorrowedFd<'_>> {
        (vector == Vector::INTERRUPT).then(|| self.card.interrupt.as_fd())
    }

    fn unmask(&mut self, vector: Vector) -> Result<(), TransportError> {
        vector.must_be_pin()?;
        self.card.client().post_unmask_irq(irq::INTX);
        Ok(())
    }

    fn port(&mut self) -> Result<Box<dyn Port>, TransportError> {
        Ok(Box::new(VfioUserPort {
            poster: self.card.client().poster(),
            card: self.card.clone(),
        }))
    }

    fn counts(&mut self) -> Result<Option<String>, TransportError> {
        if self.counts_bytes == 0 || self.counts_bytes > MAX_COUNTS_BYTES {
            return Ok(None);
        }
        let mut text = vec![0; self.counts_bytes];
        self.card
            .client()
            .region_read(region::COUNTS, 0, &mut text)
            .map_err(|error| convert("the emulator's counts", error))?;
        let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(Some(String::from_utf8_lossy(text).into_owned()))
    }

    fn reset(&mut self) -> Result<(), TransportError> {
        self.card
            .client()
            .reset()
            .map_err(|error| convert("a reset", error))?;
        // Interrupts from before the reset are stale.
        port::consume(&self.card.interrupt)?;
        self.unmask(Vector::INTERRUPT)
    }
}

impl Port for VfioUserPort {
    fn read(&mut self, bar_offset: u32) -> Result<u32, TransportError> {
        // Same socket, so the read follows the writes.
        self.flush()?;
        let mut word = [0];
        self.card.read(bar_offset, &mut word)?;
        Ok(word[0])
    }

    fn write(&mut self, bar_offset: u32, value: u32) -> Result<(), TransportError> {
        check(bar_offset, 1, BAR_BYTES)?;
        self.poster
            .region_post(region::BAR0, bar_offset.into(), &value.to_le_bytes())
            .map_err(|error| convert("a register write", error))
    }

    fn flush(&mut self) -> Result<(), TransportError> {
        self.poster
            .flush()
            .map_err(|error| convert("posted writes", error))
    }

    fn wait(
        &mut self,
        vector: Vector,
        timeout: Duration,
        bell: &Bell,
    ) -> Result<bool, TransportError> {
        vector.must_be_pin()?;
        self.flush()?;
        let socket = Some(self.poster.as_fd());
        port::wait_shared(&self.card.interrupt, bell, socket, timeout)
    }

    fn vector_fd(&self, vector: Vector) -> Option<BorrowedFd<'_>> {
        (vector == Vector::INTERRUPT).then(|| self.card.interrupt.as_fd())
    }

    fn unmask(&mut self, vector: Vector) -> Result<(), TransportError> {
        vector.must_be_pin()?;
        self.poster.post_unmask_irq(irq::INTX);
        Ok(())
    }
}
