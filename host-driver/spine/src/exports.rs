//! Procedures that loaded extensions export to others.
//!
//! Paper, section 3.3.3: an extension's domain may be linked with as one of the runtime's. The host
//! knows the names; on the card a procedure has a number, and a word says which domains' procedures
//! a domain may call. What others are linked with stays loaded as long as they do.

use host_interface::spine::DOMAINS;

/// A procedure that a loaded extension exports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// Its name: the extension's, a dot, its own.
    pub name: String,
    /// The number of the domain.
    pub domain: u32,
    /// Bytes of stack that it needs at most.
    pub stack: u32,
}

/// What loaded extensions export, and who is linked with whom.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exports {
    exported: Vec<Exported>,
    /// By domain: the domains whose procedures it may call, a bit for each.
    may_call: [u32; DOMAINS as usize],
}

impl Exports {
    /// All of them, by when their extensions were loaded.
    pub fn all(&self) -> &[Exported] {
        &self.exported
    }

    /// A domain is loaded.
    pub fn add(&mut self, domain: u32, exported: impl Iterator<Item = Exported>, may_call: u32) {
        self.exported.extend(exported);
        if let Some(word) = self.may_call.get_mut(domain as usize) {
            *word = may_call;
        }
    }

    /// A domain is unloaded.
    pub fn remove(&mut self, domain: u32) {
        self.exported.retain(|one| one.domain != domain);
        if let Some(word) = self.may_call.get_mut(domain as usize) {
            *word = 0;
        }
    }

    /// The first domain that is linked with one.
    pub fn user_of(&self, domain: u32) -> Option<u32> {
        let mut rows = (0..).zip(&self.may_call);
        let found = rows.find(|(_, may_call)| *may_call >> domain & 1 != 0);
        found.map(|(user, _)| user)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_are_linked_with_is_known_until_they_go() {
        let mut exports = Exports::default();
        let sum = Exported {
            name: "numbers.sum".to_owned(),
            domain: 2,
            stack: 16,
        };
        exports.add(2, [sum.clone()].into_iter(), 0);
        assert_eq!((exports.all(), exports.user_of(2)), (&[sum][..], None));
        exports.add(3, [].into_iter(), 1 << 2);
        assert_eq!((exports.user_of(2), exports.user_of(3)), (Some(3), None));
        exports.remove(3);
        assert_eq!(exports.user_of(2), None);
        exports.remove(2);
        assert_eq!(exports.all(), []);
    }
}
