//! A simulated card that loads extensions, with its driver, and what is built for both.

use super::window::Window;
use anyhow::{Context, Result, anyhow, ensure};
use clap::ValueEnum;
use host_driver::dma::DmaMemory;
use host_driver::nic::ExtensionCard;
use host_driver::transport::Transport;
use host_driver::{Config, Nic};
use host_interface::extension::Extension;
use host_interface::spine::counts::{self, Counts};
use host_interface::spine::peer::PeerWord;
use host_interface::spine::{BlockWord, DOMAIN_COUNTS, DomainWord, domain_word};
use object::{Object, ObjectSymbol};
use spine_image::{Builder, Image, Section};
use spine_linker::endpoint::{Endpoint, RingSizes, doorbell};
use spine_linker::load::{EndpointConfig, Guard, Loader, handlers_of};
use spine_linker::policy::Policy;
use spine_linker::sign::{Signer, digits_of_bytes};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use testbed::extensions::{compiler, development_signer};
use testbed::firmware::{self, FirmwareArtifacts, FirmwareOptions, Placement, Variant};
use testbed::paths;
use testbed::setup::{self, Need};
use tigon2_model::Board;
use tigon2_sim::timing::{Parameters, Timed};
use tigon2_sim::transport::SharedMachine;
use tigon2_sim::{Machine, SimTransport};

/// On the card's clock.
const LINK: Duration = Duration::from_secs(10);

/// What is built once: the firmware, and who makes extensions.
#[derive(Debug)]
pub struct Kit {
    /// The firmware, in the drivers' load format.
    pub image: Vec<u8>,
    elf: Vec<u8>,
    compiler: spine_linker::compile::Compiler,
    signer: Signer,
    made: Mutex<BTreeMap<PathBuf, Vec<u8>>>,
    /// The build of compiler and API.
    pub build: [u8; 16],
}

impl Kit {
    /// Builds the variant that loads extensions.
    ///
    /// # Errors
    /// If it does not build.
    pub fn build() -> Result<Kit> {
        Kit::of(firmware::build)
    }

    /// The same with the router compiled into it, to be compared with the extension.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn build_with_router() -> Result<Kit> {
        Kit::of(firmware::build_with_router)
    }

    fn of(build: impl FnOnce(FirmwareOptions) -> Result<FirmwareArtifacts>) -> Result<Kit> {
        setup::ensure(&[Need::Firmware])?;
        let variant = Variant::from_str("spine", false).map_err(|error| anyhow!(error))?;
        let built = build(FirmwareOptions {
            variant,
            placement: Placement::Scratch,
            quiet: true,
        })?;
        let elf = std::fs::read(&built.elf);
        let compiler = compiler()?;
        Ok(Kit {
            image: built.image()?,
            elf: elf.with_context(|| built.elf.display().to_string())?,
            build: compiler.build_id()?,
            compiler,
            signer: development_signer()?,
            made: Mutex::default(),
        })
    }

    /// The container of the crate in a folder of the checkout.
    ///
    /// # Errors
    /// Which wall refuses it.
    pub fn container(&self, folder: &Path) -> Result<Vec<u8>> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(container) = made.get(folder) {
            return Ok(container.clone());
        }
        let built = self.compiler.build(&paths::root().join(folder))?;
        let container = self.signer.sign(&built);
        made.insert(folder.to_owned(), container.clone());
        Ok(container)
    }

    /// A container that was built by hand, signed.
    pub fn sign(&self, builder: &Builder) -> Vec<u8> {
        self.signer.sign(builder)
    }

    /// A policy by which all interfaces are granted, with a domain's time and patience.
    ///
    /// # Errors
    /// For a time that no policy has.
    pub fn policy(&self, watchdog: u32, patience: u32) -> Result<Policy> {
        self.policy_with_floor(watchdog, patience, 0)
    }

    /// The same, for a card whose runs have `floor` microseconds at least.
    ///
    /// # Errors
    /// As of [`policy`](Self::policy).
    pub fn policy_with_floor(&self, watchdog: u32, patience: u32, floor: u32) -> Result<Policy> {
        let text = format!(
            r#"
            build = "{}"
            floor = {floor}
            [[signer]]
            key = "{}"
            domains = [
                "spine.runtime", "spine.network", "spine.buffer", "spine.counter", "spine.clock",
                "spine.message",
                "spine.peer", "spine.dma", "spine.gate",
            ]
            watchdog = {watchdog}
            patience = {patience}
            region = 32768
            memory = 40960
            stack = 256
            guards = ["any"]
            leases = [{{ address = 0xD0000000, bytes = 0x4000000 }}]
            screen = 0x10000
            "#,
            digits_of_bytes(&self.build),
            digits_of_bytes(&self.signer.public()),
        );
        Ok(Policy::parse(&text)?)
    }

    /// The firmware's ELF file.
    pub fn elf(&self) -> &[u8] {
        &self.elf
    }

    /// The address of a symbol of the firmware.
    ///
    /// # Errors
    /// If it has none of that name.
    pub fn symbol(&self, name: &str) -> Result<u32> {
        let file = object::File::parse(self.elf.as_slice()).context("the firmware's ELF")?;
        let symbol = file.symbols().find(|symbol| symbol.name() == Ok(name));
        let symbol = symbol.with_context(|| format!("the firmware has no {name}"))?;
        Ok(symbol.address() as u32)
    }

    /// Where the text of one of its generic functions lies.
    ///
    /// # Errors
    /// If it has none of that name.
    pub fn function(&self, name: &str) -> Result<Range<u32>> {
        let file = object::File::parse(self.elf.as_slice()).context("the firmware's ELF")?;
        let generic = format!("::{name}::<");
        let found = file.symbols().find(|symbol| {
            let mangled = symbol.name().unwrap_or_default();
            rustc_demangle::demangle(mangled)
                .to_string()
                .contains(&generic)
        });
        let symbol = found.with_context(|| format!("the firmware has no {name}"))?;
        let start = symbol.address() as u32;
        Ok(start..start + symbol.size() as u32)
    }
}

