//! Hostile containers: each is refused by a wall, and the wall says why.

mod control;
mod frames;
mod instructions;
mod links;
mod trust;

use spine_image::{Builder, Grade, interface};
use spine_linker::exports::Exported;
use spine_linker::link::{LinkError, Place, Runtime, link};
use spine_linker::policy::{Grant, Policy};
use spine_linker::sign::{Signer, trusted};
use spine_linker::verify::{Refused, verify};
use spine_linker::{Linked, Proof};
use tigon2_sim::asm::{NOP, j};

const SP: u32 = 29;
const BASE: u32 = 0x3_8000;
const ID: [u8; 16] = [9; 16];

fn signer(seed: u8) -> Signer {
    Signer::from_text(&format!("{seed:02x}").repeat(32)).expect("a key")
}

fn policy_text(more: &str) -> String {
    let key: String = signer(1)
        .public()
        .map(|byte| format!("{byte:02x}"))
        .concat();
    format!(
        "[[signer]]\nkey = \"{key}\"\ndomains = [\"spine.runtime\", \"spine.network\", \
         \"spine.gate\", \"numbers\"]\n\
         watchdog = 10\nregion = 64\nmemory = 1024\nstack = 200\n{more}"
    )
}

fn grant() -> Grant {
    let policy = Policy::parse(&policy_text("")).expect("a policy");
    let granted = policy.grant(&signer(1).public(), Grade::Language);
    granted.expect("granted").clone()
}

fn runtime() -> Runtime {
    let count = interface::COUNT as u32;
    Runtime {
        imports: (0..count).map(|number| 0xC0_2000 + 16 * number).collect(),
    }
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// An extension whose `init` has these words, with more functions behind it.
fn builder(functions: &[(&str, &[u32])]) -> Builder {
    let mut builder = Builder::new("hostile", Grade::Language, ID);
    for (name, words) in functions {
        let at = builder.sections[0].len() as u32;
        builder.sections[0].extend(bytes(words));
        builder.function(name, at, 4 * words.len() as u32);
    }
    builder
}

/// Signs, trusts, links and verifies, as the loader does.
fn judged(builder: &Builder) -> Result<(Linked, Proof), Box<dyn std::error::Error>> {
    judged_beside(builder, &[])
}

/// The same beside extensions that export these.
fn judged_beside(
    builder: &Builder,
    exports: &[Exported],
) -> Result<(Linked, Proof), Box<dyn std::error::Error>> {
    let container = signer(1).sign(builder);
    let image = trusted(&container, &ID)?;
    let place = Place::in_arena(BASE, 0x1000);
    let linked = link(&image, &runtime(), exports, &grant(), place)?;
    let proof = verify(&linked, 200)?;
    Ok((linked, proof))
}

fn refused(builder: &Builder) -> Refused {
    let error = judged(builder).expect_err("hostile");
    *error.downcast::<Refused>().expect("by the verifier")
}

fn unlinked(builder: &Builder) -> LinkError {
    let error = judged(builder).expect_err("hostile");
    *error.downcast::<LinkError>().expect("by the linker")
}

const RETURN: [u32; 2] = [0x03E0_0008, NOP];

/// `init` of these words and a return.
fn init(words: &[u32]) -> Builder {
    builder(&[("init", &[words, &RETURN].concat())])
}

fn jal(target: u32) -> u32 {
    j(target) | 1 << 26
}

fn patch_hash() -> u32 {
    interface::ALL[interface::Number::Patch as usize].hash()
}
