//! What crosses to the card while an extension is loaded: words, and no names.

use host_interface::extension::{Extension, MAGIC, VERSION_WITH_SPINE};
use host_interface::spine::{BlockWord, LAYOUT, MAILBOX};
use spine_image::{Builder, Grade, Image, RelocationKind, Section, Target, interface};
use spine_linker::compile::Compiler;
use spine_linker::extensions::Extensions;
use spine_linker::guard::GuardText;
use spine_linker::load::Card;
use spine_linker::policy::{MEMORY_MOST, Policy};
use spine_linker::sign::{Signer, digits_of_bytes};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::process::Command;

const BLOCK: u32 = 0x8000;
const IMPORTS: u32 = 0x9000;
const ARENA: u32 = 0x1_0000;

/// A card that does whatever it is asked for at once, and records what is written to it.
#[derive(Default)]
struct Recorder {
    memory: BTreeMap<u32, u32>,
    crossed: Vec<u32>,
}

impl Recorder {
    /// A card whose firmware loads extensions.
    fn new() -> Recorder {
        let mut card = Recorder::default();
        let mut set = |address, value| card.memory.insert(address, value);
        set(Extension::Magic.nic_address(), MAGIC);
        set(Extension::Version.nic_address(), VERSION_WITH_SPINE);
        set(Extension::Spine.nic_address(), BLOCK);
        let imports = interface::COUNT as u32;
        for (word, value) in [
            (BlockWord::Layout, LAYOUT),
            (BlockWord::Arena, ARENA),
            (BlockWord::ArenaBytes, MEMORY_MOST),
            (BlockWord::Mailbox, MAILBOX),
            (BlockWord::Imports, IMPORTS),
            (BlockWord::ImportCount, imports),
        ] {
            set(BLOCK + word as u32, value);
        }
        for number in 0..imports {
            set(IMPORTS + 4 * number, 0xC0_2000 + 16 * number);
        }
        card
    }

    /// All that crossed, with the bytes of each word in the order that the card sees, and in that
    /// of this host.
    fn bytes(&self) -> [Vec<u8>; 2] {
        let words = || self.crossed.iter();
        [
            words().flat_map(|word| word.to_be_bytes()).collect(),
            words().flat_map(|word| word.to_le_bytes()).collect(),
        ]
    }

    /// Those of the names that crossed.
    fn found<'a>(&self, names: &[&'a str]) -> Vec<&'a str> {
        let bytes = self.bytes();
        let crossed = |name: &&&str| {
            let mut windows = bytes.iter().flat_map(|bytes| bytes.windows(name.len()));
            windows.any(|window| window.eq_ignore_ascii_case(name.as_bytes()))
        };
        names.iter().filter(crossed).copied().collect()
    }
}

impl Card for Recorder {
    type Error = Infallible;

    fn read(&mut self, address: u32, out: &mut [u32]) -> Result<(), Infallible> {
        for (at, word) in (address..).step_by(4).zip(out) {
            *word = self.memory.get(&at).copied().unwrap_or_default();
        }
        Ok(())
    }

    fn write(&mut self, address: u32, words: &[u32]) -> Result<(), Infallible> {
        self.crossed.extend(words);
        let cells = (address..).step_by(4).zip(words);
        self.memory.extend(cells.map(|(at, word)| (at, *word)));
        Ok(())
    }

    fn ring(&mut self, mailbox: u32) -> Result<(), Infallible> {
        assert_eq!(mailbox, MAILBOX);
        let of_block = |word: BlockWord| BLOCK + word as u32;
        let command = self.memory[&of_block(BlockWord::Command)];
        self.memory.insert(of_block(BlockWord::Answer), command);
        Ok(())
    }

    fn post(&mut self, mailbox: u32, high: u32, low: u32) -> Result<(), Infallible> {
        self.crossed.extend([mailbox, high, low]);
        Ok(())
    }

    fn wait(&mut self, _: u32) -> bool {
        false
    }

    fn lease_window(&mut self, address: u32) -> Result<(), Infallible> {
        unreachable!("no window is leased: {address:#x}")
    }

    fn take_back_window(&mut self) {}
}

fn signer() -> Signer {
    Signer::from_text(&"05".repeat(32)).expect("a key")
}

fn policy(build: &[u8; 16]) -> Policy {
    let key = digits_of_bytes(&signer().public());
    let domains: Vec<_> = interface::ALL
        .iter()
        .map(|one| interface::domain(one.name))
        .collect();
    Policy::parse(&format!(
        "build = \"{}\"\n[[signer]]\nkey = \"{key}\"\ndomains = {domains:?}\n\
         watchdog = 10\nregion = {MEMORY_MOST}\nmemory = {MEMORY_MOST}\nstack = 1024\n\
         guards = [\"any\"]\n",
        digits_of_bytes(build)
    ))
    .expect("a policy")
}

