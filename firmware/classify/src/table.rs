//! The indirection table: from hash to queue.

use host_interface::queue::{QUEUES_MAX, TABLE_ENTRIES};

/// The bits of a hash that select an entry.
pub const ENTRY_MASK: u32 = TABLE_ENTRIES as u32 - 1;

/// 128 queue numbers; the lowest seven bits of a hash select the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndirectionTable([u8; TABLE_ENTRIES]);

impl IndirectionTable {
    /// A table with these entries, each below `queues`.
    ///
    /// # Errors
    /// The number of the first entry that is `queues` or more.
    pub fn new(entries: [u8; TABLE_ENTRIES], queues: u32) -> Result<Self, usize> {
        let wrong = entries.iter().position(|queue| u32::from(*queue) >= queues);
        wrong.map_or(Ok(IndirectionTable(entries)), Err)
    }

    /// The queues in turn: the numbers of their entries differ by at most one.
    pub fn equal(queues: u8) -> Self {
        let mut entries = [0; TABLE_ENTRIES];
        let mut queue = 0;
        for entry in &mut entries {
            *entry = queue;
            queue += 1;
            if queue >= queues {
                queue = 0;
            }
        }
        IndirectionTable(entries)
    }

    /// Entries in proportion to the weights, in order of the queues. `None` if there are no or too
    /// many weights, or all are 0.
    pub fn weighted(weights: &[u32]) -> Option<Self> {
        let total: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
        if weights.len() > QUEUES_MAX || total == 0 {
            return None;
        }
        let mut entries = [0; TABLE_ENTRIES];
        let (mut from, mut before) = (0, 0);
        for (queue, weight) in (0..).zip(weights) {
            before += u64::from(*weight);
            // This rounds sums, not shares, so the last one covers all entries.
            let to = ((before * TABLE_ENTRIES as u64 + total / 2) / total) as usize;
            entries[from..to].fill(queue);
            from = to;
        }
        Some(IndirectionTable(entries))
    }

    /// The entries.
    pub const fn entries(&self) -> &[u8; TABLE_ENTRIES] {
        &self.0
    }

    /// The entry for a hash.
    pub const fn entry(hash: u32) -> u32 {
        hash & ENTRY_MASK
    }

    /// The queue for a hash.
    pub const fn queue(&self, hash: u32) -> u8 {
        self.0[Self::entry(hash) as usize]
    }
}

const _: () = assert!(TABLE_ENTRIES.is_power_of_two());

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(table: &IndirectionTable) -> [usize; QUEUES_MAX] {
        let mut counts = [0; QUEUES_MAX];
        for queue in table.entries() {
            counts[usize::from(*queue)] += 1;
        }
        counts
    }

    #[test]
    fn equal_shares_differ_by_one_at_most() {
        for queues in 1..=QUEUES_MAX as u8 {
            let counts = counts(&IndirectionTable::equal(queues));
            let used = &counts[..usize::from(queues)];
            let (least, most) = (used.iter().min(), used.iter().max());
            assert!(most.unwrap() - least.unwrap() <= 1, "{counts:?}");
            assert_eq!(used.iter().sum::<usize>(), TABLE_ENTRIES);
        }
    }

    #[test]
    fn weights_share_out_all_entries() {
        let table = IndirectionTable::weighted(&[1, 0, 3]).expect("weights");
        assert_eq!(counts(&table)[..3], [32, 0, 96]);
        let thirds = IndirectionTable::weighted(&[1, 1, 1]).expect("weights");
        assert_eq!(counts(&thirds)[..3], [43, 42, 43]);
        let huge = IndirectionTable::weighted(&[u32::MAX; QUEUES_MAX]).expect("weights");
        assert_eq!(counts(&huge), [16; QUEUES_MAX]);
        assert_eq!(IndirectionTable::weighted(&[]), None);
        assert_eq!(IndirectionTable::weighted(&[0, 0]), None);
        assert_eq!(IndirectionTable::weighted(&[1; QUEUES_MAX + 1]), None);
    }

    #[test]
    fn an_entry_of_a_closed_queue_is_refused() {
        let mut entries = [3; TABLE_ENTRIES];
        assert!(IndirectionTable::new(entries, 4).is_ok());
        entries[77] = 4;
        assert_eq!(IndirectionTable::new(entries, 4), Err(77));
        entries[5] = 255;
        assert_eq!(IndirectionTable::new(entries, 4), Err(5));
    }

    #[test]
    fn only_the_seven_lowest_bits_choose() {
        let table = IndirectionTable::equal(8);
        assert_eq!(table.queue(0xFFFF_FF80), 0);
        assert_eq!(table.queue(0x0000_0085), 5);
    }
}
