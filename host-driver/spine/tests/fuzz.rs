//! Containers at random: reader, linker and verifier answer each with a typed error or a proof.
//!
//! Three kinds: bytes of no form, a good container with changed bytes and words, and containers
//! whose parts fit together but whose instructions, relocations and functions are random. What is
//! accepted must keep to what the verifier promises. `PROPTEST_CASES` makes the run longer.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use spine_image::{Builder, Grade, Image, RelocationKind, Section, Target, interface};
use spine_linker::link::{Place, Runtime, link};
use spine_linker::policy::{Grant, Policy};
use spine_linker::verify::verify;
use spine_text::{HOLES_MOST, Line};
use tigon2_sim::asm::{A0, NOP, RA, T0, V0, ZERO, addiu, addu, bne, j, jr, lui, lw, sw};

const BASE: u32 = 0x3_8000;
const ROOM: u32 = 0x1000;
const STACK: u32 = 200;
const SP: u32 = 29;

fn grant() -> Grant {
    let key = "01".repeat(32);
    let text = format!(
        "[[signer]]\nkey = \"{key}\"\ndomains = [\"spine.runtime\", \"spine.network\"]\n\
         watchdog = 10\nregion = 256\nmemory = 4096\nstack = {STACK}\n"
    );
    let policy = Policy::parse(&text).expect("a policy");
    let granted = policy.grant(&[1; 32], Grade::Language);
    granted.expect("granted").clone()
}

fn runtime() -> Runtime {
    let count = interface::COUNT as u32;
    Runtime {
        imports: (0..count).map(|number| 0xC0_2000 + 16 * number).collect(),
    }
}

/// All walls behind the signature. `true` if they let it in.
fn judge(container: &[u8]) -> bool {
    let Ok(image) = Image::parse(container) else {
        return false;
    };
    for text in image.texts() {
        let holes = spine_text::holes(text).expect("a text");
        let line = Line::new(text, &[u32::MAX; HOLES_MOST][..holes]);
        assert!(!line.expect("a line").to_string().contains('\n'));
    }
    let Ok(linked) = link(
        &image,
        &runtime(),
        &[],
        &grant(),
        Place::in_arena(BASE, ROOM),
    ) else {
        return false;
    };
    assert!(linked.bytes() <= ROOM, "{linked:?}");
    let text = BASE..BASE + linked.text;
    let proof = match verify(&linked, STACK) {
        Ok(proof) => proof,
        Err(refused) => {
            assert!(!refused.to_string().is_empty());
            return false;
        }
    };
    assert!(text.contains(&linked.init), "{linked:?}");
    assert!(
        linked.entries.iter().all(|at| text.contains(at)),
        "{linked:?}"
    );
    assert!(proof.most <= STACK, "{proof:?}");
    true
}

fn jal(target: u32) -> u32 {
    j(target) | 1 << 26
}

/// Handler, constants, statics, two imports: all kinds of relocations.
fn good() -> Builder {
    let mut builder = Builder::new("good", Grade::Language, [9; 16]);
    let init = [
        addiu(SP, SP, -24),
        sw(RA, 20, SP),
        lui(A0, 0),
        addiu(A0, A0, 0),
        jal(0),
        NOP,
        lw(RA, 20, SP),
        addiu(SP, SP, 24),
        jr(RA),
        NOP,
    ];
    let handler = [
        lui(T0, 0),
        lw(V0, 0, T0),
        bne(V0, ZERO, 2),
        addu(V0, V0, A0),
        sw(V0, 0, T0),
        jr(RA),
        NOP,
    ];
    let words = [init.as_slice(), &handler].concat();
    let bytes = |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect();
    let at = 4 * init.len() as u32;
    builder.sections = [bytes(&words), bytes(&[1, 2]), bytes(&[3])];
    builder.zeros = 12;
    builder.text("{} frames");
    builder.text("no route for {:x}, {} in all");
    builder.init = builder.function("init", 0, at);
    builder.function("handler", at, 4 * handler.len() as u32);
    let (_, add) = interface::find("spine.runtime.add_handler").expect("an interface");
    let import = builder.import(add.name, add.hash());
    let mut relocate =
        |section, site, kind, target| builder.relocation(section, site, kind, target);
    let function = Target::Section(Section::Text, at);
    relocate(Section::Text, 8, RelocationKind::High, function);
    relocate(Section::Text, 12, RelocationKind::Low, function);
    relocate(
        Section::Text,
        16,
        RelocationKind::Jump,
        Target::Import(import),
    );
    relocate(Section::Text, at, RelocationKind::High, Target::Zeros(4));
    relocate(Section::Text, at + 4, RelocationKind::Low, Target::Zeros(4));
    let constant = Target::Section(Section::Constants, 4);
    relocate(Section::Data, 0, RelocationKind::Word, constant);
    builder
}

