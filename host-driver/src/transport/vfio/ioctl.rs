//! The kernel's VFIO requests, one function each.
//!
//! Numbers and structures are those of `linux/vfio.h`, by way of the crate
//! `vfio-bindings`. Together with [`super::registers`] this is all of the transport
//! that uses `unsafe`.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use eudp::Access;
use vfio_bindings::bindings::vfio::{
    VFIO_BASE, VFIO_DEVICE_FLAGS_RESET, VFIO_DMA_MAP_FLAG_READ, VFIO_DMA_MAP_FLAG_WRITE,
    VFIO_GROUP_FLAGS_VIABLE, VFIO_IRQ_SET_ACTION_TRIGGER, VFIO_IRQ_SET_ACTION_UNMASK,
    VFIO_IRQ_SET_DATA_EVENTFD, VFIO_IRQ_SET_DATA_NONE, VFIO_PCI_INTX_IRQ_INDEX,
    VFIO_REGION_INFO_FLAG_MMAP, VFIO_TYPE, vfio_device_info, vfio_group_status,
    vfio_iommu_type1_dma_map, vfio_iommu_type1_dma_unmap, vfio_irq_info, vfio_region_info,
};

/// Number of a request: `_IO(VFIO_TYPE, VFIO_BASE + number)`.
const fn request(number: u32) -> libc::Ioctl {
    ((VFIO_TYPE as u32) << 8 | (VFIO_BASE + number)) as libc::Ioctl
}

const GET_API_VERSION: libc::Ioctl = request(0);
const CHECK_EXTENSION: libc::Ioctl = request(1);
const SET_IOMMU: libc::Ioctl = request(2);
const GROUP_GET_STATUS: libc::Ioctl = request(3);
const GROUP_SET_CONTAINER: libc::Ioctl = request(4);
const GROUP_GET_DEVICE_FD: libc::Ioctl = request(6);
const DEVICE_GET_INFO: libc::Ioctl = request(7);
const DEVICE_GET_REGION_INFO: libc::Ioctl = request(8);
const DEVICE_GET_IRQ_INFO: libc::Ioctl = request(9);
const DEVICE_SET_IRQS: libc::Ioctl = request(10);
const DEVICE_RESET: libc::Ioctl = request(11);
const IOMMU_MAP_DMA: libc::Ioctl = request(13);
const IOMMU_UNMAP_DMA: libc::Ioctl = request(14);

fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// A request whose argument is a number.
fn with_number(fd: BorrowedFd<'_>, request: libc::Ioctl, number: u32) -> io::Result<libc::c_int> {
    // SAFETY: the requests that come here take a number, not an address, and change
    // nothing in this process.
    checked(unsafe { libc::ioctl(fd.as_raw_fd(), request, libc::c_ulong::from(number)) })
}

/// A request whose argument is a structure that says its own size in `argsz`.
///
/// # Safety
/// `T` must be the request's structure, its `argsz` at most its size, and addresses in
/// it valid for what the request does with them.
unsafe fn with_structure<T>(
    fd: BorrowedFd<'_>,
    request: libc::Ioctl,
    argument: &mut T,
) -> io::Result<libc::c_int> {
    // SAFETY: the kernel reads and writes at most `argsz` bytes of the structure, which
    // is borrowed for the time of the call; the rest is the caller's promise.
    checked(unsafe { libc::ioctl(fd.as_raw_fd(), request, std::ptr::from_mut(argument)) })
}

/// Version of the interface; 0 is the one that there is.
pub fn api_version(container: BorrowedFd<'_>) -> io::Result<i32> {
    with_number(container, GET_API_VERSION, 0)
}

/// Whether the kernel knows this kind of IOMMU.
pub fn has_extension(container: BorrowedFd<'_>, extension: u32) -> io::Result<bool> {
    Ok(with_number(container, CHECK_EXTENSION, extension)? > 0)
}

/// Chooses the kind of IOMMU of a container that has a group.
pub fn set_iommu(container: BorrowedFd<'_>, kind: u32) -> io::Result<()> {
    with_number(container, SET_IOMMU, kind).map(drop)
}

/// Whether all functions of a group are bound to VFIO.
pub fn group_is_viable(group: BorrowedFd<'_>) -> io::Result<bool> {
    let mut status = vfio_group_status {
        argsz: size_of::<vfio_group_status>() as u32,
        ..Default::default()
    };
    // SAFETY: the request's structure with its size.
    unsafe { with_structure(group, GROUP_GET_STATUS, &mut status)? };
    Ok(status.flags & VFIO_GROUP_FLAGS_VIABLE != 0)
}

/// Puts a group into a container.
pub fn set_container(group: BorrowedFd<'_>, container: BorrowedFd<'_>) -> io::Result<()> {
    let mut number = container.as_raw_fd();
    // SAFETY: the request reads one int, the descriptor.
    unsafe { with_structure(group, GROUP_SET_CONTAINER, &mut number)? };
    Ok(())
}

/// Opens a function of a group.
pub fn device(group: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: the request reads a string that ends with a zero byte.
    let fd =
        checked(unsafe { libc::ioctl(group.as_raw_fd(), GROUP_GET_DEVICE_FD, name.as_ptr()) })?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Whether the kernel can reset the function.
pub fn can_reset(device: BorrowedFd<'_>) -> io::Result<bool> {
    let mut info = vfio_device_info {
        argsz: size_of::<vfio_device_info>() as u32,
        ..Default::default()
    };
    // SAFETY: the request's structure with its size.
    unsafe { with_structure(device, DEVICE_GET_INFO, &mut info)? };
    Ok(info.flags & VFIO_DEVICE_FLAGS_RESET != 0)
}

/// A part of the device's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// Where it begins in the file.
    pub offset: u64,
    /// Its bytes.
    pub bytes: u64,
    /// It may be mapped.
    pub mappable: bool,
}

