//! Who may link with what: the policy file.
//!
//! Logical protection domains (paper, section 3.3.3): a domain is a set of interfaces, and an
//! extension is linked with those of the domains that its signer is granted, and no others.
//!
//! ```toml
//! build = "0c4e..."               # 32 hexadecimal digits: compiler, API and gate to trust
//! floor = 20000                   # an emulated card: microseconds that each run has at least
//!
//! [[signer]]
//! key = "3f2a..."                 # 64 hexadecimal digits, Ed25519
//! domains = ["spine.runtime", "spine.network", "spine.counter"]
//! grade = "language"              # the least that its containers must have
//! watchdog = 10                   # microseconds that a run may take
//! patience = 3                    # runs in a row that may be cut off
//! region = 4096                   # bytes of statics
//! memory = 16384                  # bytes of text, constants and statics
//! stack = 256                     # bytes that a handler may need
//! priority = 10                   # guards of a higher one are asked first; 0 by default
//! guards = ["udp:4000-4999"]      # which frames its handlers may get, see `guard::GuardGrant`
//! leases = [{ address = 0xD0000000, bytes = 0x400000 }] # of the bus, to write to; none by default
//! screen = 0x400000               # bytes of the driver's memory, to write to; none by default
//! ```

use crate::guard::{GuardGrant, GuardText, NoGuard};
use host_interface::extension::Reserved;
use serde::Deserialize;
use spine_image::Grade;
use spine_image::format::ZEROS_MAX;
use std::ops::Range;
use thiserror::Error;

/// Microseconds that a floor may have.
const FLOOR_MOST: u32 = 1_000_000;

/// Why a policy is refused, or refuses.
#[derive(Debug, Error)]
pub enum PolicyError {
    /// The file is not one.
    #[error("the policy: {0}")]
    File(#[from] toml::de::Error),
    /// A key that is none.
    #[error("signer {index}: {text} is no key of 64 hexadecimal digits")]
    Key {
        /// Which signer.
        index: usize,
        /// What stands there.
        text: String,
    },
    /// A build that is none.
    #[error("{0} is no build of 32 hexadecimal digits")]
    Build(String),
    /// The file names none.
    #[error("the policy names no build of compiler and API to trust")]
    NoBuild,
    /// A value that the card cannot keep to.
    #[error("signer {index}: {what} is {value}, but must be from {least} to {most}")]
    Value {
        /// Which signer.
        index: usize,
        /// What of it.
        what: &'static str,
        /// Its value.
        value: u32,
        /// The least.
        least: u32,
        /// The most.
        most: u32,
    },
    /// A floor above a second.
    #[error("the floor is {value} us, but at most {most} are allowed", most = FLOOR_MOST)]
    Floor {
        /// What stands there.
        value: u32,
    },
    /// Nobody by that key may load anything.
    #[error("the policy grants nothing to the signer {0}")]
    UnknownSigner(String),
    /// What stands for a guard is none.
    #[error("signer {index}: {reason}")]
    GuardText {
        /// Which signer.
        index: usize,
        /// What stands there.
        reason: NoGuard,
    },
    /// The signer's extensions may not write there.
    #[error("the policy does not grant the signer a lease of {1} bytes at {0:#x}")]
    Lease(u64, u32),
    /// The signer's extensions get a smaller screen, or none.
    #[error("the policy does not grant the signer a screen of {0} bytes")]
    Screen(u32),
    /// The signer may not install this guard.
    #[error("the policy does not grant the signer the guard {0}")]
    Guard(String),
    /// The container has another grade.
    #[error("the signer's containers need grade {needs:?}, this one has {has:?}")]
    Grade {
        /// What the policy wants.
        needs: Grade,
        /// What the container has.
        has: Grade,
    },
}

/// The grades, as the file names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum GradeName {
    #[default]
    Language,
    Sandbox,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SignerEntry {
    key: String,
    domains: Vec<String>,
    #[serde(default)]
    grade: GradeName,
    watchdog: u32,
    #[serde(default)]
    patience: u32,
    region: u32,
    memory: u32,
    stack: u32,
    #[serde(default)]
    priority: u32,
    #[serde(default)]
    guards: Vec<String>,
    #[serde(default)]
    leases: Vec<LeaseEntry>,
    #[serde(default)]
    screen: u32,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LeaseEntry {
    address: u64,
    bytes: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyFile {
    build: Option<String>,
    #[serde(default)]
    floor: u32,
    #[serde(default)]
    signer: Vec<SignerEntry>,
}

/// What a signer may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Whose.
    pub key: [u8; 32],
    /// Domains that its extensions are linked with.
    pub domains: Vec<String>,
    /// The grade that its containers must have.
    pub grade: Grade,
    /// Microseconds that a run may take.
    pub watchdog: u32,
    /// Runs in a row that may be cut off; 0 for any number.
    pub patience: u32,
    /// Bytes of statics.
    pub region: u32,
    /// Bytes in the arena.
    pub memory: u32,
    /// Bytes of stack.
    pub stack: u32,
    /// Frames are held against the guards of its extensions before those of a lower one.
    pub priority: u32,
    /// Guards that its extensions may have.
    pub guards: Vec<GuardGrant>,
    /// Ranges of the bus that its extensions may be leased.
    pub leases: Vec<Range<u64>>,
    /// Bytes of the driver's memory that its extensions may be leased, as a screen of a process's.
    pub screen: u32,
}

impl Grant {
    /// Judges guards of an extension.
    ///
    /// # Errors
    /// [`PolicyError::Guard`].
    pub fn judge(&self, guards: &[GuardText]) -> Result<(), PolicyError> {
        let granted = |guard: &&GuardText| self.guards.iter().any(|grant| grant.covers(guard));
        match guards.iter().find(|guard| !granted(guard)) {
            Some(guard) => Err(PolicyError::Guard(guard.to_string())),
            None => Ok(()),
        }
    }
}

/// All grants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    grants: Vec<Grant>,
    build: Option<[u8; 16]>,
    floor: u32,
}

impl Policy {
    /// From the text of a policy file.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str) -> Result<Policy, PolicyError> {
        let file: PolicyFile = toml::from_str(text)?;
        if file.floor > FLOOR_MOST {
            let value = file.floor;
            return Err(PolicyError::Floor { value });
        }
        let signers = file.signer.into_iter().enumerate();
        let grants = signers.map(|(index, entry)| grant(index, entry));
        let grants = grants.collect::<Result<_, _>>()?;
        let build = file.build.map(|digits| {
            let bytes = crate::sign::bytes_of_digits(&digits);
            bytes.ok_or(PolicyError::Build(digits))
        });
        Ok(Policy {
            grants,
            build: build.transpose()?,
            floor: file.floor,
        })
    }

