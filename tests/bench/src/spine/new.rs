//! The crate of a new extension.

use anyhow::{Context, Result, ensure};
use std::path::Path;
use testbed::paths;

/// The longest name: containers and tables hold it.
const LONGEST: usize = 24;

/// Makes it.
///
/// # Errors
/// A name that is none, a folder that is there already.
pub fn run(folder: &Path) -> Result<()> {
    let name = folder.file_name().and_then(|name| name.to_str());
    let name = name.with_context(|| format!("{} has no name", folder.display()))?;
    judge(name)?;
    ensure!(!folder.exists(), "{} is there already", folder.display());
    let api = paths::root().join("firmware/spine/api");
    let library = name.replace('-', "_");
    for (file, text) in [
        ("Cargo.toml", manifest(name, &api)),
        ("src/lib.rs", LIBRARY.replace("NAME", name)),
        ("tests/handler.rs", TESTS.replace("NAME", &library)),
    ] {
        let path = folder.join(file);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent)
            .and_then(|()| std::fs::write(&path, text))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let shown = folder.display();
    println!("extension: {name} is there; it counts frames and leaves them to the host");
    println!("  change it   {shown}/src/lib.rs");
    println!("  check it    cargo xtask extension check {shown}");
    println!("  try it      cargo xtask extension run {shown}");
    Ok(())
}

/// Whether a name can be that of an extension.
fn judge(name: &str) -> Result<()> {
    let good = |one: char| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '-';
    ensure!(
        name.starts_with(|one: char| one.is_ascii_lowercase())
            && name.chars().all(good)
            && name.len() <= LONGEST,
        "{name} is no name for an extension: up to {LONGEST} lower-case letters, digits and \
         hyphens, a letter first"
    );
    ensure!(
        !matches!(name, "spine" | "core" | "extension" | "test"),
        "{name} is a name that means something else already"
    );
    Ok(())
}

fn manifest(name: &str, api: &Path) -> String {
    format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         # All that an extension may name.\n[dependencies]\nspine = {{ path = {:?} }}\n\n\
         [workspace]\n",
        api.display().to_string()
    )
}

const LIBRARY: &str = "\
//! NAME: an extension of the card.
#![no_std]

use spine::{
    Argument, Context, Durable, Ephemeral, HandlerNumber, Message, Verdict, Word, add_handler,
};

/// The handler's number, by which guards name it.
pub const HANDLER: HandlerNumber = HandlerNumber(0);
/// Counter of the domain's: frames that the handler has seen.
pub const SEEN: u32 = 0;

/// Whether the first frame is in the log.
static LOGGED: Word = Word::new(0);

/// Runs once, when the extension is loaded.
pub fn init(durable: &mut Durable) {
    add_handler(durable, handler, HANDLER, Argument::NIL);
}

/// Sees a frame that a guard wants, and leaves it to the host.
fn handler(_: Ephemeral<'_>, message: &Message, context: &Context) -> Verdict {
    // One count is always within the bound on effects.
    let _ = context.count(SEEN);
    // `tigonctl spine log` prints it. Without room there, the next frame tries again.
    if LOGGED.get() == 0 {
        let bytes = message.buffer().len();
        if spine::log!(context, \"the first frame has {} bytes\", bytes).is_ok() {
            LOGGED.set(1);
        }
    }
    Verdict::Host
}
";

const TESTS: &str = "\
//! The handler, run natively against the model of the API.

use NAME::{HANDLER, SEEN, init};
use spine::Verdict;
use spine::model::Domain;

#[test]
fn a_frame_is_counted_and_left_to_the_host() {
    let mut domain = Domain::load(init);
    let run = domain.frame(HANDLER, &[0; 60]).expect(\"installed\");
    assert_eq!(run.verdict, Some(Verdict::Host));
    assert_eq!(domain.counter(SEEN as usize), Some(1));
}
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_crates() {
        for good in ["hello", "count-arp", "a1"] {
            judge(good).expect(good);
        }
        for wrong in [
            "",
            "Hello",
            "1a",
            "a_b",
            "spine",
            "extension",
            "..",
            &"a".repeat(25),
        ] {
            judge(wrong).expect_err(wrong);
        }
    }

    #[test]
    fn what_is_made_passes_the_gate() {
        let api = Path::new("/somewhere/api");
        let name = spine_linker::compile::judge_manifest(&manifest("hello", api));
        assert_eq!(name.expect("a manifest"), "hello");
        let folder = tempfile::tempdir().expect("a folder");
        let library = LIBRARY.replace("NAME", "hello");
        std::fs::write(folder.path().join("lib.rs"), library).expect("room");
        spine_linker::gate::judge_folder(folder.path()).expect("the gate is open");
    }
}
