//! A card in this machine, through the kernel's VFIO.
//!
//! The PCI function must be bound to `vfio-pci` (`sysfs` finds its group, and explains how if it
//! is not). Registers are mapped; configuration space is accessed through the device's file; the
//! interrupt pin counts up an eventfd, and the kernel masks it each time, as over vfio-user.
//!
//! With an IOMMU the card sees DMA memory at addresses of the driver's choice and can reach
//! nothing else. Without one (the kernel's no-IOMMU mode, `vfio.enable_unsafe_noiommu_mode=1`) it
//! gets physical addresses of huge pages (`pagemap`) and **can reach all memory of the machine**:
//! faulty firmware, or a driver that dies while the card runs, may then damage anything. The
//! driver closes the device before it frees its memory, which stops its bus mastering.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;
use vfio_bindings::bindings::vfio::{
    VFIO_API_VERSION, VFIO_NOIOMMU_IOMMU, VFIO_PCI_BAR0_REGION_INDEX, VFIO_PCI_CONFIG_REGION_INDEX,
    VFIO_TYPE1_IOMMU, VFIO_TYPE1v2_IOMMU,
};

use super::{Access, Bell, Port, Transport, TransportError, Vector, port};
use crate::dma::{DmaMemory, HUGE_PAGE_BYTES};

#[allow(unsafe_code)]
mod ioctl;
mod pagemap;
#[allow(unsafe_code)]
mod registers;
mod sysfs;

use ioctl::Region;
use registers::Registers;
pub use sysfs::PciAddress;

/// First DMA address behind an IOMMU: above 4 GB and everything reserved below it, so that both
/// halves of an address are used.
const FIRST_IOVA: u64 = 0x1_0000_0000;
/// Unmapped bytes between two pieces of DMA memory.
const GAP_BYTES: u64 = 0x1_0000;
/// Bytes of BAR0.
const BAR_BYTES: u32 = host_interface::bar::BYTES;
/// Bytes of configuration space that are used.
const CONFIG_BYTES: u32 = 256;

/// How the card's addresses are translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// By an IOMMU: the card reaches only mapped memory.
    Iommu,
    /// Not at all: physical addresses, and the card reaches all memory.
    None,
}

/// A card behind the kernel's VFIO.
pub struct Vfio {
    card: Arc<Card>,
    can_reset: bool,
    next_iova: u64,
}

/// State that the transport and its ports share; the last of them releases the card.
struct Card {
    registers: Registers,
    config: Region,
    // Dropped in this order: the function first, then its group and container, so that nothing
    // writes to the memory when it is freed.
    device: File,
    _group: File,
    container: File,
    interrupt: OwnedFd,
    isolation: Isolation,
    memory: Mutex<Vec<DmaMemory>>,
}

/// A thread's own access to the card: all threads share the mapped registers.
struct VfioPort(Arc<Card>);

fn unreachable(place: impl std::fmt::Display, reason: impl std::fmt::Display) -> TransportError {
    TransportError::Unreachable {
        place: place.to_string(),
        reason: reason.to_string(),
    }
}

fn open(path: &Path) -> Result<File, TransportError> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .map_err(|error| unreachable(path.display(), error))
}

/// Why the kernel does not permit the IOMMU.
fn iommu_refused(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!(
            "the IOMMU: {error}; without interrupt remapping the kernel wants \
             modprobe vfio_iommu_type1 allow_unsafe_interrupts=1 (see its log)"
        ),
        io::ErrorKind::NotFound | io::ErrorKind::Unsupported => {
            format!("the IOMMU: {error}; modprobe vfio_iommu_type1")
        }
        _ => format!("the IOMMU: {error}"),
    }
}

