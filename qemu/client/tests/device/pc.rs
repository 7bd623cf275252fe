//! A PC without software: QEMU with a test in place of the CPU.

use crate::fake::FakeCard;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Where the tests put the first card's BAR; the others follow.
pub const BAR: u64 = 0xE000_0000;
/// The first card's slot.
const SLOT: u32 = 0x10;
/// Bytes of memory.
pub const MEMORY_BYTES: u64 = 64 << 20;

const PATIENCE: Duration = Duration::from_secs(20);

/// What the environment names, if the tests have been given a guest's QEMU.
pub fn tools() -> Option<(PathBuf, PathBuf)> {
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let tools = Some((named("TIGON_GUEST_QEMU")?, named("TIGON_GUEST_CLIENT")?));
    for path in tools.iter().flat_map(|(qemu, client)| [qemu, client]) {
        assert!(path.is_file(), "{} is not there", path.display());
    }
    tools
}

/// Ends a test where there is no guest's QEMU to test.
macro_rules! tools_or_skip {
    () => {
        match crate::pc::tools() {
            Some(tools) => tools,
            None => {
                eprintln!("skipped: TIGON_GUEST_QEMU and TIGON_GUEST_CLIENT are not set");
                return;
            }
        }
    };
}
pub(crate) use tools_or_skip;

/// A running PC; it ends with the value.
pub struct Pc {
    qemu: Child,
    stdin: ChildStdin,
    answers: Receiver<String>,
    /// Level of the interrupt lines, as far as they were heard of.
    lines: [bool; 32],
    errors: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
    _folder: TempDir,
}

/// How the PC's memory is made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// In a file that the card's process can map.
    Shared,
    /// In the PC's own process.
    Private,
}

/// QEMU's command line up to the cards. A PC wants some BIOS, which never runs.
pub fn command(qemu: &Path, memory: Memory, folder: &Path) -> Command {
    let bios = folder.join("bios");
    std::fs::write(&bios, vec![0; 64 << 10]).expect("a file");
    let backend = match memory {
        Memory::Shared => "memory-backend-memfd,share=on",
        Memory::Private => "memory-backend-ram",
    };
    let mut command = Command::new(qemu);
    command
        .args(["-machine", "q35,accel=qtest,memory-backend=ram"])
        .args(["-display", "none", "-nodefaults", "-no-user-config"])
        .args(["-object", &format!("{backend},id=ram,size={MEMORY_BYTES}")])
        .args(["-m", &format!("{}M", MEMORY_BYTES >> 20)])
        .arg("-bios")
        .arg(bios);
    command
}

/// The words for a card.
pub fn device(client: &Path, socket: &Path, index: u32) -> String {
    let (client, socket) = (client.display(), socket.display());
    let slot = SLOT + index;
    format!("tigon2-vfio-user,addr={slot:#x},socket={socket},library={client},timeout-ms=1000")
}

