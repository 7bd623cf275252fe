//! Tests that a function of the firmware that is longer than a screen says why it is one function.
//!
//! The test reads the sources: a function ends at the first line that closes a block at its own
//! indentation. One of more than [`LONGEST`] lines has a reason in its documentation, with the
//! words "one function".

use std::path::{Path, PathBuf};

/// Lines of a function that need no reason.
const LONGEST: usize = 80;

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

/// The name of the function that a line begins, if it begins one.
fn begun(line: &str) -> Option<&str> {
    let (before, name) = line.split_once("fn ")?;
    let words = before.split_whitespace();
    let known = |word: &str| {
        word.starts_with("pub") || ["const", "unsafe", "extern", "\"C\""].contains(&word)
    };
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    words.into_iter().all(known).then(|| &name[..end])
}

/// Name, lines and documentation of each function in a text.
fn functions(text: &str) -> Vec<(&str, usize, String)> {
    let lines: Vec<_> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = begun(line) else { continue };
        let indentation = &line[..line.len() - line.trim_start().len()];
        let (brace, end) = (format!("{indentation}}}"), format!("{indentation})"));
        let closes =
            |line: &&str| line.starts_with(&brace) || line.starts_with(&end) && line.ends_with(';');
        if line.ends_with(['}', ';']) {
            found.push((name, 1, String::new()));
            continue;
        }
        let length = lines[at..].iter().take_while(|line| !closes(line)).count() + 1;
        let above = lines[..at].iter().rev().map(|line| line.trim_start());
        let docs = above.take_while(|line| line.starts_with("///") || line.starts_with("#["));
        let mut docs: Vec<_> = docs
            .map(|line| line.trim_start_matches('/').trim())
            .collect();
        docs.reverse();
        found.push((name, length, docs.join(" ")));
    }
    found
}

#[test]
fn a_long_function_says_why_it_is_one() {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo test");
    let mut files = Vec::new();
    sources(&Path::new(&manifest).join("src"), &mut files);
    let mut long = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a source");
        for (name, lines, docs) in functions(&text) {
            if lines > LONGEST {
                let reason = docs.to_lowercase().contains("one function");
                assert!(
                    reason,
                    "{}: {name} has {lines} lines: {docs}",
                    file.display()
                );
                long += 1;
            }
        }
    }
    assert!(long > 3, "the paths' loops were not found: {long}");
}

#[test]
fn functions_are_found_with_their_length_and_documentation() {
    let text = "/// Does it.\n/// One function.\n#[inline]\npub(super) fn long<B>(\n    a: u32,\n) -> u32 {\n    a\n}\n\nfn short() {}\n";
    let (long, short) = (
        ("long", 5, "Does it. One function. #[inline]"),
        ("short", 1, ""),
    );
    let found = functions(text);
    let found: Vec<_> = found.iter().map(|(n, l, d)| (*n, *l, d.as_str())).collect();
    assert_eq!(found, [long, short]);
}
