//! Tests `gdb-multiarch` on the machine's stub: both CPUs, a Rust handler by name, a local by
//! name; and `cargo xtask gdb`, which prepares all of it.

use host_driver::{Config, Nic};
use integration_tests::engine::tools;
use integration_tests::stage::in_time;
use integration_tests::xtask_command::{complaint, signal, xtask};
use integration_tests::{Engine, Qemu, frames, stage};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use testbed::card::CardOptions;
use testbed::firmware::choice::{self, Placement, Variant};
use tigon_firmware::memory::shared;
use tigon2_chip::{Cpu, memory};

/// The line of a source file that begins with these words.
fn line(file: &str, words: &str) -> String {
    let source = std::fs::read_to_string(testbed::paths::root().join(file)).unwrap();
    let found = source
        .lines()
        .position(|l| l.trim_start().starts_with(words));
    format!("{file}:{}", found.expect("the words are in the source") + 1)
}

/// gdb on the card's stub; it gives up by itself if a breakpoint is never hit.
fn gdb(stub: &Path, script: &[&str]) -> Child {
    let remote = format!("target remote {}", stub.display());
    let start = ["set pagination off", "set breakpoint pending off", &remote];
    let mut command = Command::new("timeout");
    command
        .args(["60", "gdb-multiarch", "-batch", "-nx"])
        .arg(tools().firmware.elf)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    for step in start.iter().chain(script) {
        command.args(["-ex", step]);
    }
    command.spawn().expect("gdb-multiarch is installed")
}

#[test]
fn gdb_stops_in_a_handler_and_prints_a_local() {
    let (mut engine, transport) = Qemu::with(&CardOptions {
        gdb: true,
        ..CardOptions::default()
    });
    let mut nic = Nic::probe(transport, Config::default()).unwrap();
    nic.load(&stage::firmware()).unwrap();
    nic.open().unwrap();
    nic.wait_link(Duration::from_secs(5)).unwrap();
    // One that the fast path leaves to the handler.
    let frame = frames::numbered([0xFF; 6], frames::PEER, 2);

    // At this line the handler has judged the frame. The lines before it have code only for rings
    // that may be empty or full.
    let judged = line(
        "firmware/src/path/receive/handlers.rs",
        "if flaws != 0 || ring.is_extended() {",
    );
    let gdb = gdb(
        &engine.card.gdb(),
        &[
            "info threads",
            "break tigon_firmware::events::receive_complete<tigon2_hal::mmio::Mmio>",
            "continue",
            "delete",
            &format!("break {judged}"),
            "continue",
            "print length",
            "delete",
            "detach",
        ],
    );
    // Frames until gdb has seen one: it may not have its breakpoint yet.
    let output = std::thread::scope(|scope| {
        let gdb = scope.spawn(move || gdb.wait_with_output().unwrap());
        while !gdb.is_finished() {
            engine.send(&frame);
            std::thread::sleep(Duration::from_millis(100));
        }
        gdb.join().unwrap()
    });
    let said = String::from_utf8_lossy(&output.stdout);
    let shown = format!("{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("Thread 1.1"), "CPU A: {shown}");
    assert!(said.contains("Thread 1.2"), "CPU B: {shown}");
    assert!(
        said.contains("hit Breakpoint 1, tigon_firmware::events::receive_complete"),
        "{shown}"
    );
    let length = format!("$1 = {}\n", frame.len());
    assert!(said.contains(&length), "{length}: {shown}");

    // Without gdb the card goes on as if nothing had been.
    let end = std::time::Instant::now() + Duration::from_secs(5);
    let mut received = Vec::new();
    while received.is_empty() {
        in_time(end, &mut nic, "the card is stuck");
        nic.wait(Duration::from_millis(20)).unwrap();
        nic.service().unwrap();
        received = nic.receive_batch(64).unwrap();
    }
    assert_eq!(received[0], frame);
}

/// What `cargo xtask gdb` shows with these words behind `--`.
fn session(place: &str, script: &[&str]) -> String {
    let mut command = xtask(&["gdb", "--break", place, "--", "-batch", "-nx"]);
    for step in script {
        command.args(["-ex", step]);
    }
    let output = command.stdin(Stdio::null()).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let shown = format!("{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{shown}");
    shown
}

/// The line that begins with these words, without them.
fn after<'a>(shown: &'a str, words: &str) -> &'a str {
    let mut lines = shown.lines();
    let found = lines.find_map(|line| line.trim_start().strip_prefix(words));
    found.unwrap_or_else(|| panic!("no {words}: {shown}"))
}

