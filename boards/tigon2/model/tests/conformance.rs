//! `docs/conformance.md` against the sources: a test that it names must exist, must be a
//! test, and must cite the section of the reference that it is named for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// One test named by one row.
#[derive(Debug)]
struct Named {
    section: String,
    path: String,
    test: String,
}

fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo test");
    Path::new(&package).join("../../..")
}

/// The file that a path of the table means.
fn file(path: &str) -> PathBuf {
    match path.split_once('/') {
        Some((part @ ("chip" | "model"), rest)) => root()
            .join("boards/tigon2")
            .join(part)
            .join("src")
            .join(rest),
        _ => root().join(path),
    }
}

fn table() -> Vec<Named> {
    let text = std::fs::read_to_string(root().join("docs/conformance.md")).expect("the table");
    let mut named = Vec::new();
    for line in text.lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [section, _, _, tests] = cells[..] else {
            panic!("a row has four cells: {line}");
        };
        let quoted: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        assert!(
            quoted.len().is_multiple_of(2),
            "paths and names in pairs: {line}"
        );
        for pair in quoted.chunks_exact(2) {
            named.push(Named {
                section: section.to_owned(),
                path: pair[0].to_owned(),
                test: pair[1].to_owned(),
            });
        }
    }
    named
}

/// The comment of each test of a file, by name: all doc comments and attributes directly
/// above a function that has the attribute `#[test]`.
fn tests_of(source: &str) -> BTreeMap<String, String> {
    let mut tests = BTreeMap::new();
    let (mut comment, mut is_test) = (String::new(), false);
    for line in source.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("///") {
            comment.push_str(text);
        } else if line.starts_with("#[") {
            is_test |= line == "#[test]";
        } else {
            let name = line
                .strip_prefix("fn ")
                .and_then(|rest| rest.split_once('(').map(|(name, _)| name));
            if let (Some(name), true) = (name, is_test) {
                tests.insert(name.to_owned(), std::mem::take(&mut comment));
            }
            comment.clear();
            is_test = false;
        }
    }
    tests
}

/// Whether a comment cites a section: behind "Reference" up to the colon, or in parentheses.
fn cites(comment: &str, section: &str) -> bool {
    let section = section.trim_end_matches('b');
    let head = comment.split_once("Reference ").map(|(_, rest)| rest);
    let head = head.and_then(|rest| rest.split(':').next());
    let parentheses = comment
        .split('(')
        .skip(1)
        .filter_map(|rest| rest.split_once(')').map(|(inside, _)| inside));
    head.is_some()
        && head.into_iter().chain(parentheses).any(|text| {
            text.split(|c: char| !c.is_ascii_digit() && c != '.')
                .any(|number| number.trim_end_matches('.') == section)
        })
}

#[test]
fn every_named_test_exists_and_cites_its_section() {
    let mut wrong = Vec::new();
    let table = table();
    assert!(table.len() > 100, "{} tests were found in it", table.len());
    for named in &table {
        let Ok(source) = std::fs::read_to_string(file(&named.path)) else {
            wrong.push(format!("no file {}", named.path));
            continue;
        };
        match tests_of(&source).get(&named.test) {
            None => wrong.push(format!("no test {} in {}", named.test, named.path)),
            Some(comment) if !cites(comment, &named.section) => wrong.push(format!(
                "{} in {} does not cite {}",
                named.test, named.path, named.section
            )),
            Some(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A test of the model that claims a confirmed fact is in the table.
#[test]
fn every_confirmed_fact_that_a_test_of_the_model_cites_is_in_the_table() {
    let table = table();
    let listed: BTreeSet<&str> = table.iter().map(|named| named.test.as_str()).collect();
    let mut missing = Vec::new();
    let mut folders = vec![root().join("boards/tigon2/model/src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let source = std::fs::read_to_string(&path).expect("a source file");
            for (name, comment) in tests_of(&source) {
                let confirmed = comment.contains("(C)") || comment.contains("(C!)");
                if confirmed && !listed.contains(name.as_str()) {
                    missing.push(format!("{name} in {}", path.display()));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn citations_are_whole_numbers_of_sections() {
    assert!(cites("Reference 6.3 and 2.2: text", "2.2"));
    assert!(cites("Reference 6.3: text (10.1, C)", "10.1"));
    assert!(!cites("Reference 10.3: text", "0.3"));
    assert!(!cites("Reference 10.3: text", "10"));
    assert!(!cites("A comment about 10.3", "10.3"));
    let source = "/// Reference 4: a\n#[test]\nfn a() {}\n/// Reference 5: b\nfn b() {}\n";
    let tests = tests_of(source);
    assert_eq!(tests.len(), 1);
    assert!(cites(&tests["a"], "4"));
}
