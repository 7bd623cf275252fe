//! Tests the log of the real firmware on the simulator: both CPUs, levels, losses, the wrong ELF.

use host_driver::log::{LogDecoder, LogError, LogLine, LogTexts};
use host_driver::{Config, Nic, Transport};
use host_interface::bar;
use host_interface::gencom::Gencom;
use host_interface::log::{Level, MODULE_NAMES, module_named};
use std::time::Duration;
use testbed::firmware::{self, FirmwareOptions, Variant};
use tigon2_chip::Cpu;
use tigon2_chip::events::EventBit;
use tigon2_chip::mailbox::Mailbox;
use tigon2_model::Board;
use tigon2_sim::Machine;
use tigon2_sim::timing::Parameters;
use tigon2_sim::timing::counts::{Activity, Tally};
use tigon2_sim::transport::{SharedMachine, SimTransport};

fn options() -> FirmwareOptions {
    FirmwareOptions {
        quiet: true,
        variant: Variant::Parallel,
        ..FirmwareOptions::default()
    }
}

/// The parallel firmware: its image and its ELF.
fn build() -> (Vec<u8>, Vec<u8>) {
    let built = firmware::build(options()).expect("the firmware builds");
    let read = |path| std::fs::read(path).expect("a file");
    (read(&built.tg2), read(&built.elf))
}

fn loaded(file: &[u8]) -> Nic<SimTransport> {
    let transport = SimTransport::power_on(Board::default());
    let mut nic = Nic::probe(transport, Config::default()).expect("a card");
    nic.load(file).expect("the firmware comes up");
    nic
}

fn drain(nic: &mut Nic<SimTransport>, decoder: &mut LogDecoder<'_>) -> Vec<LogLine> {
    let (frames, missed) = nic.drain_log().expect("the log");
    assert_eq!(missed, 0);
    let lines = decoder.decode(&frames);
    assert_eq!(lines.len(), frames.len(), "each can be decoded");
    lines
}

fn all(level: Level) -> Vec<(usize, Level)> {
    (0..MODULE_NAMES.len())
        .map(|module| (module, level))
        .collect()
}

/// Words that are no commands, each of which makes a message.
fn nonsense(nic: &mut Nic<SimTransport>, count: u32) {
    for _ in 0..count {
        let consumer = nic
            .transport()
            .read(Gencom::CommandConsumer.bar_offset())
            .expect("a word");
        let next = (consumer + 1) % 64;
        let ring = bar::COMMAND_RING + 4 * consumer;
        nic.transport().write(ring, 0xEE00_0000).expect("a command");
        let producer = Mailbox::CommandProducer.bar_offset();
        nic.transport().write(producer, next).expect("a doorbell");
        while nic
            .transport()
            .read(Gencom::CommandConsumer.bar_offset())
            .expect("a word")
            != next
        {}
    }
}

fn unknown(lines: &[LogLine]) -> usize {
    let of_command = |line: &&LogLine| line.text.contains("unknown command 0xee000000");
    lines.iter().filter(of_command).count()
}

#[test]
fn both_cpus_log_with_time_level_and_place() {
    let (file, elf) = build();
    let texts = LogTexts::parse(&elf).expect("the log's texts");
    let mut decoder = texts.decoder();
    let mut nic = loaded(&file);
    let block = nic.log_block().expect("the card").expect("a log");
    texts.check(block.build).expect("its own ELF file");

    nic.set_log_levels(&all(Level::Debug)).expect("a log");
    nic.open().expect("the stack comes up");
    nic.wait_link(Duration::from_secs(60)).expect("a link");
    let lines = drain(&mut nic, &mut decoder);
    let find = |cpu, part: &str| {
        let found = lines.iter().find(|l| l.cpu == cpu && l.text.contains(part));
        found.unwrap_or_else(|| panic!("CPU {cpu} has not said {part}: {lines:#?}"))
    };
    let up = find('A', "link up, 1000 Mb/s");
    assert_eq!(up.level, "info");
    assert_eq!(up.module_number(), module_named("link"));
    assert!(
        up.file.ends_with("firmware/src/control/link/mod.rs"),
        "{}",
        up.file
    );
    let source =
        std::fs::read_to_string(testbed::paths::root().join("firmware/src/control/link/mod.rs"));
    let source = source.expect("the source");
    let line = source.lines().nth(up.line as usize - 1).expect("that line");
    assert!(line.contains("link up"), "{line}");
    // CPU B does its part of the command "clear statistics".
    let done = find('B', "call 2 of CPU A is done");
    assert_eq!(done.level, "debug");
    assert_eq!(done.module_number(), module_named("cross_call"));
    let times: Vec<u32> = lines.iter().map(|line| line.time_us).collect();
    assert!(times.is_sorted() && times[0] < up.time_us, "{times:?}");
    let counts = nic.log_counts().expect("a log");
    let of = |cpu| lines.iter().filter(|line| line.cpu == cpu).count() as u32;
    assert_eq!([of('A'), of('B')], counts.map(|counts| counts.recorded));
    assert_eq!(counts.map(|counts| counts.lost), [0, 0]);
}

