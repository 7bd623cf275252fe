//! Instructions and registers that no extension may use.

use crate::{BASE, SP, builder, init, judged, refused};
use spine_linker::verify::Refused;
use tigon2_sim::asm::{A0, NOP, RA, T0, addiu, jr};

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
