//! A simulated card with firmware that loads extensions, and extensions of the tests' own.

use host_driver::Config;
use host_interface::spine::counts::{Count, Counts};

use integration_tests::{Sim, Stage};
use spine_linker::compile::Compiler;
use spine_linker::load::{Guard, LoadError, Loader};
use spine_linker::policy::{MEMORY_MOST, Policy};
use spine_linker::sign::{Signer, digits_of_bytes};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;
use testbed::extensions::{compiler, development_signer};
use testbed::firmware::{FirmwareArtifacts, FirmwareOptions, Placement, Variant, build};
use testbed::paths;
use tigon_bench::spine::card::Kit;
pub use tigon_bench::spine::window::{CardError, Window};

/// What `cargo xtask build` makes of a variant.
fn built(variant: Variant) -> FirmwareArtifacts {
    let options = FirmwareOptions {
        variant,
        placement: Placement::Scratch,
        quiet: true,
    };
    build(options).expect("the firmware builds")
}

/// The firmware's image.
pub fn image(variant: Variant) -> Vec<u8> {
    std::fs::read(built(variant).tg2).expect("the image")
}

/// The address of a symbol of the firmware.
pub fn symbol(name: &str) -> u32 {
    use object::{Object, ObjectSymbol};
    let file = std::fs::read(built(variant()).elf).expect("the ELF");
    let file = object::File::parse(file.as_slice()).expect("an ELF");
    let symbol = file.symbols().find(|symbol| symbol.name() == Ok(name));
    symbol.expect(name).address() as u32
}

/// Firmware, compiler and signer, built once.
pub fn kit() -> &'static Kit {
    static KIT: OnceLock<Kit> = OnceLock::new();
    KIT.get_or_init(|| Kit::build().unwrap_or_else(|error| panic!("{error:#}")))
}

/// The variant that loads extensions.
pub fn variant() -> Variant {
    use clap::ValueEnum;
    Variant::from_str("spine", false).expect("a variant")
}

/// A card that carries frames, with firmware of a variant.
pub fn stage(variant: Variant) -> Stage<Sim> {
    up(Stage::<Sim>::probed(Config::default()), variant)
}

fn up(mut stage: Stage<Sim>, variant: Variant) -> Stage<Sim> {
    stage.nic.load(&image(variant)).expect("it starts");
    stage.nic.open().expect("it opens");
    let link = stage.nic.wait_link(Duration::from_secs(5));
    link.expect("a link");
    stage
}

/// What may be linked with what, for the tests' signer.
pub fn policy() -> Policy {
    policy_with(3)
}

/// The same, with a domain's patience.
pub fn policy_with(patience: u32) -> Policy {
    policy_of(patience, &["any"])
}

/// The same, with the guards that may be installed.
pub fn policy_with_guards(guards: &[&str]) -> Policy {
    policy_of(3, guards)
}

/// The same, with so many microseconds for each run.
pub fn policy_with_time(watchdog: u32) -> Policy {
    policy_from(3, &["any"], watchdog, [4096, 8192])
}

/// The same, with room for the router and its tables.
pub fn policy_with_router() -> Policy {
    policy_from(3, &["any"], 20, [32_768, 36_864])
}

/// The same for a table of any size.
pub fn policy_with_large_router() -> Policy {
    policy_from(3, &["any"], 20, [MEMORY_MOST; 2])
}

fn policy_of(patience: u32, guards: &[&str]) -> Policy {
    policy_from(patience, guards, 10, [4096, 8192])
}

fn policy_from(
    patience: u32,
    guards: &[&str],
    watchdog: u32,
    [region, memory]: [u32; 2],
) -> Policy {
    let granted = granted_to(signer(), patience, guards, watchdog, [region, memory]);
    policy_of_build(&granted)
}

/// A policy by which extensions may not be linked with one of the domains that they may else.
pub fn policy_without(domain: &str) -> Policy {
    let granted = granted_to(signer(), 3, &["any"], 10, [4096, 8192]);
    let without = granted.replace(&format!(", {domain:?}"), "");
    policy_of_build(&without)
}

/// A policy by which these signers are granted the same, each at its priority.
pub fn policy_with_priorities(signers: [(&Signer, u32); 2]) -> Policy {
    let granted = signers.map(|(signer, priority)| {
        let granted = granted_to(signer, 3, &["any"], 10, [4096, 8192]);
        format!("{granted}priority = {priority}\n")
    });
    policy_of_build(&granted.concat())
}

/// A policy that trusts this build, with what signers are granted.
fn policy_of_build(granted: &str) -> Policy {
    let build = digits_of_bytes(&build_id());
    Policy::parse(&format!("build = {build:?}\n{granted}")).expect("a policy")
}

