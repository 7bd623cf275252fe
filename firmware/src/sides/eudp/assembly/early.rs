//! Where a fragment may be written that still arrives.

use super::{Assembly, RUN_LIST, RUNS, Row, UNIT, run, units};
use tigon2_chip::HostAddress;
use tigon2_hal::Bus;

impl Assembly {
    /// Whether nothing is there of bytes `from` to `end` of the IP payload, and the row has room for
    /// one more run; `from` begins a unit.
    #[inline(never)]
    pub(in crate::sides::eudp) fn is_free<B: Bus>(self, bus: &mut B, from: u32, end: u32) -> bool {
        let (list, count) = (self.0 + RUN_LIST, self.get(bus, Row::Runs));
        let (from, end) = (from >> UNIT, units(end));
        count < RUNS
            && (0..count).all(|number| {
                let (first, last) = run(bus, list, number);
                end <= first || last <= from
            })
    }

    /// Where `bytes` of the data from `at` on go, if that is in one piece of memory.
    #[inline(never)]
    pub(in crate::sides::eudp) fn place<B: Bus>(
        self,
        bus: &mut B,
        at: u32,
        bytes: u32,
    ) -> Option<HostAddress> {
        let (mut skip, mut number) = (at, 0);
        while let Some((host, there)) = self.piece(bus, number) {
            if skip < there {
                return (bytes <= there - skip).then(|| host.plus(skip));
            }
            skip -= there;
            number += 1;
        }
        None
    }
}
