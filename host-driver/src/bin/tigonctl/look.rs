//! Commands that inspect a card without reset or firmware.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use host_driver::Transport;
use host_driver::live::{Direction, FrameStream};
use host_driver::nic::memory_window;
use host_driver::status::{self, Application, CardAnswer, Request};
use host_interface::extension::Extension;
use host_interface::gencom::Gencom;
use serde_json::{Value, json};
use spine_linker::endpoint::RingSizes;
use tigon2_chip::bits::MiscHostControl;
use tigon2_chip::registers::Register;

use super::cli::{Arguments, number};
use super::connect::transport;
use super::output::Output;

/// What to inspect: a card, or the driver of one.
pub enum Source {
    /// The card; it stays unchanged until the command ends.
    Card(Box<dyn Transport>),
    /// The status socket of the process that drives it.
    Attached(PathBuf),
}

impl Source {
    /// Opens what the arguments name.
    pub fn open(arguments: &Arguments) -> Result<Self> {
        if let Some(path) = &arguments.attach {
            return Ok(Self::Attached(path.clone()));
        }
        let mut card = transport(arguments)?;
        // Words of NIC memory are at their own addresses only with this bit.
        let register = Register::MiscHostControl.offset();
        let control = MiscHostControl::from_bits(card.read(register)?);
        if !control.word_swap() {
            let order = MiscHostControl::new().with_word_swap(true).into_bits();
            card.write(register, order * 0x0100_0001)?;
        }
        Ok(Self::Card(card))
    }

    fn ask(path: &Path, request: &Request) -> Result<Value> {
        status::ask(path, request).with_context(|| format!("status {}", path.display()))
    }

    /// Words of BAR 0.
    pub fn registers(&mut self, offsets: &[u32]) -> Result<Vec<u32>> {
        match self {
            Self::Card(card) => {
                let words = offsets.iter().map(|offset| Ok(card.read(*offset)?));
                words.collect()
            }
            Self::Attached(path) => {
                let offsets = offsets.to_vec();
                let answer = Self::ask(path, &Request::Registers { offsets })?;
                Ok(status::words(&answer)?)
            }
        }
    }

    /// Words of NIC memory.
    pub fn memory(&mut self, address: u32, words: u32) -> Result<Vec<u32>> {
        match self {
            Self::Card(card) => {
                let mut out = vec![0; words as usize];
                memory_window::read(card, address, &mut out)?;
                Ok(out)
            }
            Self::Attached(path) => {
                let answer = Self::ask(path, &Request::Memory { address, words })?;
                Ok(status::words(&answer)?)
            }
        }
    }

    /// Sends a request to the attached driver.
    pub fn request(&mut self, request: &Request) -> Result<Value> {
        match self {
            Self::Card(_) => bail!("only a driver answers: name its status socket with --attach"),
            Self::Attached(path) => Self::ask(path, request),
        }
    }

    /// The frames of the attached driver's card.
    pub fn capture(&self, direction: Option<Direction>) -> Result<FrameStream> {
        match self {
            Self::Card(_) => bail!("only a driver shows its frames: name its status socket"),
            Self::Attached(path) => status::capture(path, direction)
                .with_context(|| format!("status {}", path.display())),
        }
    }

    /// An endpoint at the attached driver's card, for messages to handlers of these domains.
    pub fn open_endpoint(&self, sizes: RingSizes, domains: &[u32]) -> Result<Application> {
        match self {
            Self::Card(_) => bail!("only a driver gives endpoints: name its status socket"),
            Self::Attached(path) => Application::open(path, sizes, domains, false)
                .with_context(|| format!("status {}", path.display())),
        }
    }

    /// An endpoint with a screen of so many bytes, which handlers of a domain write to.
    pub fn open_screen(&self, sizes: RingSizes, domain: u32, bytes: u32) -> Result<Application> {
        match self {
            Self::Card(_) => bail!("only a driver gives endpoints: name its status socket"),
            Self::Attached(path) => Application::open_screen(path, sizes, domain, bytes)
                .with_context(|| format!("status {}", path.display())),
        }
    }

    /// The attached driver's answer about its card.
    pub fn card(&mut self) -> Result<CardAnswer> {
        let mut answer = self.request(&Request::Card)?;
        Ok(serde_json::from_value(answer["card"].take())?)
    }

    /// All counts of the attached driver.
    pub fn statistics(&mut self) -> Result<Value> {
        match self {
            Self::Card(_) => bail!("only a driver counts: name its status socket with --attach"),
            Self::Attached(path) => {
                let mut answer = Self::ask(path, &Request::Statistics)?;
                Ok(answer["statistics"].take())
            }
        }
    }
}

/// A location for `peek` and `poke`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A register, or a word of NIC memory that BAR 0 shows, by its offset.
    Bar(u32),
    /// An address in NIC memory.
    Memory(u32),
}

impl Place {
    /// Parses a location: a register, a word of gencom or of the extension, or a NIC address.
    pub fn parse(text: &str) -> Result<Self> {
        let same = |name: &str| name.eq_ignore_ascii_case(text);
        if let Some(register) = Register::ALL.iter().find(|r| same(r.name())) {
            return Ok(Self::Bar(register.offset()));
        }
        if let Some(word) = Gencom::ALL.iter().find(|word| same(word.name())) {
            return Ok(Self::Bar(word.bar_offset()));
        }
        if let Some(word) = Extension::ALL.iter().find(|word| same(word.name())) {
            return Ok(Self::Bar(word.bar_offset()));
        }
        let Ok(address) = number(text) else {
            bail!("{text} is neither a register, nor a word of gencom, nor a NIC address");
        };
        if address % 4 != 0 || address >= 0x80_0000 {
            bail!("{address:#x} is no word of NIC memory");
        }
        Ok(Self::Memory(address))
    }
}

/// `tigonctl peek`
pub fn peek(arguments: &Arguments, place: &str, words: u32, output: &Output) -> Result<()> {
    let place = Place::parse(place)?;
    let mut source = Source::open(arguments)?;
    let (first, values) = match place {
        Place::Bar(offset) => {
            let offsets: Vec<u32> = (0..words).map(|n| offset + 4 * n).collect();
            (offset, source.registers(&offsets)?)
        }
        Place::Memory(address) => (address, source.memory(address, words)?),
    };
    let lines: Vec<String> = (first..)
        .step_by(16)
        .zip(values.chunks(4))
        .map(|(at, row)| {
            let row: Vec<String> = row.iter().map(|word| format!("{word:08x}")).collect();
            format!("{at:06x}  {}", row.join(" "))
        })
        .collect();
    output.result(
        "words",
        json!({ "first": first, "words": values }),
        &lines.join("\n"),
    );
    Ok(())
}

/// `tigonctl poke`
pub fn poke(arguments: &Arguments, place: &str, value: u32, output: &Output) -> Result<()> {
    let place = Place::parse(place)?;
    let Source::Card(mut card) = Source::open(arguments)? else {
        bail!("a card that another process drives can only be looked at");
    };
    match place {
        Place::Bar(offset) => card.write(offset, value)?,
        Place::Memory(address) => memory_window::write(&mut card, address, &[value])?,
    }
    card.flush()?;
    let text = format!("{value:#010x} written");
    output.result("poked", json!({ "value": value }), &text);
    Ok(())
}