#[test]
fn a_session_begins_in_the_handler_and_knows_the_chip() {
    let shown = session(
        "receive_complete",
        &[
            "tigon events",
            "tigon regs AssistReadP*",
            "tigon rings",
            "tigon trace",
            "tigon words InterfaceMtu",
            "tigon bd 0x2000",
            "tigon bd 0x1C000 receive",
            "tigon dma 0x133000",
        ],
    );
    assert!(
        shown.contains("breakpoint 1, tigon_firmware::events::receive_complete"),
        "{shown}"
    );
    // Whatever else is pending: a frame is, and it lies in the MAC's ring.
    assert!(
        after(&shown, "CPU A: ").contains("ReceiveComplete"),
        "{shown}"
    );
    let ring = after(&shown, "MAC receive ");
    let used = ring.split_whitespace().nth(2).expect("a count");
    assert_ne!(used, "0", "{shown}");
    // K is 0x12F000 with 1 MB, and the ring of 64 descriptors at K + 0x4000 (reference 2.2).
    let producer = after(&shown, "0x100 RW  AssistReadProducer").trim();
    let producer = u32::from_str_radix(&producer[2..], 16).expect("a word");
    assert!((0x13_3000..0x13_3800).contains(&producer), "{shown}");
    assert!(shown.contains("us BOOT"), "{shown}");
    assert_eq!(
        after(&shown, "0x260 InterfaceMtu").trim(),
        "0x000005ee 1518"
    );
    // An ARP request went first: 42 bytes, one BD.
    let bd = after(&shown, "send BD at 0x2000: ");
    assert!(bd.ends_with("length 42"), "{shown}");
    assert!(shown.contains("flags 0x0004 end"), "{shown}");
    assert!(after(&shown, "receive BD at 0x1c000: ").contains("length 2048"));
    // The first transfer of all fetched the standard ring's first BDs to 0x1C000.
    let dma = after(&shown, "DMA descriptor at 0x133000: ");
    assert!(dma.contains("NIC 0x"), "{shown}");
}

#[test]
fn a_session_begins_at_the_first_instruction_and_watches_a_word() {
    // 0x2B8 is the send consumer index for drivers that read it by register.
    let shown = session("_start", &["watch *(0x2b8 as *mut u32)", "continue"]);
    assert!(shown.contains("0x00004000 in _start"), "{shown}");
    assert!(shown.contains("Old value = 0\nNew value = 1\n"), "{shown}");
    assert!(shown.contains("tigon_firmware::path::send::"), "{shown}");
}

/// The thread of a CPU that runs a handler: in the uniprocessor firmware CPU A runs all.
fn thread_of(cpu: Cpu) -> usize {
    if choice::chosen().0.is_parallel() {
        1 + cpu.index()
    } else {
        1
    }
}

/// A handler of CPU B: its argument is CPU B's side, `next` goes on line by line in what the
/// handler is made of, and a watchpoint set there stops CPU A when it writes a word that
/// CPU B reads.
#[test]
fn a_session_in_a_handler_of_cpu_b_steps_and_watches_what_cpu_a_writes() {
    let word = shared::RECEIVE_PRODUCERS.of(0).address();
    let shown = session(
        "send_data_ready",
        &[
            "thread",
            "info args",
            "print side.send.in_flight",
            "next",
            "info locals",
            "step",
            "step",
            "step",
            "tigon events",
            &format!("watch *({word:#x} as *mut u32)"),
            "continue",
            "thread",
            "backtrace",
        ],
    );
    let stopped = "breakpoint 1, tigon_firmware::events::send_data_ready";
    assert!(shown.contains(stopped), "{shown}");
    let thread = |cpu| format!("[Current thread is {} ", thread_of(cpu));
    let (before, behind) = shown
        .split_once("Hardware watchpoint")
        .expect("a watchpoint");
    assert!(before.contains(&thread(Cpu::B)), "{shown}");
    // The state of CPU B is in its own scratch pad.
    let side = after(before, "side = ")
        .split(' ')
        .next()
        .unwrap_or_default();
    let side = u32::from_str_radix(side.trim_start_matches("0x"), 16).expect("an address");
    let pad = memory::SCRATCH_BASE..memory::SCRATCH_BASE + memory::SCRATCH_B_BYTES;
    assert!(pad.contains(&side), "{shown}");
    // gdb shows a line that it steps to as its number and its text.
    let steps = before.lines().filter(|line| {
        let number = line.split('\t').next().unwrap_or_default();
        line.contains('\t') && number.parse::<u32>().is_ok()
    });
    assert!(steps.count() >= 4, "{shown}");
    assert!(before.contains("count = 0x"), "a local: {shown}");
    assert!(behind.contains("Old value = "), "{shown}");
    assert!(behind.contains(&thread(Cpu::A)), "{shown}");
    assert!(
        behind.contains("tigon_firmware::path::receive::"),
        "{shown}"
    );
}