/// Without a reset, module by module: what is off is not recorded at all.
#[test]
fn levels_change_while_the_card_works() {
    let (file, elf) = build();
    let texts = LogTexts::parse(&elf).expect("the log's texts");
    let mut decoder = texts.decoder();
    let mut nic = loaded(&file);
    drain(&mut nic, &mut decoder);
    let command = module_named("command").expect("a module");
    for (level, said) in [
        (Level::Warn, 3),
        (Level::Error, 0),
        (Level::Off, 0),
        (Level::Trace, 3),
    ] {
        nic.set_log_levels(&[(command, level)]).expect("a log");
        let before = nic.log_counts().expect("a log")[0].recorded;
        nonsense(&mut nic, 3);
        let lines = drain(&mut nic, &mut decoder);
        assert_eq!(unknown(&lines), said, "{level:?}: {lines:?}");
        let after = nic.log_counts().expect("a log")[0].recorded;
        assert_eq!((after - before) as usize, lines.len(), "{level:?}");
    }
    // Kept when the card is reset.
    nic.set_log_levels(&[(command, Level::Error)])
        .expect("a log");
    nic.recover().expect("the same firmware");
    let block = nic.log_block().expect("the card").expect("a log");
    assert_eq!(block.levels[command], Level::Error);
    assert_eq!(block.levels[0], Level::DEFAULT);
}

/// A reader that does not read costs messages, never the firmware, and each is counted; what
/// comes later can be decoded again.
#[test]
fn what_finds_no_room_is_counted() {
    let (file, elf) = build();
    let texts = LogTexts::parse(&elf).expect("the log's texts");
    let mut decoder = texts.decoder();
    let mut nic = loaded(&file);
    drain(&mut nic, &mut decoder);
    let before = nic.log_counts().expect("a log");
    nonsense(&mut nic, 600);
    let counts = nic.log_counts().expect("a log");
    assert!(counts[0].lost > 0);
    let whole = drain(&mut nic, &mut decoder);
    let recorded = counts[0].recorded - before[0].recorded;
    assert_eq!(
        whole.len() as u32,
        recorded,
        "all that was recorded is there"
    );
    assert!(recorded + counts[0].lost >= 600, "{counts:?}");
    assert!(unknown(&whole) > 100, "{}", unknown(&whole));
    assert_eq!(nic.log_lost()[0], u64::from(counts[0].lost));

    nonsense(&mut nic, 3);
    let lines = drain(&mut nic, &mut decoder);
    assert_eq!(unknown(&lines), 3, "{lines:?}");
    assert_eq!(nic.log_lost()[0], u64::from(counts[0].lost));
}

/// The ELF file of the other variant, and this one's cut or damaged.
#[test]
fn a_wrong_elf_file_is_told_by_its_build() {
    let (file, elf) = build();
    let mut nic = loaded(&file);
    let block = nic.log_block().expect("the card").expect("a log");
    let other = firmware::build(FirmwareOptions {
        quiet: true,
        variant: Variant::Uniprocessor,
        ..FirmwareOptions::default()
    });
    let other = std::fs::read(other.expect("the firmware builds").elf).expect("the ELF");
    let texts = LogTexts::parse(&other).expect("a good file");
    let error = texts.check(block.build).expect_err("another build");
    assert!(matches!(error, LogError::WrongBuild { .. }));
    assert!(
        error.to_string().contains(&block.build.to_string()),
        "{error}"
    );

    let (frames, _) = nic.drain_log().expect("the log");
    let step = elf.len() / 60;
    for at in (0..elf.len()).step_by(step) {
        if let Ok(texts) = LogTexts::parse(&elf[..at]) {
            panic!(
                "{} of {} bytes are taken for whole: {}",
                at,
                elf.len(),
                texts.build()
            );
        }
    }
    // Whatever is damaged: an error, or lines, but no end of this process.
    for at in (0..elf.len()).step_by(step) {
        let mut damaged = elf.clone();
        let end = damaged.len().min(at + 97);
        damaged[at..end].fill(0xA5);
        if let Ok(texts) = LogTexts::parse(&damaged) {
            texts.decoder().decode(&frames);
        }
    }
}

