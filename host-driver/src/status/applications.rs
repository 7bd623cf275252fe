//! Opens message endpoints for other processes.
//!
//! A process asks at the status socket for an endpoint, and the driver sends it the endpoint's
//! memory as a file:
//!
//! ```text
//!   application                       Unix socket                        driver
//!   Request::OpenEndpoint   ──────────────────────────────►  memory, open it on the card
//!                           ◄──────────────────────────────  answer, with the memory file
//!   one byte: "look"        ──────────────────────────────►  head of its memory, doorbell
//!                           ◄──────────────────────────────  one byte: "messages"
//!   end of file: the driver is gone    end of file: the endpoint is closed
//! ```
//!
//! A process may ask for a screen, too: pages of this memory behind the rings, which a domain's
//! handlers write to by a lease.
//!
//! However a process ends, its socket does, and with it endpoint and screen. Firmware that was started
//! anew has forgotten all endpoints: then the driver ends the sockets.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use host_interface::spine::DOMAINS;
use host_interface::spine::rings::{DRIVER, ENDPOINTS, HeaderWord, MESSAGE_BYTES, from_card};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use serde_json::{Value, json};
use spine_linker::endpoint::{RingSizes, doorbell};
use spine_linker::extensions::Extensions;
use spine_linker::load::lease::Lease;
use spine_linker::load::{EndpointConfig, LoadError, handlers_of};

use crate::dma::{DmaMemory, PAGE_BYTES};
use crate::nic::{Control, ExtensionCard, NicError};
use crate::transport::Transport;

/// Endpoint 0 is the driver's own ([`super::inbox`]).
const FIRST: u32 = 1;
/// Bytes of bulk data that a process gets, at most.
const MOST_BULK: u32 = 1 << 20;
/// Bytes of its screen, at most.
const MOST_SCREEN: u32 = 1 << 26;

/// What a request for an endpoint names.
#[derive(Debug)]
pub(super) struct Wanted {
    pub sizes: RingSizes,
    pub domains: Vec<u32>,
    /// Whether these are unloaded when the process ends.
    pub unload: bool,
    /// The domain that writes to its screen, and the screen's bytes.
    pub screen: Option<(u32, u32)>,
}

#[derive(Debug)]
struct Application {
    /// None until it has its answer.
    stream: Option<UnixStream>,
    endpoint: u32,
    sizes: RingSizes,
    memory: DmaMemory,
    /// Domains that it may call, and whether they go when it does.
    domains: Vec<u32>,
    unload: bool,
    /// The domain that writes to its screen.
    screen: Option<u32>,
    /// The halfword that stands in its doorbell.
    rung: u16,
    /// Messages from the card that it was told of.
    told: u32,
}

/// All processes with an endpoint.
#[derive(Debug, Default)]
pub(super) struct Applications {
    open: Vec<Application>,
    /// Which start of the firmware they are of.
    start: u64,
}

impl Applications {
    /// Opens an endpoint; its process is still to be [answered](Self::answer).
    pub fn open<T: Transport>(
        &mut self,
        extensions: &mut Extensions,
        control: &mut Control<T>,
        wanted: &Wanted,
    ) -> Result<Value, String> {
        if !wanted.sizes.are_possible() || wanted.sizes.bulk > MOST_BULK {
            return Err(format!(
                "rings of 4 to 64 slots, a power of two, and up to {MOST_BULK} bytes of data"
            ));
        }
        if wanted.domains.iter().any(|domain| *domain >= DOMAINS) {
            return Err(format!("domains are below {DOMAINS}"));
        }
        self.follow(extensions, control).map_err(text)?;
        let is_free = |number: &u32| self.open.iter().all(|one| one.endpoint != *number);
        let endpoint = (FIRST..ENDPOINTS).find(is_free);
        let endpoint = endpoint.ok_or("all endpoints are in use")?;
        if let Some((domain, bytes)) = wanted.screen {
            judge_screen(extensions, control, domain, bytes)?;
        }
        let rings = wanted.sizes.bytes().next_multiple_of(PAGE_BYTES);
        let screen = wanted.screen.map_or(0, |(_, bytes)| bytes as usize);
        let memory = control.transport().allocate(rings + screen);
        let memory = memory.map_err(|error| error.to_string())?;
        let config = EndpointConfig {
            address: memory.iova(),
            sizes: wanted.sizes,
            handlers: handlers(&wanted.domains),
            interrupts: true,
        };
        let opened = extensions.open_endpoint(&mut ExtensionCard(control), endpoint, &config);
        if let Err(error) = opened {
            let _ = control.transport().unmap(&memory);
            return Err(text(error));
        }
        if let Some((domain, bytes)) = wanted.screen
            && let Err(error) = lease_screen(extensions, control, domain, (&memory, rings, bytes))
        {
            let mut card = ExtensionCard(control);
            // Memory that the card may still reach stays.
            if extensions.close_endpoint(&mut card, endpoint).is_ok() {
                let _ = control.transport().unmap(&memory);
            }
            return Err(error);
        }
        self.open.push(Application {
            stream: None,
            endpoint,
            sizes: wanted.sizes,
            memory,
            domains: wanted.domains.clone(),
            unload: wanted.unload,
            screen: wanted.screen.map(|(domain, _)| domain),
            rung: 0,
            told: 0,
        });
        Ok(json!({ "endpoint": endpoint + DRIVER }))
    }

