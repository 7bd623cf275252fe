//! Tests the firmware's log without the driver: each engine reads it from the card's memory.

use host_driver::Config;
use host_driver::log::{LogBlock, LogReader, LogTexts, NicMemory};
use integration_tests::engine::tools;
use integration_tests::stage::Stage;
use integration_tests::{Engine, Qemu, Sim};
use std::fmt::Debug;
use testbed::card::CardOptions;
use tigon2_sim::log::BesideTheCard;

/// What a card's log says by now.
fn lines<M: NicMemory<Error: Debug>>(memory: &mut M, reader: &mut LogReader) -> Vec<String> {
    let elf = std::fs::read(tools().firmware.elf).expect("the ELF");
    let texts = LogTexts::parse(&elf).expect("its texts");
    let block = LogBlock::find(memory).expect("memory").expect("a log");
    texts.check(block.build).expect("its own ELF file");
    let frames = reader.read(memory, &block).expect("the rings");
    let lines = texts.decoder().decode(&frames);
    assert_eq!(lines.len(), frames.len(), "each can be decoded");
    lines.into_iter().map(|line| line.text).collect()
}

/// A driver that asks for no log brings the link up and down; whoever reads the memory beside
/// it sees each message once.
fn is_read_beside<E: Engine, M: NicMemory<Error: Debug>>(stage: &mut Stage<E>, memory: &mut M) {
    let mut reader = LogReader::new();
    let reported = lines(memory, &mut reader);
    assert!(
        reported
            .iter()
            .any(|line| line.contains("link up, 1000 Mb/s")),
        "{reported:?}"
    );
    assert_eq!(lines(memory, &mut reader), [""; 0], "nothing new");
    stage.engine.plug(false);
    let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let reported = loop {
        stage.engine.pass(std::time::Duration::from_millis(20));
        let reported = lines(memory, &mut reader);
        if !reported.is_empty() {
            break reported;
        }
        assert!(std::time::Instant::now() < end, "the link's end is told");
    };
    assert!(reported[0].contains("link down"), "{reported:?}");
}

#[test]
fn the_simulator_takes_the_log_out_of_its_memory() {
    let mut stage = Stage::<Sim>::open_with(Config::default());
    let machine = stage.engine.machine().clone();
    is_read_beside(&mut stage, &mut BesideTheCard(&machine));
}

#[test]
fn qemu_shows_the_log_by_its_monitor() {
    let options = CardOptions {
        monitor: true,
        ..CardOptions::default()
    };
    let (engine, transport) = Qemu::with(&options);
    let mut stage = Stage::on(engine, transport, Config::default());
    stage.load_and_open();
    let mut memory = stage.engine.card.memory();
    is_read_beside(&mut stage, &mut memory);
}
