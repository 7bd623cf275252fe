//! What an application may have, by its user.
//!
//! ```toml
//! applications = 64          # at the same time, of all users
//!
//! [usual]                    # what a user has that is not named below
//! sockets = 1024
//!
//! [user.1000]                # in place of the usual
//! sockets = 16384
//! buffers = 4294967296
//! ```

use std::collections::HashMap;
use std::path::Path;

use dti::layout::{EVENT_QUEUES, Sizes};
use serde::Deserialize;
use thiserror::Error;

/// What an application may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// The largest queues and pools.
    pub sizes: Sizes,
    /// Bytes of all connection buffers.
    pub buffers: u64,
    /// Registered regions.
    pub regions: u32,
    /// Bytes of its own memory files in regions.
    pub files: u64,
    /// Connections that may be half open at each of its listening sockets, and as many that wait.
    pub half_open: u32,
    /// Attachments of a user.
    pub attachments: usize,
}

impl Default for Quota {
    fn default() -> Self {
        Self {
            sizes: Sizes {
                work: 1 << 16,
                events: 1 << 17,
                pool: 1 << 30,
                sockets: 1 << 16,
                queues: EVENT_QUEUES,
                depth: 1 << 10,
                anonymous: 1 << 21,
                chosen: 1 << 16,
            },
            buffers: 4 << 30,
            regions: 1 << 16,
            files: 1 << 30,
            half_open: 4096,
            attachments: 64,
        }
    }
}

/// Quotas of all users.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Quotas {
    /// Applications at the same time.
    pub applications: Option<usize>,
    usual: Quota,
    users: HashMap<u32, Quota>,
}

/// Why a file of quotas is none.
#[derive(Debug, Error)]
pub enum QuotaError {
    /// It cannot be read.
    #[error("the file cannot be read: {0}")]
    Read(#[from] std::io::Error),
    /// It is not TOML, or has an unknown key.
    #[error(transparent)]
    Text(#[from] toml::de::Error),
    /// A user's number is none.
    #[error("[user.{0}]: a user must be a number")]
    User(String),
}

impl Quotas {
    /// The same for all.
    #[must_use]
    pub fn equal(usual: Quota) -> Self {
        Self {
            usual,
            ..Self::default()
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`QuotaError`].
    pub fn read(path: &Path) -> Result<Self, QuotaError> {
        Self::of_text(&std::fs::read_to_string(path)?)
    }

    /// Reads a file's text.
    ///
    /// # Errors
    /// [`QuotaError`].
    pub fn of_text(text: &str) -> Result<Self, QuotaError> {
        let file: File = toml::from_str(text)?;
        let usual = file.usual.over(Quota::default());
        let users = file.user.into_iter().map(|(user, limits)| {
            let number = user.parse().map_err(|_| QuotaError::User(user))?;
            Ok((number, limits.over(usual)))
        });
        Ok(Self {
            applications: file.applications,
            usual,
            users: users.collect::<Result<_, QuotaError>>()?,
        })
    }

    /// What an application of a user may have.
    #[must_use]
    pub fn of(&self, user: u32) -> Quota {
        self.users.get(&user).copied().unwrap_or(self.usual)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    applications: Option<usize>,
    #[serde(default)]
    usual: Limits,
    #[serde(default)]
    user: HashMap<String, Limits>,
}

/// The limits that a file names.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Limits {
    work: Option<u32>,
    events: Option<u32>,
    pool: Option<u32>,
    sockets: Option<u32>,
    queues: Option<u32>,
    depth: Option<u32>,
    anonymous: Option<u32>,
    chosen: Option<u32>,
    buffers: Option<u64>,
    regions: Option<u32>,
    files: Option<u64>,
    half_open: Option<u32>,
    attachments: Option<usize>,
}

impl Limits {
    /// These, and others for what is not named.
    fn over(&self, other: Quota) -> Quota {
        let sizes = other.sizes;
        Quota {
            sizes: Sizes {
                work: self.work.unwrap_or(sizes.work),
                events: self.events.unwrap_or(sizes.events),
                pool: self.pool.unwrap_or(sizes.pool),
                sockets: self.sockets.unwrap_or(sizes.sockets),
                queues: self.queues.unwrap_or(sizes.queues),
                depth: self.depth.unwrap_or(sizes.depth),
                anonymous: self.anonymous.unwrap_or(sizes.anonymous),
                chosen: self.chosen.unwrap_or(sizes.chosen),
            },
            buffers: self.buffers.unwrap_or(other.buffers),
            regions: self.regions.unwrap_or(other.regions),
            files: self.files.unwrap_or(other.files),
            half_open: self.half_open.unwrap_or(other.half_open),
            attachments: self.attachments.unwrap_or(other.attachments),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_its_own_and_the_usual_for_what_is_not_named() {
        let text = "applications = 3\n[usual]\nsockets = 10\n[user.1000]\nregions = 2\n";
        let quotas = Quotas::of_text(text).expect("quotas");
        assert_eq!(quotas.applications, Some(3));
        assert_eq!(quotas.of(0).sizes.sockets, 10);
        assert_eq!(quotas.of(0).regions, Quota::default().regions);
        let own = quotas.of(1000);
        assert_eq!((own.sizes.sockets, own.regions), (10, 2));
    }

    #[test]
    fn what_is_not_known_is_an_error() {
        assert!(matches!(
            Quotas::of_text("[user.root]\n"),
            Err(QuotaError::User(_))
        ));
        for wrong in ["[usual]\nscokets = 1\n", "[usual]\nsockets = -1\n", "usual"] {
            let read = Quotas::of_text(wrong);
            assert!(matches!(read, Err(QuotaError::Text(_))), "{wrong}");
        }
    }
}
