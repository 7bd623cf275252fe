//! The control socket: how an application attaches, and how each side sees the other end.
//!
//! ```text
//!   application                    SOCK_SEQPACKET                       engine
//!   connect, Hello     ─────────────────────────────────────►  judge, make the memory files
//!                      ◄─────────────────────────────────────  Welcome + both files, doorbell
//!   Register + memory file ─────────────────────────────────►  judge, map; an event
//!                      ◄─────────────────────────────────────  one byte: "look at your events"
//!   end of file: the engine has ended         end of file: the application has ended
//! ```
//!
//! Nothing of the data path goes over it. As a socket it also gives what an eventfd cannot: the
//! kernel tells of the other side's end however that came, and sends a signal of the
//! application's choice with each byte (`F_SETSIG`).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::layout::{Descriptor, MAGIC, Sizes};

/// Connections that may wait to be greeted.
const BACKLOG: i32 = 32;

/// What an application gets when it attaches.
#[derive(Debug)]
pub struct Attachment {
    /// The memory file, laid out as [`crate::layout`] says.
    pub memory: OwnedFd,
    /// The memory file of the anonymous pool.
    pub anonymous: OwnedFd,
    /// The engine's doorbell.
    pub doorbell: OwnedFd,
    /// The control socket.
    pub control: OwnedFd,
    /// How large the queues are.
    pub sizes: Sizes,
    /// The engine's number, which its handles carry.
    pub engine: u8,
}

/// An engine's answer to an application that wants to attach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Answer {
    /// It is attached.
    Attached = 0,
    /// The engine speaks another version of the layout.
    Version,
    /// The engine serves as many applications as it can.
    Full,
    /// The sizes are none, or more than the engine gives an application.
    Sizes,
    /// The engine got no memory.
    NoMemory,
}

/// Both messages, before the descriptors.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Message {
    magic: u64,
    answer: u32,
    engine: u32,
    sizes: Sizes,
}

fn socket_type() -> (AddressFamily, SocketType, SocketFlags) {
    let flags = SocketFlags::CLOEXEC;
    (AddressFamily::UNIX, SocketType::SEQPACKET, flags)
}

/// Both ends of a control socket, for an application in the engine's own process.
///
/// # Errors
/// The system's, for example without descriptors.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (family, kind, flags) = socket_type();
    Ok(rustix::net::socketpair(family, kind, flags, None)?)
}

