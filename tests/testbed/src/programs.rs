//! Runs each test program of the workspace to its end, in an order that a seed decides.
//!
//! Cargo builds the programs and reports their paths; this module runs them, so a failing one does
//! not stop the others, and the end lists every failure. A test that passes in one order only is
//! faulty; this applies to programs and to the tests in each of them.

use crate::{paths, process};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::cmp::Reverse;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Cargo compiles in silence.
const BUILDS_IN: Duration = Duration::from_secs(3 * 3600);
/// For the list of packages.
const METADATA_LIMIT: Duration = Duration::from_secs(120);
/// A test that says nothing for so long hangs; the longest take a minute on an idle computer.
const HANGS_AFTER: Duration = Duration::from_secs(600);
/// How many of the programs that took longest are named.
const LONGEST: usize = 5;

/// A program full of tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The package that it tests.
    pub package: String,
    /// The file of its tests, or the library or program whose own they are.
    pub name: String,
    /// Whether they are a library's own.
    pub is_library: bool,
    folder: PathBuf,
    path: PathBuf,
    /// The package's own programs: the variables by which cargo names them, and where they are.
    binaries: Vec<(String, PathBuf)>,
}

/// A seed that nobody has chosen, short enough to be typed.
pub fn any_seed() -> u32 {
    RandomState::new().build_hasher().finish() as u32
}

/// Fails where the workspace has no such package: that would come out after minutes.
///
/// # Errors
/// If there is none, which names those that there are.
pub fn judge_package(name: &str) -> Result<()> {
    let mut list = process::cargo();
    list.args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(paths::root());
    let said = process::output(&mut list, METADATA_LIMIT)?;
    let said: Value = serde_json::from_str(&said).context("cargo metadata")?;
    let packages = said["packages"].as_array().into_iter().flatten();
    let names: Vec<&str> = packages.filter_map(|it| it["name"].as_str()).collect();
    ensure!(
        names.contains(&name),
        "there is no package {name}, but {}",
        names.join(", ")
    );
    Ok(())
}

/// Builds the programs of `packages`, cargo's own words, in the order of `seed`.
///
/// # Errors
/// When they do not compile.
pub fn build(mut cargo: Command, packages: &[&str], seed: u32) -> Result<Vec<Program>> {
    cargo
        .args(["test", "--no-run", "--message-format"])
        .arg("json-render-diagnostics")
        .args(packages)
        .stdout(Stdio::piped());
    let mut programs = Vec::new();
    let mut binaries = Vec::new();
    let status = process::watch(&mut cargo, BUILDS_IN, |line| {
        if let Ok(said) = serde_json::from_str(line) {
            programs.extend(built(&said));
            binaries.extend(binary(&said));
        }
    })?;
    if !status.success() {
        bail!("the tests do not compile");
    }
    for program in &mut programs {
        let own = binaries.iter().filter(|(of, ..)| *of == program.folder);
        program.binaries = own
            .map(|(_, name, path)| (name.clone(), path.clone()))
            .collect();
    }
    programs.sort_by_cached_key(|program| place(program, seed));
    Ok(programs)
}

/// The test program that one of cargo's messages names.
fn built(said: &Value) -> Option<Program> {
    if said["reason"] != "compiler-artifact" || said["profile"]["test"] != true {
        return None;
    }
    let folder = Path::new(said["manifest_path"].as_str()?).parent()?;
    let id = said["package_id"].as_str()?;
    // `path+file:///folder#name@version`, or without the name if it is the folder's.
    let package = id.rsplit_once('#')?.1.split_once('@').map(|(name, _)| name);
    let named = package.map_or_else(|| folder.file_name()?.to_str(), Some)?;
    Some(Program {
        package: named.to_owned(),
        name: said["target"]["name"].as_str()?.to_owned(),
        is_library: !matches!(said["target"]["kind"][0].as_str()?, "bin" | "test"),
        folder: folder.to_path_buf(),
        path: PathBuf::from(said["executable"].as_str()?),
        binaries: Vec::new(),
    })
}

/// The program that one of cargo's messages tells of: its package's folder, the variable by
/// which cargo names it to the package's tests, and where it is.
fn binary(said: &Value) -> Option<(PathBuf, String, PathBuf)> {
    let is_binary = said["target"]["kind"][0] == "bin" && said["profile"]["test"] == false;
    if said["reason"] != "compiler-artifact" || !is_binary {
        return None;
    }
    let folder = Path::new(said["manifest_path"].as_str()?).parent()?;
    let name = said["target"]["name"].as_str()?;
    let path = said["executable"].as_str()?;
    Some((
        folder.to_path_buf(),
        format!("CARGO_BIN_EXE_{name}"),
        path.into(),
    ))
}

