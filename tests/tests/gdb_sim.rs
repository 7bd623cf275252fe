//! Tests `cargo xtask gdb --sim`: gdb on the simulator, forward and backward, repeatably.

use integration_tests::engine::tools;
use integration_tests::stage;
use integration_tests::stage::elf_of_another_build;
use integration_tests::xtask_command::{complaint, signal, xtask};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use rustix::process::Signal;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use tigon2_chip::Cpu;
use tigon2_model::Board;
use tigon2_sim::Machine;
use tigon2_sim::machine::probe::{Position, Probe, Verdict};
use tigon2_sim::timing::Parameters;
use tigon2_sim::transport::{SharedMachine, SimTransport};
use tigon2_sim::workload::talk;
use tigon2_sim::workload::testbench::Setup;

/// What `cargo xtask gdb --sim` shows with these commands of gdb.
fn session(options: &[&str], script: &[&str]) -> String {
    let mut command = xtask(&["gdb", "--sim"]);
    command.args(options).args(["--", "-batch", "-nx"]);
    for step in script {
        command.args(["-ex", step]);
    }
    let output = command.stdin(Stdio::null()).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let shown = format!("{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{shown}");
    shown
}

/// The cycles that `monitor where` told, in order.
fn cycles(shown: &str) -> Vec<u64> {
    let reported = shown.lines().filter_map(|line| {
        let words = line.strip_prefix("cycle ")?;
        words.split(',').next()?.parse().ok()
    });
    reported.collect()
}

/// The values that watched words had and have, in order.
fn changes(shown: &str) -> Vec<(u32, u32)> {
    let value = |words: &str| {
        let lines = shown.lines();
        let values = lines.filter_map(|line| line.strip_prefix(words)?.parse().ok());
        values.collect::<Vec<u32>>()
    };
    let (old, new) = (value("Old value = "), value("New value = "));
    old.into_iter().zip(new).collect()
}

/// Where both CPUs have code, gdb names CPU B's functions, or CPU A's for who asks for them; it never
/// stops at a function that has no names.
#[test]
fn gdb_names_the_code_of_one_cpu_where_both_have_some() {
    let elf = std::fs::read(tools().firmware.elf).expect("the ELF");
    let file = object::File::parse(&*elf).expect("an ELF");
    let Some(over) = file.section_by_name(".scratch_a.over") else {
        return;
    };
    let both = file.symbols().find(|symbol| {
        symbol.section_index() == Some(over.index()) && symbol.kind() == SymbolKind::Text
    });
    let Some(both) = both else {
        return;
    };
    let line = format!("info line *{:#x}", both.address());
    let shown = |cpu| session(&["--names", cpu], &[&line]);
    let (of_a, of_b) = (shown("a"), shown("b"));
    let name = both.name().expect("a name");
    assert!(of_a.contains("Line ") && of_a.contains(name), "{of_a}");
    assert!(of_b.contains("Line ") && !of_b.contains(name), "{of_b}");

    let name = format!("{:#}", rustc_demangle::demangle(name));
    let name = name.split("::<").next().unwrap_or_default();
    let refused = xtask(&["gdb", "--sim", "--break", name])
        .output()
        .expect("it starts");
    assert!(
        complaint(&refused).contains("--names a"),
        "{}",
        complaint(&refused)
    );
}

#[test]
fn gdb_goes_back_to_the_write_before() {
    // 0x2B8 is the send consumer index for drivers that read it by register.
    let shown = session(
        &["--break", "receive_complete"],
        &[
            "info threads",
            "info args",
            "tigon events",
            "watch *(0x2b8 as *mut u32)",
            "continue",
            "monitor where",
            "continue",
            "monitor where",
            "reverse-continue",
            "monitor where",
            "print *(0x2b8 as *mut u32)",
            "reverse-continue",
            "monitor where",
            "continue",
            "continue",
            "monitor where",
        ],
    );
    assert!(shown.contains("Thread 1.1 (CPU A, runs)"), "{shown}");
    assert!(shown.contains("Thread 1.2 (CPU B, "), "{shown}");
    assert!(
        shown.contains("breakpoint 1, tigon_firmware::events::receive_complete"),
        "{shown}"
    );
    assert!(shown.contains("side = 0xc0"), "an argument: {shown}");
    let pending = shown.lines().find_map(|line| line.strip_prefix("CPU A: "));
    assert!(
        pending.is_some_and(|p| p.contains("ReceiveComplete")),
        "{shown}"
    );
    // Forward to two stores, back over both, forward again.
    let changes = changes(&shown);
    let [first, second, ..] = changes[..] else {
        panic!("no changes: {shown}");
    };
    let back = |(old, new)| (new, old);
    assert_eq!(
        changes,
        [first, second, back(second), back(first), first, second],
        "{shown}"
    );
    assert_eq!(first.1, second.0);
    assert!(shown.contains(&format!("$1 = {}\n", second.0)), "{shown}");
    let [one, two, back, further, again] = cycles(&shown)[..] else {
        panic!("no cycles: {shown}");
    };
    assert!(
        one < two && back < two && back >= one && further < one,
        "{shown}"
    );
    assert_eq!(again, two, "the same cycle the second time: {shown}");
}

