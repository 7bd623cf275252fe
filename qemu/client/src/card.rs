//! The card as the guest's machine uses it, and the handling of its failure.
//!
//! A card that has failed (its process has ended, it does not answer, or its answer is invalid)
//! stays failed: the user gets one message, every later call returns at once, and the machine
//! shows the guest an empty slot.

use crate::ffi::{CONFIG_BYTES, Nature};
use crate::host::{GuestMemory, Host};
use crate::watch::Watch;
use rustix::fd::{AsFd, BorrowedFd, RawFd};
use rustix::net::{Shutdown, shutdown};
use std::path::{Path, PathBuf};
use std::time::Duration;
use vfio_user_nic::message::{irq, region};
use vfio_user_nic::{Client, ClientError, DmaRange};

/// A connection to a card.
#[derive(Debug)]
pub struct Card<H> {
    host: H,
    path: PathBuf,
    client: Client,
    watch: Watch,
    gone: bool,
    /// The user has heard that something was refused.
    complained: bool,
    /// The user has heard that an access came from within another.
    reported_turns: bool,
}

/// Memory of the guest that the card may use.
#[derive(Debug)]
pub struct Memory<'a> {
    /// Where the card sees it.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// The card may write it.
    pub writable: bool,
    /// The shared file that it lies in, and where; else it goes by messages.
    pub file: Option<(BorrowedFd<'a>, u64)>,
}

impl<H: Host> Card<H> {
    /// Connects to the card behind the socket `path`; says what it is like.
    pub fn connect(path: &Path, timeout: Duration, host: H) -> Result<(Self, Nature), ClientError> {
        let mut client = Client::connect(path, timeout)?;
        client.set_dma_handler(Some(Box::new(GuestMemory(host.clone()))));
        let mut nature = Nature {
            bar_bytes: client.region_info(region::BAR0)?.size,
            config: [0; CONFIG_BYTES],
        };
        client.region_read(region::CONFIG, 0, &mut nature.config)?;
        let size = nature.bar_bytes;
        if !size.is_power_of_two() || !(16..=1 << 31).contains(&size) {
            return Err(ClientError::NotVfioUser(format!(
                "it has no card behind it: a BAR of {size} bytes"
            )));
        }
        let watch = Watch::new(&client).map_err(|errno| ClientError::Io(errno.into()))?;
        let card = Card {
            host,
            path: path.to_owned(),
            client,
            watch,
            gone: false,
            complained: false,
            reported_turns: false,
        };
        Ok((card, nature))
    }

    /// Is the card gone?
    pub fn is_gone(&self) -> bool {
        self.gone
    }

    /// Readable when [`serve`](Self::serve) has something to do.
    pub fn descriptor(&self) -> RawFd {
        self.watch.descriptor()
    }

    /// Does what the card asks for by itself: DMA by messages.
    pub fn serve(&mut self) {
        self.ask(|client| client.serve(Duration::ZERO).map(drop));
    }

    /// Reads configuration space.
    pub fn config_read(&mut self, offset: u32, out: &mut [u8]) -> bool {
        self.ask(|client| client.region_read(region::CONFIG, offset.into(), out))
    }

    /// Writes configuration space.
    pub fn config_write(&mut self, offset: u32, data: &[u8]) {
        self.ask(|client| {
            client.region_post(region::CONFIG, offset.into(), data)?;
            client.flush()
        });
    }

    /// Reads BAR 0. With `unmask` the pin may signal again.
    pub fn bar_read(&mut self, offset: u64, out: &mut [u8], unmask: bool) -> bool {
        if self.gone {
            return false;
        }
        // If this fails, the main loop is woken for nothing.
        let _ = self.watch.deafen(&self.client);
        let done = self.ask(|client| {
            if unmask {
                client.post_unmask_irq(irq::INTX);
            }
            client.region_read(region::BAR0, offset, out)
        });
        if let Err(errno) = self.watch.listen(&self.client) {
            self.give_up(&format!("it cannot be watched: {errno}"));
        }
        done
    }

    /// Writes BAR 0. With `unmask` the pin may signal again, if it is still high when
    /// the write is done.
    pub fn bar_write(&mut self, offset: u64, data: &[u8], unmask: bool) {
        self.ask(|client| {
            client.region_post(region::BAR0, offset, data)?;
            if unmask {
                client.post_unmask_irq(irq::INTX);
            }
            client.flush()
        });
    }

    /// Lets the card use memory of the guest.
    pub fn map(&mut self, memory: &Memory<'_>) -> bool {
        let range = DmaRange {
            iova: memory.address,
            size: memory.size,
            readable: true,
            writable: memory.writable,
        };
        self.ask(|client| client.dma_map(range, memory.file))
    }

    /// Takes memory back. The card does not touch it any more.
    pub fn unmap(&mut self, address: u64, size: u64) -> bool {
        self.ask(|client| client.dma_unmap(address, size))
    }

    /// Connects the pin to an eventfd.
    pub fn connect_pin(&mut self, eventfd: BorrowedFd<'_>) -> bool {
        self.ask(|client| client.set_irq_eventfd(irq::INTX, Some(eventfd)))
    }

    /// Resets the card. A signal of the pin from before the reset is handled with it: a
    /// guest that starts anew knows nothing of it, so the pin may signal again.
    pub fn reset(&mut self) -> bool {
        self.ask(|client| {
            client.reset()?;
            client.post_unmask_irq(irq::INTX);
            client.flush()
        })
    }

    /// A nested access happened: it is reported to the user once.
    pub fn report_turns(&mut self, what: &str) {
        if !self.reported_turns {
            self.reported_turns = true;
            let path = self.path.display();
            self.host.refused(&format!(
                "{path}: an access from within another one {what}; others are only counted"
            ));
        }
    }

    /// Marks the card as failed: its state and this library's are unknown.
    pub fn give_up(&mut self, why: &str) {
        if self.gone {
            return;
        }
        self.gone = true;
        // A card that only was too slow must not go on using the guest's memory. Its
        // descriptor stays open, as QEMU still watches it.
        let _ = shutdown(self.client.as_fd(), Shutdown::Both);
        let path = self.path.display();
        self.host
            .gone(&format!("{path}: {why}; the card is gone for this guest"));
    }

    /// Asks the card for something, if it is there; `true` if it did it.
    fn ask(&mut self, what: impl FnOnce(&mut Client) -> Result<(), ClientError>) -> bool {
        if self.gone {
            return false;
        }
        match what(&mut self.client) {
            Ok(()) => true,
            Err(error @ (ClientError::Refused { .. } | ClientError::TooLarge { .. })) => {
                if !self.complained {
                    self.complained = true;
                    let path = self.path.display();
                    self.host.refused(&format!("{path}: {error}"));
                }
                false
            }
            Err(error) => {
                self.give_up(&error.to_string());
                false
            }
        }
    }
}