#[test]
fn what_gdb_cannot_do_is_said_in_one_line() {
    let run = |words: &[&str]| xtask(words).stdin(Stdio::null()).output().unwrap();
    assert_eq!(
        complaint(&run(&["gdb", "--break", "no_such_handler"])),
        "the firmware has no function no_such_handler"
    );
    let failed = run(&[
        "gdb", "--", "-batch", "-nx", "-ex", "tigon bd", "-ex", "quit 3",
    ]);
    let said = String::from_utf8_lossy(&failed.stderr);
    assert!(said.contains("usage: tigon bd ADDRESS"), "{said}");
    assert!(complaint(&failed).starts_with("gdb failed"));
}

/// A command that goes on until Ctrl-C: also if the test fails.
struct Server(Child);

impl Server {
    fn interrupt(&self) {
        signal(&self.0, Signal::INT);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            self.interrupt();
            let _ = self.0.wait();
        }
    }
}

/// The way of an editor: a port instead of a gdb.
#[test]
fn a_card_waits_at_a_port_for_any_gdb() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let refused = xtask(&["gdb", "--serve", &port]).output().unwrap();
    assert!(complaint(&refused).contains("Address already in use"));
    drop(taken);
    let server = xtask(&["gdb", "--serve", &port, "--break", "mailbox"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut server = Server(server);
    let lines = BufReader::new(server.0.stdout.take().unwrap()).lines();
    let lines = lines.map(|line| line.expect("words"));
    let said: Vec<String> = lines
        .take_while(|line| !line.starts_with("gdb: the card waits"))
        .collect();
    let steps: Vec<&str> = said.iter().filter_map(|l| l.strip_prefix("  ")).collect();
    let mut gdb = Command::new("timeout");
    gdb.args(["60", "gdb-multiarch", "-batch", "-nx"])
        .arg(tools().firmware.elf);
    for step in &steps {
        gdb.args(["-ex", step]);
    }
    let output = gdb.output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(
        shown.contains("hit Temporary breakpoint 1, tigon_firmware::events::mailbox"),
        "{shown}"
    );
    server.interrupt();
    assert!(server.0.wait().unwrap().success(), "Ctrl-C is its end");
}

/// The files of VS Code say what the command says.
#[test]
fn the_editor_starts_the_same_card() {
    let read = |name: &str| -> Value {
        let path = testbed::paths::root().join(".vscode").join(name);
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    };
    let (tasks, launch) = (read("tasks.json"), read("launch.json"));
    let (task, configuration) = (&tasks["tasks"][0], &launch["configurations"][0]);
    assert_eq!(configuration["preLaunchTask"], task["label"]);
    let port = task["args"][3].as_str().unwrap();
    assert_eq!(
        configuration["miDebuggerServerAddress"],
        format!("localhost:{port}")
    );
    let folder = "${workspaceFolder}/";
    let program = configuration["program"].as_str().unwrap();
    let program = program.strip_prefix(folder).unwrap();
    // The task names no variant, so it starts the project's default.
    let name = choice::file_name(Variant::default(), Placement::default());
    let (folder, file) = program.rsplit_once('/').unwrap();
    assert_eq!(file, format!("{name}.elf"));
    let built = tools().firmware.elf;
    let built = built.parent().unwrap();
    assert_eq!(
        built.strip_prefix(testbed::paths::target()).unwrap(),
        Path::new(folder).strip_prefix("target").unwrap()
    );
    let script = configuration["setupCommands"][1]["text"].as_str().unwrap();
    let script = script.strip_prefix("source ${workspaceFolder}/").unwrap();
    assert!(testbed::paths::root().join(script).is_file());
}
