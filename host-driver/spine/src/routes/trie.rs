//! Builds the trie: by how many bits each node branches.

use super::{NextHop, mask};

/// What follows a node: its children, or its route.
const FOLLOWS: u32 = 0x3F_FFFF;
/// No more bits than that in one node, so that a few long routes do not make a large table.
const BRANCH_MOST: u32 = 16;

/// Bits of a word from `at` on, so many.
const fn bits(word: u32, at: u32, count: u32) -> u32 {
    if count == 0 || at > 31 {
        0
    } else {
        word << at >> (32 - count)
    }
}

/// Leaves, shorter routes and nodes.
#[derive(Default)]
pub(super) struct Trie {
    /// Prefix, its length, the route's second word.
    pub base: Vec<(u32, u32, u32)>,
    /// Length, the next shorter one, next hop.
    pub shorter: Vec<u32>,
    /// 32 less the bits that it branches by, or 0; the first of them; what follows.
    pub nodes: Vec<u32>,
}

impl Trie {
    fn prefix(&self, index: usize) -> u32 {
        self.base.get(index).map_or(0, |(prefix, ..)| *prefix)
    }

    fn length(&self, index: usize) -> u32 {
        self.base.get(index).map_or(0, |(_, length, _)| *length)
    }

    /// A node branches by so many bits from `at` on; by none if it is a leaf.
    fn set(&mut self, node: usize, branch: u32, at: u32, follows: usize) {
        if let Some(place) = self.nodes.get_mut(node) {
            let shift = (32 - branch) & 31;
            *place = shift << 27 | at << 22 | follows as u32;
        }
    }

    /// Makes the node of `count` leaves from `first` on.
    pub fn build(&mut self, first: usize, count: usize, node: usize) {
        if count <= 1 {
            return self.set(node, 0, 0, first);
        }
        let differs = self.prefix(first) ^ self.prefix(first + count - 1);
        let at = differs.leading_zeros();
        let branch = self.branch(first, count, at);
        let children = self.nodes.len();
        self.nodes.resize(children + (1 << branch), 0);
        self.set(node, branch, at, children);
        let mut leaf = first;
        let mut pattern = 0;
        while pattern < 1 << branch {
            let end = first + count;
            let mut behind = leaf;
            while behind < end && bits(self.prefix(behind), at, branch) == pattern {
                behind += 1;
            }
            let child = children + pattern as usize;
            match behind - leaf {
                0 => {
                    let near = self.nearest(first, end, leaf, at, branch, pattern);
                    self.set(child, 0, 0, near);
                }
                1 if self.length(leaf) < at + branch => {
                    // It is the leaf of several children.
                    let several = 1 << (at + branch - self.length(leaf));
                    for more in 0..several {
                        self.set(child + more, 0, 0, leaf);
                    }
                    pattern += several as u32 - 1;
                }
                more => self.build(leaf, more, child),
            }
            leaf = behind;
            pattern += 1;
        }
    }

    /// How many bits to branch by: as many as leave five children of eight in use.
    fn branch(&self, first: usize, count: usize, at: u32) -> u32 {
        let mut branch = 1;
        while branch < BRANCH_MOST && at + branch < 32 {
            let wider = branch + 1;
            let mut used = 0;
            let mut last = None;
            for leaf in first..first + count {
                let pattern = Some(bits(self.prefix(leaf), at, wider));
                used += usize::from(pattern != last);
                last = pattern;
            }
            if 8 * used < 5 << wider {
                break;
            }
            branch = wider;
        }
        branch
    }

    /// The leaf whose shorter routes fit a pattern best that no leaf has: the one before or the
    /// one behind.
    fn nearest(
        &self,
        first: usize,
        end: usize,
        behind: usize,
        at: u32,
        branch: u32,
        pattern: u32,
    ) -> usize {
        let path = self.prefix(first) & mask(at) | pattern << (32 - at - branch);
        let fit = |leaf: usize| self.longest_shorter(leaf, path, at + branch);
        if behind == end {
            return end - 1;
        }
        if behind > first && fit(behind - 1) > fit(behind) {
            return behind - 1;
        }
        behind
    }

    /// The length of the longest shorter route of a leaf that fits the first `known` bits of a
    /// path.
    fn longest_shorter(&self, leaf: usize, path: u32, known: u32) -> u32 {
        let mut word = self.base.get(leaf).map_or(0, |(_, _, word)| *word);
        let differs = self.prefix(leaf) ^ path;
        while word >> 10 & 0xFFFF != 0 {
            let number = (word >> 10 & 0xFFFF) as usize - 1;
            word = self.shorter.get(number).copied().unwrap_or_default();
            let length = word >> 26;
            if length <= known && differs & mask(length) == 0 {
                return length;
            }
        }
        0
    }

    /// The words of the table, with the next hops in their order; the first of them is the host,
    /// and has no words.
    pub fn words(self, hops: &[NextHop]) -> Vec<u32> {
        let first = 2 * hops.len() as u32 - 1;
        let base = first + self.nodes.len() as u32 - 1;
        let shorter = base + 2 * self.base.len() as u32;
        // The first node is in front of the next hops, the others behind them.
        let placed = |node: u32| {
            let (kind, follows) = (node & !FOLLOWS, node & FOLLOWS);
            let at = if kind >> 27 == 0 {
                base + 2 * follows
            } else {
                first + follows - 1
            };
            kind | at
        };
        // Shorter routes are numbered from 1 on.
        let named = |word: u32| match word >> 10 & 0xFFFF {
            0 => word,
            number => word & !(0xFFFF << 10) | (shorter + number - 1) << 10,
        };
        let mut words = Vec::new();
        let (root, nodes) = self.nodes.split_first().unwrap_or((&0, &[]));
        words.push(placed(*root));
        for hop in hops {
            let (address, port) = match *hop {
                NextHop::Host => continue,
                NextHop::Wire(address) => (address, 0),
                NextHop::Peer(address) => (address, 1),
            };
            let [a, b, c, d, e, f] = address;
            words.extend([
                u32::from_be_bytes([a, b, c, d]),
                u32::from_be_bytes([e, f, 0, port]),
            ]);
        }
        words.extend(nodes.iter().map(|node| placed(*node)));
        for (prefix, _, word) in self.base {
            words.extend([prefix, named(word)]);
        }
        words.extend(self.shorter.into_iter().map(named));
        words
    }
}
