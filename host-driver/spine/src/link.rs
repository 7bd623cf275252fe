//! The dynamic linker: it makes the words of a container for their addresses on the card.
//!
//! It places text, constants and region in a piece of the card's arena, and resolves imports by
//! name and hash against the [domains](crate::policy) that the signer may link with: those of the
//! runtime, and of [other extensions](crate::exports). The [verifier](crate::verify()) then checks
//! the result, whoever built it. A container of the grade `sandbox` is refused here, because the
//! verifier does not prove that grade.

use crate::exports::Exported;
use crate::policy::Grant;
use spine_image::{Grade, Image, RelocationKind, Section, Target, interface};
use std::collections::BTreeSet;
use thiserror::Error;

/// Where the functions of the runtime are, by the numbers of their interfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runtime {
    /// NIC addresses.
    pub imports: Vec<u32>,
}

/// Why a container is not linked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LinkError {
    /// It names a grade that no wall proves yet.
    #[error("nothing proves the grade {0:?}, so no container of that grade is linked")]
    Unproven(Grade),
    /// It wants what no runtime has.
    #[error("{0} is no interface of the runtime")]
    UnknownImport(String),
    /// It was built against another signature of the interface.
    #[error("{0} has another signature than the extension was built against")]
    StaleImport(String),
    /// The signer may not link with the domain.
    #[error("{name}: this signer may not link with the domain {domain}")]
    NotInDomain {
        /// Which import.
        name: String,
        /// Its domain.
        domain: String,
    },
    /// No extension exports it that is loaded.
    #[error("{0} is exported by no extension that is loaded")]
    NotExported(String),
    /// It exports what is not its own.
    #[error("the extension {extension} exports {name}, whose name does not begin with its own")]
    NotItsOwn {
        /// Its name.
        extension: String,
        /// What it exports.
        name: String,
    },
    /// The running firmware has fewer interfaces than this linker knows.
    #[error("{0} is not in the running firmware")]
    NotInFirmware(String),
    /// It needs more than its signer may have, or than is free.
    #[error("the extension needs {needs} bytes of {what}, but is granted {has}")]
    TooLarge {
        /// Of what.
        what: &'static str,
        /// Bytes that it needs.
        needs: u32,
        /// Bytes that may be had.
        has: u32,
    },
    /// A relocation of a kind that its place has not.
    #[error("text + {site:#x}: the instruction does not take a relocation {kind:?}")]
    WrongInstruction {
        /// Where.
        site: u32,
        /// Which kind.
        kind: RelocationKind,
    },
    /// Two halves of an address that do not meet.
    #[error("text + {site:#x}: the two halves of an address do not match")]
    Halves {
        /// Where.
        site: u32,
    },
    /// The address of a function outside of instructions: a table of functions.
    #[error("the address of a function is stored at offset {site:#x} of {section:?}")]
    StoredFunction {
        /// In which section.
        section: Section,
        /// Where.
        site: u32,
    },
    /// More functions are handed out than a domain has handlers.
    #[error("the extension takes the addresses of {count} functions; at most {most} are allowed")]
    TooManyEntries {
        /// How many.
        count: usize,
        /// How many may be.
        most: usize,
    },
}

/// An extension at its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linked {
    /// Its name, for messages.
    pub name: String,
    /// NIC address of the first word.
    pub base: u32,
    /// NIC address of the text where it runs: the same, or in CPU A's scratch pad.
    pub text_base: u32,
    /// Text, then constants, then the region.
    pub words: Vec<u32>,
    /// Bytes of the text.
    pub text: u32,
    /// Functions: NIC address, bytes, name.
    pub functions: Vec<(u32, u32, String)>,
    /// NIC address of `init`.
    pub init: u32,
    /// NIC addresses of the functions whose addresses are taken: they may become handlers.
    pub entries: BTreeSet<u32>,
    /// NIC addresses of the imports, each with its number.
    pub imports: Vec<(u32, usize)>,
    /// The domains whose procedures it may call, a bit for each.
    pub may_call: u32,
    /// Bytes of stack that these need at most.
    pub called_stack: u32,
}

