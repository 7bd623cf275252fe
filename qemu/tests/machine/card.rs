//! A card under QEMU, seen from its PCI side.

use crate::assembler::Program;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tigon2_chip::Cpu;
use tigon2_chip::registers::Register;
use vfio_user_nic::Client;
use vfio_user_nic::message::region;

const PATIENCE: Duration = Duration::from_secs(10);
const HALT: u32 = 1 << 16;
/// SRAM of the default board.
pub const SRAM_BYTES: u32 = 0x10_0000;

/// A file that an environment variable names.
fn named(variable: &str) -> PathBuf {
    let path = std::env::var_os(variable).map(PathBuf::from);
    let path = path.unwrap_or_else(|| panic!("{variable} is not set; run `cargo xtask test`"));
    assert!(
        path.is_file(),
        "{variable} names {}, which is not there",
        path.display()
    );
    path
}

/// QEMU with the machine and no other device; `machine` follows `-M tigon2`.
pub fn qemu(machine: &str, options: &[&str]) -> Command {
    let mut command = Command::new(named("TIGON_QEMU_MIPS"));
    command
        .arg("-M")
        .arg(format!("tigon2{machine}"))
        .args(["-display", "none", "-nodefaults"])
        .args(options)
        .stdin(Stdio::null());
    command
}

/// The model, as an option of the machine.
pub fn model() -> String {
    format!(",model={}", named("TIGON_QEMU_MODEL").display())
}

/// A running card; it ends with the value.
pub struct Card {
    /// The process.
    pub qemu: Child,
    client: Option<Client>,
    /// Sockets and files of this card.
    pub folder: TempDir,
}

impl Card {
    /// A card with nothing on its wire.
    pub fn start() -> Self {
        Self::start_with("", |_| Vec::new())
    }

    /// A card with further options of the machine, and of QEMU.
    pub fn start_with(machine: &str, options: impl FnOnce(&TempDir) -> Vec<String>) -> Self {
        Self::start_changed(machine, options, |_, _| ())
    }

    /// A card with further options of QEMU that complains to nobody.
    pub fn start_silent(options: impl FnOnce(&TempDir) -> Vec<String>) -> Self {
        Self::start_changed("", options, |command, _| {
            command.stderr(Stdio::null());
        })
    }

    /// The same as [`start_with`](Self::start_with), with a last change of QEMU's command.
    pub fn start_changed(
        machine: &str,
        options: impl FnOnce(&TempDir) -> Vec<String>,
        change: impl FnOnce(&mut Command, &TempDir),
    ) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let socket = folder.path().join("card.sock");
        let options = options(&folder);
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let machine = format!("{},socket={}{machine}", model(), socket.display());
        let mut command = qemu(&machine, &options);
        change(&mut command, &folder);
        let qemu = command.spawn().expect("QEMU starts");
        let mut card = Card {
            qemu,
            client: None,
            folder,
        };
        card.connect();
        card
    }

    /// Where the card serves its clients.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("card.sock")
    }

    /// Closes the connection to the card, if there is one.
    pub fn leave(&mut self) {
        self.client = None;
    }

    /// Closes the connection to the card, if there is one, and makes another.
    pub fn connect(&mut self) {
        self.leave();
        let socket = self.socket();
        let start = Instant::now();
        self.client = loop {
            match Client::connect(&socket, PATIENCE) {
                Ok(client) => break Some(client),
                Err(error) => assert!(start.elapsed() < PATIENCE, "no card: {error}"),
            }
            let ended = self.qemu.try_wait().expect("QEMU can be waited for");
            assert_eq!(ended, None, "QEMU has ended");
            std::thread::sleep(Duration::from_millis(5));
        };
        // As the drivers do: 32-bit words keep their value (reference 9).
        self.write(Register::MiscHostControl.offset(), 0x2200_0022);
    }

    /// The PCI side.
    pub fn client(&mut self) -> &mut Client {
        self.client.as_mut().expect("the card is connected")
    }

    /// Reads a word of BAR 0.
    pub fn read(&mut self, offset: u32) -> u32 {
        let mut word = [0; 4];
        let read = self
            .client()
            .region_read(region::BAR0, offset.into(), &mut word);
        read.expect("BAR 0 can be read");
        u32::from_le_bytes(word)
    }

    /// Writes a word of BAR 0.
    pub fn write(&mut self, offset: u32, value: u32) {
        let client = self.client();
        let written = client
            .region_post(region::BAR0, offset.into(), &value.to_le_bytes())
            .and_then(|()| client.flush());
        written.expect("BAR 0 can be written");
    }

    /// Reads a word of NIC memory through the window.
    pub fn load(&mut self, address: u32) -> u32 {
        self.write(Register::WindowBase.offset(), address & !0x7FF);
        self.read(0x800 + (address & 0x7FF))
    }

    /// Writes a word of NIC memory through the window.
    pub fn store(&mut self, address: u32, value: u32) {
        self.write(Register::WindowBase.offset(), address & !0x7FF);
        self.write(0x800 + (address & 0x7FF), value);
    }

    /// Halts a CPU, loads a program and lets the CPU run it.
    pub fn run_on(&mut self, cpu: Cpu, program: &Program) {
        self.write(Register::cpu_state(cpu).offset(), HALT);
        for (n, word) in (0..).zip(&program.words) {
            self.store(program.base + 4 * n, *word);
        }
        self.start_cpu(cpu, program.base);
    }

    /// The same on CPU A.
    pub fn run(&mut self, program: &Program) {
        self.run_on(Cpu::A, program);
    }

    /// Starts a halted CPU.
    pub fn start_cpu(&mut self, cpu: Cpu, pc: u32) {
        self.write(Register::cpu_pc(cpu).offset(), pc);
        self.write(Register::cpu_state(cpu).offset(), 0);
    }

    /// Whether a CPU is halted.
    pub fn halted(&mut self, cpu: Cpu) -> bool {
        self.read(Register::cpu_state(cpu).offset()) & HALT != 0
    }

    /// Waits for a CPU's halt and returns its program counter.
    pub fn wait_halt(&mut self, cpu: Cpu) -> u32 {
        self.wait("the CPU halts", |card| card.halted(cpu));
        self.read(Register::cpu_pc(cpu).offset())
    }

    /// Waits until `done` is true.
    pub fn wait(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        let start = Instant::now();
        while !done(self) {
            assert!(start.elapsed() < PATIENCE, "waited in vain: {what}");
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Runs a program to its `break`, which must be its last instruction.
    pub fn run_to_end_on(&mut self, cpu: Cpu, program: &Program) {
        self.run_on(cpu, program);
        let pc = self.wait_halt(cpu);
        assert_eq!(pc, program.here() - 4, "the program came to its end");
    }

    /// The same on CPU A.
    pub fn run_to_end(&mut self, program: &Program) {
        self.run_to_end_on(Cpu::A, program);
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to end.
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}
