//! Why an extension is not loaded, or not unloaded.

use crate::link::LinkError;
use crate::policy::PolicyError;
use crate::sign::TrustError;
use crate::verify::Refused;
use host_interface::spine::{DOMAINS, LAYOUT, Outcome};
use thiserror::Error;

/// Why an extension is not loaded.
#[derive(Debug, Error)]
pub enum LoadError<E: std::error::Error> {
    /// The card is gone.
    #[error("the card: {0}")]
    Card(E),
    /// The firmware loads no extensions.
    #[error("the firmware on the card loads no extensions")]
    NoSpine,
    /// The firmware has another layout of its block.
    #[error("the firmware's block has layout {0}, this host knows {LAYOUT}")]
    Layout(u32),
    /// The firmware does not answer.
    #[error("the firmware does not answer")]
    NoAnswer,
    /// The firmware refuses.
    #[error("the firmware refuses: {0:?}")]
    Refused(Outcome),
    /// There are as many domains as there can be.
    #[error("all {DOMAINS} domains are in use")]
    NoDomain,
    /// There is no such domain.
    #[error("domain {0} is not loaded")]
    NotLoaded(u32),
    /// Another domain is linked with it.
    #[error("domain {user} is linked with domain {domain}")]
    Imported {
        /// Which is to be unloaded.
        domain: u32,
        /// Which calls it.
        user: u32,
    },
    /// Words that do not lie in a domain's region.
    #[error("the address is outside the region of domain {0}")]
    OutsideRegion(u32),
    /// More guards, or more comparisons, than there is room for.
    #[error("{count} {what} do not fit: at most {most} do")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many.
        count: usize,
        /// How many fit.
        most: u32,
    },
    /// Wall: who has made it.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// Wall: what the signer may.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// Wall: what it may link with.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// Wall: what it does.
    #[error(transparent)]
    Verify(#[from] Refused),
}
