//! Hostile containers: each is refused by a wall, and the wall says why.

use spine_image::{Builder, Grade, ImageError, RelocationKind, Section, Target, interface};
use spine_linker::link::{LinkError, Place, Runtime, link};
use spine_linker::policy::{Grant, Policy, PolicyError};
use spine_linker::sign::{Signer, TrustError, trusted};
use spine_linker::verify::{Refused, verify};
use spine_linker::{Linked, Proof};
use tigon2_sim::asm::{A0, NOP, RA, T0, V0, ZERO, addiu, addu, bne, immediate, j, jr, lui, lw, sw};

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
        "[[signer]]\nkey = \"{key}\"\ndomains = [\"spine.runtime\", \"spine.network\"]\n\
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
    let container = signer(1).sign(builder);
    let image = trusted(&container, &ID)?;
    let linked = link(&image, &runtime(), &grant(), Place::in_arena(BASE, 0x1000))?;
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

#[test]
fn what_is_harmless_passes() {
    let (linked, proof) = judged(&init(&[addiu(SP, SP, -8), addiu(SP, SP, 8)])).expect("harmless");
    assert_eq!((linked.base, linked.init, proof.most), (BASE, BASE, 8));
}

#[test]
fn instructions_that_stop_or_dispatch_are_refused() {
    for (word, name) in [
        (0x0000_000D, "break"),
        (0x0000_000C, "syscall"),
        (0x0109_4018, "mult"),
        (0x0109_0019, "multu"),
        (0x0109_001A, "div"),
        (0x0248_000A, "joff"),
        (0x0109_400B, "pri"),
        (0x0000_000F, "sync"),
        (0x4080_6000, "cop"),
        (0xC080_0000, "ll"),
        (0x8880_0000, "lwl"),
        (0xB880_0000, "swr"),
        (0x0100_F809, "jalr"),
        (0x0411_0001, "bgezal"),
        (0x7C03_E83B, "reserved"),
    ] {
        let error = refused(&init(&[word]));
        let Refused::Instruction { mnemonic, .. } = error else {
            panic!("{name}: {error}");
        };
        assert_eq!(mnemonic, name);
    }
}

/// Also where no way leads: it might be jumped to.
#[test]
fn an_instruction_behind_the_end_is_looked_at_too() {
    let error = refused(&builder(&[("init", &[jr(RA), NOP, 0x0000_000D])]));
    assert!(
        matches!(
            error,
            Refused::Instruction {
                mnemonic: "break",
                ..
            }
        ),
        "{error}"
    );
}

fn jal(target: u32) -> u32 {
    j(target) | 1 << 26
}

#[test]
fn jumps_that_lead_elsewhere_are_refused() {
    let wrong = |word| match refused(&init(&[word, NOP])) {
        Refused::Jump { target, .. } => target,
        other => panic!("{other}"),
    };
    // Forged: into the firmware's image, before and behind the extension, into CPU A's pad.
    for target in [0x4000, BASE - 4, BASE + 0x1000, 0xC0_1C00] {
        assert_eq!(wrong(j(target)), target);
        assert_eq!(wrong(jal(target)), target);
    }
    // A branch in front of the function, and behind it.
    assert_eq!(wrong(bne(ZERO, A0, -2)), BASE - 4);
    assert_eq!(wrong(bne(ZERO, A0, 4)), BASE + 20);
}

#[test]
fn a_jump_into_the_middle_of_a_function_or_an_import_is_refused() {
    let middle = builder(&[
        ("init", &[jal(BASE + 20), NOP, jr(RA), NOP]),
        ("other", &[NOP, NOP, jr(RA), NOP]),
    ]);
    assert!(matches!(refused(&middle), Refused::Jump { target, .. } if target == BASE + 20));
    let mut import = init(&[jal(0), NOP]);
    let number = import.import("spine.network.patch", patch_hash());
    import.relocation(
        Section::Text,
        0,
        RelocationKind::Jump,
        Target::Import(number),
    );
    // The linked word is right; what follows it by hand is not.
    import.sections[0][4..8].copy_from_slice(&NOP.to_be_bytes());
    let patch = runtime().imports[interface::Number::Patch as usize];
    import.sections[0][8..12].copy_from_slice(&j(patch + 4).to_be_bytes());
    let error = refused(&import);
    assert!(
        matches!(error, Refused::Jump { target, .. } if target == patch + 4),
        "{error}"
    );
}