fn finished(builder: &Builder) -> Vec<u8> {
    builder.finish([1; 32], |_| [2; 64])
}

#[test]
fn the_container_that_is_changed_is_good() {
    assert!(judge(&finished(&good())));
}

/// What a container is changed by.
#[derive(Clone, Debug)]
enum Change {
    Byte(Index, u8),
    Word(Index, u32),
    Copy(Index, Index),
    Cut(Index),
    Insert(Index, Vec<u8>),
}

fn change() -> impl Strategy<Value = Change> {
    let edges = select(vec![
        0,
        1,
        3,
        4,
        0x7FFF_FFFF,
        0x8000_0000,
        0xFFFF_FFFC,
        u32::MAX,
    ]);
    prop_oneof![
        4 => (any::<Index>(), any::<u8>()).prop_map(|(at, value)| Change::Byte(at, value)),
        4 => (any::<Index>(), prop_oneof![edges, any::<u32>(), 0..64u32])
            .prop_map(|(at, value)| Change::Word(at, value)),
        2 => (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Change::Copy(from, to)),
        1 => any::<Index>().prop_map(Change::Cut),
        1 => (any::<Index>(), prop::collection::vec(any::<u8>(), 1..8))
            .prop_map(|(at, more)| Change::Insert(at, more)),
    ]
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    if bytes.len() < 4 {
        return;
    }
    let word = |index: &Index, bytes: &[u8]| 4 * index.index(bytes.len() / 4);
    match change {
        Change::Byte(at, value) => {
            let at = at.index(bytes.len());
            bytes[at] = *value;
        }
        Change::Word(at, value) => {
            let at = word(at, bytes);
            bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
        }
        Change::Copy(from, to) => {
            let (from, to) = (word(from, bytes), word(to, bytes));
            bytes.copy_within(from..from + 4, to);
        }
        Change::Cut(at) => bytes.truncate(at.index(bytes.len())),
        Change::Insert(at, more) => {
            let at = at.index(bytes.len());
            bytes.splice(at..at, more.iter().copied());
        }
    }
}

/// Instructions as extensions have them, with random registers and distances, and any word.
fn instruction() -> impl Strategy<Value = u32> {
    let register = || select(vec![ZERO, V0, A0, T0, 26, 27, SP, RA]);
    let distance = -12..12i32;
    prop_oneof![
        2 => Just(NOP),
        2 => Just(jr(RA)),
        1 => register().prop_map(jr),
        3 => (-16..16i32).prop_map(|words| addiu(SP, SP, 4 * words)),
        3 => (register(), register(), distance.clone()).prop_map(|(a, b, by)| bne(a, b, by)),
        3 => (register(), -8..64i32, register()).prop_map(|(a, by, b)| sw(a, 4 * by, b)),
        3 => (register(), -8..64i32, register()).prop_map(|(a, by, b)| lw(a, 4 * by, b)),
        2 => (register(), register(), register()).prop_map(|(a, b, c)| addu(a, b, c)),
        2 => (0..40u32, any::<bool>()).prop_map(|(word, call)| {
            let target = BASE + 4 * word;
            if call { jal(target) } else { j(target) }
        }),
        1 => any::<u32>(),
    ]
}

/// The same, of those alone that no wall minds where they stand by themselves.
fn harmless() -> impl Strategy<Value = u32> {
    let register = || select(vec![V0, A0, T0]);
    prop_oneof![
        Just(NOP),
        (register(), -8..64i32, register()).prop_map(|(a, by, b)| lw(a, 4 * by, b)),
        (register(), register(), register()).prop_map(|(a, b, c)| addu(a, b, c)),
        register().prop_map(|to| lui(to, 0)),
        (register(), register()).prop_map(|(a, b)| addiu(a, b, 0)),
    ]
}

