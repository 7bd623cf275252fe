//! The card as a PCI function.
//!
//! Host/NIC software interface, "PCI function".

/// Vendor id of Alteon.
pub const VENDOR_ALTEON: u16 = 0x12AE;
/// Device id of the AceNIC with fibre, the card of this project.
pub const DEVICE_ACENIC_FIBRE: u16 = 0x0001;
/// Device id of the AceNIC with copper.
pub const DEVICE_ACENIC_COPPER: u16 = 0x0002;

/// Vendor and device ids that the in-kernel drivers accept.
pub const ACCEPTED: &[(u16, u16)] = &[
    (VENDOR_ALTEON, DEVICE_ACENIC_FIBRE),
    (VENDOR_ALTEON, DEVICE_ACENIC_COPPER),
    (0x10B7, 0x0001), // 3Com 3C985
    (0x1385, 0x620A), // Netgear GA620
    (0x1385, 0x630A), // Netgear GA620T
    (0x10A9, 0x0009), // SGI
];

/// Base class, sub-class and programming interface: network, Ethernet.
pub const CLASS: [u8; 3] = [0x02, 0x00, 0x00];
/// Size of BAR 0 in bytes: memory, 32-bit, not prefetchable.
pub const BAR0_BYTES: u32 = 16 * 1024;
/// Cache line size that drivers set, in bytes.
pub const CACHE_LINE_BYTES: u8 = 64;
/// Latency timer that drivers set.
pub const LATENCY_TIMER: u8 = 64;