impl Linked {
    /// The words of the text.
    pub fn text_words(&self) -> &[u32] {
        let count = (self.text / 4) as usize;
        self.words.get(..count).unwrap_or_default()
    }

    /// Bytes in the arena.
    pub fn bytes(&self) -> u32 {
        4 * self.words.len() as u32
    }
}

/// Bytes that a container needs in the arena.
pub fn bytes(image: &Image<'_>) -> u32 {
    let constants = image.section(Section::Constants).len();
    (image.section(Section::Text).len() + constants) as u32 + image.region()
}

/// Where a container goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// NIC address, in the arena, of all that it has.
    pub base: u32,
    /// Bytes that are free there.
    pub room: u32,
    /// Where its text runs, if that is in CPU A's scratch pad.
    pub pad: Option<u32>,
}

impl Place {
    /// In the arena alone.
    pub const fn in_arena(base: u32, room: u32) -> Place {
        Place {
            base,
            room,
            pad: None,
        }
    }
}

/// Links a container to its place, with the runtime and with what other extensions export.
///
/// # Errors
/// [`LinkError`].
pub fn link(
    image: &Image<'_>,
    runtime: &Runtime,
    exports: &[Exported],
    grant: &Grant,
    place: Place,
) -> Result<Linked, LinkError> {
    match image.grade() {
        Grade::Language => {}
        grade @ Grade::Sandbox => return Err(LinkError::Unproven(grade)),
    }
    let Place { base, room, pad } = place;
    let Resolved {
        addresses,
        imports,
        may_call,
        called_stack,
    } = resolve(image, runtime, exports, grant)?;
    let text = image.section(Section::Text).len() as u32;
    let constants = image.section(Section::Constants).len() as u32;
    let data = image.section(Section::Data).len() as u32;
    for (what, needs, has) in [
        ("the region", image.region(), grant.region),
        ("the arena", bytes(image), room.min(grant.memory)),
    ] {
        if needs > has {
            return Err(LinkError::TooLarge { what, needs, has });
        }
    }
    let lies = Starts {
        text: base,
        constants: base + text,
        data: base + text + constants,
        zeros: base + text + constants + data,
    };
    let text_base = pad.unwrap_or(base);
    let starts = Starts {
        text: text_base,
        ..lies
    };
    let sections = [Section::Text, Section::Constants, Section::Data];
    let mut words: Vec<u32> = sections
        .into_iter()
        .flat_map(|section| image.words(section))
        .collect();
    words.resize((bytes(image) / 4) as usize, 0);
    let mut halves = None;
    let mut entries = BTreeSet::new();
    for relocation in image.relocations() {
        let address = match relocation.target {
            Target::Import(number) => addresses.get(number as usize).copied().unwrap_or(0),
            Target::Zeros(at) => starts.zeros + at,
            Target::Section(section, at) => starts.of(section) + at,
        };
        let is_function = matches!(
            relocation.target,
            Target::Section(Section::Text, _) | Target::Import(_)
        );
        if is_function && relocation.section != Section::Text {
            return Err(LinkError::StoredFunction {
                section: relocation.section,
                site: relocation.site,
            });
        }
        if is_function && relocation.kind != RelocationKind::Jump {
            entries.insert(address);
        }
        let site = relocation.site;
        let index = (lies.of(relocation.section) - base + site) / 4;
        let Some(word) = words.get_mut(index as usize) else {
            continue;
        };
        match relocation.kind {
            RelocationKind::High => halves = Some(high(address)),
            RelocationKind::Low if halves != Some(high(address)) => {
                return Err(LinkError::Halves { site });
            }
            _ => {}
        }
        let kind = relocation.kind;
        *word = written(*word, kind, address).ok_or(LinkError::WrongInstruction { site, kind })?;
    }
    let most = host_interface::spine::HANDLERS as usize;
    if entries.len() > most {
        let count = entries.len();
        return Err(LinkError::TooManyEntries { count, most });
    }
    let functions: Vec<_> = image
        .functions()
        .map(|one| (text_base + one.offset, one.bytes, one.name.to_owned()))
        .collect();
    Ok(Linked {
        name: image.extension().to_owned(),
        base,
        text_base,
        words,
        text,
        init: functions.get(image.init()).map_or(0, |(at, ..)| *at),
        functions,
        entries,
        imports,
        may_call,
        called_stack,
    })
}