fn patch_hash() -> u32 {
    interface::ALL[interface::Number::Patch as usize].hash()
}

#[test]
fn computed_jumps_are_refused() {
    let error = refused(&builder(&[("init", &[jr(A0), NOP])]));
    assert!(matches!(error, Refused::ComputedJump { .. }), "{error}");
}

#[test]
fn tricks_with_delay_slots_are_refused() {
    let error = refused(&builder(&[("init", &[bne(ZERO, A0, 1), jr(RA), NOP, NOP])]));
    assert!(matches!(error, Refused::DelaySlot { .. }), "{error}");
    let error = refused(&builder(&[("init", &[NOP, jr(RA)])]));
    assert!(
        matches!(error, Refused::DelaySlot { .. }),
        "behind the function: {error}"
    );
}

#[test]
fn control_that_falls_out_of_a_function_is_refused() {
    let error = refused(&builder(&[("init", &[NOP, NOP]), ("other", &RETURN)]));
    assert!(matches!(error, Refused::FallsOut { .. }), "{error}");
    let error = refused(&builder(&[("init", &[bne(ZERO, A0, -1), NOP])]));
    assert!(
        matches!(error, Refused::FallsOut { .. }),
        "a branch not taken: {error}"
    );
}

#[test]
fn the_stack_pointer_moves_by_constants_only() {
    for word in [
        lw(SP, 0, A0),
        addu(SP, SP, A0),
        addiu(SP, A0, 8),
        lui(SP, 0xC0),
        addiu(SP, SP, 6),
    ] {
        let error = refused(&init(&[word]));
        assert!(
            matches!(error, Refused::StackPointer { .. }),
            "{word:#x}: {error}"
        );
    }
    let error = refused(&init(&[addiu(SP, SP, -8)]));
    assert!(
        matches!(error, Refused::Frame { offset: -8, .. }),
        "not given back: {error}"
    );
    let error = refused(&init(&[addiu(SP, SP, 8), addiu(SP, SP, -8)]));
    assert!(
        matches!(error, Refused::Frame { offset: 8, .. }),
        "the caller's: {error}"
    );
    // A loop that grows it.
    let growing = init(&[addiu(SP, SP, -8), bne(ZERO, A0, -2), NOP]);
    assert!(matches!(refused(&growing), Refused::UnevenStack { .. }));
}

#[test]
fn a_return_goes_to_the_caller() {
    let frame = |words: &[u32]| {
        let begin = [addiu(SP, SP, -8), sw(RA, 4, SP)];
        let end = [lw(RA, 4, SP), addiu(SP, SP, 8)];
        init(&[&begin, words, &end].concat())
    };
    judged(&frame(&[NOP])).expect("harmless");
    for words in [
        // Overwritten where it was stored, as a word and by halves.
        &[sw(A0, 4, SP)][..],
        &[immediate(0x29, A0, SP, 6)],
        &[immediate(0x28, A0, SP, 4)],
    ] {
        let error = refused(&frame(words));
        assert!(matches!(error, Refused::ReturnAddress { .. }), "{error}");
    }
    for words in [
        &[lw(RA, 0, A0)][..],
        &[addiu(RA, A0, 0)],
        &[addiu(SP, SP, -8), lw(RA, 0, SP), addiu(SP, SP, 8)],
    ] {
        let error = refused(&init(words));
        assert!(matches!(error, Refused::ReturnAddress { .. }), "{error}");
    }
    // Behind a call it is another's, unless it is taken back.
    let call = builder(&[
        ("init", &[jal(BASE + 16), NOP, jr(RA), NOP]),
        ("other", &RETURN),
    ]);
    assert!(matches!(refused(&call), Refused::ReturnAddress { .. }));
}

