//! Which containers a card may load depends on each file that has made them.

use spine_linker::compile::{Compiler, Input, id_of};
use std::path::Path;

/// A checkout with a target's description, and these files of the API.
fn checkout(root: &Path, files: &[(&str, &str)]) -> Compiler {
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    };
    write("linker/mips-tigon2-none.json", "{}");
    write("firmware/spine/text/src/lib.rs", "mod line;");
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

/// The inputs of a checkout with a small API.
fn inputs() -> Vec<Input> {
    let root = tempfile::tempdir().expect("a folder");
    let compiler = checkout(root.path(), &[("lib.rs", "mod model;")]);
    let inputs = compiler.inputs().expect("inputs");
    assert_eq!(compiler.build_id().expect("an id"), id_of(&inputs));
    inputs
}

/// A container that a weaker gate let through, or that was made with other flags, is refused.
#[test]
fn what_judges_and_compiles_a_crate_is_part_of_the_build() {
    let inputs = inputs();
    for (name, words) in [
        ("compiler", "rustc"),
        ("target", "{}"),
        ("spine/lib.rs", "mod model;"),
        ("spine-text/lib.rs", "mod line;"),
        ("compile.rs", "pub extern \\\"C\\\" fn spine_init()"),
        ("compile.rs", "unsafe_code = \\\"forbid\\\""),
        ("compile.rs", "overflow-checks=true"),
        ("compile.rs", "-Cjump-tables=no"),
        ("compile.rs", "--gc-sections"),
        ("compile.rs", "package.{key}"),
        ("compile/inputs.rs", "const SOURCES"),
        ("gate.rs", "symlink_metadata"),
        ("gate/arguments.rs", "const HIDDEN"),
        ("gate/texts.rs", "fn judge_line"),
        ("gate/walk.rs", "const ATTRIBUTES"),
        ("object_file.rs", "R_MIPS_HI16"),
    ] {
        let input = inputs.iter().find(|one| one.name == name);
        let text = String::from_utf8_lossy(&input.expect(name).bytes);
        assert!(text.contains(words), "{name}: {words}");
    }
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs it");
    let sources = Path::new(&folder).join("src");
    for folder in ["gate", "compile"] {
        for file in std::fs::read_dir(sources.join(folder)).expect(folder) {
            let file = file.expect(folder).file_name();
            let name = format!("{folder}/{}", file.display());
            assert!(inputs.iter().any(|one| one.name == name), "{name}");
        }
    }
}

#[test]
fn a_change_of_any_input_makes_another_build() {
    let inputs = inputs();
    let id = id_of(&inputs);
    for index in 0..inputs.len() {
        let name = &inputs[index].name;
        let changed = |change: &dyn Fn(&mut Vec<Input>)| {
            let mut changed = inputs.clone();
            change(&mut changed);
            assert!(id_of(&changed) != id, "{name}");
        };
        changed(&|inputs| inputs[index].bytes[0] ^= 1);
        changed(&|inputs| inputs[index].bytes.push(0));
        changed(&|inputs| inputs[index].name.push('x'));
        changed(&|inputs| drop(inputs.remove(index)));
        changed(&|inputs| {
            let moved = inputs[index].bytes.pop().expect("no empty input");
            let next = (index + 1) % inputs.len();
            inputs[next].bytes.insert(0, moved);
        });
    }
}
