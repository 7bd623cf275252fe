//! The card's SRAM and the host memory that the card may reach.
//!
//! Hardware reference, section 2: addresses wrap at the installed size; words are
//! big-endian. Host memory is the set of the driver's DMA memories: the card touches
//! nothing else.

mod devices;

pub(crate) use devices::{Allowed, Devices, Posted};
pub use devices::{HostAccesses, Target, Traffic};

use host_driver::DmaMemory;
use host_driver::transport::Access;
use tigon2_model::{HostMemory, HostMemoryError, Sram};

/// SRAM of a power of two of bytes.
#[derive(Clone, Debug)]
pub struct SramBytes {
    bytes: Vec<u8>,
    mask: u32,
}

impl SramBytes {
    /// Zeroed SRAM; `bytes` is a power of two (the board file was checked).
    pub fn new(bytes: u32) -> Self {
        SramBytes {
            bytes: vec![0; bytes as usize],
            mask: bytes - 1,
        }
    }

    /// Installed bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Never true: a board without SRAM is refused.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes from a NIC address on; the address wraps.
    pub fn copy_out(&self, address: u32, out: &mut [u8]) {
        for (index, byte) in out.iter_mut().enumerate() {
            *byte = self.bytes[(address.wrapping_add(index as u32) & self.mask) as usize];
        }
    }

    /// Stores bytes from a NIC address on; the address wraps.
    pub fn copy_in(&mut self, address: u32, data: &[u8]) {
        for (index, byte) in data.iter().enumerate() {
            self.bytes[(address.wrapping_add(index as u32) & self.mask) as usize] = *byte;
        }
    }

    /// All of them.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// All of them.
    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// The address in the installed SRAM behind a NIC address.
    pub(crate) fn wrap(&self, address: u32) -> u32 {
        address & self.mask
    }

    /// `N` bytes at an address that is a multiple of `N`; the address wraps.
    #[inline]
    pub(crate) fn load<const N: usize>(&self, address: u32) -> [u8; N] {
        load(&self.bytes, (address & self.mask) as usize)
    }

    /// Stores `N` bytes at an address that is a multiple of `N`; the address wraps.
    #[inline]
    pub(crate) fn store<const N: usize>(&mut self, address: u32, value: [u8; N]) {
        store(&mut self.bytes, (address & self.mask) as usize, value);
    }
}

/// `N` bytes at an offset that the caller has aligned and wrapped.
#[inline]
pub(crate) fn load<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut value = [0; N];
    value.copy_from_slice(&bytes[at..at + N]);
    value
}

/// Stores `N` bytes at an offset that the caller has aligned and wrapped.
#[inline]
pub(crate) fn store<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) {
    bytes[at..at + N].copy_from_slice(&value);
}

impl Sram for SramBytes {
    fn read(&self, address: u32, out: &mut [u8]) {
        let at = address as usize;
        out.copy_from_slice(&self.bytes[at..at + out.len()]);
    }

    fn write(&mut self, address: u32, data: &[u8]) {
        let at = address as usize;
        self.bytes[at..at + data.len()].copy_from_slice(data);
    }
}

/// The DMA memories that a driver has given to the card, and the devices that it may reach.
#[derive(Debug, Default)]
pub struct HostMemories {
    memories: Vec<(DmaMemory, Target)>,
    pub(crate) devices: Devices,
}

impl HostMemories {
    /// Lets the card reach a memory under its IOVA.
    pub fn map(&mut self, memory: DmaMemory) {
        self.memories.push((memory, Target::Memory));
    }

    /// Lets the card reach a frame buffer.
    pub(crate) fn map_frame_buffer(&mut self, number: usize, pixels: DmaMemory) {
        self.memories.push((pixels, Target::FrameBuffer(number)));
    }

    /// What an address belongs to.
    pub(crate) fn target(&self, address: u64) -> Target {
        if let Ok((_, target, _)) = self.find(address, 1) {
            return target;
        }
        let card = self.devices.card_at(address);
        card.map_or(Target::Memory, Target::Card)
    }

    /// Takes the memory at an IOVA away from the card.
    pub fn unmap(&mut self, iova: u64) {
        self.memories.retain(|(memory, _)| memory.iova() != iova);
    }

    /// Takes every memory of the driver's away from the card.
    pub fn unmap_all(&mut self) {
        self.memories
            .retain(|(_, target)| *target != Target::Memory);
    }