/// Where a program stands in the order of a seed.
fn place(program: &Program, seed: u32) -> u64 {
    let mut hasher = DefaultHasher::new();
    (seed, &program.package, &program.name).hash(&mut hasher);
    hasher.finish()
}

/// Runs programs one after the other, each with what `prepare` sets, and names those that took
/// longest. Returns the tests that failed.
///
/// # Errors
/// When one cannot be started, or was interrupted; failed tests are no error.
pub fn run(
    programs: &[Program],
    prepare: impl Fn(&mut Command) -> Result<()>,
    seed: u32,
    words: &[String],
) -> Result<Vec<String>> {
    let (mut failed, mut times) = (Vec::new(), Vec::new());
    for (number, program) in (1..).zip(programs) {
        let name = program.full_name();
        println!("\ntest: {name} ({number} of {})", programs.len());
        let mut command = Command::new(&program.path);
        prepare(&mut command)?;
        let start = Instant::now();
        let tests = program.run(command, seed, words)?;
        failed.extend(tests.iter().map(|test| format!("{name}: {test}")));
        times.push((start.elapsed().as_secs(), name));
    }
    let longest = longest(times);
    if !longest.is_empty() {
        println!("\ntest: longest: {}", longest.join("; "));
    }
    Ok(failed)
}

/// The programs that took longest, with their seconds.
fn longest(mut times: Vec<(u64, String)>) -> Vec<String> {
    times.retain(|(seconds, _)| *seconds != 0);
    times.sort_by_key(|(seconds, _)| Reverse(*seconds));
    let longest = times.into_iter().take(LONGEST);
    longest
        .map(|(seconds, name)| format!("{name}, {seconds} s"))
        .collect()
}

impl Program {
    /// Runs its tests, passing on what it says. Returns those that failed.
    fn run(&self, mut command: Command, seed: u32, words: &[String]) -> Result<Vec<String>> {
        command
            .args(["-Z", "unstable-options", "--shuffle-seed"])
            .arg(seed.to_string())
            .args(words)
            .current_dir(&self.folder)
            // As cargo does; the order is an option that a stable libtest has for nobody else.
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .envs(self.binaries.iter().map(|(name, path)| (name, path)))
            .env("RUSTC_BOOTSTRAP", "1");
        failures_of(&mut command)
    }

    /// Its package and its own name.
    fn full_name(&self) -> String {
        format!("{}, {}", self.package, self.name)
    }
}

/// Runs what prints as libtest does; the names of the tests that failed, or how it ended if
/// it did not come as far as to name them. A program that hangs is killed; the tests that did
/// not end are failures.
///
/// # Errors
/// When it cannot be started, or was interrupted.
pub fn failures_of(command: &mut Command) -> Result<Vec<String>> {
    failures_within(command, HANGS_AFTER)
}

fn failures_within(command: &mut Command, silence: Duration) -> Result<Vec<String>> {
    let mut listed = Listed::default();
    command.stdout(Stdio::piped());
    let status = process::watch(command, silence, |line| {
        println!("{line}");
        listed.line(line);
    });
    let status = match status {
        Err(error) if error.is::<process::Silent>() => {
            let running = listed.running.join(", ");
            return Ok(vec![format!("{error}; did not end: {running}")]);
        }
        status => status.with_context(|| format!("run {}", command.get_program().display()))?,
    };
    if status.success() || !listed.failed.is_empty() {
        return Ok(listed.failed);
    }
    Ok(vec![format!("ended early ({status})")])
}

/// What libtest lists at its end: `failures:`, and a name a line; and which tests it says to be
/// running for long.
#[derive(Debug, Default)]
struct Listed {
    inside: bool,
    failed: Vec<String>,
    running: Vec<String>,
}

