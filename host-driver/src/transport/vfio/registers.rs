//! BAR0, mapped into this process.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags};

use super::ioctl::Region;

/// The mapped registers: words, read and written one at a time.
pub struct Registers {
    base: NonNull<u32>,
    bytes: usize,
}

// SAFETY: the mapping belongs to no thread, and it is only accessed by volatile reads
// and writes of words.
unsafe impl Send for Registers {}
// SAFETY: as above; the only shared state is the device, each access to it is one word, and
// it orders words of several threads as they come.
unsafe impl Sync for Registers {}

impl Registers {
    /// Maps `bytes` bytes (whole pages) of a region.
    pub fn map(device: BorrowedFd<'_>, region: Region, bytes: usize) -> io::Result<Self> {
        if !region.mappable || region.bytes < bytes as u64 {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the registers cannot be mapped",
            ));
        }
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                device,
                region.offset,
            )?
        };
        let base = NonNull::new(base.cast::<u32>())
            .ok_or_else(|| io::Error::other("the system mapped the registers at address 0"))?;
        Ok(Self { base, bytes })
    }

    /// The word at a byte offset.
    fn word(&self, offset: u32) -> Option<NonNull<u32>> {
        let offset = offset as usize;
        if !offset.is_multiple_of(4) || offset.checked_add(4)? > self.bytes {
            return None;
        }
        // SAFETY: the word lies inside the mapping.
        Some(unsafe { self.base.byte_add(offset) })
    }

    /// Reads a word; None outside of the registers. PCI is little-endian.
    pub fn read(&self, offset: u32) -> Option<u32> {
        let word = self.word(offset)?;
        // SAFETY: inside the mapping and aligned; device registers are read volatile.
        Some(u32::from_le(unsafe { word.read_volatile() }))
    }

    /// Writes a word; None outside of the registers.
    pub fn write(&self, offset: u32, value: u32) -> Option<()> {
        let word = self.word(offset)?;
        // SAFETY: inside the mapping and aligned; device registers are written
        // volatile, in program order.
        unsafe { word.write_volatile(value.to_le()) };
        Some(())
    }
}

impl Drop for Registers {
    fn drop(&mut self) {
        // SAFETY: exactly what mmap returned, and nobody is left who could use it.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    fn file() -> (std::fs::File, Region) {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(0x8000).expect("room");
        let region = Region {
            offset: 0x4000,
            bytes: 0x4000,
            mappable: true,
        };
        (file, region)
    }

    #[test]
    fn words_are_little_endian_at_their_offset_in_the_region() {
        use std::os::unix::fs::FileExt;
        let (file, region) = file();
        let registers = Registers::map(file.as_fd(), region, 0x4000).expect("a mapping");
        assert_eq!(registers.write(0x68, 0x0102_0304), Some(()));
        let mut bytes = [0; 4];
        file.read_exact_at(&mut bytes, 0x4068).expect("inside");
        assert_eq!(bytes, [4, 3, 2, 1]);
        assert_eq!(registers.read(0x68), Some(0x0102_0304));
    }

    #[test]
    fn nothing_outside_is_touched() {
        let (file, region) = file();
        let registers = Registers::map(file.as_fd(), region, 0x4000).expect("a mapping");
        for offset in [2, 0x3FFE, 0x4000, u32::MAX - 3, u32::MAX] {
            assert_eq!(registers.read(offset), None, "{offset:#x}");
            assert_eq!(registers.write(offset, 1), None, "{offset:#x}");
        }
        assert_eq!(registers.read(0x3FFC), Some(0));
        let small = Region {
            bytes: 0x100,
            ..region
        };
        assert!(Registers::map(file.as_fd(), small, 0x4000).is_err());
        let not = Region {
            mappable: false,
            ..region
        };
        assert!(Registers::map(file.as_fd(), not, 0x4000).is_err());
    }
}