    /// The word at an aligned address, as the driver sees it.
    pub(crate) fn word(&self, address: u64) -> Option<u32> {
        let (memory, _, offset) = self.find(address, 4).ok()?;
        memory.read_word(offset).ok()
    }

    /// Bytes from an address on, as the driver sees them; whether all of them are there.
    pub(crate) fn look(&self, address: u64, out: &mut [u8]) -> bool {
        self.find(address, out.len())
            .is_ok_and(|(memory, _, offset)| memory.read_bytes(offset, out).is_ok())
    }

    /// The memory that holds a whole range, and the offset of the range in it.
    fn find(
        &self,
        address: u64,
        length: usize,
    ) -> Result<(&DmaMemory, Target, usize), HostMemoryError> {
        let holds = |memory: &DmaMemory| {
            let offset = usize::try_from(address.checked_sub(memory.iova())?).ok()?;
            (offset.checked_add(length)? <= memory.len()).then_some(offset)
        };
        self.memories
            .iter()
            .find_map(|(memory, target)| holds(memory).map(|offset| (memory, *target, offset)))
            .ok_or(HostMemoryError { address, length })
    }
}

impl HostMemory for HostMemories {
    fn read(&mut self, address: u64, out: &mut [u8]) -> Result<(), HostMemoryError> {
        let length = out.len();
        let Ok((memory, target, offset)) = self.find(address, length) else {
            self.devices.refuse();
            return Err(HostMemoryError { address, length });
        };
        let read = memory.read_bytes(offset, out);
        self.devices.count(target, length);
        read.map_err(|_| HostMemoryError { address, length })
    }

    fn write(&mut self, address: u64, data: &[u8]) -> Result<(), HostMemoryError> {
        let length = data.len();
        let Ok((memory, target, offset)) = self.find(address, length) else {
            return self.devices.post(address, data);
        };
        if memory.access() == Access::Read {
            self.devices.refuse();
            return Err(HostMemoryError { address, length });
        }
        let written = memory.write_bytes(offset, data);
        self.devices.count(target, length);
        written.map_err(|_| HostMemoryError { address, length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference 2: SRAM addresses wrap at the installed size (C!).
    #[test]
    fn sram_wraps_at_its_size() {
        let mut sram = SramBytes::new(0x10_0000);
        sram.copy_in(0x1F_FFFE, &[1, 2, 3, 4]);
        assert_eq!(sram.load::<2>(0x0F_FFFE), [1, 2]);
        assert_eq!(sram.load::<2>(0x70_0000), [3, 4]);
        sram.store(0x30_0004, 0x0102_0304u32.to_be_bytes());
        let mut out = [0; 4];
        sram.copy_out(4, &mut out);
        assert_eq!(out, [1, 2, 3, 4]);
    }

    #[test]
    fn the_card_writes_nothing_that_it_may_only_read() {
        let mut host = HostMemories::default();
        let memory = DmaMemory::new(4096, 0x1_0000).expect("memory");
        host.map(memory.clone().for_card(Access::Read));
        let (address, length) = (0x1_0008, 4);
        let refused = host.write(address, &[7; 4]);
        assert_eq!(refused, Err(HostMemoryError { address, length }));
        assert_eq!(host.devices.refused(), 1);
        let mut word = [1; 4];
        host.read(address, &mut word).expect("mapped");
        assert_eq!(word, [0; 4]);
    }

    #[test]
    fn the_card_reaches_mapped_memory_only() {
        let mut host = HostMemories::default();
        let first = DmaMemory::new(4096, 0x1_0000).expect("memory");
        let second = DmaMemory::new(4096, 0x8_0000_0000).expect("memory");
        host.map(first.clone());
        host.map(second.clone());
        host.write(0x8_0000_0FFC, &[1, 2, 3, 4])
            .expect("the last word is mapped");
        assert_eq!(
            second.read_word(0xFFC).expect("in bounds"),
            u32::from_ne_bytes([1, 2, 3, 4])
        );
        first.write_word(8, 7).expect("in bounds");
        let mut word = [0; 4];
        host.read(0x1_0008, &mut word).expect("mapped");
        assert_eq!(u32::from_ne_bytes(word), 7);
        for (address, length) in [
            (0xFFFC, 4),
            (0x1_0FFD, 4),
            (0x1_1000, 1),
            (u64::MAX, 2),
            (0x8_0000_0000, 4097),
        ] {
            let error = HostMemoryError { address, length };
            assert_eq!(host.write(address, &vec![0; length]), Err(error));
        }
        host.unmap_all();
        assert!(host.read(0x1_0008, &mut word).is_err());
    }
}