impl Listed {
    fn line(&mut self, line: &str) {
        if let Some((name, result)) = line.strip_prefix("test ").and_then(|rest| {
            let (name, result) = rest.split_once(' ')?;
            Some((name.to_owned(), result))
        }) {
            if result.starts_with("has been running") {
                self.running.push(name);
            } else {
                self.running.retain(|running| *running != name);
            }
        }
        if line == "failures:" {
            // The same word stands above what the tests printed.
            self.inside = true;
        } else if let Some(name) = line.strip_prefix("    ").filter(|_| self.inside) {
            self.failed.push(name.to_owned());
        } else {
            self.inside = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn shell(script: &str) -> Vec<String> {
        failures_of(Command::new("sh").args(["-c", script])).expect("it runs")
    }

    #[test]
    fn every_test_that_failed_is_named() {
        let said = "test a ... ok\ntest b ... FAILED\ntest c::d ... FAILED\n\nfailures:\n\n\
            ---- b stdout ----\nassertion failed\n    indented\n\nfailures:\n    b\n    c::d\n\n\
            test result: FAILED. 1 passed; 2 failed\n";
        let script = format!("printf '{said}'; exit 101");
        assert_eq!(shell(&script), ["b", "c::d"]);
    }

    #[test]
    fn a_program_that_dies_is_a_failure_and_one_that_passes_is_none() {
        assert_eq!(shell("echo test a ... ok"), [""; 0]);
        let died = shell("echo test a ...; kill -SEGV $$");
        assert!(died[0].contains("signal: 11"), "{died:?}");
    }

    #[test]
    fn a_program_that_hangs_is_killed_and_names_what_did_not_end() {
        let script = "echo test a ... ok; for t in b c; do \
            echo test $t has been running for over 60 seconds; done; echo test b ... ok; exec sleep 99";
        let mut hangs = Command::new("sh");
        let said = failures_within(hangs.args(["-c", script]), Duration::from_millis(300));
        let said = said.expect("it runs");
        assert!(said[0].ends_with("did not end: c"), "{said:?}");
    }

    fn program(name: &str) -> Program {
        Program {
            package: "p".to_owned(),
            name: name.to_owned(),
            is_library: false,
            folder: PathBuf::new(),
            path: PathBuf::new(),
            binaries: Vec::new(),
        }
    }

    #[test]
    fn all_programs_run_and_their_failures_are_named() {
        let programs =
            [("a", "true"), ("b", "false"), ("c", "false")].map(|(name, path)| Program {
                folder: PathBuf::from("/"),
                path: PathBuf::from("/bin").join(path),
                ..program(name)
            });
        let prepared = Cell::new(0);
        let prepare = |_: &mut Command| {
            prepared.set(prepared.get() + 1);
            Ok(())
        };
        let failed = run(&programs, prepare, 1, &[]).expect("they run");
        let ended = "ended early (exit status: 1)";
        assert_eq!(failed, [format!("p, b: {ended}"), format!("p, c: {ended}")]);
        assert_eq!(prepared.get(), 3);
    }

    #[test]
    fn the_longest_come_first() {
        let times = (0..=3).map(|seconds| (seconds, seconds.to_string()));
        let longest = longest(times.collect());
        assert_eq!(longest, ["3, 3 s", "2, 2 s", "1, 1 s"]);
        assert_eq!(super::longest(vec![(1, String::new()); 9]).len(), LONGEST);
    }

    #[test]
    fn a_seed_is_an_order() {
        let order = |seed| {
            let mut programs: Vec<_> = ["a", "b", "c", "d", "e", "f"].map(program).into();
            programs.sort_by_cached_key(|program| place(program, seed));
            programs
        };
        assert_eq!(order(7), order(7));
        assert!((0..20).any(|seed| order(seed) != order(7)));
    }

    #[test]
    fn cargo_names_the_programs() {
        let said = serde_json::json!({
            "reason": "compiler-artifact",
            "package_id": "path+file:///clone/tests#integration-tests@0.1.0",
            "manifest_path": "/clone/tests/Cargo.toml",
            "target": {"kind": ["test"], "name": "stories"},
            "profile": {"test": true},
            "executable": "/clone/target/debug/deps/stories-0",
        });
        let program = built(&said).expect("a program");
        assert_eq!(program.package, "integration-tests");
        assert_eq!((&program.name[..], program.is_library), ("stories", false));
        assert_eq!(program.folder, Path::new("/clone/tests"));
        let mut short = said.clone();
        short["package_id"] = "path+file:///clone/xtask#0.1.0".into();
        short["manifest_path"] = "/clone/xtask/Cargo.toml".into();
        assert_eq!(built(&short).expect("a program").package, "xtask");
        let mut other = said;
        other["profile"]["test"] = false.into();
        assert_eq!((built(&other), binary(&other)), (None, None));
        other["target"] = serde_json::json!({"kind": ["bin"], "name": "tigonctl"});
        let (folder, name, path) = binary(&other).expect("a program");
        assert_eq!(folder, Path::new("/clone/tests"));
        assert_eq!(name, "CARGO_BIN_EXE_tigonctl");
        assert_eq!(path, Path::new("/clone/target/debug/deps/stories-0"));
    }
}