/// A call writes the return address before its delay slot runs: what the slot stores is not the
/// caller's, and what it loads is where the callee returns to.
#[test]
fn the_return_address_is_left_alone_behind_a_call() {
    let call = |slot| {
        builder(&[
            (
                "init",
                &[
                    addiu(SP, SP, -8),
                    sw(RA, 4, SP),
                    jal(BASE + 32),
                    slot,
                    lw(RA, 4, SP),
                    addiu(SP, SP, 8),
                    jr(RA),
                    NOP,
                ],
            ),
            ("other", &RETURN),
        ])
    };
    judged(&call(NOP)).expect("harmless");
    let error = refused(&call(sw(RA, 4, SP)));
    assert!(matches!(error, Refused::ReturnAddress { .. }), "{error}");
    let error = refused(&call(lw(RA, 4, SP)));
    assert!(matches!(error, Refused::DelaySlot { .. }), "{error}");
}

/// What the runtime has in s0 to s8 is there when a handler returns.
#[test]
fn registers_of_the_caller_are_as_they_were() {
    for register in (16..24).chain([30]) {
        let frame = |words: &[u32]| {
            let begin = [
                addiu(SP, SP, -8),
                sw(register, 4, SP),
                addiu(register, A0, 1),
            ];
            let end = [lw(register, 4, SP), addiu(SP, SP, 8)];
            init(&[&begin, words, &end].concat())
        };
        judged(&frame(&[NOP])).expect("harmless");
        for words in [
            // Overwritten where it was stored, as a word and by halves.
            &[sw(A0, 4, SP)][..],
            &[sw(register, 4, SP)],
            &[immediate(0x29, A0, SP, 6)],
        ] {
            let error = refused(&frame(words));
            assert!(
                matches!(error, Refused::Kept { register: is, .. } if is == register as usize),
                "{error}"
            );
        }
        for words in [
            &[addiu(register, register, 1)][..],
            &[
                addiu(SP, SP, -8),
                sw(register, 0, SP),
                lw(register, 4, SP),
                addiu(SP, SP, 8),
            ],
            // On one of two ways alone.
            &[bne(A0, ZERO, 2), NOP, addiu(register, ZERO, 0)],
        ] {
            let error = refused(&init(words));
            assert!(matches!(error, Refused::Kept { .. }), "{error}");
        }
    }
}

#[test]
fn stores_by_the_stack_pointer_stay_in_the_frame() {
    for words in [
        &[sw(A0, 0, SP)][..],
        &[sw(A0, -4, SP)],
        &[addiu(SP, SP, -8), sw(A0, 8, SP), addiu(SP, SP, 8)],
    ] {
        let error = refused(&init(words));
        assert!(matches!(error, Refused::Frame { .. }), "{error}");
    }
}

#[test]
fn the_runtimes_registers_are_not_an_extensions() {
    for register in [26, 27, 28] {
        for word in [addiu(register, A0, 1), addiu(T0, register, 1)] {
            let error = refused(&init(&[word]));
            let expected = Refused::Register {
                at: spine_linker::verify::Place {
                    function: "init".to_owned(),
                    offset: 0,
                },
                register: register as usize,
            };
            assert_eq!(error, expected);
        }
    }
}

#[test]
fn recursion_is_refused() {
    let itself = init(&[
        addiu(SP, SP, -8),
        sw(RA, 4, SP),
        jal(BASE),
        NOP,
        lw(RA, 4, SP),
        addiu(SP, SP, 8),
    ]);
    assert_eq!(refused(&itself), Refused::Recursion("init".to_owned()));
    // By a tail call, by way of another.
    let by_another = builder(&[
        ("init", &[j(BASE + 8), NOP]),
        ("other", &[bne(ZERO, V0, 3), NOP, j(BASE), NOP, jr(RA), NOP]),
    ]);
    assert!(matches!(refused(&by_another), Refused::Recursion(_)));
}