/// Where a region is.
pub fn region(device: BorrowedFd<'_>, index: u32) -> io::Result<Region> {
    let mut info = vfio_region_info {
        argsz: size_of::<vfio_region_info>() as u32,
        index,
        ..Default::default()
    };
    // SAFETY: the request's structure with its size.
    unsafe { with_structure(device, DEVICE_GET_REGION_INFO, &mut info)? };
    Ok(Region {
        offset: info.offset,
        bytes: info.size,
        mappable: info.flags & VFIO_REGION_INFO_FLAG_MMAP != 0,
    })
}

/// How many pins the function has: 0 or 1.
pub fn interrupt_pins(device: BorrowedFd<'_>) -> io::Result<u32> {
    let mut info = vfio_irq_info {
        argsz: size_of::<vfio_irq_info>() as u32,
        index: VFIO_PCI_INTX_IRQ_INDEX,
        ..Default::default()
    };
    // SAFETY: the request's structure with its size.
    unsafe { with_structure(device, DEVICE_GET_IRQ_INFO, &mut info)? };
    Ok(info.count)
}

/// `vfio_irq_set` with an eventfd as its data.
#[repr(C)]
struct IrqSet {
    argsz: u32,
    flags: u32,
    index: u32,
    start: u32,
    count: u32,
    eventfd: i32,
}

const _: () = assert!(size_of::<IrqSet>() == 24);

/// Lets the pin's interrupts count up an eventfd. The kernel masks the pin with each.
pub fn set_interrupt(device: BorrowedFd<'_>, eventfd: BorrowedFd<'_>) -> io::Result<()> {
    let mut set = IrqSet {
        argsz: size_of::<IrqSet>() as u32,
        flags: VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER,
        index: VFIO_PCI_INTX_IRQ_INDEX,
        start: 0,
        count: 1,
        eventfd: eventfd.as_raw_fd(),
    };
    // SAFETY: the request's structure with one eventfd behind it, in its size.
    unsafe { with_structure(device, DEVICE_SET_IRQS, &mut set)? };
    Ok(())
}

/// Lets the pin's next interrupt through.
pub fn unmask_interrupt(device: BorrowedFd<'_>) -> io::Result<()> {
    let mut set = IrqSet {
        // Without data.
        argsz: size_of::<IrqSet>() as u32 - 4,
        flags: VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_UNMASK,
        index: VFIO_PCI_INTX_IRQ_INDEX,
        start: 0,
        count: 1,
        eventfd: -1,
    };
    // SAFETY: the request's structure; its size leaves the data out.
    unsafe { with_structure(device, DEVICE_SET_IRQS, &mut set)? };
    Ok(())
}

/// Resets the function.
pub fn reset(device: BorrowedFd<'_>) -> io::Result<()> {
    with_number(device, DEVICE_RESET, 0).map(drop)
}

/// Lets the function reach memory of this process.
pub fn map_dma(
    container: BorrowedFd<'_>,
    iova: u64,
    memory: &crate::dma::DmaMemory,
) -> io::Result<()> {
    let write = match memory.access() {
        Access::Read => 0,
        Access::ReadWrite => VFIO_DMA_MAP_FLAG_WRITE,
    };
    let mut map = vfio_iommu_type1_dma_map {
        argsz: size_of::<vfio_iommu_type1_dma_map>() as u32,
        flags: VFIO_DMA_MAP_FLAG_READ | write,
        vaddr: memory.process_address(),
        iova,
        size: memory.len() as u64,
    };
    // SAFETY: the request's structure with its size. The range is a whole mapping of
    // DMA memory, of which no Rust references exist, and the kernel keeps its pages
    // even if it is unmapped from this process.
    unsafe { with_structure(container.as_fd(), IOMMU_MAP_DMA, &mut map)? };
    Ok(())
}

/// Takes the memory away from the function again.
pub fn unmap_dma(container: BorrowedFd<'_>, iova: u64, bytes: u64) -> io::Result<()> {
    let mut unmap = vfio_iommu_type1_dma_unmap {
        argsz: size_of::<vfio_iommu_type1_dma_unmap>() as u32,
        iova,
        size: bytes,
        ..Default::default()
    };
    // SAFETY: the request's structure with its size; no bitmap is asked for.
    unsafe { with_structure(container, IOMMU_UNMAP_DMA, &mut unmap)? };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `linux/vfio.h`: `_IO(';', 100)` and so on.
    #[test]
    fn request_numbers_are_those_of_the_kernel() {
        assert_eq!(GET_API_VERSION as u32, 0x3B64);
        assert_eq!(GROUP_GET_DEVICE_FD as u32, 0x3B6A);
        assert_eq!(IOMMU_MAP_DMA as u32, 0x3B71);
    }

    #[test]
    fn a_file_that_is_no_vfio_device_says_so() {
        let file = std::fs::File::open("/dev/null").expect("a file");
        assert!(api_version(file.as_fd()).is_err());
        assert!(group_is_viable(file.as_fd()).is_err());
        assert!(region(file.as_fd(), 0).is_err());
        assert!(device(file.as_fd(), c"0000:00:03.0").is_err());
    }
}
