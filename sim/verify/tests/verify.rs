//! The properties in a small bound, mutants that must fail, and the page's diagrams.
//!
//! Without Spin, which `cargo xtask test` installs, the tests that need it fail and say so.

use frame_pipeline::TABLES;
use frame_pipeline::trace::Checker;
use pipeline_verify::mutant::MUTANTS;
use pipeline_verify::promela::{Cpu, Machines};
use pipeline_verify::property::{Claim, PROPERTIES};
use pipeline_verify::replay::replay;
use pipeline_verify::{Bounds, Property, diagram, spin};
use std::collections::BTreeSet;
use std::thread;

fn safety(cpu: Cpu) -> Property {
    let of = |it: &&Property| it.claim == Claim::Safety && it.cpus == [cpu];
    *PROPERTIES.iter().find(of).expect("a property")
}

#[test]
fn every_property_holds_in_a_small_bound() {
    for property in &PROPERTIES {
        let outcome = spin::verify(property, &Machines::default(), Bounds::QUICK);
        let outcome = outcome.expect(property.name);
        assert!(outcome.holds, "{}: {:?}", property.name, outcome.trail);
        assert_eq!(outcome.untaken, [], "{}", property.name);
        // A witness is a run of the tables.
        let mut checker = Checker::default();
        for entry in outcome.trail.iter().flat_map(|trail| &trail.rows) {
            assert_eq!(checker.follow(*entry), Ok(()), "{}", property.name);
        }
        // And the card does it, too.
        if let Some(trail) = &outcome.trail
            && let Some(followed) = replay(property, &Machines::default(), Bounds::QUICK, trail)
        {
            assert_eq!(followed, Ok(Vec::new()), "{}", property.name);
        }
        let is_witness = matches!(property.claim, Claim::Witness(_));
        assert_eq!(outcome.trail.is_some(), is_witness, "{}", property.name);
    }
}

/// Whatever the model does by the right tables, the card does, and nothing is wrong there.
#[test]
fn random_runs_of_the_tables_find_nothing_on_the_card() {
    let bounds = Bounds {
        frames: 4,
        ..Bounds::FULL
    };
    for cpu in [Cpu::Transmit, Cpu::Receive] {
        let mut rows = BTreeSet::new();
        for seed in 1..=100 {
            let run = spin::wander(&safety(cpu), &Machines::default(), bounds, seed);
            let run = run.expect("a run");
            rows.extend(run.rows.iter().map(|row| (row.machine(), row.row())));
            let found = replay(&safety(cpu), &Machines::default(), bounds, &run);
            assert_eq!(found, Some(Ok(Vec::new())), "{cpu:?}, seed {seed}");
        }
        assert!(rows.len() >= 20, "{cpu:?}: {rows:?}");
    }
}

/// In a world without faults the rows for them are not taken, and Spin names them.
#[test]
fn rows_that_no_run_takes_are_named() {
    let bounds = Bounds {
        faults: 0,
        closes: false,
        ..Bounds::QUICK
    };
    let outcome = spin::verify(&safety(Cpu::Transmit), &Machines::default(), bounds);
    let outcome = outcome.expect("a verdict");
    assert!(outcome.holds);
    let named: Vec<(usize, &str)> = outcome
        .untaken
        .iter()
        .map(|(machine, row)| {
            let index = TABLES.iter().position(|it| it.name == machine);
            let table = TABLES[index.expect("a machine")];
            let event = table.rows[*row].event;
            (
                index.unwrap_or_default(),
                table.events[usize::from(event)].name,
            )
        })
        .collect();
    for (_, event) in &named {
        assert!(
            ["Failed", "PartFailed", "Closed"].contains(event),
            "{named:?}"
        );
    }
    assert_eq!(named.len(), 6, "{named:?}");
}

#[test]
fn every_mutant_is_refuted_by_a_run_of_its_fault() {
    // Compiling the verifiers takes longer than their searches.
    thread::scope(|scope| {
        for part in MUTANTS.chunks(MUTANTS.len().div_ceil(2)) {
            scope.spawn(move || part.iter().for_each(refute));
        }
    });
}

fn refute(mutant: &pipeline_verify::Mutant) {
    let (machines, row) = mutant.machines().expect(mutant.name);
    machines
        .tables
        .iter()
        .for_each(|table| table.check_transitions());
    let property = mutant.property().expect(mutant.name);
    let outcome = spin::verify(property, &machines, Bounds::QUICK);
    let outcome = outcome.expect(mutant.name);
    let trail = outcome
        .trail
        .unwrap_or_else(|| panic!("{}: passes", mutant.name));
    assert!(!outcome.holds && !trail.rows.is_empty(), "{}", mutant.name);
    // The same run fails on the card.
    let followed = replay(property, &machines, Bounds::QUICK, &trail).expect(mutant.name);
    let found = followed.unwrap_or_else(|error| panic!("{}: {error}", mutant.name));
    println!("{}: {found:?}", mutant.name);
    assert!(!found.is_empty(), "{}: nothing on the card", mutant.name);
    // The run takes the wrong row, and is one of the right tables up to there.
    let mut checker = Checker::default();
    let mut rows = trail.rows.iter();
    match row {
        Some(wrong) => {
            let before = rows.by_ref().take_while(|it| **it != wrong);
            let before = before.map(|it| checker.follow(*it)).collect::<Vec<_>>();
            assert!(before.iter().all(Result::is_ok), "{}", mutant.name);
            assert!(trail.rows.contains(&wrong), "{}: {trail:?}", mutant.name);
        }
        None => assert!(
            rows.all(|it| checker.follow(*it).is_ok()),
            "{}",
            mutant.name
        ),
    }
}

#[test]
fn the_page_shows_the_tables() {
    // As it is when the test runs: a clone may have been moved.
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo test");
    let path = std::path::Path::new(&folder).join("../../docs/verification.md");
    let page = std::fs::read_to_string(path).expect("the page");
    for property in &PROPERTIES {
        let [quick, full] = [Bounds::QUICK, Bounds::FULL].map(|it| property.bounds(it));
        let row = format!("| {} | {quick} | {full} |", property.name);
        assert!(page.contains(&row), "the page has no row: {row}");
    }
    let fresh = diagram::replace(&page, &diagram::page()).expect("its place");
    assert!(fresh == page, "cargo xtask verify --pages makes it anew");
    assert!(page.contains("Watched --> Aborted: PartArrived [not InTime], PartFailed, Deadline"));
}
