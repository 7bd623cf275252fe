//! Counts the received messages: lost, duplicated, reordered and damaged ones.

use serde::{Deserialize, Serialize};

/// Highest number that is accounted for; beyond it a message counts as corrupt, so
/// that a forged number costs no memory.
const HIGHEST: u64 = 1 << 28;

/// What one direction came to, as its receiver saw it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Messages that were sent, as the sender says; what is known without its word if
    /// it never said so.
    pub sent: u64,
    /// Different messages that came whole.
    pub received: u64,
    /// Messages that were sent and never came.
    pub lost: u64,
    /// Messages that came after one with a higher number.
    pub reordered: u64,
    /// Messages that came again.
    pub duplicated: u64,
    /// Messages that came damaged.
    pub corrupt: u64,
    /// Bytes of the messages that came whole, headers included.
    pub bytes: u64,
}

impl Flow {
    /// Both directions together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            sent: self.sent + other.sent,
            received: self.received + other.received,
            lost: self.lost + other.lost,
            reordered: self.reordered + other.reordered,
            duplicated: self.duplicated + other.duplicated,
            corrupt: self.corrupt + other.corrupt,
            bytes: self.bytes + other.bytes,
        }
    }
}

/// Keeps the account.
#[derive(Debug, Default)]
pub struct Account {
    flow: Flow,
    seen: Vec<u64>,
    /// Behind the highest number that came.
    next: u64,
    announced: Option<u64>,
}

impl Account {
    /// A whole message came.
    pub fn data(&mut self, number: u64, bytes: usize) {
        if number >= HIGHEST {
            self.flow.corrupt += 1;
            return;
        }
        let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
        if self.seen.len() <= word {
            self.seen.resize(word + 1, 0);
        }
        let Some(word) = self.seen.get_mut(word) else {
            return;
        };
        if *word & bit != 0 {
            self.flow.duplicated += 1;
            return;
        }
        *word |= bit;
        self.flow.received += 1;
        self.flow.bytes += bytes as u64;
        if number < self.next {
            self.flow.reordered += 1;
        }
        self.next = self.next.max(number + 1);
    }

    /// A damaged message came.
    pub fn damaged(&mut self) {
        self.flow.corrupt += 1;
    }

    /// The sender says how many it has sent.
    pub fn end(&mut self, sent: u64) {
        self.announced = Some(sent);
    }

    /// True once the sender has said how many it has sent.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.announced.is_some()
    }

    /// The account by now.
    #[must_use]
    pub fn flow(&self) -> Flow {
        let sent = self.announced.unwrap_or(self.next).max(self.next);
        Flow {
            sent,
            lost: sent - self.flow.received,
            ..self.flow
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_misfortune_has_its_own_count() {
        let mut account = Account::default();
        for number in [0, 1, 3, 2, 3, 7] {
            account.data(number, 100);
        }
        account.damaged();
        assert!(!account.is_complete());
        assert_eq!(account.flow().lost, 3, "4, 5 and 6");
        account.end(10);
        let expected = Flow {
            sent: 10,
            received: 5,
            lost: 5,
            reordered: 1,
            duplicated: 1,
            corrupt: 1,
            bytes: 500,
        };
        assert_eq!(account.flow(), expected);
    }

    #[test]
    fn a_forged_number_costs_no_memory() {
        let mut account = Account::default();
        account.data(u64::MAX, 100);
        account.data(HIGHEST, 100);
        assert_eq!(account.flow().corrupt, 2);
        assert!(account.seen.is_empty());
        account.data(5, 1);
        account.end(0);
        assert_eq!(account.flow().sent, 6, "a sender that lies low");
    }
}