#[test]
fn gdb_steps_back_by_an_instruction_and_by_a_line() {
    let shown = session(
        &["--break", "send_data_ready"],
        &[
            "printf \"at %x\\n\", $pc",
            "stepi",
            "stepi",
            "stepi",
            "printf \"at %x\\n\", $pc",
            "reverse-stepi 3",
            "printf \"at %x\\n\", $pc",
            "next",
            "reverse-next",
            "info locals",
            "tbreak tigon_firmware::events::receive_complete<tigon2_hal::mmio::Mmio>",
            "continue",
            "reverse-continue",
            "bt 1",
        ],
    );
    let at: Vec<&str> = shown
        .lines()
        .filter_map(|line| line.strip_prefix("at "))
        .collect();
    assert_eq!(at.len(), 3, "{shown}");
    assert_ne!(at[0], at[1]);
    assert_eq!(at[0], at[2], "three there, three back: {shown}");
    // Back from another handler over everything: no earlier one is hit, so to the start.
    assert!(
        shown.contains("No more reverse-execution history"),
        "{shown}"
    );
    assert!(shown.contains("#0  0x00004000 in _start"), "{shown}");
}

#[test]
fn two_sessions_see_the_same() {
    let script = [
        "break *$pc",
        "continue",
        "info registers",
        "monitor where",
        "tigon rings",
    ];
    let profiles = xtask(&["gdb", "--sim", "--profile", "none-such"])
        .output()
        .unwrap();
    assert!(complaint(&profiles).contains("none-such"));
    let see = || {
        let shown = session(&["--break", "mailbox"], &script);
        let (from, to) = (shown.find("Breakpoint 2"), shown.find("[Inferior"));
        let [from, to] = [from, to].map(|place| place.expect("a breakpoint and an end"));
        (shown[from..to].to_owned(), cycles(&shown))
    };
    let first = see();
    assert_eq!(first.1.len(), 1, "{first:?}");
    assert_eq!(first, see());
}

#[test]
fn the_story_of_a_seed_has_an_end_and_a_beginning() {
    let shown = session(
        &["--seed", "7"],
        &[
            "continue",
            "monitor where",
            "reverse-continue",
            "monitor where",
        ],
    );
    assert!(
        shown.contains("No more reverse-execution history"),
        "{shown}"
    );
    assert!(shown.contains("frames came out right"), "{shown}");
    let [end, begin] = cycles(&shown)[..] else {
        panic!("no cycles: {shown}");
    };
    assert!(begin < end, "{shown}");
    assert!(shown.trim_end().contains("0x00004000 in _start"), "{shown}");
}

/// Names and lines of another firmware would be lies: it is known by its build id alone, and
/// code that was changed behind the build is known, too.
#[test]
fn an_elf_that_is_not_the_cards_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (another, [right, wrong]) = elf_of_another_build(folder.path(), 7);
    let changed = folder.path().join("changed");
    let mut elf = std::fs::read(tools().firmware.elf).unwrap();
    // The code in SRAM stands at its address in the file; one instruction is another.
    elf[0x4100] ^= 1;
    std::fs::write(&changed, elf).unwrap();
    let mut command = xtask(&["gdb", "--sim", "--break", "mailbox", "--", "-batch", "-nx"]);
    let file = |path: &Path| format!("file {}", path.display());
    for step in ["frame", &file(&another), &file(&changed)] {
        command.args(["-ex", step, "-ex", "tigon same"]);
    }
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let same = "the card has the code of gdb's ELF";
    assert_eq!(said.matches(same).count(), 1, "{said}");
    let said = String::from_utf8_lossy(&output.stderr);
    for words in [
        "the ELF in gdb is not the firmware on the card".to_owned(),
        format!("It is of build {wrong}, the card runs build {right}."),
        "the code on the card is not that of gdb's ELF".to_owned(),
    ] {
        assert!(said.contains(&words), "{words}: {said}");
    }
}