fn body() -> impl Strategy<Value = Vec<u32>> {
    prop_oneof![
        prop::collection::vec(instruction(), 1..12),
        prop::collection::vec(harmless(), 1..12),
    ]
}

/// Where a relocation writes, and how.
fn site() -> impl Strategy<Value = (Section, u32, RelocationKind)> {
    let in_text = vec![
        RelocationKind::Jump,
        RelocationKind::High,
        RelocationKind::Low,
    ];
    let stored = select(vec![Section::Constants, Section::Data]);
    prop_oneof![
        8 => (0..16u32, select(in_text)).prop_map(|(word, kind)| (Section::Text, word, kind)),
        4 => (stored, 0..4u32).prop_map(|(section, word)| (section, word, RelocationKind::Word)),
        1 => (section(), 0..24u32).prop_map(|(section, word)| (section, word, RelocationKind::Word)),
    ]
}

fn section() -> impl Strategy<Value = Section> {
    select(vec![Section::Text, Section::Constants, Section::Data])
}

fn target() -> impl Strategy<Value = Target> {
    prop_oneof![
        (section(), 0..5u32).prop_map(|(section, word)| Target::Section(section, 4 * word)),
        (0..9u32).prop_map(Target::Zeros),
        (0..2u32).prop_map(Target::Import),
    ]
}

/// A container whose parts are in their places.
fn shaped() -> impl Strategy<Value = Vec<u8>> {
    let functions = prop::collection::vec(body(), 1..4);
    let relocations = prop::collection::vec((site(), target()), 0..4);
    let imports = prop::collection::vec(select(interface::ALL.to_vec()), 0..3);
    let parts = (
        functions,
        relocations,
        imports,
        0..8u32,
        0..4u32,
        any::<bool>(),
    );
    parts.prop_map(|(functions, relocations, imports, zeros, init, returns)| {
        let mut builder = Builder::new("shaped", Grade::Language, [9; 16]);
        for words in functions {
            let at = builder.sections[0].len() as u32;
            let end = if returns {
                vec![jr(RA), NOP]
            } else {
                Vec::new()
            };
            for word in words.into_iter().chain(end) {
                builder.sections[0].extend(word.to_be_bytes());
            }
            let bytes = builder.sections[0].len() as u32 - at;
            builder.function("function", at, bytes);
        }
        builder.sections[1] = vec![1; 16];
        builder.sections[2] = vec![2; 16];
        builder.zeros = 4 * zeros;
        builder.init = init;
        for import in imports {
            builder.import(import.name, import.hash());
        }
        for ((section, word, kind), target) in relocations {
            builder.relocation(section, 4 * word, kind, target);
        }
        finished(&builder)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes_of_no_form_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        prop_assert!(!judge(&bytes));
        // Behind a good beginning.
        let mut container = finished(&good());
        let kept = container.len().min(bytes.len() % 64);
        container.truncate(kept);
        container.extend(&bytes);
        prop_assert!(!judge(&container));
    }

    #[test]
    fn changed_containers_are_answered(changes in prop::collection::vec(change(), 1..6)) {
        let mut container = finished(&good());
        for change in &changes {
            apply(&mut container, change);
        }
        judge(&container);
    }

    #[test]
    fn random_instructions_are_answered(container in shaped()) {
        judge(&container);
    }
}

/// The random containers are no waste: some get as far as each wall, and some pass all of them.
#[test]
fn random_containers_reach_each_wall() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut reached = [0; 4];
    for _ in 0..4000 {
        let tree = shaped().new_tree(&mut runner).expect("a container");
        let container = tree.current();
        let wall = match Image::parse(&container) {
            Err(_) => 0,
            Ok(image) => match link(
                &image,
                &runtime(),
                &[],
                &grant(),
                Place::in_arena(BASE, ROOM),
            ) {
                Err(_) => 1,
                Ok(linked) => 2 + usize::from(verify(&linked, STACK).is_ok()),
            },
        };
        reached[wall] += 1;
    }
    assert!(reached.iter().all(|count| *count >= 10), "{reached:?}");
}
