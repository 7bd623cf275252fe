//! Tests the manifests: each dependency and all registry metadata are defined once, in the
//! workspace's.

use std::path::Path;
use testbed::paths;
use toml_edit::{DocumentMut, Item};

fn manifest(folder: &str) -> DocumentMut {
    let path = paths::root().join(folder).join("Cargo.toml");
    let text = std::fs::read_to_string(path).expect(folder);
    text.parse().expect(folder)
}

fn members() -> Vec<String> {
    let root = manifest("");
    let members = root["workspace"]["members"].as_array().expect("members");
    members
        .iter()
        .map(|member| member.as_str().expect("a folder").to_owned())
        .collect()
}

/// The dependencies of a manifest, in all of its tables.
fn dependencies(manifest: &DocumentMut) -> Vec<(String, Item)> {
    fn take(table: &Item, found: &mut Vec<(String, Item)>) {
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let Some(table) = table.get(kind).and_then(Item::as_table_like) else {
                continue;
            };
            found.extend(table.iter().map(|(name, it)| (name.to_owned(), it.clone())));
        }
    }
    let mut found = Vec::new();
    take(manifest.as_item(), &mut found);
    let targets = manifest.get("target").and_then(Item::as_table_like);
    for (_, target) in targets.iter().flat_map(|targets| targets.iter()) {
        take(target, &mut found);
    }
    found
}

/// A version stands in one place, so that an upgrade is one line.
#[test]
fn no_member_names_a_version_or_a_path_of_its_own() {
    let mut seen = 0;
    for folder in members() {
        for (name, dependency) in dependencies(&manifest(&folder)) {
            let inherited = dependency
                .get("workspace")
                .and_then(Item::as_bool)
                .unwrap_or(false);
            assert!(inherited, "{folder}: {name} = {dependency}");
            seen += 1;
        }
    }
    assert!(seen > 100, "{seen}");
}

/// What stands in the workspace's list is used by a member.
#[test]
fn the_workspace_lists_no_dependency_in_vain() {
    let used: Vec<String> = members()
        .iter()
        .flat_map(|folder| dependencies(&manifest(folder)))
        .map(|(name, _)| name)
        .collect();
    let root = manifest("");
    let listed = root["workspace"]["dependencies"].as_table_like();
    for (name, _) in listed.expect("dependencies").iter() {
        // Libraries that are only loaded, by QEMU, are listed for whoever needs them.
        assert!(
            used.iter().any(|it| it == name) || name.starts_with("tigon2-qemu"),
            "{name}"
        );
    }
}

#[test]
fn every_manifest_says_what_a_registry_shows() {
    let root = manifest("");
    let package = &root["workspace"]["package"];
    assert!(
        package["repository"]
            .as_str()
            .expect("an address")
            .starts_with("https://")
    );
    for list in ["keywords", "categories"] {
        let count = package[list].as_array().expect(list).len();
        assert!((1..=5).contains(&count), "{list}: {count}");
    }
    for folder in members() {
        let manifest = manifest(&folder);
        let package = &manifest["package"];
        assert!(package["description"].is_str(), "{folder}");
        for key in ["license", "repository", "keywords", "categories"] {
            assert_eq!(
                package[key]["workspace"].as_bool(),
                Some(true),
                "{folder}: {key}"
            );
        }
        let readme = match package["readme"].as_str() {
            Some(own) => Path::new(&folder).join(own),
            None => root["workspace"]["package"]["readme"]
                .as_str()
                .expect("a page")
                .into(),
        };
        assert!(
            paths::root().join(&readme).is_file(),
            "{folder}: {}",
            readme.display()
        );
    }
}