/// How often a command is given for its mean.
const TIMES: u32 = 50;

/// What a command that means nothing takes in the handler of CPU A, on average.
#[derive(Clone, Copy, Debug)]
struct Cost {
    instructions: f64,
    cycles: f64,
    /// Messages of all of them.
    recorded: u32,
}

/// The command with a firmware under the default timing profile.
fn cost(file: &[u8], level: Level) -> Cost {
    let machine = Machine::timed(Board::default(), Parameters::default(), 1);
    let transport = SimTransport::new(machine);
    let machine = transport.machine();
    let mut nic = Nic::probe(transport, Config::default()).expect("a card");
    nic.load(file).expect("the firmware comes up");
    let command = module_named("command").expect("a module");
    nic.set_log_levels(&[(command, level)]).expect("a log");
    let recorded = |nic: &mut Nic<_>| nic.log_counts().expect("a log")[0].recorded;
    let before = recorded(&mut nic);
    let mut all = Tally::default();
    for _ in 0..TIMES {
        // The message's room, and another phase of the dispatch loop.
        nic.poll_log().expect("the log");
        all.add(&one_command(&machine));
    }
    Cost {
        instructions: all.instructions as f64 / f64::from(TIMES),
        cycles: all.total() as f64 / f64::from(TIMES),
        recorded: recorded(&mut nic) - before,
    }
}

fn one_command(machine: &SharedMachine) -> Tally {
    let handler = |machine: &Machine| {
        let counts = &machine.timing().expect("a timed card").pipelines[Cpu::A.index()].counts;
        let mailbox = Activity::Handler(EventBit::Mailbox.number() as u8);
        let found = counts.iter().find(|(activity, _)| *activity == mailbox);
        found.map(|(_, tally)| tally).unwrap_or_default()
    };
    let mut machine = machine.lock();
    let consumer = machine.word(Gencom::CommandConsumer.nic_address());
    let next = (consumer + 1) % 64;
    let before = handler(&machine);
    machine.bar_write(bar::COMMAND_RING + 4 * consumer, 0xEE00_0000);
    machine.bar_write(Mailbox::CommandProducer.bar_offset(), next);
    machine.run(20_000);
    assert_eq!(machine.word(Gencom::CommandConsumer.nic_address()), next);
    let tally = handler(&machine).since(&before);
    assert_eq!(tally.runs, 1);
    tally
}

/// What `docs/firmware.md` says a message costs: one that is not built in, one that nobody
/// wants, one that is recorded.
#[test]
fn the_cost_of_a_message() {
    let (all, _) = build();
    let none = firmware::build_with_messages(options(), "off").expect("the firmware builds");
    let none = std::fs::read(none.tg2).expect("a file");
    let absent = cost(&none, Level::Trace);
    let filtered = cost(&all, Level::Off);
    let recorded = cost(&all, Level::Warn);
    println!(
        "a command with one message of one word: not built in {absent:?}, filtered {filtered:?}, \
         recorded {recorded:?}"
    );
    let messages = [absent, filtered, recorded].map(|cost| cost.recorded);
    assert_eq!(messages, [0, 0, TIMES]);
    let look = filtered.instructions - absent.instructions;
    let cycles = filtered.cycles - absent.cycles;
    let message = recorded.cycles - filtered.cycles;
    println!(
        "a look at the level: {look} instructions, {cycles} cycles; recorded: {message} cycles"
    );
    assert!(
        (1.0..=40.0).contains(&look) && cycles.abs() <= 100.0,
        "{look}, {cycles}: see docs/firmware.md"
    );
    assert!(
        (200.0..=2500.0).contains(&message),
        "{message}: see docs/firmware.md"
    );
}