    /// Answers the process whose endpoint was opened last, with its memory.
    pub fn answer(&mut self, stream: &UnixStream, answer: &str) -> io::Result<()> {
        let Some(application) = self.open.last_mut() else {
            return Ok(());
        };
        send_with(stream, answer.as_bytes(), application.memory.fd())?;
        let stream = stream.try_clone()?;
        stream.set_nonblocking(true)?;
        application.stream = Some(stream);
        Ok(())
    }

    /// Forgets the endpoints of firmware that does not run any more.
    fn follow<T: Transport>(
        &mut self,
        extensions: &mut Extensions,
        control: &mut Control<T>,
    ) -> Result<(), LoadError<NicError>> {
        let start = extensions.starts(&mut ExtensionCard(control))?;
        if start != self.start {
            self.start = start;
            for gone in self.open.drain(..) {
                let _ = control.transport().unmap(&gone.memory);
            }
        }
        Ok(())
    }

    /// Rings doorbells of processes that have written or taken messages, tells those that have
    /// got some, and closes the endpoints of those that are gone.
    pub fn serve<T: Transport>(
        &mut self,
        extensions: &mut Extensions,
        control: &mut Control<T>,
    ) -> Result<(), LoadError<NicError>> {
        if self.open.is_empty() {
            return Ok(());
        }
        self.follow(extensions, control)?;
        let mut left = VecDeque::from(std::mem::take(&mut self.open));
        while let Some(mut application) = left.pop_front() {
            match attend(&mut application, extensions, control) {
                Ok(true) => self.open.push(application),
                Ok(false) => {
                    if let Err(error) = end(&mut application, extensions, control) {
                        // The card may still reach its memory.
                        self.open.push(application);
                        self.open.extend(left);
                        return Err(error);
                    }
                }
                Err(error) => {
                    self.open.push(application);
                    self.open.extend(left);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Closes all endpoints: the driver ends.
    pub fn close<T: Transport>(
        &mut self,
        extensions: &mut Extensions,
        control: &mut Control<T>,
    ) -> Result<(), LoadError<NicError>> {
        if self.open.is_empty() {
            return Ok(());
        }
        self.follow(extensions, control)?;
        while let Some(mut application) = self.open.pop() {
            end(&mut application, extensions, control)?;
        }
        Ok(())
    }

    /// A domain is about to be unloaded: what has its number next is another's.
    pub fn revoke<T: Transport>(
        &mut self,
        extensions: &mut Extensions,
        control: &mut Control<T>,
        domain: u32,
    ) -> Result<(), LoadError<NicError>> {
        for application in &mut self.open {
            // The unload takes the lease back.
            application.screen = application.screen.filter(|one| *one != domain);
            if application.domains.contains(&domain) {
                application.domains.retain(|one| *one != domain);
                let handlers = handlers(&application.domains);
                let mut card = ExtensionCard(control);
                extensions.grant(&mut card, application.endpoint, handlers)?;
            }
        }
        Ok(())
    }

    /// The endpoint to whose screen a domain writes.
    pub fn screen_of(&self, domain: u32) -> Option<u32> {
        let found = self.open.iter().find(|one| one.screen == Some(domain));
        found.map(|one| one.endpoint + DRIVER)
    }

    /// The endpoints that are open.
    pub fn numbers(&self) -> Vec<u32> {
        self.open.iter().map(|one| one.endpoint).collect()
    }
}

/// Whether a domain can have a screen of so many bytes.
fn judge_screen<T: Transport>(
    extensions: &mut Extensions,
    control: &mut Control<T>,
    domain: u32,
    bytes: u32,
) -> Result<(), String> {
    if bytes == 0 || bytes > MOST_SCREEN {
        return Err(format!("a screen has 1 to {MOST_SCREEN} bytes"));
    }
    let lease = extensions.lease(&mut ExtensionCard(control), domain);
    if lease.map_err(text)? != Lease::NONE {
        return Err(format!("domain {domain} has a lease already"));
    }
    Ok(())
}

/// Leases a domain the bytes behind the rings.
fn lease_screen<T: Transport>(
    extensions: &mut Extensions,
    control: &mut Control<T>,
    domain: u32,
    (memory, offset, bytes): (&DmaMemory, usize, u32),
) -> Result<(), String> {
    let address = memory.address(offset, bytes as usize);
    let address = address.map_err(|error| error.to_string())?;
    let screen = Lease { address, bytes };
    let leased = extensions.set_screen(&mut ExtensionCard(control), domain, screen);
    leased.map_err(text)
}

fn handlers(domains: &[u32]) -> u32 {
    domains
        .iter()
        .fold(0, |bits, domain| bits | handlers_of(*domain))
}

/// Takes back what a process had: its screen, its endpoint, its memory, and the domains that it
/// wished to go with it.
fn end<T: Transport>(
    application: &mut Application,
    extensions: &mut Extensions,
    control: &mut Control<T>,
) -> Result<(), LoadError<NicError>> {
    let mut card = ExtensionCard(control);
    if let Some(domain) = application.screen {
        extensions.set_screen(&mut card, domain, Lease::NONE)?;
        application.screen = None;
    }
    extensions.close_endpoint(&mut card, application.endpoint)?;
    let _ = control.transport().unmap(&application.memory);
    for domain in application.domains.iter().filter(|_| application.unload) {
        // Somebody else may have unloaded it.
        let _ = extensions.unload(&mut ExtensionCard(control), *domain);
    }
    Ok(())
}

/// Sees to one process; whether it is still there.
fn attend<T: Transport>(
    application: &mut Application,
    extensions: &mut Extensions,
    control: &mut Control<T>,
) -> Result<bool, LoadError<NicError>> {
    if !is_there(application.stream.as_ref()) {
        return Ok(false);
    }
    let memory = &application.memory;
    // Its memory is as large as its rings: words of it are there.
    let Ok(halfword) = doorbell(memory) else {
        return Ok(false);
    };
    if halfword != application.rung {
        let mut card = ExtensionCard(control);
        extensions.ring_endpoint(&mut card, application.endpoint, halfword)?;
        application.rung = halfword;
    }
    let ring = from_card(application.sizes.slots);
    let before = application.told;
    loop {
        let slot = ring + (application.told & (application.sizes.slots - 1)) * MESSAGE_BYTES;
        let serial = memory.read_word((slot + HeaderWord::Serial as u32) as usize);
        let next = application.told.wrapping_add(1);
        // A process may write there what it likes: it is told of its own messages then.
        let turns = next.wrapping_sub(before);
        if serial != Ok(next) || turns > application.sizes.slots {
            break;
        }
        application.told = next;
    }
    if application.told != before
        && let Some(stream) = &application.stream
    {
        // A socket that is full wakes it anyhow.
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let _ = rustix::net::send(stream, &[1], flags);
    }
    Ok(true)
}

/// Takes all that a process has written to its socket; `false` at its end. The end comes behind the
/// last bytes: a process that takes a message and ends is gone for the next request, too.
fn is_there(stream: Option<&UnixStream>) -> bool {
    /// A socket holds fewer bytes than this when each has a buffer of its own.
    const MOST: usize = 1024;
    /// One that never stops writing is there.
    const READS: usize = 8;
    let Some(stream) = stream else {
        return false;
    };
    let mut bytes = [0; MOST];
    for _ in 0..READS {
        match rustix::net::recv(stream, &mut bytes[..], RecvFlags::DONTWAIT) {
            Ok((0, _)) => return false,
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return true,
            Err(_) => return false,
        }
    }
    true
}

/// Sends bytes with a file.
fn send_with(stream: &UnixStream, bytes: &[u8], file: BorrowedFd<'_>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let files = [file];
    if !ancillary.push(SendAncillaryMessage::ScmRights(&files)) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    let parts = [IoSlice::new(bytes)];
    rustix::net::sendmsg(stream.as_fd(), &parts, &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

fn text(error: LoadError<NicError>) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_process_that_writes_and_ends_is_gone_at_once() {
        let (here, mut there) = UnixStream::pair().expect("sockets");
        assert!(is_there(Some(&here)));
        for _ in 0..200 {
            there.write_all(&[1]).expect("room");
        }
        assert!(is_there(Some(&here)));
        there.write_all(&[1]).expect("room");
        drop(there);
        assert!(!is_there(Some(&here)));
        assert!(!is_there(None));
    }
}
