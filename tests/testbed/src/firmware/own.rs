//! Reads the variants that a developer has added from `firmware/Cargo.toml`.
//!
//! A variant is a binary of the firmware and a feature of the same name, whose first feature is
//! the variant that it is based on. No other list exists: every variant found is built, run and
//! measured.

use crate::paths;
use anyhow::{Context, Result};
use std::sync::OnceLock;
use toml_edit::{DocumentMut, Item};

/// The variants of this project, which every other one is made from.
const FIRST: [&str; 2] = ["uniprocessor", "parallel"];
/// Those for a board beyond the chip, which no other board runs.
const BEYOND: [&str; 2] = ["by-handler", "by-packet"];

/// A variant that a developer has added.
#[derive(Debug, PartialEq, Eq)]
pub struct Own {
    /// Name of its binary and of its feature.
    pub name: String,
    /// Name of the variant that it is made from.
    pub from: String,
}

impl Own {
    /// Whether it is for a board beyond the chip.
    pub fn is_beyond(&self) -> bool {
        BEYOND.contains(&self.name.as_str())
    }

    /// Whether the handlers are divided between both CPUs.
    pub fn is_parallel(&self) -> bool {
        self.is_made_from(FIRST[1])
    }

    /// Whether it is made from that variant, directly or by way of others.
    pub fn is_made_from(&self, name: &str) -> bool {
        let mut from = self.from.as_str();
        // Each is made from one that was there before, so this ends.
        for _ in all() {
            if from == name {
                break;
            }
            match all().iter().find(|own| own.name == from) {
                Some(own) => from = &own.from,
                None => break,
            }
        }
        from == name
    }
}

/// The firmware of a board beyond the chip: by handler, by packet.
pub fn beyond() -> &'static [Own] {
    static ALL: OnceLock<Vec<Own>> = OnceLock::new();
    ALL.get_or_init(|| {
        let made = BEYOND.map(|name| Own {
            name: name.to_owned(),
            from: FIRST[1].to_owned(),
        });
        made.into()
    })
}

/// All of them, as they were when this was first asked. None if there is no manifest to
/// read: the first command that builds something says why.
pub fn all() -> &'static [Own] {
    static ALL: OnceLock<Vec<Own>> = OnceLock::new();
    ALL.get_or_init(|| {
        manifest()
            .and_then(|text| listed(&text))
            .unwrap_or_default()
    })
}

/// The text of the firmware's manifest.
///
/// # Errors
/// If it cannot be read.
pub fn manifest() -> Result<String> {
    let path = paths::find()?.join("firmware/Cargo.toml");
    std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// The variants that a manifest has besides the first ones.
///
/// # Errors
/// If it is no TOML.
pub fn listed(manifest: &str) -> Result<Vec<Own>> {
    let manifest: DocumentMut = manifest.parse().context("firmware/Cargo.toml")?;
    let binaries = manifest.get("bin").and_then(Item::as_array_of_tables);
    let names = binaries.into_iter().flatten().filter_map(|binary| {
        let name = binary.get("name")?.as_str()?;
        (!FIRST.contains(&name)).then_some(name)
    });
    let own = names.filter_map(|name| {
        let from = manifest.get("features")?.get(name)?.as_array()?.get(0)?;
        Some(Own {
            name: name.to_owned(),
            from: from.as_str()?.to_owned(),
        })
    });
    Ok(own.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_is_a_binary_with_a_feature() {
        let text = "[features]\nparallel = []\nmine = [\"parallel\"]\nother = []\n\
            [[bin]]\nname = \"parallel\"\n[[bin]]\nname = \"mine\"\n[[bin]]\nname = \"tool\"\n";
        let own = listed(text).expect("TOML");
        let mine = Own {
            name: "mine".into(),
            from: "parallel".into(),
        };
        assert_eq!(own, [mine]);
        assert!(own[0].is_parallel());
        assert!(listed("[").is_err());
    }

    #[test]
    fn a_variant_is_made_from_all_that_are_before_it() {
        let mine = Own {
            name: "mine".into(),
            from: "eudp".into(),
        };
        assert!(mine.is_made_from("eudp") && mine.is_made_from("parallel"));
        assert!(!mine.is_made_from("spine") && !mine.is_made_from("uniprocessor"));
    }

    #[test]
    fn the_project_has_none_of_its_own() {
        let text = manifest().expect("the manifest");
        for first in FIRST {
            assert!(text.contains(&format!("name = {first:?}")), "{first}");
        }
    }
}