    /// The build of compiler, API and gate whose containers are trusted, if the file names it.
    pub fn build(&self) -> Option<&[u8; 16]> {
        self.build.as_ref()
    }

    /// Microseconds that each run on the card has at least, whatever a grant says: 0 on the chip.
    pub const fn floor(&self) -> u32 {
        self.floor
    }

    /// What a signer may do with a container of a grade.
    ///
    /// # Errors
    /// [`PolicyError::UnknownSigner`], [`PolicyError::Grade`].
    pub fn grant(&self, signer: &[u8; 32], grade: Grade) -> Result<&Grant, PolicyError> {
        let found = self.grants.iter().find(|grant| grant.key == *signer);
        let Some(found) = found else {
            let digits = signer.iter().map(|byte| format!("{byte:02x}"));
            return Err(PolicyError::UnknownSigner(digits.collect()));
        };
        if grade < found.grade {
            return Err(PolicyError::Grade {
                needs: found.grade,
                has: grade,
            });
        }
        Ok(found)
    }
}

/// Bytes that a card has for all extensions, at most: what the host may reserve, and 64 KB for the
/// arena that there is anyway.
pub const MEMORY_MOST: u32 = (Reserved::MOST as u32 + 64) << 10;
// An image may have as much.
const _: () = assert!(MEMORY_MOST <= ZEROS_MAX);

fn grant(index: usize, entry: SignerEntry) -> Result<Grant, PolicyError> {
    let key = crate::sign::key_bytes(&entry.key).ok_or_else(|| PolicyError::Key {
        index,
        text: entry.key.clone(),
    })?;
    for (what, value, least, most) in [
        ("watchdog", entry.watchdog, 10, 255),
        ("stack", entry.stack, 0, 1024),
        ("memory", entry.memory, 0, MEMORY_MOST),
        ("region", entry.region, 0, MEMORY_MOST),
    ] {
        if !(least..=most).contains(&value) {
            return Err(PolicyError::Value {
                index,
                what,
                value,
                least,
                most,
            });
        }
    }
    let guards = entry.guards.iter().map(|text| text.parse());
    let leases = entry.leases.iter();
    let leases = leases.map(|lease| {
        let end = lease.address.saturating_add(lease.bytes.into());
        lease.address..end
    });
    Ok(Grant {
        key,
        domains: entry.domains,
        grade: match entry.grade {
            GradeName::Language => Grade::Language,
            GradeName::Sandbox => Grade::Sandbox,
        },
        watchdog: entry.watchdog,
        patience: entry.patience,
        region: entry.region,
        memory: entry.memory,
        stack: entry.stack,
        priority: entry.priority,
        leases: leases.collect(),
        screen: entry.screen,
        guards: guards
            .collect::<Result<_, _>>()
            .map_err(|reason| PolicyError::GuardText { index, reason })?,
    })
}