/// That text was not overwritten while a CPU still executed it from its instruction line, on a card
/// that keeps the chip's time.
///
/// # Errors
/// If it was.
pub(super) fn ensure_fresh(machine: &SharedMachine) -> Result<()> {
    let stale = machine.lock().timing().map_or(0, Timed::stale_fetches);
    ensure!(stale == 0, "{stale} instructions came from a stale line");
    Ok(())
}

/// A card that carries frames and loads extensions.
pub struct SpineCard {
    /// The card.
    pub machine: SharedMachine,
    /// Its driver.
    pub nic: Nic<SimTransport>,
    /// Who loads.
    pub loader: Loader,
    /// The loader's way to the card.
    pub window: Window,
}

/// Where the text of extensions runs: in the arena, or in CPU A's scratch pad.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text(pub [Range<u32>; 2]);

impl Text {
    /// As the firmware says.
    pub fn of(machine: &Machine) -> Text {
        let block = machine.word(Extension::Spine.nic_address());
        let word = |word| machine.word(block + word as u32);
        let range = |start, bytes| word(start)..word(start) + word(bytes);
        Text([
            range(BlockWord::Arena, BlockWord::ArenaBytes),
            range(BlockWord::Pad, BlockWord::PadBytes),
        ])
    }

    /// Whether an instruction of CPU A's is an extension's, while a domain is loaded.
    pub fn contains(&self, pc: u32) -> bool {
        self.0.iter().any(|range| range.contains(&pc))
    }
}

impl SpineCard {
    /// Powers one up; with a timing profile it keeps the chip's time.
    ///
    /// # Errors
    /// If the firmware does not start.
    pub fn start(kit: &Kit, timing: Option<Parameters>) -> Result<SpineCard> {
        let machine = match timing {
            Some(parameters) => Machine::timed(Board::default(), parameters, 1),
            None => Machine::new(Board::default()),
        };
        SpineCard::start_on(kit, &SharedMachine::new(machine))
    }

    /// Opens an endpoint whose rings have these sizes, and which may send to the handlers of
    /// `domain`; it raises no interrupts.
    ///
    /// # Errors
    /// Without memory, or if the card refuses it.
    pub fn open_endpoint(
        &mut self,
        number: u32,
        sizes: RingSizes,
        domain: u32,
    ) -> Result<Endpoint<DmaMemory>> {
        let memory = self.nic.transport().allocate(sizes.bytes())?;
        let config = EndpointConfig {
            address: memory.iova(),
            sizes,
            handlers: handlers_of(domain),
            interrupts: false,
        };
        self.loader
            .open_endpoint(&mut self.window, number, &config)?;
        Ok(Endpoint::new(memory, sizes))
    }

