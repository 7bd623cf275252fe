//! Checks, executes and answers one command of the client.
//!
//! Every length, index and flag comes from the client and is checked here. An invalid command is
//! answered with an errno and the session continues: its size was valid, so the position of the
//! next header is known.

use crate::device::{Device, DeviceLayout};
use crate::dma::{DmaRange, DmaTable};
use crate::frame::Message;
use crate::interrupt::Interrupts;
use crate::message::{
    self, Command, DEFAULT_MAX_TRANSFER, DeviceInfo, DmaMap, DmaUnmap, HEADER_BYTES, Header,
    IrqInfo, IrqSet, MultiWrite, RegionAccess, RegionInfo, device_flags, dma_flags, flags, irq,
    region, unmap_flags,
};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// What a command has to do with beside the device.
#[derive(Debug)]
pub(crate) struct Session<'a> {
    pub(crate) layout: &'a DeviceLayout,
    pub(crate) dma: &'a DmaTable,
    pub(crate) interrupts: &'a Interrupts,
    /// Commands that were answered with an errno, posted ones included.
    pub(crate) errors: u64,
}

/// A reply under construction at the end of the outgoing bytes.
struct Reply<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> Reply<'a> {
    fn new(out: &'a mut Vec<u8>) -> Self {
        let start = out.len();
        out.resize(start + HEADER_BYTES, 0);
        Self { out, start }
    }

    fn push(&mut self, payload: &(impl IntoBytes + Immutable + ?Sized)) {
        self.out.extend_from_slice(payload.as_bytes());
    }

    /// Room for `count` bytes of data, zeroed.
    fn data(&mut self, count: usize) -> &mut [u8] {
        let from = self.out.len();
        self.out.resize(from + count, 0);
        &mut self.out[from..]
    }

    /// Writes the header, or takes everything back if no reply is wanted.
    fn finish(self, command: &Header, result: Result<(), Errno>) {
        if command.is_posted() {
            self.out.truncate(self.start);
            return;
        }
        let mut header = *command;
        header.flags = flags::REPLY;
        header.error = 0;
        if let Err(errno) = result {
            // "If an error occurs, the reply message must only include the header."
            self.out.truncate(self.start + HEADER_BYTES);
            header.flags |= flags::ERROR;
            header.error = errno.raw_os_error().unsigned_abs();
        }
        header.size = (self.out.len() - self.start) as u32;
        self.out[self.start..self.start + HEADER_BYTES].copy_from_slice(header.as_bytes());
    }
}

/// Appends the reply to a command that was done.
pub(crate) fn reply(command: &Header, payload: &[u8], out: &mut Vec<u8>) {
    let mut reply = Reply::new(out);
    reply.push(payload);
    reply.finish(command, Ok(()));
}

/// Appends the reply to a command that failed before it could be looked at.
pub(crate) fn refuse(command: &Header, errno: Errno, out: &mut Vec<u8>) {
    Reply::new(out).finish(command, Err(errno));
}