#[derive(Clone, Copy)]
struct Starts {
    text: u32,
    constants: u32,
    data: u32,
    zeros: u32,
}

impl Starts {
    const fn of(&self, section: Section) -> u32 {
        match section {
            Section::Text => self.text,
            Section::Constants => self.constants,
            Section::Data => self.data,
        }
    }
}

/// What the imports are.
#[derive(Default)]
struct Resolved {
    /// The address of each. Only the gate jumps to procedures of other extensions: 0.
    addresses: Vec<u32>,
    /// See [`Linked`].
    imports: Vec<(u32, usize)>,
    may_call: u32,
    called_stack: u32,
}

fn resolve(
    image: &Image<'_>,
    runtime: &Runtime,
    exports: &[Exported],
    grant: &Grant,
) -> Result<Resolved, LinkError> {
    let own = image.extension();
    for name in image.exports().map(|export| export.name) {
        if name
            .split_once('.')
            .is_none_or(|(of, its)| of != own || its.contains('.'))
        {
            let (extension, name) = (own.to_owned(), name.to_owned());
            return Err(LinkError::NotItsOwn { extension, name });
        }
    }
    let mut found = Resolved::default();
    for import in image.imports() {
        let name = import.name.to_owned();
        let known = interface::find(import.name);
        if known.is_none() && import.hash != interface::procedure_hash(import.name) {
            return Err(LinkError::UnknownImport(name));
        }
        let domain = interface::domain(import.name);
        if !grant.domains.iter().any(|one| one == domain) {
            let domain = domain.to_owned();
            return Err(LinkError::NotInDomain { name, domain });
        }
        let Some((number, known)) = known else {
            let export = exports.iter().find(|one| one.name == import.name);
            let export = export.ok_or(LinkError::NotExported(name))?;
            found.may_call |= 1 << export.domain;
            found.called_stack = found.called_stack.max(export.stack);
            found.addresses.push(0);
            continue;
        };
        if import.hash != known.hash() {
            return Err(LinkError::StaleImport(name));
        }
        let address = runtime.imports.get(number).copied();
        let address = address.ok_or(LinkError::NotInFirmware(name))?;
        found.addresses.push(address);
        found.imports.push((address, number));
    }
    Ok(found)
}

/// The upper half of an address whose lower half is added with its sign.
const fn high(address: u32) -> u32 {
    address.wrapping_add(0x8000) >> 16
}

/// An instruction or a word with an address in it.
const fn written(word: u32, kind: RelocationKind, address: u32) -> Option<u32> {
    use tigon2_chip::instruction::opcode;
    match kind {
        RelocationKind::Word => Some(address),
        RelocationKind::Jump if opcode(word) & !1 == 2 => {
            Some(word & 0xFC00_0000 | address >> 2 & 0x03FF_FFFF)
        }
        RelocationKind::High if opcode(word) == 0x0F => Some(word & 0xFFFF_0000 | high(address)),
        // An addition, a load or a store.
        RelocationKind::Low if opcode(word) == 0x09 || opcode(word) >= 0x20 => {
            Some(word & 0xFFFF_0000 | address & 0xFFFF)
        }
        _ => None,
    }
}