impl Vfio {
    /// Opens the card at a PCI address.
    ///
    /// # Errors
    /// [`TransportError::Unreachable`] if there is no such function, it is not bound to
    /// `vfio-pci`, or the user may not open it; [`TransportError::NotACard`] if its
    /// BAR0 or interrupt pin is not a card's.
    pub fn open(address: PciAddress) -> Result<Self, TransportError> {
        let group = sysfs::find_group(Path::new("/sys"), Path::new("/dev"), address)?;
        let place = format!("PCI address {address}");
        let refused =
            |what: &str, error: io::Error| unreachable(&place, format!("{what}: {error}"));
        let not_a_card = |reason: String| TransportError::NotACard {
            place: place.clone(),
            reason,
        };
        let container = open(Path::new("/dev/vfio/vfio"))?;
        let version = ioctl::api_version(container.as_fd())
            .map_err(|error| refused("the kernel's VFIO", error))?;
        if version != VFIO_API_VERSION as i32 {
            return Err(unreachable(&place, format!("VFIO of version {version}")));
        }
        let isolation = if group.without_iommu {
            Isolation::None
        } else {
            Isolation::Iommu
        };
        let file = open(&group.path)?;
        let viable =
            ioctl::group_is_viable(file.as_fd()).map_err(|error| refused("its group", error))?;
        if !viable {
            return Err(unreachable(
                &place,
                "other functions of its IOMMU group are bound to other drivers",
            ));
        }
        ioctl::set_container(file.as_fd(), container.as_fd())
            .map_err(|error| refused("its group is refused (in use?)", error))?;
        let kind = match isolation {
            Isolation::None => VFIO_NOIOMMU_IOMMU,
            Isolation::Iommu
                if ioctl::has_extension(container.as_fd(), VFIO_TYPE1v2_IOMMU).unwrap_or(false) =>
            {
                VFIO_TYPE1v2_IOMMU
            }
            Isolation::Iommu => VFIO_TYPE1_IOMMU,
        };
        ioctl::set_iommu(container.as_fd(), kind)
            .map_err(|error| unreachable(&place, iommu_refused(&error)))?;
        let name = CString::new(address.to_string()).map_err(|error| unreachable(&place, error))?;
        let device = ioctl::device(file.as_fd(), &name)
            .map(File::from)
            .map_err(|error| refused("the function", error))?;

        let bar = ioctl::region(device.as_fd(), VFIO_PCI_BAR0_REGION_INDEX)
            .map_err(|error| refused("BAR0", error))?;
        if bar.bytes != u64::from(BAR_BYTES) {
            return Err(not_a_card(format!(
                "its BAR0 has {} bytes, not {BAR_BYTES}",
                bar.bytes
            )));
        }
        let registers = Registers::map(device.as_fd(), bar, BAR_BYTES as usize)
            .map_err(|error| refused("BAR0", error))?;
        let config = ioctl::region(device.as_fd(), VFIO_PCI_CONFIG_REGION_INDEX)
            .map_err(|error| refused("configuration space", error))?;
        if config.bytes < u64::from(CONFIG_BYTES) {
            return Err(not_a_card("no PCI configuration space".into()));
        }
        let pins = ioctl::interrupt_pins(device.as_fd())
            .map_err(|error| refused("its interrupt", error))?;
        if pins == 0 {
            return Err(not_a_card("it has no interrupt pin".into()));
        }
        let interrupt =
            eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(io::Error::from)?;
        ioctl::set_interrupt(device.as_fd(), interrupt.as_fd())
            .map_err(|error| refused("its interrupt", error))?;
        let can_reset =
            ioctl::can_reset(device.as_fd()).map_err(|error| refused("the function", error))?;
        Ok(Self {
            card: Arc::new(Card {
                registers,
                config,
                device,
                _group: file,
                container,
                interrupt,
                isolation,
                memory: Mutex::new(Vec::new()),
            }),
            can_reset,
            next_iova: FIRST_IOVA,
        })
    }

    /// Whether an IOMMU protects other memory from the card.
    #[must_use]
    pub fn isolation(&self) -> Isolation {
        self.card.isolation
    }
}

impl Card {
    fn read(&self, bar_offset: u32) -> Result<u32, TransportError> {
        let word = self.registers.read(bar_offset);
        word.ok_or(TransportError::BadOffset(bar_offset))
    }

    fn write(&self, bar_offset: u32, value: u32) -> Result<(), TransportError> {
        let written = self.registers.write(bar_offset, value);
        written.ok_or(TransportError::BadOffset(bar_offset))
    }

    fn unmask(&self) -> Result<(), TransportError> {
        Ok(ioctl::unmask_interrupt(self.device.as_fd())?)
    }

    fn config_offset(&self, offset: u32) -> Result<u64, TransportError> {
        if offset.is_multiple_of(4) && offset < CONFIG_BYTES {
            Ok(self.config.offset + u64::from(offset))
        } else {
            Err(TransportError::BadOffset(offset))
        }
    }
}

/// Huge pages, and their physical addresses.
fn huge_pages(bytes: usize) -> Result<DmaMemory, TransportError> {
    let wanted = bytes.div_ceil(HUGE_PAGE_BYTES);
    let refused = |error: io::Error| TransportError::Refused {
        what: "DMA memory without an IOMMU",
        reason: format!(
            "{error}; it needs {wanted} free huge pages of 2 MB \
             (echo 32 > /proc/sys/vm/nr_hugepages) and root"
        ),
    };
    DmaMemory::huge(bytes, |address, bytes| {
        let mut pagemap = File::open("/proc/self/pagemap")?;
        pagemap::pieces(&mut pagemap, address, bytes as u64, HUGE_PAGE_BYTES as u64)
    })
    .map_err(refused)
}

impl Vfio {
    /// Gives memory to the card, to read and perhaps to write.
    fn share(&mut self, memory: &DmaMemory) -> Result<(), TransportError> {
        let container = self.card.container.as_fd();
        ioctl::map_dma(container, memory.iova(), memory).map_err(|error| {
            TransportError::Refused {
                what: "DMA memory",
                reason: format!("{error} (is the limit of locked memory too low?)"),
            }
        })?;
        self.next_iova += memory.len() as u64 + GAP_BYTES;
        Ok(())
    }
}

impl Transport for Vfio {
    fn read(&mut self, bar_offset: u32) -> Result<u32, TransportError> {
        self.card.read(bar_offset)
    }