    /// Rings the doorbell of an endpoint for what its process has written and taken.
    ///
    /// # Errors
    /// If its rings are broken, or the card is gone.
    pub fn ring_endpoint(&mut self, number: u32, endpoint: &Endpoint<DmaMemory>) -> Result<()> {
        let halfword = doorbell(endpoint.memory())?;
        let SpineCard { loader, window, .. } = self;
        Ok(loader.ring_endpoint(window, number, halfword)?)
    }

    /// As [`start`](Self::start), on a card that is there.
    ///
    /// # Errors
    /// As of [`start`](Self::start).
    pub fn start_on(kit: &Kit, machine: &SharedMachine) -> Result<SpineCard> {
        SpineCard::start_with(kit, machine, Config::default())
    }

    /// The same with this configuration.
    ///
    /// # Errors
    /// As of [`start`](Self::start).
    pub fn start_with(kit: &Kit, machine: &SharedMachine, config: Config) -> Result<SpineCard> {
        let transport = SimTransport::to(machine);
        let machine = transport.machine();
        let mut nic = Nic::probe(transport, config)?;
        nic.load(&kit.image)?;
        nic.open()?;
        nic.wait_link(LINK)?;
        let mut window = Window::new(machine.clone());
        let loader = Loader::find(&mut window)?;
        Ok(SpineCard {
            machine,
            nic,
            loader,
            window,
        })
    }

    /// Leases the window to a peer: its driver and its loader have requests from now on.
    ///
    /// # Errors
    /// If the card is gone.
    pub fn lease_window(&mut self) -> Result<()> {
        self.loader
            .lease_window(&mut ExtensionCard(&mut self.nic))?;
        Ok(self.loader.lease_window(&mut self.window)?)
    }

    /// Loads a container; returns its domain and the bytes of stack that it needs.
    ///
    /// # Errors
    /// Which wall refuses it.
    pub fn load(&mut self, kit: &Kit, container: &[u8], policy: &Policy) -> Result<(u32, u32)> {
        let loaded = self
            .loader
            .load(&mut self.window, container, policy, &kit.build)?;
        Ok((loaded.0, loaded.1.most))
    }

    /// Installs guards.
    ///
    /// # Errors
    /// If they are refused.
    pub fn guards(&mut self, guards: &[Guard]) -> Result<()> {
        Ok(self.loader.set_guards(&mut self.window, guards)?)
    }

    /// Unloads a domain.
    ///
    /// # Errors
    /// If it is not loaded.
    pub fn unload(&mut self, domain: u32) -> Result<()> {
        Ok(self.loader.unload(&mut self.window, domain)?)
    }

    /// What a domain and its handlers did.
    pub fn counts(&self, domain: u32) -> Counts {
        let at = self.window.block() + DOMAIN_COUNTS + domain * counts::BYTES;
        Counts(std::array::from_fn(|index| {
            self.window.word(at + 4 * index as u32)
        }))
    }

    /// A word of the peer page.
    pub fn peer_word(&self, word: PeerWord) -> u32 {
        let at = self.loader.peer_page() + word as u32;
        self.machine.lock().word(at)
    }

    /// Bytes of the arena.
    pub fn arena_bytes(&self) -> u32 {
        let block = self.window.block();
        self.window.word(block + BlockWord::ArenaBytes as u32)
    }

    /// Where the text of extensions runs.
    pub fn text(&self) -> Text {
        // Not by the window, which may be a peer's.
        Text::of(&self.machine.lock())
    }

    /// Where the memory region of a domain is, whose container this is.
    ///
    /// # Errors
    /// If it is no container.
    pub fn region(&self, domain: u32, container: &[u8]) -> Result<Range<u32>> {
        region(&self.window, domain, container)
    }
}

/// Where the memory region of a domain is that is loaded, or about to be.
pub(super) fn region(window: &Window, domain: u32, container: &[u8]) -> Result<Range<u32>> {
    let image = Image::parse(container)?;
    let word = |word| window.word(window.block() + domain_word(domain, word));
    let (text, end) = (word(DomainWord::Text), word(DomainWord::TextEnd));
    // In the scratch pad the text is a copy.
    let lies = match word(DomainWord::TextCopy) {
        0 => text,
        copy => copy,
    };
    let start = lies + (end - text) + image.section(Section::Constants).len() as u32;
    Ok(start..start + image.region())
}