#[test]
fn more_stack_than_granted_is_refused() {
    let deep = init(&[addiu(SP, SP, -208), addiu(SP, SP, 208)]);
    let expected = Refused::Stack {
        function: "init".to_owned(),
        needs: 208,
        has: 200,
    };
    assert_eq!(refused(&deep), expected);
    // An import counts with what it may use.
    let mut calls = init(&[
        addiu(SP, SP, -144),
        sw(RA, 4, SP),
        jal(0),
        NOP,
        lw(RA, 4, SP),
        addiu(SP, SP, 144),
    ]);
    let number = calls.import("spine.network.patch", patch_hash());
    calls.relocation(
        Section::Text,
        8,
        RelocationKind::Jump,
        Target::Import(number),
    );
    assert!(matches!(refused(&calls), Refused::Stack { needs: 208, .. }));
}

/// Builds an `init` that takes the address of `handler`.
fn with_handler(handler: &[u32]) -> Builder {
    let take = [lui(A0, 0), addiu(A0, A0, 0), jr(RA), NOP];
    let mut builder = builder(&[("init", &take), ("handler", handler)]);
    for (site, kind) in [(0, RelocationKind::High), (4, RelocationKind::Low)] {
        let target = Target::Section(Section::Text, 16);
        builder.relocation(Section::Text, site, kind, target);
    }
    builder
}

#[test]
fn a_handler_reaches_nothing_durable() {
    let (linked, _) = judged(&with_handler(&RETURN)).expect("harmless");
    assert_eq!(linked.entries.into_iter().collect::<Vec<_>>(), [BASE + 16]);
    // `add_handler` in a handler, as a tail call.
    let mut builder = with_handler(&[j(0), NOP]);
    let add = interface::ALL[interface::Number::AddHandler as usize];
    let number = builder.import(add.name, add.hash());
    builder.relocation(
        Section::Text,
        16,
        RelocationKind::Jump,
        Target::Import(number),
    );
    let expected = Refused::NotEphemeral {
        function: "handler".to_owned(),
        import: "spine.runtime.add_handler",
    };
    assert_eq!(refused(&builder), expected);
}

#[test]
fn an_entry_in_the_middle_of_a_function_is_refused() {
    let mut builder = with_handler(&[NOP, jr(RA), NOP]);
    let target = Target::Section(Section::Text, 20);
    builder.relocation(Section::Text, 0, RelocationKind::High, target);
    builder.relocation(Section::Text, 4, RelocationKind::Low, target);
    assert_eq!(refused(&builder), Refused::Entry(BASE + 20));
}

#[test]
fn functions_are_not_stored() {
    let mut builder = init(&[]);
    builder.sections[1] = vec![0; 4];
    let target = Target::Section(Section::Text, 0);
    builder.relocation(Section::Constants, 0, RelocationKind::Word, target);
    let expected = LinkError::StoredFunction {
        section: Section::Constants,
        site: 0,
    };
    assert_eq!(unlinked(&builder), expected);
}

#[test]
fn imports_are_those_of_the_domains_that_were_granted() {
    let import = |name: &str, hash| {
        let mut builder = init(&[jal(0), NOP]);
        let number = builder.import(name, hash);
        builder.relocation(
            Section::Text,
            0,
            RelocationKind::Jump,
            Target::Import(number),
        );
        builder
    };
    let name = "spine.counter.add".to_owned();
    let (_, count) = interface::find(&name).expect("one");
    let domain = "spine.counter".to_owned();
    let expected = LinkError::NotInDomain {
        name: name.clone(),
        domain,
    };
    assert_eq!(unlinked(&import(&name, count.hash())), expected);
    // A name that is the runtime's own, and no interface.
    for name in ["spine_abort", "spine.network", "spine.network.", "_start"] {
        let expected = LinkError::UnknownImport(name.to_owned());
        assert_eq!(unlinked(&import(name, 0)), expected);
    }
    let name = "spine.network.patch";
    let expected = LinkError::StaleImport(name.to_owned());
    assert_eq!(unlinked(&import(name, patch_hash() ^ 1)), expected);
}