    fn write(&mut self, bar_offset: u32, value: u32) -> Result<(), TransportError> {
        self.card.write(bar_offset, value)
    }

    fn config_read(&mut self, offset: u32) -> Result<u32, TransportError> {
        let mut bytes = [0; 4];
        let place = self.card.config_offset(offset)?;
        self.card.device.read_exact_at(&mut bytes, place)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn config_write(&mut self, offset: u32, value: u32) -> Result<(), TransportError> {
        let place = self.card.config_offset(offset)?;
        self.card.device.write_all_at(&value.to_le_bytes(), place)?;
        Ok(())
    }

    fn allocate(&mut self, bytes: usize) -> Result<DmaMemory, TransportError> {
        let memory = match self.card.isolation {
            Isolation::None => huge_pages(bytes)?,
            Isolation::Iommu => {
                let memory = DmaMemory::new(bytes, self.next_iova)?;
                self.share(&memory)?;
                memory
            }
        };
        self.card.keep(&memory);
        Ok(memory)
    }

    fn map(&mut self, file: OwnedFd, access: Access) -> Result<DmaMemory, TransportError> {
        if self.card.isolation == Isolation::None {
            return Err(TransportError::NoForeignMemory);
        }
        let memory = DmaMemory::of_file(file, self.next_iova)?.for_card(access);
        self.share(&memory)?;
        self.card.keep(&memory);
        Ok(memory)
    }

    fn unmap(&mut self, memory: &DmaMemory) -> Result<(), TransportError> {
        let container = self.card.container.as_fd();
        ioctl::unmap_dma(container, memory.iova(), memory.len() as u64)?;
        let all = self.card.memory.lock();
        all.unwrap_or_else(PoisonError::into_inner)
            .retain(|one| one.iova() != memory.iova());
        Ok(())
    }

    fn wait(&mut self, vector: Vector, timeout: Duration) -> Result<bool, TransportError> {
        vector.must_be_pin()?;
        // The usual case under load costs one system call.
        if port::consume(&self.card.interrupt)? {
            return Ok(true);
        }
        if timeout.is_zero() {
            return Ok(false);
        }
        let mut fds = [PollFd::new(&self.card.interrupt, PollFlags::IN)];
        match poll(&mut fds, Some(&port::timespec(timeout))) {
            Ok(0) | Err(Errno::INTR) => Ok(false),
            Ok(_) => port::consume(&self.card.interrupt),
            Err(error) => Err(TransportError::Io(error.into())),
        }
    }

    fn vector_fd(&self, vector: Vector) -> Option<BorrowedFd<'_>> {
        (vector == Vector::INTERRUPT).then(|| self.card.interrupt.as_fd())
    }

    fn unmask(&mut self, vector: Vector) -> Result<(), TransportError> {
        vector.must_be_pin()?;
        self.card.unmask()
    }

    fn port(&mut self) -> Result<Box<dyn Port>, TransportError> {
        Ok(Box::new(VfioPort(self.card.clone())))
    }

    fn reset(&mut self) -> Result<(), TransportError> {
        // Otherwise the chip's own reset bit must do; the driver sets it next.
        if self.can_reset {
            ioctl::reset(self.card.device.as_fd())?;
        }
        // Interrupts from before the reset are stale.
        port::consume(&self.card.interrupt)?;
        self.card.unmask()
    }
}

impl Port for VfioPort {
    fn read(&mut self, bar_offset: u32) -> Result<u32, TransportError> {
        self.0.read(bar_offset)
    }

    fn write(&mut self, bar_offset: u32, value: u32) -> Result<(), TransportError> {
        self.0.write(bar_offset, value)
    }

    fn wait(
        &mut self,
        vector: Vector,
        timeout: Duration,
        bell: &Bell,
    ) -> Result<bool, TransportError> {
        vector.must_be_pin()?;
        port::wait_shared(&self.0.interrupt, bell, None, timeout)
    }

    fn vector_fd(&self, vector: Vector) -> Option<BorrowedFd<'_>> {
        (vector == Vector::INTERRUPT).then(|| self.0.interrupt.as_fd())
    }

    fn unmask(&mut self, vector: Vector) -> Result<(), TransportError> {
        vector.must_be_pin()?;
        self.0.unmask()
    }
}

impl Card {
    /// Keeps memory as long as the function may use it.
    fn keep(&self, memory: &DmaMemory) {
        // A panic of another holder leaves the list intact.
        let all = self.memory.lock();
        all.unwrap_or_else(PoisonError::into_inner)
            .push(memory.clone());
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        if self.isolation == Isolation::Iommu {
            let memory = self.memory.get_mut();
            for memory in memory.unwrap_or_else(|error| error.into_inner()) {
                // Closing the container would do it too.
                let _ =
                    ioctl::unmap_dma(self.container.as_fd(), memory.iova(), memory.len() as u64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_such_a_card_says_so() {
        let address: PciAddress = "ffff:ff:1f.7".parse().expect("an address");
        let error = Vfio::open(address).err().expect("no such function");
        let text = error.to_string();
        assert!(text.contains("no such PCI function"), "{text}");
    }
}