/// What a policy says of a signer.
fn granted_to(
    signer: &Signer,
    patience: u32,
    guards: &[&str],
    watchdog: u32,
    [region, memory]: [u32; 2],
) -> String {
    let key = digits_of_bytes(&signer.public());
    format!(
        r#"
        [[signer]]
        key = "{key}"
        domains = [
            "spine.runtime", "spine.network", "spine.buffer", "spine.counter", "spine.clock",
            "spine.message",
            "spine.peer", "spine.dma", "spine.gate", "numbers"
        ]
        watchdog = {watchdog}
        patience = {patience}
        region = {region}
        memory = {memory}
        stack = 256
        guards = {guards:?}
        leases = [{{ address = 0xD0000000, bytes = 0x10000 }}]
        screen = 0x10000
        "#
    )
}

/// Who signs the tests' extensions.
pub fn signer() -> &'static Signer {
    static SIGNER: OnceLock<Signer> = OnceLock::new();
    SIGNER.get_or_init(|| development_signer().expect("a key"))
}

/// The build of compiler and API.
pub fn build_id() -> [u8; 16] {
    static ID: OnceLock<[u8; 16]> = OnceLock::new();
    *ID.get_or_init(|| compiler().expect("one").build_id().expect("an id"))
}

/// The container of the crate in a folder of the checkout.
pub fn container(folder: &Path) -> Vec<u8> {
    container_with(folder, None)
}

/// The same with a table of so many words.
fn container_with(folder: &Path, table: Option<u32>) -> Vec<u8> {
    type Made = BTreeMap<(PathBuf, Option<u32>), Vec<u8>>;
    static MADE: OnceLock<Mutex<Made>> = OnceLock::new();
    let mut made = MADE.get_or_init(Mutex::default).lock().expect("no panic");
    let container = made.entry((folder.to_owned(), table)).or_insert_with(|| {
        let compiler = Compiler {
            table,
            ..compiler().expect("a compiler")
        };
        let built = compiler
            .build(folder)
            .unwrap_or_else(|error| panic!("{error}"));
        signer().sign(&built)
    });
    container.clone()
}

/// That of an extension of the project's.
pub fn ours(name: &str) -> Vec<u8> {
    container(&paths::root().join("firmware/spine/extensions").join(name))
}

/// The same, signed by somebody else.
pub fn ours_signed_by(name: &str, signer: &Signer) -> Vec<u8> {
    let folder = paths::root().join("firmware/spine/extensions").join(name);
    let built = compiler().expect("a compiler").build(&folder);
    signer.sign(&built.unwrap_or_else(|error| panic!("{error}")))
}

/// The router with a table of so many words.
pub fn router_with(words: u32) -> Vec<u8> {
    let folder = paths::root().join("firmware/spine/extensions/router");
    container_with(&folder, Some(words))
}

/// That of one of the tests'.
pub fn of_tests(name: &str) -> Vec<u8> {
    container(&paths::root().join("tests/extensions").join(name))
}

/// A stage with a loader.
pub struct Spine {
    pub stage: Stage<Sim>,
    pub card: Window,
    pub loader: Loader,
}

impl Spine {
    pub fn open() -> Spine {
        Spine::on(stage(variant()))
    }

    /// The same with a driver's configuration.
    pub fn configured(config: Config) -> Spine {
        Spine::on(up(Stage::<Sim>::probed(config), variant()))
    }

    /// The same with a card that keeps time as the chip does.
    pub fn timed(profile: &str) -> Spine {
        let (engine, transport) = Sim::timed(profile);
        let stage = Stage::on(engine, transport, Config::default());
        Spine::on(up(stage, variant()))
    }

    fn on(stage: Stage<Sim>) -> Spine {
        let mut card = Window::new(stage.engine.machine().clone());
        let loader = Loader::find(&mut card).expect("firmware that loads extensions");
        Spine {
            stage,
            card,
            loader,
        }
    }

    /// Loads a container; returns its domain.
    pub fn load(&mut self, container: &[u8]) -> u32 {
        self.try_load(container)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// Loads a container whose domain may be cut off as often as it likes.
    pub fn load_patiently(&mut self, container: &[u8]) -> u32 {
        self.load_by(container, &policy_with(0))
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// Loads a container by a policy; returns its domain.
    pub fn load_by(
        &mut self,
        container: &[u8],
        policy: &Policy,
    ) -> Result<u32, LoadError<CardError>> {
        let loaded = self
            .loader
            .load(&mut self.card, container, policy, &build_id())?;
        Ok(loaded.0)
    }

    pub fn try_load(&mut self, container: &[u8]) -> Result<u32, LoadError<CardError>> {
        self.load_by(container, &policy())
    }

    pub fn guards(&mut self, guards: &[Guard]) {
        self.loader
            .set_guards(&mut self.card, guards)
            .unwrap_or_else(|error| panic!("{error}"));
    }

    pub fn counts(&mut self, domain: u32) -> Counts {
        let counts = self.loader.counts(&mut self.card, domain);
        counts.expect("the card is there")
    }

    pub fn count(&mut self, domain: u32, count: impl Into<Count>) -> u32 {
        self.counts(domain).of(count)
    }

    pub fn counters(&mut self, domain: u32) -> [u32; 8] {
        self.counts(domain).counters()
    }
}
