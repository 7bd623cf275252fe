//! The page of the book that links to the pages of the crates.

use anyhow::{Context, Result};
use std::fmt::Write;
use testbed::paths;
use toml_edit::DocumentMut;

/// A row for each crate of the workspace that is a library: its name, which leads to its
/// pages, where it lies, and what its manifest says of it.
///
/// # Errors
/// If a manifest cannot be read.
pub fn page() -> Result<String> {
    let mut page = String::from(
        "# The crates\n\nMade by `cargo xtask doc` from the sources.\n\n\
         | crate | folder | what |\n| --- | --- | --- |\n",
    );
    for folder in members()? {
        let root = paths::root().join(&folder);
        if !root.join("src/lib.rs").is_file() {
            continue;
        }
        let manifest = read(&format!("{folder}/Cargo.toml"))?;
        let word = |name: &str| manifest["package"][name].as_str().unwrap_or_default();
        let name = word("name");
        // The book is beside them.
        let place = name.replace('-', "_");
        // Writing to a string does not fail.
        let _ = writeln!(
            page,
            "| [{name}](../{place}/index.html) | `{folder}` | {} |",
            word("description")
        );
    }
    Ok(page)
}

fn members() -> Result<Vec<String>> {
    let manifest = read("Cargo.toml")?;
    let members = manifest["workspace"]["members"].as_array();
    let members = members.context("Cargo.toml names no members")?;
    let names = members.iter().filter_map(|member| member.as_str());
    Ok(names.map(str::to_owned).collect())
}

fn read(name: &str) -> Result<DocumentMut> {
    let path = paths::root().join(name);
    let text =
        std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    text.parse().with_context(|| name.to_owned())
}
