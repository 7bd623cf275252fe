//! Tests that the gdb stub shows both CPUs.

use crate::assembler::{Program, T0, ZERO};
use crate::card::Card;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use tempfile::TempDir;
use tigon2_chip::Cpu;
use tigon2_chip::registers::Register;

/// A connection to the stub that knows its packets.
struct Debugger(UnixStream);

impl Debugger {
    fn connect(folder: &TempDir) -> Self {
        let stream = UnixStream::connect(folder.path().join("gdb")).expect("the stub listens");
        let limit = Some(std::time::Duration::from_secs(10));
        stream
            .set_read_timeout(limit)
            .expect("a time limit can be set");
        Debugger(stream)
    }

    fn byte(&mut self) -> u8 {
        let mut byte = [0];
        self.0.read_exact(&mut byte).expect("the stub answers");
        byte[0]
    }

    fn send(&mut self, packet: &str) {
        let sum = packet.bytes().fold(0u8, |sum, byte| sum.wrapping_add(byte));
        write!(self.0, "${packet}#{sum:02x}").expect("the stub reads");
        while self.byte() != b'+' {}
    }

    fn receive(&mut self) -> String {
        while self.byte() != b'$' {}
        let mut packet = Vec::new();
        loop {
            match self.byte() {
                b'#' => break,
                byte => packet.push(byte),
            }
        }
        // The checksum; the socket cannot damage a packet.
        self.byte();
        self.byte();
        self.0.write_all(b"+").expect("the stub reads");
        String::from_utf8_lossy(&packet).into_owned()
    }

    fn ask(&mut self, packet: &str) -> String {
        self.send(packet);
        self.receive()
    }
}

/// A card with a gdb stub in its folder.
fn start() -> Card {
    Card::start_with("", |folder| {
        let path = folder.path().join("gdb");
        let stub = format!("unix:{},server=on,wait=off", path.display());
        vec!["-gdb".into(), stub]
    })
}

#[test]
fn both_cpus_are_threads_of_one_program() {
    let mut program = Program::new();
    program.store(1, 0x1000);
    let stop = program.here();
    program.store(2, 0x1000).spin();
    let mut card = start();
    card.run(&program);
    card.wait("the program runs", |card| card.load(0x1000) == 2);

    let mut debugger = Debugger::connect(&card.folder);
    debugger.ask("?");
    assert_eq!(debugger.ask("qfThreadInfo"), "m01");
    assert_eq!(debugger.ask("qsThreadInfo"), "m02");
    assert_eq!(debugger.ask("qsThreadInfo"), "l");
    // CPU B has never run: its program counter, register 37, is 0.
    assert_eq!(debugger.ask("Hg2"), "OK");
    assert_eq!(debugger.ask("p25"), "00000000");
    assert_eq!(debugger.ask("Hg1"), "OK");
    assert_eq!(debugger.ask("m1000,4"), "00000002");
    assert_eq!(debugger.ask(&format!("Z0,{stop:x},4")), "OK");
    debugger.send("c");

    card.run(&program);
    assert!(
        debugger.receive().starts_with("T05"),
        "it stops at the breakpoint"
    );
    assert_eq!(debugger.ask("p25"), format!("{stop:08x}"));
    assert_eq!(debugger.ask("m1000,4"), "00000001");
    // One instruction further.
    assert!(debugger.ask("vCont;s:1").starts_with("T05"));
    assert_eq!(debugger.ask("p25"), format!("{:08x}", stop + 4));
    assert!(!card.halted(Cpu::A), "the PCI side still answers");
}

/// Sleeping is QEMU's business: a debugger sees a CPU that runs in its loop.
#[test]
fn a_sleeping_cpu_looks_awake() {
    let mut program = Program::new();
    let poll = program.here();
    program.read(T0, Register::EventA).beq(T0, ZERO, poll);
    let end = program.here();
    let mut card = start();
    card.run(&program);
    // Long enough to get there on a busy machine too: a debugger stops the clock.
    std::thread::sleep(std::time::Duration::from_millis(500));
    let mut debugger = Debugger::connect(&card.folder);
    debugger.ask("?");
    let hex: String = "CPU#0 [running]"
        .bytes()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(debugger.ask("qThreadExtraInfo,1"), hex);
    assert_eq!(debugger.ask("Hg1"), "OK");
    let pc = u32::from_str_radix(&debugger.ask("p25"), 16).expect("a number");
    assert!((poll..end).contains(&pc), "{pc:#x} is in the loop");
    // A debugger that looks at nothing is nobody's mistake, and at a register sees it.
    assert_eq!(debugger.ask("m40000000,4"), "00000000");
    assert_eq!(debugger.ask("mc0000060,4"), "00000000");
    for _ in 0..10 {
        assert!(debugger.ask("vCont;s:1").starts_with("T05"));
    }
}
