//! `cargo xtask verify`: verifies the frame pipeline's state machines with Spin.

use anyhow::{Context, Result, ensure};
use pipeline_verify::mutant::MUTANTS;
use pipeline_verify::promela::Machines;
use pipeline_verify::property::PROPERTIES;
use pipeline_verify::replay::replay;
use pipeline_verify::{Bounds, diagram, spin};
use serde_json::json;
use std::time::Instant;
use testbed::paths;
use testbed::setup::{self, Need};
use tigon_bench::report::write_json;

/// How much to search.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Search the small world of the tests: seconds
    #[arg(long)]
    pub quick: bool,
    /// Only remake the diagrams of docs/verification.md
    #[arg(long, conflicts_with = "quick")]
    pub pages: bool,
}

/// Verifies all properties, and refutes all mutants in the small world.
///
/// # Errors
/// When a property does not hold, when a mutant passes, and when Spin is missing.
pub fn run(arguments: &Arguments) -> Result<()> {
    if arguments.pages {
        return pages();
    }
    setup::ensure(&[Need::Verify])?;
    let bounds = if arguments.quick {
        Bounds::QUICK
    } else {
        Bounds::FULL
    };
    let mut failed = 0;
    let mut rows = Vec::new();
    for property in &PROPERTIES {
        let start = Instant::now();
        let outcome = spin::verify(property, &Machines::default(), bounds)?;
        let seconds = start.elapsed().as_secs_f64();
        let verdict = if outcome.holds { "holds" } else { "FAILS" };
        let (name, states) = (property.name, outcome.states);
        let at = property.bounds(bounds);
        println!("{verdict}  {states:>10} states  {seconds:6.1} s  {name}: {at}");
        for (machine, row) in &outcome.untaken {
            println!("       no run takes row {row} of {machine}");
        }
        if let Some(trail) = outcome.trail.filter(|_| !outcome.holds) {
            println!("       {}, after {:?}", trail.end, trail.rows);
        }
        failed += usize::from(!outcome.holds);
        rows.push(
            json!({"property": name, "bound": at.to_string(), "holds": outcome.holds, "states": states,
            "seconds": seconds, "untaken": outcome.untaken}),
        );
    }
    let (mut refuted, mut replayed) = (0, 0);
    for mutant in &MUTANTS {
        let (machines, _) = mutant.machines().context(mutant.name)?;
        let property = mutant.property().context("no property")?;
        let outcome = spin::verify(property, &machines, Bounds::QUICK)?;
        if outcome.holds {
            println!("PASSES  the mutant: {}", mutant.name);
        }
        refuted += usize::from(!outcome.holds);
        let followed = outcome
            .trail
            .as_ref()
            .and_then(|trail| replay(property, &machines, Bounds::QUICK, trail));
        let Some(followed) = followed else { continue };
        match followed {
            Ok(found) if !found.is_empty() => replayed += 1,
            Ok(_) => println!("REPLAY  finds nothing: {}", mutant.name),
            Err(error) => println!("REPLAY  diverges: {}: {error}", mutant.name),
        }
    }
    println!(
        "{refuted} of {} mutants are refuted; {replayed} of the runs fail on the simulated card, too",
        MUTANTS.len()
    );
    let report = json!({"properties": rows, "mutants": MUTANTS.len(), "refuted": refuted,
        "replayed": replayed});
    println!("report: {}", write_json("verify", &report)?.display());
    ensure!(failed == 0, "{failed} properties do not hold");
    ensure!(refuted == MUTANTS.len(), "a mutant passes");
    ensure!(
        replayed == MUTANTS.len(),
        "a mutant's run does not fail on the card"
    );
    Ok(())
}

fn pages() -> Result<()> {
    let path = paths::root().join("docs/verification.md");
    let page = std::fs::read_to_string(&path)?;
    let made = diagram::replace(&page, &diagram::page()).context("the page has no place for it")?;
    std::fs::write(&path, made)?;
    println!("page: {}", path.display());
    Ok(())
}
