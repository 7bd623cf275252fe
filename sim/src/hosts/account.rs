//! Accounts for a CPU's time.

use std::ops::{Index, Sub};

/// What a host CPU does with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Activity {
    /// Interrupt entry, service routine, exit.
    Interrupt,
    /// The driver's part of a received packet.
    Driver,
    /// IP and TCP of a received packet.
    Protocol,
    /// A segment that is sent, by any thread.
    Transmit,
    /// The application and its system calls.
    Application,
    /// Bytes that `sendmsg` copies.
    Copy,
    /// Context switches and waking up.
    Switch,
    /// Cache lines that another CPU has touched last, and the stack's code.
    Misses,
    /// Spinning for a lock.
    LockWait,
    /// Waiting for reads of the card's registers, and writing them.
    CardAccess,
    /// Nothing to do.
    Idle,
}

impl Activity {
    /// All of them, in the order of reports.
    pub const ALL: [Activity; 11] = [
        Activity::Interrupt,
        Activity::Driver,
        Activity::Protocol,
        Activity::Transmit,
        Activity::Application,
        Activity::Copy,
        Activity::Switch,
        Activity::Misses,
        Activity::LockWait,
        Activity::CardAccess,
        Activity::Idle,
    ];

    /// As it is called in tables.
    pub fn name(self) -> &'static str {
        match self {
            Activity::Interrupt => "interrupt",
            Activity::Driver => "driver",
            Activity::Protocol => "protocol",
            Activity::Transmit => "transmit",
            Activity::Application => "application",
            Activity::Copy => "copy",
            Activity::Switch => "switch",
            Activity::Misses => "misses",
            Activity::LockWait => "lock wait",
            Activity::CardAccess => "card access",
            Activity::Idle => "idle",
        }
    }
}

/// Nanoseconds by [`Activity`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account([u64; Activity::ALL.len()]);

impl Account {
    /// Adds time.
    pub fn add(&mut self, activity: Activity, nanoseconds: u64) {
        self.0[activity as usize] += nanoseconds;
    }

    /// All of it.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The share of an activity, 0 to 1; 0 of an empty account.
    pub fn share(&self, activity: Activity) -> f64 {
        self[activity] as f64 / self.total().max(1) as f64
    }
}

impl Index<Activity> for Account {
    type Output = u64;

    fn index(&self, activity: Activity) -> &u64 {
        &self.0[activity as usize]
    }
}

impl Sub for Account {
    type Output = Account;

    /// What has been added since `earlier`.
    fn sub(self, earlier: Account) -> Account {
        Account(std::array::from_fn(|at| self.0[at] - earlier.0[at]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_activity_has_its_own_place() {
        let mut account = Account::default();
        for (at, activity) in Activity::ALL.into_iter().enumerate() {
            account.add(activity, 1 << at);
        }
        for (at, activity) in Activity::ALL.into_iter().enumerate() {
            assert_eq!(account[activity], 1 << at, "{}", activity.name());
        }
        assert_eq!(account.total(), (1 << Activity::ALL.len()) - 1);
        assert_eq!((account - account).total(), 0);
    }
}
