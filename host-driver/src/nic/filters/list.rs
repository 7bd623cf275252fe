//! The requested filters, kept for a card that is reset.

/// The filters besides broadcasts and the station address.
#[derive(Debug, Clone, Default)]
pub struct Filters {
    pub(super) promiscuous: bool,
    pub(super) all_multicast: bool,
    pub(super) multicast: Vec<[u8; 6]>,
}
