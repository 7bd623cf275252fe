//! The engine that runs the card in a story.

use host_driver::Transport;
use host_driver::peer::DatagramWire;
use host_driver::transport::vfio_user::VfioUser;
use std::path::Path;
use std::time::{Duration, Instant};
use testbed::card::{Card, CardOptions};
use testbed::tools::Tools;
use tigon2_model::Board;
use tigon2_sim::timing::Parameters;
use tigon2_sim::transport::SharedMachine;
use tigon2_sim::{Machine, SimTransport};

/// How long a frame may take before a story says that it is lost.
const PATIENCE: Duration = Duration::from_secs(5);

/// A card with its wire, on something that runs it.
pub trait Engine: Sized {
    /// The driver's way to the card.
    type Transport: Transport;
    /// Whether the card's CPUs run in step, so that neither waits for the other's thread.
    const IN_STEP: bool;

    /// Powers a card up.
    fn start() -> (Self, Self::Transport);

    /// Powers a card of another board up, that of this board file.
    fn start_board(file: &Path) -> (Self, Self::Transport);

    /// The image that runs on the card.
    fn firmware() -> Vec<u8> {
        crate::stage::firmware()
    }

    /// Puts a frame on the wire towards the card.
    fn send(&mut self, frame: &[u8]);

    /// The next frame that comes out of the card's wire, if one comes in time.
    fn receive(&mut self) -> Option<Vec<u8>>;

    /// A frame that has come out of the wire by now, if there is one.
    fn receive_now(&mut self) -> Option<Vec<u8>>;

    /// Lets the card work for a while.
    fn pass(&mut self, time: Duration);

    /// Puts the cable in, or pulls it out.
    fn plug(&mut self, plugged: bool);

    /// Asks for a fault of the wire, in the words of the hardware model's `faults`.
    fn inject(&mut self, fault: &str);

    /// What the engine has counted that explains a stall, for who gives up waiting.
    fn counts(&self) -> String;
}

/// The tools that `cargo xtask test` has built.
///
/// # Panics
/// When a test is run without them, saying so.
pub fn tools() -> Tools {
    Tools::from_environment().unwrap_or_else(|error| panic!("{error:#}"))
}

/// The QEMU machine `tigon2`, its wire a pair of datagram sockets.
pub struct Qemu {
    wire: DatagramWire,
    /// The QEMU process.
    pub card: Card,
}

impl Engine for Qemu {
    type Transport = VfioUser;
    const IN_STEP: bool = false;

    fn start() -> (Self, VfioUser) {
        Qemu::with(&CardOptions {
            monitor: true,
            ..CardOptions::default()
        })
    }

    fn start_board(file: &Path) -> (Self, VfioUser) {
        Qemu::with(&CardOptions {
            monitor: true,
            board: Some(file.to_owned()),
            ..CardOptions::default()
        })
    }

    fn send(&mut self, frame: &[u8]) {
        let end = Instant::now() + PATIENCE;
        while !self.wire.send_frame(frame).expect("the wire is there") {
            if Instant::now() >= end {
                panic!(
                    "the card does not take frames (emulator: {})",
                    self.counts()
                );
            }
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    fn receive(&mut self) -> Option<Vec<u8>> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(frame) = self.receive_now() {
                return Some(frame);
            }
            if Instant::now() > end {
                return None;
            }
            self.wire
                .wait_frame(Duration::from_millis(50))
                .expect("the wire is there");
        }
    }

    fn receive_now(&mut self) -> Option<Vec<u8>> {
        self.wire.receive_frame().expect("the wire is there")
    }

    fn pass(&mut self, time: Duration) {
        std::thread::sleep(time);
    }

    fn plug(&mut self, plugged: bool) {
        let done = if plugged {
            self.card.plug()
        } else {
            self.card.unplug()
        };
        done.unwrap_or_else(|error| panic!("{error:#}"));
    }

