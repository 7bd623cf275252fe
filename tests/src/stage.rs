//! A running card: firmware loaded, opened, link up.

use crate::engine::{Engine, tools};
use crate::frames;
use host_driver::log::{BuildId, LogTexts};
use host_driver::nic::{Link, Received, SendOptions};
use host_driver::{Config, Nic, Transport};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tigon2_model::is_flow_control;

const LINK: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(10);

/// The stage of a story.
pub struct Stage<E: Engine> {
    /// The driver, on the host's side.
    pub nic: Nic<E::Transport>,
    /// The card and its wire.
    pub engine: E,
    /// Frames from the card that were taken off the wire and nobody asked for yet.
    left: VecDeque<Vec<u8>>,
}

impl<E: Engine> Stage<E> {
    /// A card that is powered up and probed, without firmware.
    pub fn probed(config: Config) -> Self {
        let (engine, transport) = E::start();
        Self::on(engine, transport, config)
    }

    /// The same with an engine that was started already.
    pub fn on(engine: E, transport: E::Transport, config: Config) -> Self {
        let nic = Nic::probe(transport, config).unwrap_or_else(|error| panic!("{error}"));
        Self::resume(nic, engine)
    }

    /// A card that something else was done with before.
    pub fn resume(nic: Nic<E::Transport>, engine: E) -> Self {
        Stage {
            nic,
            engine,
            left: VecDeque::new(),
        }
    }

    /// A card that carries frames.
    pub fn open() -> Self {
        Self::open_with(Config::default())
    }

    /// A card that carries frames, with a configuration of the story's own.
    pub fn open_with(config: Config) -> Self {
        let mut stage = Self::probed(config);
        stage.load_and_open();
        stage
    }

    /// Loads the firmware, opens the card and waits for the link.
    pub fn load_and_open(&mut self) {
        let mut up = || -> Result<Link, host_driver::NicError> {
            self.nic.load(&E::firmware())?;
            self.nic.open()?;
            self.nic.wait_link(LINK)
        };
        let link = up().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(link, Link::Gigabit);
    }

    /// A frame to the card's host.
    pub fn inbound(&self, number: u32) -> Vec<u8> {
        frames::numbered(self.nic.station(), frames::PEER, number)
    }

    /// A frame from the card's host.
    pub fn outbound(&self, number: u32) -> Vec<u8> {
        frames::numbered(frames::PEER, self.nic.station(), number)
    }

    /// Hands a frame of these fragments to the card, waiting for room. Meanwhile the
    /// wire is read: a peer that does not read holds the card back, for good.
    pub fn transmit(&mut self, fragments: &[&[u8]]) {
        self.transmit_as(fragments, SendOptions::default());
    }

    /// The same, with more for the card to do.
    pub fn transmit_as(&mut self, fragments: &[&[u8]], options: SendOptions) {
        let slices: Vec<IoSlice<'_>> = fragments.iter().map(|part| IoSlice::new(part)).collect();
        let end = Instant::now() + PATIENCE;
        let queue = |nic: &mut Nic<E::Transport>| nic.queue_as(&slices, options);
        while !queue(&mut self.nic).expect("a frame that can be sent") {
            in_time(end, &mut self.nic, "the send ring stays full");
            self.nic.submit().expect("the card is there");
            while let Some(frame) = self.engine.receive_now() {
                self.left.push_back(frame);
            }
            self.turn();
        }
        self.nic.submit().expect("the card is there");
    }

    /// Waits for the card and does what it asks for. True if it interrupted.
    pub fn turn(&mut self) -> bool {
        let came = self
            .nic
            .wait(Duration::from_millis(20))
            .expect("the card is there");
        if came {
            self.nic.acknowledge().expect("the card is there");
        }
        if let Err(error) = self.nic.service() {
            self.give_up(&error.to_string());
        }
        came
    }

    /// [`give_up`], by a way past the driver if the driver's does not work any more.
    ///
    /// # Panics
    /// Always.
    pub fn give_up(&mut self, why: &str) -> ! {
        if let Err(error) = self.nic.card_state() {
            panic!("{why} ({error}; emulator: {})", self.engine.counts());
        }
        give_up(&mut self.nic, why)
    }