#[test]
fn relocations_change_what_they_are_for() {
    let forged = |word: u32, kind| {
        let mut builder = init(&[word]);
        let target = Target::Section(Section::Text, 0);
        builder.relocation(Section::Text, 0, kind, target);
        unlinked(&builder)
    };
    for kind in [RelocationKind::Jump, RelocationKind::High] {
        let expected = LinkError::WrongInstruction { site: 0, kind };
        assert_eq!(forged(addiu(A0, A0, 0), kind), expected);
    }
    let error = forged(addiu(A0, A0, 0), RelocationKind::Low);
    assert_eq!(error, LinkError::Halves { site: 0 });
}

#[test]
fn what_is_too_large_is_refused() {
    let mut builder = init(&[]);
    builder.zeros = 68;
    let expected = LinkError::TooLarge {
        what: "the region",
        needs: 68,
        has: 64,
    };
    assert_eq!(unlinked(&builder), expected);
    let long: Vec<u32> = [vec![NOP; 300], RETURN.to_vec()].concat();
    let error = unlinked(&super_builder(&long));
    let expected = LinkError::TooLarge {
        what: "the arena",
        needs: 1208,
        has: 1024,
    };
    assert_eq!(error, expected);
}

fn super_builder(words: &[u32]) -> Builder {
    builder(&[("init", words)])
}

#[test]
fn who_did_not_sign_is_not_trusted() {
    let built = init(&[]);
    let container = signer(1).sign(&built);
    trusted(&container, &ID).expect("as it was signed");
    for byte in 0..container.len() {
        let mut flipped = container.clone();
        flipped[byte] ^= 0x10;
        assert!(trusted(&flipped, &ID).is_err(), "byte {byte}");
    }
    let error = trusted(&container, &[8; 16]).expect_err("another build");
    assert_eq!(error, TrustError::OtherBuild);
    // Somebody else's signature under the name of one who is granted much.
    let forged = built.finish(signer(1).public(), |_| [0; 64]);
    assert_eq!(
        trusted(&forged, &ID).expect_err("forged"),
        TrustError::Untrusted
    );
    let error = trusted(&container[..60], &ID).expect_err("cut");
    assert!(matches!(error, TrustError::Image(ImageError::Cut { .. })));
}

#[test]
fn the_policy_grants_what_it_says_and_to_whom() {
    let policy = Policy::parse(&policy_text("")).expect("a policy");
    let error = policy.grant(&signer(2).public(), Grade::Language);
    assert!(matches!(error, Err(PolicyError::UnknownSigner(_))));
    let sandbox = Policy::parse(&policy_text("grade = \"sandbox\"")).expect("a policy");
    let error = sandbox.grant(&signer(1).public(), Grade::Language);
    let needs_more = matches!(
        error,
        Err(PolicyError::Grade {
            needs: Grade::Sandbox,
            has: Grade::Language
        })
    );
    assert!(needs_more);
    for (text, refused) in [
        ("[[signer]]\nkey = 5\n".to_owned(), "key"),
        (
            policy_text("").replace("watchdog = 10", "watchdog = 9"),
            "watchdog",
        ),
        (
            policy_text("").replace("watchdog = 10", "watchdog = 256"),
            "watchdog",
        ),
        (
            policy_text("").replace("stack = 200", "stack = 2000"),
            "stack",
        ),
        (policy_text("priority = 9"), "priority"),
        (policy_text("").replace("key = \"", "key = \"zz"), "key"),
    ] {
        let error = Policy::parse(&text).expect_err(refused);
        assert!(error.to_string().contains(refused), "{error}");
    }
}