    fn inject(&mut self, fault: &str) {
        let done = self.card.set("inject", fault);
        done.unwrap_or_else(|error| panic!("{error:#}"));
    }

    fn counts(&self) -> String {
        // Without a monitor, or a card that answers, there is less to say.
        let counts = self.card.counts();
        counts.unwrap_or_else(|error| format!("no counts: {error:#}"))
    }
}

impl Qemu {
    /// A card started with options of the story's own; its wire must be
    /// [`testbed::card::Wire::Datagram`].
    pub fn with(options: &CardOptions) -> (Qemu, VfioUser) {
        let card = Card::start(&tools(), options).unwrap_or_else(|error| panic!("{error:#}"));
        let wire = DatagramWire::bind(&card.wire_peer(), &card.wire_card())
            .expect("a socket in the card's folder");
        let transport = VfioUser::connect(&card.socket()).expect("the card's socket");
        (Qemu { wire, card }, transport)
    }
}

/// The simulator, in this process.
pub struct Sim {
    machine: SharedMachine,
}

impl Sim {
    /// The machine.
    pub fn machine(&self) -> &SharedMachine {
        &self.machine
    }

    /// A card that keeps time as the chip does, by the timing profile of a name.
    ///
    /// # Panics
    /// If there is no such profile.
    pub fn timed(profile: &str) -> (Self, SimTransport) {
        let text = testbed::paths::board_file().expect("the board file");
        let parameters = Parameters::from_toml(&text, profile);
        let parameters = parameters.unwrap_or_else(|error| panic!("{error}"));
        Sim::timed_by(parameters, 1)
    }

    /// The same by parameters of the story's own, with a seed for what varies.
    pub fn timed_by(parameters: Parameters, seed: u64) -> (Self, SimTransport) {
        Sim::timed_on(Board::default(), parameters, seed)
    }

    /// The same of some board.
    pub fn timed_on(board: Board, parameters: Parameters, seed: u64) -> (Self, SimTransport) {
        let machine = Machine::timed(board, parameters, seed);
        let transport = SimTransport::new(machine);
        let machine = transport.machine();
        (Sim { machine }, transport)
    }

    /// A card of some board.
    pub fn of(board: Board) -> (Self, SimTransport) {
        let transport = SimTransport::power_on(board);
        let machine = transport.machine();
        (Sim { machine }, transport)
    }
}

/// The card's time that the simulator runs at once while a story waits.
const STEP: Duration = Duration::from_micros(100);

impl Engine for Sim {
    type Transport = SimTransport;
    const IN_STEP: bool = true;

    fn start() -> (Self, SimTransport) {
        Sim::of(Board::default())
    }

    fn start_board(file: &Path) -> (Self, SimTransport) {
        let text = std::fs::read_to_string(file).expect("the board file");
        Sim::of(Board::from_toml(&text).expect("a board"))
    }

    fn send(&mut self, frame: &[u8]) {
        self.machine.lock().send_frame(0, frame.to_vec());
    }

    fn receive(&mut self) -> Option<Vec<u8>> {
        let mut waited = Duration::ZERO;
        while waited < PATIENCE {
            if let Some(frame) = self.receive_now() {
                return Some(frame);
            }
            self.pass(STEP);
            waited += STEP;
        }
        None
    }

    fn receive_now(&mut self) -> Option<Vec<u8>> {
        self.machine.lock().take_frame().map(|frame| frame.bytes)
    }

    fn pass(&mut self, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.machine.pass(nanoseconds);
    }

    fn plug(&mut self, plugged: bool) {
        self.machine.lock().set_cable(plugged);
    }

    fn inject(&mut self, fault: &str) {
        let fault = fault.parse().unwrap_or_else(|error| panic!("{error}"));
        self.machine.lock().inject(fault);
    }

    fn counts(&self) -> String {
        self.machine.stalls().to_string()
    }
}
