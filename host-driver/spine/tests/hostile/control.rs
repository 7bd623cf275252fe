//! Where control may go: jumps, delay slots, ends of functions, recursion, entries of handlers.

use crate::{BASE, RETURN, SP, builder, init, jal, judged, patch_hash, refused, runtime};
use spine_image::{Builder, RelocationKind, Section, Target, interface};
use spine_linker::verify::Refused;
use tigon2_sim::asm::{A0, NOP, RA, V0, ZERO, addiu, bne, j, jr, lui, lw, sw};

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
