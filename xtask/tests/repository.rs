//! Tests the files that visitors of a repository expect: citation, continuous integration, a
//! container, editor tasks, references.

use serde_json::Value;
use testbed::firmware::Variant;
use testbed::paths;

fn text(path: &str) -> String {
    std::fs::read_to_string(paths::root().join(path)).expect(path)
}

fn json(path: &str) -> Value {
    serde_json::from_str(&text(path)).expect(path)
}

/// Whoever cites this finds its version and address, and the paper.
#[test]
fn the_citation_is_of_this_version() {
    let citation = text("CITATION.cff");
    let manifest = text("Cargo.toml");
    let package = manifest
        .split("[workspace.package]")
        .nth(1)
        .expect("a package");
    let of = |key: &str| {
        let line = package.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|line| line.split('"').nth(1)).expect(key)
    };
    for line in [
        "cff-version: 1.2.0",
        &format!("version: {}", of("version")),
        &format!("repository-code: \"{}\"", of("repository")),
        "title: \"Exploiting Task-Level Concurrency in a Programmable Network Interface\"",
    ] {
        assert!(citation.contains(line), "no {line}");
    }
}

/// A hosted run does what `.ci/run` does, and nothing beside it.
#[test]
fn hosted_integration_runs_what_developers_run() {
    let workflow = text(".github/workflows/ci.yml");
    assert!(workflow.contains("- run: .ci/run"));
    assert!(
        !workflow.contains("cargo "),
        "a command that .ci/run has not"
    );
    assert!(paths::root().join(".ci/run").is_file());
    let container = json(".devcontainer/devcontainer.json");
    let image = container["image"].as_str().expect("an image");
    // The same system in both.
    assert!(image.starts_with("rust:") && workflow.contains(&format!("image: {image}")));
    let first = container["postCreateCommand"].as_str().expect("a command");
    assert!(first.contains("rust-src") && first.ends_with("cargo xtask setup"));
}

/// Each variant can be stopped in the editor, under QEMU and in the simulator.
#[test]
fn the_editor_has_an_entry_for_each_variant_and_engine() {
    let (launch, tasks) = (json(".vscode/launch.json"), json(".vscode/tasks.json"));
    let configurations = launch["configurations"].as_array().expect("entries");
    let tasks = tasks["tasks"].as_array().expect("tasks");
    let words = |task: &Value| -> Vec<String> {
        let words = task["args"].as_array().expect("words");
        words
            .iter()
            .map(|word| word.as_str().expect("a word").to_owned())
            .collect()
    };
    for variant in [Variant::Uniprocessor, Variant::Parallel] {
        let mut engines = Vec::new();
        for configuration in configurations {
            let program = configuration["program"].as_str().unwrap_or_default();
            if !program.ends_with(&format!("/firmware/{}.elf", variant.name())) {
                continue;
            }
            let task = tasks
                .iter()
                .find(|it| it["label"] == configuration["preLaunchTask"]);
            let words = words(task.expect("its task"));
            assert_eq!(words[..3], ["xtask", "gdb", "--serve"]);
            let server = format!("localhost:{}", words[3]);
            assert_eq!(configuration["miDebuggerServerAddress"], server);
            let chosen = words.iter().position(|word| word == "--variant");
            let chosen = chosen.map_or(Variant::default().name(), |at| words[at + 1].as_str());
            assert_eq!(chosen, variant.name());
            engines.push(words.contains(&"--sim".to_owned()));
        }
        engines.sort_unstable();
        assert_eq!(engines, [false, true], "{}", variant.name());
    }
    let simulator = configurations.iter().find(|it| it["type"] == "lldb");
    let simulator = &simulator.expect("the simulator itself")["args"];
    assert!(
        simulator
            .as_array()
            .is_some_and(|words| words.contains(&"sim-run".into()))
    );
}

/// The book and the front page lead to the papers, to QEMU and to the drivers.
#[test]
fn the_sources_are_named_with_links() {
    let (front, page) = (text("README.md"), text("docs/references.md"));
    for link in [
        "https://hdl.handle.net/1911/20031",
        "https://www.qemu.org/",
        "ethernet/alteon",
    ] {
        assert!(front.contains(link) && page.contains(link), "no {link}");
    }
    assert!(text("docs/SUMMARY.md").contains("(references.md)"));
    assert!(page.contains("man.freebsd.org"));
}
