//! The stack pointer, the caller's registers, and how deep the stack grows.

use crate::{BASE, RETURN, SP, builder, init, jal, judged, patch_hash, refused};
use spine_image::{RelocationKind, Section, Target};
use spine_linker::verify::Refused;
use tigon2_sim::asm::{A0, NOP, RA, ZERO, addiu, addu, bne, immediate, jr, lui, lw, sw};

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
