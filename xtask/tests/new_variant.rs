//! Tests `cargo xtask new-variant` in a copy of the sources: the variant builds and starts, and
//! every list of variants contains it.

use std::path::Path;
use std::process::{Command, Output};
use testbed::firmware::own;

/// The command in the copy.
fn xtask(root: &Path, words: &[&str]) -> Output {
    Command::new(std::env::var_os("CARGO_BIN_EXE_xtask").expect("cargo test"))
        .args(words)
        .env("TIGON_ROOT", root)
        .env("CARGO_TARGET_DIR", root.join("target"))
        .env_remove("TIGON_VARIANT")
        .output()
        .expect("it starts")
}

fn said(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|said| String::from_utf8_lossy(said));
    format!("{out}{err}")
}

#[test]
fn a_new_variant_builds_and_starts_and_is_listed() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    testbed::paths::copy_sources(root).expect("a copy");
    testbed::paths::share_target(root).expect("room");
    let manifest = root.join("firmware/Cargo.toml");
    let before = std::fs::read_to_string(&manifest).expect("the manifest");

    for (name, reason) in [
        ("Mine", "small letters"),
        ("9lives", "a letter first"),
        ("../mine", "small letters"),
        ("a-name-that-is-much-too-long", "at most 24"),
        ("boot", "something else"),
        ("parallel", "already"),
        ("mine-sram-code", "another variant"),
    ] {
        let refused = xtask(root, &["new-variant", name]);
        assert!(!refused.status.success(), "{name}");
        let said = said(&refused);
        assert!(
            said.starts_with("error: ") && said.contains(reason),
            "{name}: {said}"
        );
    }
    let after = std::fs::read_to_string(&manifest).expect("the manifest");
    assert_eq!(before, after, "nothing was changed for those");

    let made = xtask(root, &["new-variant", "count-arp", "--from", "parallel"]);
    assert!(made.status.success(), "{}", said(&made));
    assert!(
        said(&made).contains("starts on the card"),
        "{}",
        said(&made)
    );
    let after = std::fs::read_to_string(&manifest).expect("the manifest");
    for line in before.lines() {
        assert!(after.contains(line), "{line}");
    }
    let listed = own::listed(&after).expect("TOML");
    let names: Vec<(&str, &str)> = listed
        .iter()
        .map(|own| (own.name.as_str(), own.from.as_str()))
        .collect();
    let made = ["eudp", "spine", "count-arp"];
    assert_eq!(names, made.map(|name| (name, "parallel")));

    // Every command takes it, and it runs.
    let run = [
        "--variant",
        "count-arp",
        "sim-run",
        "--count",
        "3",
        "--seconds",
        "1",
    ];
    let run = xtask(root, &run);
    assert!(run.status.success(), "{}", said(&run));
    let twice = xtask(root, &["new-variant", "count-arp"]);
    assert!(said(&twice).contains("there is a variant count-arp already"));
}
