//! Runs Spin, the compiler, and the verifier that they make of a model.

use crate::promela::Machines;
use crate::property::{Bounds, Claim, Property};
use anyhow::{Context, Result, bail, ensure};
use frame_pipeline::trace::Entry;
use std::path::Path;
use std::process::{Command, Output};
use tigon2_sim::explore::trail::Step;

/// The deepest search, in steps: a search that is cut off proves nothing.
const DEPTH: u32 = 2_000_000;
/// Memory for the states, in MB.
const MEMORY: u32 = 6000;

/// What Spin found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Whether the property holds.
    pub holds: bool,
    /// States that were stored.
    pub states: u64,
    /// The run that shows it: for a witness how the state is reached, otherwise what goes wrong.
    pub trail: Option<Trail>,
    /// Rows that no run takes, as (machine, row); only of a complete search for assertions.
    pub untaken: Vec<(String, usize)>,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trail {
    /// The rows that were taken.
    pub rows: Vec<Entry>,
    /// The same among the steps of host, bus and wire: what [`replay`](crate::replay::replay) follows.
    pub steps: Vec<Step>,
    /// What Spin says of its end.
    pub end: String,
}

/// Verifies a property of machines.
///
/// # Errors
/// When Spin or the compiler is missing or fails, and when the search was not complete.
pub fn verify(property: &Property, machines: &Machines, bounds: Bounds) -> Result<Outcome> {
    let folder = tempfile::tempdir().context("no folder for the model")?;
    let folder = folder.path();
    let model = property.model(machines, bounds);
    std::fs::write(folder.join("model.pml"), &model)?;
    run(
        Command::new("spin").args(["-a", "model.pml"]),
        folder,
        "spin is not there: as root, apt-get install spin",
    )?;
    let safety = !matches!(property.claim, Claim::Recurs(_));
    let mut gcc = Command::new("gcc");
    // The compiler takes longer than a small search.
    let level = if bounds.is_small() { "-O0" } else { "-O2" };
    gcc.args([level, "-w", "-o", "pan", "pan.c", "-DCOLLAPSE"]);
    gcc.arg(format!("-DMEMLIM={MEMORY}"));
    match property.claim {
        Claim::Safety => gcc.args(["-DSAFETY", "-DNOCLAIM"]),
        Claim::Witness(_) | Claim::Never(_) => gcc.arg("-DSAFETY"),
        // Room for the fairness of up to eight processes.
        Claim::Recurs(_) => gcc.arg("-DNFAIR=3"),
    };
    run(
        &mut gcc,
        folder,
        "gcc is not there: as root, apt-get install gcc",
    )?;
    let mut pan = Command::new("./pan");
    pan.arg(format!("-m{DEPTH}"));
    if !safety {
        pan.args(["-a", "-f"]);
    }
    if property.formula().is_some() {
        // The formula is judged, and not that all has come to rest.
        pan.arg("-E");
    }
    let said = run(&mut pan, folder, "the verifier does not start")?;
    judge(property, &said, &model, folder)
}

fn judge(property: &Property, said: &str, model: &str, folder: &Path) -> Result<Outcome> {
    let errors = number(said, "errors: ").with_context(|| format!("no verdict: {said}"))?;
    let states = states(said).unwrap_or_default();
    if errors == 0 {
        for cut_off in [
            "max search depth too small",
            "Search not completed",
            "out of memory",
        ] {
            ensure!(!said.contains(cut_off), "{}: {cut_off}", property.name);
        }
    }
    if errors != 0 && property.formula().is_some() && said.contains("assertion violated") {
        ensure!(
            said.contains("assertion violated  !( !("),
            "{}: an assertion of the model fails before: {said}",
            property.name
        );
    }
    let end = said.lines().find(|line| line.starts_with("pan:1:"));
    let end = end.unwrap_or("pan:1: acceptance cycle");
    let told = (errors != 0).then(|| tell(folder, "-t")).transpose()?;
    let trail = told.map(|told| trail(&told, end));
    // Doorbells are looked at in a world without faults.
    let complete = errors == 0 && property.claim == Claim::Safety && !property.doorbells;
    Ok(Outcome {
        holds: matches!(property.claim, Claim::Witness(_)) == (errors != 0),
        states,
        trail,
        untaken: if complete {
            untaken(said, model)
        } else {
            Vec::new()
        },
    })
}