/// Listens at a path; a socket that an earlier engine left behind is replaced.
///
/// # Errors
/// The system's; `AddrInUse` if an engine listens there, or the path is not a socket.
pub fn listen(path: &Path) -> io::Result<OwnedFd> {
    use std::os::unix::fs::FileTypeExt;
    let address = SocketAddrUnix::new(path)?;
    if let Ok(found) = std::fs::symlink_metadata(path) {
        let alive = || rustix::net::connect(&open()?, &address).map_err(io::Error::from);
        if !found.file_type().is_socket() || alive().is_ok() {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        std::fs::remove_file(path)?;
    }
    let socket = open()?;
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

fn open() -> io::Result<OwnedFd> {
    let (family, kind, flags) = socket_type();
    Ok(rustix::net::socket_with(family, kind, flags, None)?)
}

/// The next application that has connected, if there is one.
///
/// # Errors
/// The system's.
pub fn accept(listener: BorrowedFd<'_>) -> io::Result<Option<OwnedFd>> {
    use rustix::event::{PollFd, PollFlags};
    let mut ready = [PollFd::from_borrowed_fd(listener, PollFlags::IN)];
    let now = rustix::event::Timespec::default();
    if rustix::event::poll(&mut ready, Some(&now))? == 0 {
        return Ok(None);
    }
    match rustix::net::accept_with(listener, SocketFlags::CLOEXEC) {
        Ok(socket) => Ok(Some(socket)),
        Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Attaches to the engine that listens at a path.
///
/// # Errors
/// The system's; `Unsupported` and others for what the engine answers.
pub fn attach(path: &Path, sizes: Sizes) -> io::Result<Attachment> {
    let control = open()?;
    rustix::net::connect(&control, &SocketAddrUnix::new(path)?)?;
    let hello = message(Answer::Attached, 0, sizes);
    rustix::net::send(&control, hello.as_bytes(), SendFlags::NOSIGNAL)?;
    let mut bytes = [0; size_of::<Message>()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut buffers = [IoSliceMut::new(&mut bytes)];
    let got = rustix::net::recvmsg(
        &control,
        &mut buffers,
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    let mut files = Vec::new();
    for part in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = part {
            files.extend(rights);
        }
    }
    if got.bytes == 0 {
        return Err(io::ErrorKind::ConnectionAborted.into());
    }
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    let answer = Message::read_from_bytes(&bytes).map_err(|_| invalid())?;
    if answer.magic != MAGIC || answer.answer == Answer::Version as u32 {
        return Err(io::ErrorKind::Unsupported.into());
    }
    if answer.answer == Answer::Full as u32 || answer.answer == Answer::Sizes as u32 {
        return Err(io::ErrorKind::QuotaExceeded.into());
    }
    let files: [OwnedFd; 3] = files
        .try_into()
        .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    let [memory, anonymous, doorbell] = files;
    Ok(Attachment {
        memory,
        anonymous,
        doorbell,
        control,
        sizes: answer.sizes,
        engine: answer.engine as u8,
    })
}

fn message(answer: Answer, engine: u8, sizes: Sizes) -> Message {
    Message {
        magic: MAGIC,
        answer: answer as u32,
        engine: engine.into(),
        sizes,
    }
}

/// Asks the engine to register a part of a memory file as a region: the descriptor is one of
/// [`crate::layout::Operation::Register`], and its event comes as those of others.
///
/// # Errors
/// The system's; `WouldBlock` if too many wait.
pub fn register(control: BorrowedFd<'_>, work: Descriptor, file: BorrowedFd<'_>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let files = [file];
    // The space is for one.
    ancillary.push(SendAncillaryMessage::ScmRights(&files));
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    let parts = [IoSlice::new(work.as_bytes())];
    rustix::net::sendmsg(control, &parts, &mut ancillary, flags)?;
    Ok(())
}

/// What an application has said at its control socket.
#[derive(Debug)]
pub enum Heard {
    /// Nothing yet.
    Nothing,
    /// It wants to attach, with queues of these sizes.
    Hello(Sizes),
    /// It wants a part of this file as a region.
    Registration(Descriptor, OwnedFd),
    /// It speaks another version, or nonsense.
    Nonsense,
    /// It has ended.
    End,
}

/// What stands in an application's control socket; never waits.
pub fn hear(control: BorrowedFd<'_>) -> Heard {
    let mut bytes = [0; size_of::<Message>() + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let got = rustix::net::recvmsg(
        control,
        &mut [IoSliceMut::new(&mut bytes)],
        &mut ancillary,
        flags,
    );
    let length = match got {
        Ok(got) if got.bytes == 0 => return Heard::End,
        Ok(got) => got.bytes,
        Err(Errno::AGAIN | Errno::INTR) => return Heard::Nothing,
        Err(_) => return Heard::End,
    };
    let files = ancillary.drain().filter_map(|part| match part {
        RecvAncillaryMessage::ScmRights(rights) => Some(rights),
        _ => None,
    });
    // Files beyond the first are closed as they are dropped.
    let file = files.flatten().next();
    let said = bytes.get(..length).unwrap_or(&[]);
    if let Ok(hello) = Message::read_from_bytes(said) {
        return match hello.magic {
            MAGIC => Heard::Hello(hello.sizes),
            _ => Heard::Nonsense,
        };
    }
    match (Descriptor::read_from_bytes(said), file) {
        (Ok(work), Some(file)) => Heard::Registration(work, file),
        _ => Heard::Nonsense,
    }
}

/// Answers an application, with its memory files and the doorbell if it is attached. An
/// application that is gone does not hear it.
pub fn answer(
    control: BorrowedFd<'_>,
    answer: Answer,
    (engine, sizes): (u8, Sizes),
    files: &[BorrowedFd<'_>],
) {
    let message = message(answer, engine, sizes);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(files)) {
        return;
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    let parts = [IoSlice::new(message.as_bytes())];
    let _ = rustix::net::sendmsg(control, &parts, &mut ancillary, flags);
}

/// Wakes an application; never waits. A socket that is full wakes it anyhow.
pub fn wake(control: BorrowedFd<'_>) {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    let _ = rustix::net::send(control, &[1], flags);
}

/// Takes the engine's wake-ups: false if the engine has ended, and the system calls made.
pub fn take_wake_ups(control: BorrowedFd<'_>) -> (bool, u64) {
    let mut byte = [0; 8];
    let mut calls = 0;
    loop {
        calls += 1;
        match rustix::net::recv(control, &mut byte[..], RecvFlags::DONTWAIT) {
            Ok((0, _)) => return (false, calls),
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return (true, calls),
            Err(_) => return (false, calls),
        }
    }
}

/// The process at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its number; 0 if the system does not say.
    pub process: u32,
    /// Its user.
    pub user: u32,
}

/// Who is at the other end of a control socket, by the kernel's word.
pub fn peer(control: impl AsFd) -> Peer {
    match rustix::net::sockopt::socket_peercred(control) {
        Ok(found) => Peer {
            process: found.pid.as_raw_nonzero().get().unsigned_abs(),
            user: found.uid.as_raw(),
        },
        Err(_) => Peer {
            process: 0,
            user: u32::MAX,
        },
    }
}
