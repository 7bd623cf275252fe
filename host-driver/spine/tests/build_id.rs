//! Which containers a card may load depends on each file that has made them.

use spine_linker::compile::Compiler;
use std::path::Path;

/// A checkout with a target's description, and these files of the API.
fn checkout(root: &Path, files: &[(&str, &str)]) -> Compiler {
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    };
    write("linker/mips-tigon2-none.json", "{}");
    for (name, text) in files {
        write(&format!("firmware/spine/api/src/{name}"), text);
    }
    Compiler {
        rustc: "rustc".into(),
        linker: "ld.lld".into(),
        root: root.to_owned(),
        target: root.join("target"),
        table: None,
    }
}

#[test]
fn a_change_of_the_api_makes_another_build() {
    let ids = [
        [("lib.rs", "mod model;"), ("model/calls.rs", "fn a() {}")],
        [("lib.rs", "mod model;"), ("model/calls.rs", "fn b() {}")],
        [("lib.rs", "mod  model;"), ("model/calls.rs", "fn a() {}")],
    ]
    .map(|files| {
        let root = tempfile::tempdir().expect("a folder");
        let id = |compiler: Compiler| compiler.build_id().expect("an id");
        let [first, again] = [(); 2].map(|()| id(checkout(root.path(), &files)));
        assert_eq!(first, again);
        first
    });
    assert!(ids[0] != ids[1] && ids[0] != ids[2], "{ids:?}");
}