    /// Receives until `count` frames are there.
    ///
    /// # Panics
    /// When they do not come in time.
    pub fn receive(&mut self, count: usize) -> Vec<Vec<u8>> {
        let received = self.receive_described(count).into_iter();
        received.map(|frame| frame.bytes).collect()
    }

    /// Receives until `count` frames are there, with what the card says of them.
    ///
    /// # Panics
    /// When they do not come in time.
    pub fn receive_described(&mut self, count: usize) -> Vec<Received> {
        let end = Instant::now() + PATIENCE;
        let mut received = Vec::new();
        loop {
            let frames = self.nic.receive_described(64);
            received.extend(frames.unwrap_or_else(|error| panic!("{error}")));
            if received.len() >= count {
                return received;
            }
            let arrived = format!("{} of {count} frames arrived", received.len());
            in_time(end, &mut self.nic, &arrived);
            self.turn();
        }
    }

    /// Receives until nothing comes any more.
    pub fn receive_until_quiet(&mut self) -> Vec<Vec<u8>> {
        let mut received = Vec::new();
        let mut quiet = 0;
        while quiet < 5 {
            let frames = self.nic.receive_batch(64);
            let frames = frames.unwrap_or_else(|error| panic!("{error}"));
            quiet = if frames.is_empty() { quiet + 1 } else { 0 };
            received.extend(frames);
            self.turn();
        }
        received
    }

    /// The next frame from the card's wire. A pause frame is none: that is for the
    /// peer's MAC, and `engine` shows it.
    ///
    /// # Panics
    /// When none comes.
    pub fn wire(&mut self) -> Vec<u8> {
        loop {
            let frame = self.wire_now().or_else(|| self.engine.receive());
            let Some(frame) = frame else {
                self.give_up("no frame on the wire");
            };
            if !is_flow_control(&frame) {
                return frame;
            }
        }
    }

    /// A frame that has come out of the card's wire by now, if there is one.
    pub fn wire_now(&mut self) -> Option<Vec<u8>> {
        loop {
            let frame = self.left.pop_front();
            let frame = frame.or_else(|| self.engine.receive_now())?;
            if !is_flow_control(&frame) {
                return Some(frame);
            }
        }
    }
}

/// Fails, with what is known of the card: who waits for it in a story and gives up, does so
/// here.
///
/// # Panics
/// Always.
pub fn give_up<T: Transport>(nic: &mut Nic<T>, why: &str) -> ! {
    match nic.card_state() {
        Ok(state) => panic!("{why} ({state})"),
        Err(error) => panic!("{why} ({error})"),
    }
}

/// Gives up if it is later than `end`.
///
/// # Panics
/// If it is.
pub fn in_time<T: Transport>(end: Instant, nic: &mut Nic<T>, why: &str) {
    if Instant::now() >= end {
        give_up(nic, why);
    }
}

/// The default firmware, in the drivers' load format.
pub fn firmware() -> Vec<u8> {
    let path = tools().firmware.tg2;
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Where its ELF is, with symbols.
pub fn elf() -> PathBuf {
    tools().firmware.elf
}

/// Writes that ELF into a folder with one bit of byte `byte` of its build id changed, and
/// nothing else; returns where it is, and both build ids.
///
/// # Panics
/// If the ELF cannot be read, is not the firmware's, or there is no room.
pub fn elf_of_another_build(folder: &Path, byte: usize) -> (PathBuf, [BuildId; 2]) {
    let mut file = std::fs::read(elf()).expect("the ELF");
    let right = LogTexts::parse(&file).expect("its texts").build();
    let BuildId(mut id) = right;
    let at = file.windows(id.len()).position(|bytes| bytes == id);
    id[byte] ^= 1;
    file[at.expect("its build id") + byte] ^= 1;
    let path = folder.join("another-build");
    std::fs::write(&path, file).expect("room");
    (path, [right, BuildId(id)])
}