impl Pc {
    /// A PC with these cards, their BARs set up and their DMA permitted.
    pub fn start((qemu, client): &(PathBuf, PathBuf), memory: Memory, cards: &[&FakeCard]) -> Self {
        let folder = TempDir::new().expect("a folder");
        let mut command = command(qemu, memory, folder.path());
        for (index, card) in (0..).zip(cards) {
            command.args(["-device", &device(client, &card.socket, index)]);
        }
        let mut qemu = command
            .args(["-qtest", "stdio", "-qtest-log", "none"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("QEMU starts");
        let stdin = qemu.stdin.take().expect("a pipe");
        let stdout = BufReader::new(qemu.stdout.take().expect("a pipe"));
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            let lines = stdout.lines().map_while(Result::ok);
            lines.map(|line| sender.send(line)).all(|sent| sent.is_ok())
        });
        let errors = Arc::new(Mutex::new(String::new()));
        let mut stderr = qemu.stderr.take().expect("a pipe");
        let said = errors.clone();
        let reader = std::thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(n @ 1..) = stderr.read(&mut part) {
                let text = String::from_utf8_lossy(&part[..n]).into_owned();
                said.lock().expect("no panic").push_str(&text);
            }
        });
        let mut pc = Pc {
            qemu,
            stdin,
            answers,
            lines: [false; 32],
            errors,
            reader: Some(reader),
            _folder: folder,
        };
        pc.ask("irq_intercept_in ioapic");
        for index in 0..cards.len() as u32 {
            pc.set_up(index);
        }
        pc
    }

    /// What firmware does: where the BAR is, memory and bus master on.
    pub fn set_up(&mut self, index: u32) {
        let bar = BAR + u64::from(index) * 0x1_0000;
        self.config_write(index, 0x10, bar as u32);
        self.config_write(index, 0x04, 0x0006);
    }

    /// Says a line of the qtest protocol; gives what follows the OK.
    pub fn ask(&mut self, line: &str) -> String {
        writeln!(self.stdin, "{line}").expect("QEMU lives");
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.answers.recv_timeout(left) {
                Ok(answer) if answer.starts_with("IRQ ") => self.line_changed(&answer),
                Ok(answer) => match answer.strip_prefix("OK") {
                    Some(rest) => return rest.trim().to_owned(),
                    None => panic!("{line}: {answer}"),
                },
                Err(error) => panic!("{line}: {error}: {}", self.errors()),
            }
        }
    }

    fn line_changed(&mut self, message: &str) {
        let mut words = message.split_whitespace().skip(1);
        let (change, line) = (words.next(), words.next().and_then(|n| n.parse().ok()));
        if let Some(line @ 0..32) = line {
            let line: usize = line;
            self.lines[line] = change == Some("raise");
        }
    }

    fn number(&mut self, line: &str) -> u64 {
        let answer = self.ask(line);
        u64::from_str_radix(answer.trim_start_matches("0x"), 16).expect("a number")
    }

    /// Reads memory or a BAR; `size` is one of `b`, `w`, `l`, `q`.
    pub fn read(&mut self, size: char, address: u64) -> u64 {
        self.number(&format!("read{size} {address:#x}"))
    }

    /// Writes memory or a BAR.
    pub fn write(&mut self, size: char, address: u64, value: u64) {
        self.ask(&format!("write{size} {address:#x} {value:#x}"));
    }

    /// Writes an I/O port.
    pub fn port_write(&mut self, size: char, port: u16, value: u32) {
        self.ask(&format!("out{size} {port:#x} {value:#x}"));
    }

    /// Chooses a register of a function on bus 0.
    fn choose(&mut self, slot: u32, offset: u32) {
        let address = 0x8000_0000 | slot << 11 | (offset & 0xFC);
        self.port_write('l', 0xCF8, address);
    }

    /// Reads a word of a card's configuration space.
    pub fn config_read(&mut self, index: u32, offset: u32) -> u32 {
        self.config_read_sized(index, offset, 'l')
    }

    /// Reads a part of a word of a card's configuration space.
    pub fn config_read_sized(&mut self, index: u32, offset: u32, size: char) -> u32 {
        self.choose(SLOT + index, offset);
        self.number(&format!("in{size} {:#x}", 0xCFC + (offset & 3))) as u32
    }

    /// Writes a word of a card's configuration space.
    pub fn config_write(&mut self, index: u32, offset: u32, value: u32) {
        self.choose(SLOT + index, offset);
        self.port_write('l', 0xCFC, value);
    }

    /// Writes a byte of the configuration space of a function on bus 0.
    pub fn config_write_byte(&mut self, slot: u32, offset: u32, value: u8) {
        self.choose(slot, offset);
        self.port_write('b', 0xCFC + (offset & 3) as u16, value.into());
    }

    /// Whether any PCI interrupt line is high, after all that has happened so far.
    pub fn is_interrupted(&mut self) -> bool {
        // Lines are told of before the answer to what comes after them.
        self.read('b', 0);
        loop {
            match self.answers.recv_timeout(Duration::from_millis(1)) {
                Ok(message) => self.line_changed(&message),
                Err(RecvTimeoutError::Timeout) => break,
                Err(error) => panic!("{error}: {}", self.errors()),
            }
        }
        self.lines[16..24].contains(&true)
    }

    /// Waits for the lines to be high, or low.
    pub fn wait_interrupt(&mut self, level: bool) {
        let end = Instant::now() + PATIENCE;
        while self.is_interrupted() != level {
            assert!(Instant::now() < end, "the line never became {level}");
        }
    }

    /// What QEMU has said to its user.
    pub fn errors(&self) -> String {
        self.errors.lock().expect("no panic").clone()
    }

    /// Waits until QEMU has said something that contains `text`.
    pub fn wait_error(&self, text: &str) {
        let end = Instant::now() + PATIENCE;
        while !self.errors().contains(text) {
            assert!(Instant::now() < end, "never said: {}", self.errors());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Is QEMU still there?
    pub fn is_alive(&mut self) -> bool {
        matches!(self.qemu.try_wait(), Ok(None))
    }
}

impl Drop for Pc {
    fn drop(&mut self) {
        // Errors mean that it has ended already.
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

/// Waits until something holds.
pub fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