/// Loads a container as a driver does, takes it off again, and records what crossed.
fn loaded(container: &[u8], build: &[u8; 16]) -> Recorder {
    let mut card = Recorder::new();
    let mut extensions = Extensions::new(policy(build));
    let guards: [GuardText; 2] = ["udp:7", "any"].map(|text| text.parse().expect("a guard"));
    let domain = extensions.load(&mut card, container, &guards);
    let domain = domain.unwrap_or_else(|error| panic!("{error}"));
    extensions.unload(&mut card, domain).expect("unloaded");
    card
}

/// All names that a container has.
fn names<'a>(image: &Image<'a>) -> Vec<&'a str> {
    let functions = image.functions().map(|one| one.name);
    let imports = image.imports().map(|one| one.name);
    // Also of a text what stands between its holes.
    let texts = image.texts();
    let texts = texts.flat_map(|text| text.split(['{', '}']).chain([text]));
    let texts = texts.filter(|text| text.len() > 3);
    let names = functions.chain(imports).chain([image.extension()]);
    let names = names.filter(|name| !name.is_empty());
    names.chain(texts).collect()
}

/// The compiler and the linker that the firmware is built with (`testbed::firmware::toolchain`).
fn compiler() -> Compiler {
    let chosen = std::env::var_os("TIGON_RUSTC").map(PathBuf::from);
    let known = ["rustc", "/usr/bin/rustc"].map(PathBuf::from);
    let candidates = chosen.map_or_else(|| known.to_vec(), |chosen| vec![chosen]);
    let found = candidates.into_iter().find_map(|rustc| {
        let libraries = sysroot(&rustc)?.join("lib/rustlib");
        let core = libraries.join("src/rust/library/core/src/lib.rs");
        core.is_file().then_some((rustc, libraries))
    });
    let (rustc, libraries) = found.expect("a compiler with the source of its library");
    let linker = match Command::new("ld.lld").arg("--version").output() {
        Ok(_) => "ld.lld".into(),
        Err(_) => rust_lld(&libraries),
    };
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs it");
    let root = Path::new(&folder).join("../..");
    Compiler {
        rustc,
        linker,
        root: root.canonicalize().expect("the checkout"),
        target: Path::new(env!("CARGO_TARGET_TMPDIR")).join("extensions"),
        table: None,
    }
}

fn sysroot(rustc: &Path) -> Option<PathBuf> {
    let output = Command::new(rustc).args(["--print", "sysroot"]).output();
    let text = String::from_utf8(output.ok()?.stdout).ok()?;
    Some(text.trim().into())
}

/// The linker that comes with a compiler.
fn rust_lld(libraries: &Path) -> PathBuf {
    let hosts = std::fs::read_dir(libraries).expect("hosts").flatten();
    let mut linkers = hosts.map(|host| host.path().join("bin/rust-lld"));
    linkers.find(|linker| linker.is_file()).expect("a linker")
}

#[test]
fn no_name_of_the_projects_extensions_crosses() {
    let compiler = compiler();
    let build = compiler.build_id().expect("a build");
    for (extension, texts) in [("echo", 0), ("router", 0), ("video", 0), ("logging", 7)] {
        let folder = match texts {
            0 => "firmware/spine/extensions",
            _ => "tests/extensions",
        };
        let built = compiler.build(&compiler.root.join(folder).join(extension));
        let container = signer().sign(&built.unwrap_or_else(|error| panic!("{error}")));
        let image = Image::parse(&container).expect("a container");
        assert_eq!(image.texts().count(), texts, "{extension}");
        let names = names(&image);
        assert!(
            names.contains(&"spine_init") && names.len() > 4,
            "{names:?}"
        );
        let card = loaded(&container, &build);
        let text = image.section(Section::Text).len() / 4;
        assert!(card.crossed.len() > text, "its words crossed");
        // Those of its crate, of the API and of the language, and whence they were compiled.
        let more = [
            extension,
            "spine",
            "extension",
            "core::",
            "panic",
            "src/",
            ".rs",
        ];
        let none: [&str; 0] = [];
        assert_eq!(card.found(&names), none, "{extension}");
        assert_eq!(card.found(&more), none, "{extension}");
    }
}

/// The search finds what is there.
#[test]
fn a_name_in_the_constants_is_found() {
    const BUILD: [u8; 16] = [9; 16];
    let mut builder = Builder::new("parcel", Grade::Language, BUILD);
    builder.sections[Section::Constants as usize]
        .extend(b"..spine_initsrc/lib.rs no route for ....");
    builder.text("no route for {:x}");
    // A tail call of the runtime.
    let text: [u32; 2] = [2 << 26, 0];
    builder.sections[0].extend(text.iter().flat_map(|word| word.to_be_bytes()));
    builder.function("spine_init", 0, 8);
    let patch = interface::ALL[interface::Number::Patch as usize];
    let number = builder.import(patch.name, patch.hash());
    let target = Target::Import(number);
    builder.relocation(Section::Text, 0, RelocationKind::Jump, target);
    let container = signer().sign(&builder);
    let image = Image::parse(&container).expect("a container");
    let card = loaded(&container, &BUILD);
    assert_eq!(card.found(&names(&image)), ["spine_init", "no route for "]);
    assert_eq!(card.found(&["src/", "parcel"]), ["src/"]);
}
