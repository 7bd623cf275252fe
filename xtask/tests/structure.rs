//! Tests the structure of the commands: xtask above the benches, these above the testbed (Cargo
//! ensures that), no modules that import each other in a circle, and a thin xtask.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use testbed::paths;

/// Where the three crates have their sources, with the least number of modules in each.
const CRATES: [(&str, usize); 3] = [
    ("tests/testbed/src", 15),
    ("tests/bench/src", 10),
    ("xtask/src", 10),
];
/// Lines of xtask, with its unit tests: its verbs, and nothing that they start or measure.
const THIN: usize = 4000;

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The modules behind each `crate::` of a text: one, or those of a list.
fn imported(code: &str) -> Vec<String> {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let first = |text: &str| text.chars().take_while(|c| word(*c)).collect::<String>();
    let mut names = Vec::new();
    for (at, prefix) in code.match_indices("crate::") {
        // Not the end of another name.
        if code[..at].ends_with(word) {
            continue;
        }
        let rest = &code[at + prefix.len()..];
        let Some(list) = rest.strip_prefix('{') else {
            names.push(first(rest));
            continue;
        };
        let mut depth = 0;
        let mut flat = String::new();
        for c in list.chars() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                c if depth == 0 => flat.push(c),
                _ => {}
            }
        }
        names.extend(flat.split(',').map(|name| first(name.trim())));
    }
    names.retain(|name| !name.is_empty());
    names
}

/// Each module right below a crate's root with those that it imports.
fn imports(folder: &str) -> BTreeMap<String, BTreeSet<String>> {
    let root = paths::root().join(folder);
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut graph = BTreeMap::<String, BTreeSet<String>>::new();
    for file in files {
        let inside = file.strip_prefix(&root).expect("a source");
        let module = inside.iter().next().and_then(|part| part.to_str());
        let module = module.expect("a name").trim_end_matches(".rs").to_owned();
        let text = std::fs::read_to_string(&file).expect("a source");
        let is_code = |line: &&str| !line.trim_start().starts_with("//");
        let code = text.lines().filter(is_code).collect::<Vec<_>>().join("\n");
        let targets = graph.entry(module.clone()).or_default();
        targets.extend(imported(&code).into_iter().filter(|it| *it != module));
    }
    graph
}

#[test]
fn lists_and_single_names_are_read() {
    let code =
        "use crate::a;\nuse crate::{\n    b, c::{d, e},\n    f::g,\n};\nlet x = crate::h::i();";
    assert_eq!(imported(code), ["a", "b", "c", "f", "h"]);
}

#[test]
fn no_modules_import_each_other_in_a_circle() {
    for (folder, least) in CRATES {
        let graph = imports(folder);
        assert!(graph.len() >= least, "{folder}: not found: {graph:?}");
        for start in graph.keys() {
            let mut seen = BTreeSet::new();
            let mut next: Vec<_> = graph[start].iter().collect();
            while let Some(module) = next.pop() {
                assert_ne!(module, start, "{folder}: {start} imports itself by others");
                if seen.insert(module) {
                    next.extend(graph.get(module).into_iter().flatten());
                }
            }
        }
    }
}

#[test]
fn xtask_is_thin() {
    let mut files = Vec::new();
    sources(&paths::root().join("xtask/src"), &mut files);
    let lines = |file: &PathBuf| {
        let text = std::fs::read_to_string(file).expect("a source");
        text.lines().count()
    };
    let lines: usize = files.iter().map(lines).sum();
    assert!((1..THIN).contains(&lines), "{lines} lines");
}