/// The way of an editor: a port, and one gdb after the other.
#[test]
fn the_simulator_waits_at_a_port() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    drop(taken);
    let mut server = xtask(&["gdb", "--sim", "--serve", &port, "--break", "mailbox"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let said: Vec<String> = lines
        .map(|line| line.expect("words"))
        .take_while(|line| !line.starts_with("gdb: the card waits"))
        .collect();
    let steps = said.iter().filter_map(|line| line.strip_prefix("  "));
    let steps: Vec<&str> = steps.collect();
    let firmware = said.iter().find_map(|line| {
        let words = line.strip_prefix("gdb: type gdb-multiarch ")?;
        words.strip_suffix(", and there:")
    });
    for _ in 0..2 {
        let mut gdb = Command::new("timeout");
        gdb.args(["60", "gdb-multiarch", "-batch", "-nx"]);
        gdb.arg(firmware.expect("an ELF"));
        for step in &steps {
            gdb.args(["-ex", step]);
        }
        let output = gdb.output().unwrap();
        let shown = String::from_utf8_lossy(&output.stdout);
        assert!(
            shown.contains("Temporary breakpoint 1, tigon_firmware::events::mailbox"),
            "{shown}"
        );
    }
    // One that has the ELF file of another build is told so before it goes anywhere.
    let folder = tempfile::tempdir().unwrap();
    let (another, [right, wrong]) = elf_of_another_build(folder.path(), 7);
    let mut gdb = Command::new("timeout");
    gdb.args(["60", "gdb-multiarch", "-batch", "-nx"])
        .arg(another);
    for step in &steps {
        gdb.args(["-ex", step]);
    }
    let output = gdb.output().unwrap();
    let (shown, said) = (&output.stdout, &output.stderr);
    let [shown, said] = [shown, said].map(|bytes| String::from_utf8_lossy(bytes));
    let words = format!("It is of build {wrong}, the card runs build {right}.");
    assert!(said.contains(&words), "{shown}{said}");
    assert!(!shown.contains("breakpoint 1"), "{shown}");
    signal(&server, Signal::INT);
    assert!(server.wait().unwrap().success(), "Ctrl-C is its end");
}

/// What a probe has seen from a cycle on.
type Seen = Arc<Mutex<Vec<(Position, u32)>>>;

/// Looks at each instruction from one cycle on, and sleeps before or does not.
struct Watcher {
    from: u64,
    sleeps: bool,
    until: u64,
    seen: Seen,
}

impl Probe for Watcher {
    fn look(&mut self, machine: &mut Machine, at: Position) -> Verdict {
        if at.cycle >= self.until {
            return Verdict::Leave;
        }
        if let Some(cpu) = at.cpu.filter(|_| at.cycle >= self.from) {
            let pc = machine.cpus().core(cpu).pc();
            self.seen.lock().unwrap().push((at, pc));
        }
        Verdict::From(if self.sleeps { self.from } else { 0 })
    }

    fn ended(&mut self, _: &mut Machine, how: &str) {
        panic!("it should have been left: {how}");
    }
}

fn watched(timed: bool, sleeps: bool, from: u64, until: u64) -> (Vec<(Position, u32)>, String) {
    let image = stage::firmware();
    let setup = Setup::new(Board::default(), Parameters::default(), &image);
    let mut machine = if timed {
        Machine::timed(setup.board.clone(), setup.parameters.clone(), 1)
    } else {
        Machine::new(setup.board.clone())
    };
    let seen = Seen::default();
    machine.set_probe(Box::new(Watcher {
        from,
        sleeps,
        until,
        seen: seen.clone(),
    }));
    let machine = SharedMachine::new(machine);
    let error = talk::talk(SimTransport::to(&machine), &setup, u64::MAX);
    let error = error.expect_err("it is left").to_string();
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    (seen, error)
}

/// Going back rests on this: up to where a probe wakes the machine does what it does under
/// a probe that sees all, to the cycle and the instruction.
#[test]
fn a_probe_that_sleeps_wakes_in_the_same_run() {
    for timed in [true, false] {
        // Behind the start of the traffic; the link is up within 103 ms.
        let (from, until) = (9_300_000, 9_400_000);
        let (asleep, error) = watched(timed, true, from, until);
        assert!(error.contains("the simulation has been left"), "{error}");
        let (awake, _) = watched(timed, false, from, until);
        assert!(asleep.len() > 10_000, "{}", asleep.len());
        let differs = asleep.iter().zip(&awake).position(|(a, b)| a != b);
        assert_eq!(differs, None, "timed {timed}");
        assert_eq!(asleep.len(), awake.len());
        assert!(asleep.iter().any(|(at, _)| at.cpu == Some(Cpu::A)));
    }
}