impl Session<'_> {
    /// Does one command and appends its reply to `out`.
    pub(crate) fn handle(&mut self, device: &mut impl Device, message: Message, out: &mut Vec<u8>) {
        let header = message.header;
        let mut reply = Reply::new(out);
        let result = match Command::from_number(header.command) {
            // Replies never come here, so this is a type that does not exist.
            _ if !header.is_command() => Err(Errno::INVAL),
            _ if message.fds_lost => Err(Errno::TOOBIG),
            Some(command) => self.command(device, command, message, &mut reply),
            None => Err(Errno::NOSYS),
        };
        self.errors += u64::from(result.is_err());
        reply.finish(&header, result);
    }

    fn command(
        &mut self,
        device: &mut impl Device,
        command: Command,
        message: Message,
        reply: &mut Reply<'_>,
    ) -> Result<(), Errno> {
        let payload = message.payload.as_slice();
        let takes_fds = matches!(command, Command::DmaMap | Command::DeviceSetIrqs);
        if !takes_fds && !message.fds.is_empty() {
            return Err(Errno::INVAL);
        }
        match command {
            Command::RegionWrite => self.region_write(device, payload, reply),
            Command::RegionRead => self.region_read(device, payload, reply),
            Command::RegionWriteMulti => self.region_write_multi(device, payload, reply),
            Command::DmaMap => self.dma_map(payload, message.fds),
            Command::DmaUnmap => self.dma_unmap(payload, reply),
            Command::DeviceGetInfo => self.device_info(payload, reply),
            Command::DeviceGetRegionInfo => self.region_info(payload, reply),
            Command::DeviceGetIrqInfo => self.irq_info(payload, reply),
            Command::DeviceSetIrqs => self.set_irqs(payload, message.fds),
            Command::DeviceReset if payload.is_empty() => self.reset(device),
            Command::DeviceGetRegionIoFds => Err(Errno::OPNOTSUPP),
            // Commands of the server, a second VERSION, and those above with a wrong size.
            Command::DeviceReset | Command::DmaRead | Command::DmaWrite | Command::Version => {
                Err(Errno::INVAL)
            }
        }
    }

    /// A driver that has reset the device may give its memory to others.
    fn reset(&self, device: &mut impl Device) -> Result<(), Errno> {
        let result = device.reset();
        self.dma.cancel();
        result
    }

    /// Checks that an access is inside a region and in a permitted direction.
    fn check(&self, access: &RegionAccess, write: bool) -> Result<(), Errno> {
        let region = self
            .layout
            .regions
            .get(access.region as usize)
            .ok_or(Errno::INVAL)?;
        let end = access
            .offset
            .checked_add(access.count.into())
            .ok_or(Errno::INVAL)?;
        let permitted = if write {
            region.writable
        } else {
            region.readable
        };
        if !permitted || end > region.size || access.count as usize > DEFAULT_MAX_TRANSFER {
            return Err(Errno::INVAL);
        }
        Ok(())
    }

    fn region_read(
        &self,
        device: &mut impl Device,
        payload: &[u8],
        reply: &mut Reply<'_>,
    ) -> Result<(), Errno> {
        let access = exactly::<RegionAccess>(payload)?;
        self.check(&access, false)?;
        reply.push(&access);
        if access.count == 0 {
            return Ok(());
        }
        let data = reply.data(access.count as usize);
        device.region_read(access.region, access.offset, data)
    }

    fn region_write(
        &self,
        device: &mut impl Device,
        payload: &[u8],
        reply: &mut Reply<'_>,
    ) -> Result<(), Errno> {
        let (access, data) = RegionAccess::read_from_prefix(payload).map_err(|_| Errno::INVAL)?;
        self.check(&access, true)?;
        if data.len() != access.count as usize {
            return Err(Errno::INVAL);
        }
        if !data.is_empty() {
            device.region_write(access.region, access.offset, data)?;
        }
        reply.push(&access);
        Ok(())
    }

    fn region_write_multi(
        &self,
        device: &mut impl Device,
        payload: &[u8],
        reply: &mut Reply<'_>,
    ) -> Result<(), Errno> {
        let (count, writes) = u64::read_from_prefix(payload).map_err(|_| Errno::INVAL)?;
        let expected = usize::try_from(count)
            .ok()
            .and_then(|count| count.checked_mul(size_of::<MultiWrite>()));
        if expected != Some(writes.len()) {
            return Err(Errno::INVAL);
        }
        for write in writes.chunks_exact(size_of::<MultiWrite>()) {
            let write = exactly::<MultiWrite>(write)?;
            let MultiWrite {
                offset,
                region,
                count,
                ..
            } = write;
            self.check(
                &RegionAccess {
                    offset,
                    region,
                    count,
                },
                true,
            )?;
            let data = write.data.get(..count as usize).ok_or(Errno::INVAL)?;
            if !data.is_empty() {
                device.region_write(region, offset, data)?;
            }
        }
        reply.push(&count);
        Ok(())
    }

    fn dma_map(&self, payload: &[u8], fds: Vec<OwnedFd>) -> Result<(), Errno> {
        let map = exactly::<DmaMap>(payload)?;
        let known = dma_flags::READ | dma_flags::WRITE;
        if (map.argsz as usize) < size_of::<DmaMap>() || map.flags & !known != 0 || fds.len() > 1 {
            return Err(Errno::INVAL);
        }
        let range = DmaRange {
            iova: map.address,
            size: map.size,
            readable: map.flags & dma_flags::READ != 0,
            writable: map.flags & dma_flags::WRITE != 0,
        };
        self.dma
            .map(range, fds.into_iter().next().map(|fd| (fd, map.offset)))
    }

    fn dma_unmap(&self, payload: &[u8], reply: &mut Reply<'_>) -> Result<(), Errno> {
        let unmap = exactly::<DmaUnmap>(payload)?;
        if (unmap.argsz as usize) < size_of::<DmaUnmap>() {
            return Err(Errno::INVAL);
        }
        match unmap.flags {
            0 => self.dma.unmap(unmap.address, unmap.size)?,
            unmap_flags::ALL if unmap.address == 0 && unmap.size == 0 => self.dma.unmap_all(),
            unmap_flags::GET_DIRTY_BITMAP => return Err(Errno::OPNOTSUPP),
            _ => return Err(Errno::INVAL),
        }
        reply.push(&unmap);
        Ok(())
    }

    fn device_info(&self, payload: &[u8], reply: &mut Reply<'_>) -> Result<(), Errno> {
        let request = exactly::<DeviceInfo>(payload)?;
        let argsz = room_for::<DeviceInfo>(request.argsz)?;
        let flags = device_flags::PCI | device_flags::RESET;
        reply.push(&DeviceInfo {
            argsz,
            flags,
            num_regions: region::COUNT,
            num_irqs: irq::COUNT,
        });
        Ok(())
    }

    fn region_info(&self, payload: &[u8], reply: &mut Reply<'_>) -> Result<(), Errno> {
        let request = exactly::<RegionInfo>(payload)?;
        let argsz = room_for::<RegionInfo>(request.argsz)?;
        let region = self
            .layout
            .regions
            .get(request.index as usize)
            .ok_or(Errno::INVAL)?;
        reply.push(&RegionInfo {
            argsz,
            flags: region.flags(),
            index: request.index,
            size: region.size,
            ..RegionInfo::default()
        });
        Ok(())
    }

    fn irq_info(&self, payload: &[u8], reply: &mut Reply<'_>) -> Result<(), Errno> {
        let request = exactly::<IrqInfo>(payload)?;
        let argsz = room_for::<IrqInfo>(request.argsz)?;
        if request.index >= irq::COUNT {
            return Err(Errno::INVAL);
        }
        let (flags, count) = self.layout.irq(request.index);
        reply.push(&IrqInfo {
            argsz,
            flags,
            index: request.index,
            count,
        });
        Ok(())
    }

    fn set_irqs(&self, payload: &[u8], fds: Vec<OwnedFd>) -> Result<(), Errno> {
        let (set, data) = IrqSet::read_from_prefix(payload).map_err(|_| Errno::INVAL)?;
        if set.index >= irq::COUNT || (set.argsz as usize) < size_of::<IrqSet>() {
            return Err(Errno::INVAL);
        }
        let (_, available) = self.layout.irq(set.index);
        self.interrupts.set(&set, available, data, fds)
    }
}

/// A payload that is one structure and nothing else.
fn exactly<T: FromBytes + KnownLayout + Immutable>(payload: &[u8]) -> Result<T, Errno> {
    T::read_from_bytes(payload).map_err(|_| Errno::INVAL)
}

/// Checks that the client takes a reply payload of a `T`; gives its size.
fn room_for<T>(argsz: u32) -> Result<u32, Errno> {
    if (argsz as usize) < size_of::<T>() {
        return Err(Errno::INVAL);
    }
    Ok(size_of::<T>() as u32)
}

// The largest reply fits into a message.
const _: () = assert!(
    HEADER_BYTES + size_of::<RegionAccess>() + DEFAULT_MAX_TRANSFER <= message::MAX_MESSAGE_BYTES
);