/// A run of machines in which each choice is a random one.
///
/// # Errors
/// When Spin is missing or fails, as it does where the run breaks an assertion.
pub fn wander(
    property: &Property,
    machines: &Machines,
    bounds: Bounds,
    seed: u32,
) -> Result<Trail> {
    let folder = tempfile::tempdir().context("no folder for the model")?;
    let folder = folder.path();
    std::fs::write(folder.join("model.pml"), property.model(machines, bounds))?;
    let told = tell(folder, &format!("-n{seed}"))?;
    let end = told
        .lines()
        .find(|line| line.contains("assertion violated"));
    ensure!(end.is_none(), "{}: {end:?}", property.name);
    Ok(trail(&told, "all has come to rest"))
}

/// Lets Spin follow a run of the model and tell it.
fn tell(folder: &Path, which: &str) -> Result<String> {
    let mut spin = Command::new("spin");
    spin.args([which, "-T", "model.pml"]);
    run(&mut spin, folder, "spin is not there")
}

/// What Spin has told of a run.
fn trail(told: &str, end: &str) -> Trail {
    Trail {
        rows: told.lines().filter_map(entry).collect(),
        steps: told.lines().filter_map(Step::of_line).collect(),
        end: end.to_owned(),
    }
}

/// A row that a trail's line names.
fn entry(line: &str) -> Option<Entry> {
    let mut words = line.trim().strip_prefix("row ")?.split(' ');
    let name = words.next()?;
    let machine = frame_pipeline::TABLES
        .iter()
        .position(|it| it.name == name)?;
    Some(Entry::new(machine, words.next()?.parse().ok()?))
}

/// The rows among the statements that the verifier calls unreached.
fn untaken(said: &str, model: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = model.lines().collect();
    let unreached = said.lines().filter_map(|line| {
        let at = line.trim().strip_prefix("model.pml:")?;
        at.split(',').next()?.parse::<usize>().ok()
    });
    let mut rows: Vec<(String, usize)> = unreached
        .filter_map(|number| {
            let line = lines.get(number.checked_sub(1)?)?;
            let row = line.split("printf(\"row ").nth(1)?.split("\\n").next()?;
            let (machine, row) = row.split_once(' ')?;
            Some((machine.to_owned(), row.parse().ok()?))
        })
        .collect();
    rows.sort();
    rows.dedup();
    rows
}

fn number(said: &str, before: &str) -> Option<u64> {
    let rest = said.split(before).nth(1)?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// `   12345 states, stored`, or with large numbers in another notation.
fn states(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.contains(" states, stored"))?;
    let number: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(number as u64)
}

fn run(command: &mut Command, folder: &Path, missing: &str) -> Result<String> {
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .current_dir(folder)
        .output()
        .with_context(|| missing.to_owned())?;
    let said = String::from_utf8_lossy(&stdout).into_owned();
    if !status.success() {
        bail!(
            "{}: {status}\n{said}{}",
            command.get_program().display(),
            String::from_utf8_lossy(&stderr)
        );
    }
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verifiers_words_are_read() {
        let said = "State-vector 60 byte, depth reached 99, errors: 2\n  1.25e+06 states, stored\n";
        assert_eq!(number(said, "errors: "), Some(2));
        assert_eq!(states(said), Some(1_250_000));
        let row = entry("      row SEND 3").expect("a row");
        assert_eq!((row.machine(), row.row()), (1, 3));
        assert_eq!(entry("row DOOR 1"), None);
    }

    #[test]
    fn unreached_rows_are_named() {
        let model = "byte x;\n\t\t:: (a) -> printf(\"row SDMA 7\\n\");\n\t\t\tskip";
        let said = "unreached in proctype cpu_b\n\tmodel.pml:2, state 5, \"printf\"\n\
                    \tmodel.pml:3, state 6, \"(1)\"\n";
        assert_eq!(untaken(said, model), [("SDMA".to_owned(), 7)]);
    }
}
