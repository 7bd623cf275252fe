//! Tests the layers of the firmware: imports go down, never up, and never in a circle, neither of
//! modules of layers nor of files.
//!
//! The tests read the sources. For the layers they take each `crate::` path in a file, and each
//! `super::` path in a file that is a module of a layer; `src/lib.rs` has the table of layers. For
//! the files they take every path that begins with `crate`, `super`, or a child module's name.

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

/// The parts of a module's path: `["path", "receive", "frame"]`.
type Parts = Vec<String>;

/// The text of each module but tests, by its path.
fn files() -> BTreeMap<Parts, String> {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo test");
    let root = Path::new(&manifest).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut modules = BTreeMap::new();
    for file in files {
        let inside = file.strip_prefix(&root).expect("a source");
        let inside = inside.with_extension("");
        let mut parts: Parts = inside
            .iter()
            .filter_map(|part| Some(part.to_str()?.to_owned()))
            .collect();
        if ["mod", "lib"].contains(&parts.last().map_or("", String::as_str)) {
            parts.pop();
        }
        if parts
            .iter()
            .any(|part| ["bin", "tests"].contains(&part.as_str()))
        {
            continue;
        }
        let text = std::fs::read_to_string(&file).expect("a source");
        let code = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        modules.insert(parts, code.collect::<Vec<_>>().join("\n"));
    }
    modules
}

/// All paths at the start of a text that begins with a name, with those in braces written out.
fn paths(text: &str) -> Vec<Parts> {
    let mut found = Vec::new();
    let mut path = Parts::new();
    let mut rest = text;
    loop {
        let end = rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        path.push(rest[..end].to_owned());
        let Some(behind) = rest[end..].strip_prefix("::") else {
            break;
        };
        rest = behind;
        let Some(list) = rest.strip_prefix('{') else {
            continue;
        };
        let (mut depth, mut start) = (0, true);
        for (index, c) in list.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => return found,
                '}' => depth -= 1,
                ',' if depth == 0 => start = true,
                c if start && (c.is_alphanumeric() || c == '_') => {
                    let inner = paths(&list[index..]);
                    found.extend(
                        inner
                            .into_iter()
                            .map(|inner| [path.clone(), inner].concat()),
                    );
                    start = false;
                }
                _ => {}
            }
        }
        break;
    }
    found.push(path);
    found
}

/// The modules that the code of `own` names.
fn named_modules(own: &Parts, code: &str, all: &BTreeMap<Parts, String>) -> BTreeSet<Parts> {
    let children = all
        .keys()
        .filter(|key| key.len() == own.len() + 1 && key.starts_with(own));
    let mut first: Vec<&str> = children.map(|child| child[own.len()].as_str()).collect();
    first.extend(["crate", "super", "self"]);
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = BTreeSet::new();
    for name in first {
        for (at, _) in code.match_indices(&format!("{name}::")) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| word(c) || c == ':') {
                continue;
            }
            for path in paths(&code[at..]) {
                let mut module = own.clone();
                for part in &path {
                    match part.as_str() {
                        "crate" => module.clear(),
                        "super" => drop(module.pop()),
                        "self" => {}
                        part => {
                            module.push(part.to_owned());
                            if !all.contains_key(&module) {
                                module.pop();
                                break;
                            }
                        }
                    }
                }
                found.insert(module);
            }
        }
    }
    // A module and those around it are one house; the crate's root only declares the layers.
    found.retain(|module| !own.starts_with(module));
    found
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let files = files();
    assert!(files.len() > 100, "the modules were not found: {files:?}");
    let graph: BTreeMap<&Parts, BTreeSet<Parts>> = files
        .iter()
        .map(|(own, code)| (own, named_modules(own, code, &files)))
        .collect();
    let receive = ["path", "receive", "handlers"].map(String::from).to_vec();
    let deliver = ["path", "receive", "deliver"].map(String::from).to_vec();
    assert!(
        graph[&receive].contains(&deliver),
        "paths are not understood"
    );
    let mut circles = Vec::new();
    for start in graph.keys() {
        let mut seen = BTreeSet::new();
        let mut next: Vec<_> = graph[*start].iter().collect();
        while let Some(module) = next.pop() {
            if module == *start {
                circles.push(start.join("::"));
                break;
            }
            if seen.insert(module) {
                next.extend(graph.get(module).into_iter().flatten());
            }
        }
    }
    assert!(
        circles.is_empty(),
        "these import themselves through others: {circles:#?}"
    );
}
