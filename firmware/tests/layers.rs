//! Tests the layers of the firmware: imports go down, never up, and never in a circle.
//!
//! The test reads the sources: each `crate::` path in a file, and each `super::` path in a file
//! that is a module of a layer. `src/lib.rs` has the table of layers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The layers, the lowest first.
const LAYERS: [&str; 6] = ["memory", "io", "record", "control", "path", "sides"];
/// Layers whose modules must not import each other.
const APART: [&str; 2] = ["control", "path"];

/// A module of a layer: the layer and the name.
type Module = (String, String);

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| *layer == name)
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).expect("a folder of sources");
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The names behind each `prefix` in a text: one for `prefix::a`, several for
/// `prefix::{a, b}`.
fn named<'a>(text: &'a str, prefix: &str) -> Vec<&'a str> {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut names = Vec::new();
    for (at, _) in text.match_indices(prefix) {
        let rest = &text[at + prefix.len()..];
        if let Some(list) = rest.strip_prefix('{') {
            let mut depth = 0;
            let mut start = true;
            for (index, c) in list.char_indices() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => start = true,
                    c if start && word(c) => {
                        let end = list[index..].find(|c| !word(c)).unwrap_or(0);
                        names.push(&list[index..index + end]);
                        start = false;
                    }
                    _ => {}
                }
            }
        } else {
            names.push(&rest[..rest.find(|c| !word(c)).unwrap_or(rest.len())]);
        }
    }
    names
}

/// Each module with the modules that it imports.
fn imports() -> BTreeMap<Module, BTreeSet<Module>> {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo test");
    let root = Path::new(&manifest).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut graph = BTreeMap::<Module, BTreeSet<Module>>::new();
    for file in files {
        let inside = file.strip_prefix(&root).expect("a source");
        let parts: Vec<_> = inside.iter().filter_map(|part| part.to_str()).collect();
        let [own, rest @ ..] = parts.as_slice() else {
            continue;
        };
        if layer(own).is_none() || rest == ["mod.rs"] {
            continue;
        }
        let module = rest[0].trim_end_matches(".rs");
        let text = std::fs::read_to_string(&file).expect("a source");
        let code: String = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .collect::<Vec<_>>()
            .join("\n");
        let to = graph.entry(((*own).into(), module.into())).or_default();
        for name in named(&code, "crate::") {
            if layer(name).is_none() {
                to.insert((name.into(), String::new()));
            }
        }
        for target in LAYERS {
            for name in named(&code, &format!("crate::{target}::")) {
                to.insert((target.into(), name.into()));
            }
        }
        if rest.len() == 1 {
            for name in named(&code, "super::") {
                to.insert(((*own).into(), name.into()));
            }
        }
        to.remove(&((*own).to_string(), module.to_string()));
    }
    graph
}

#[test]
fn an_import_goes_down_never_up() {
    let graph = imports();
    assert!(graph.len() > 25, "the modules were not found: {graph:?}");
    for (module, targets) in &graph {
        for target in targets {
            let (own, to) = (layer(&module.0), layer(&target.0));
            assert!(to.is_some() && to <= own, "{module:?} imports {target:?}");
            let apart = APART.contains(&module.0.as_str()) && to == own;
            assert!(!apart, "{module:?} imports its neighbour {target:?}");
        }
    }
}

#[test]
fn no_modules_import_each_other_in_a_circle() {
    let graph = imports();
    for start in graph.keys() {
        let mut seen = BTreeSet::new();
        let mut next: Vec<_> = graph[start].iter().collect();
        while let Some(module) = next.pop() {
            assert_ne!(module, start, "{start:?} imports itself through others");
            if seen.insert(module) {
                next.extend(graph.get(module).into_iter().flatten());
            }
        }
    }
}
