//! Encodings against vendor code and the tables of the reference.

use super::*;

/// Reference 3.2 and 3.3: the instances of vendor code.
#[test]
fn custom_instructions_are_encoded_as_in_vendor_code() {
    assert_eq!(encode_pri(2, 3, 20), 0x0074_100B);
    assert_eq!(encode_joff(18, 2), 0x0242_000A);
    assert_eq!(classify(0x0074_100B), Class::Proven("pri"));
    assert_eq!(classify(0x0242_000A), Class::Proven("joff"));
}

/// Reference 3.2: the most significant bit that is in both operands, from 1 (C!).
#[test]
fn pri_is_one_based_and_masked() {
    assert_eq!(pri(0, u32::MAX), 0);
    assert_eq!(pri(0xFFFF_0000, 0x0000_FFFF), 0);
    assert_eq!(pri(u32::MAX, u32::MAX), 32);
    assert_eq!(pri(0x8000_0001, 0x0000_00FF), 1);
    for bit in 0..32 {
        assert_eq!(pri(1 << bit, u32::MAX), bit + 1);
        assert_eq!(pri((1 << bit) | 1, u32::MAX), bit + 1);
    }
}

/// Reference 3.3: two instructions an entry (C).
#[test]
fn joff_steps_eight_bytes() {
    assert_eq!(joff_target(0x00C0_0100, 0), 0x00C0_0100);
    assert_eq!(joff_target(0x00C0_0100, 29), 0x00C0_01E8);
}

/// Reference 3.1: the complete set used by vendor code.
#[test]
fn the_proven_set_is_that_of_vendor_code() {
    let words = [
        (0x2442_0001, "addiu"),
        (0x0043_1021, "addu"),
        (0x0043_1023, "subu"),
        (0x3042_0001, "andi"),
        (0x0043_1024, "and"),
        (0x3442_0001, "ori"),
        (0x0043_1025, "or"),
        (0x3842_0001, "xori"),
        (0x0043_1026, "xor"),
        (0x0043_1027, "nor"),
        (0x2842_0001, "slti"),
        (0x0043_102A, "slt"),
        (0x2C42_0001, "sltiu"),
        (0x0043_102B, "sltu"),
        (0x3C02_1234, "lui"),
        (0x0000_0000, "sll"),
        (0x0002_1042, "srl"),
        (0x0002_1043, "sra"),
        (0x0062_1004, "sllv"),
        (0x0062_1007, "srav"),
        (0x1043_0001, "beq"),
        (0x1443_0001, "bne"),
        (0x1840_0001, "blez"),
        (0x0441_0001, "bgez"),
        (0x5043_0001, "beql"),
        (0x5443_0001, "bnel"),
        (0x5840_0001, "blezl"),
        (0x0442_0001, "bltzl"),
        (0x0800_1000, "j"),
        (0x0C00_1000, "jal"),
        (0x03E0_0008, "jr"),
        (0x0040_F809, "jalr"),
        (0x8C43_0000, "lw"),
        (0x9443_0000, "lhu"),
        (0x9043_0000, "lbu"),
        (0xAC43_0000, "sw"),
        (0xA443_0000, "sh"),
        (0xA043_0000, "sb"),
        (0x0000_000D, "break"),
    ];
    for (word, name) in words {
        assert_eq!(classify(word), Class::Proven(name), "{word:#010x}");
    }
}

/// Reference 3.1: unproven, but MIPS I/II that a compiler may emit.
#[test]
fn the_allowed_set_is_what_compilers_emit() {
    for (word, name) in [
        (0x0062_1006, "srlv"),
        (0x8043_0000, "lb"),
        (0x8443_0000, "lh"),
        (0x1C40_0001, "bgtz"),
        (0x5C40_0001, "bgtzl"),
        (0x0440_0001, "bltz"),
        (0x0443_0001, "bgezl"),
        (0x0411_0001, "bgezal"),
    ] {
        assert_eq!(classify(word), Class::Allowed(name), "{word:#010x}");
    }
}

#[test]
fn what_the_chip_cannot_do_is_forbidden_with_its_reason() {
    for (word, kind, name) in [
        (0x0043_0018, Forbidden::Multiply, "mult"),
        (0x0043_0019, Forbidden::Multiply, "multu"),
        (0x0000_1012, Forbidden::Multiply, "mflo"),
        (0x0043_001A, Forbidden::Divide, "div"),
        (0x0043_001B, Forbidden::Divide, "divu"),
        (0xC043_0000, Forbidden::LoadLinked, "ll"),
        (0xE043_0000, Forbidden::LoadLinked, "sc"),
        (0x8843_0000, Forbidden::Unaligned, "lwl"),
        (0x9843_0000, Forbidden::Unaligned, "lwr"),
        (0xA843_0000, Forbidden::Unaligned, "swl"),
        (0xB843_0000, Forbidden::Unaligned, "swr"),
        (0x4002_6000, Forbidden::Coprocessor, "cop"),
        (0x0000_000C, Forbidden::Trap, "syscall"),
        (0x0043_0034, Forbidden::Trap, "trap"),
        (0x0043_1020, Forbidden::Trap, "add"),
        (0x0000_000F, Forbidden::Barrier, "sync"),
        (0x0043_102D, Forbidden::SixtyFourBit, "dop"),
        (0x7000_0000, Forbidden::Reserved, "reserved"),
        // A pri whose shift field is not 0.
        (0x0074_104B, Forbidden::Reserved, "reserved"),
    ] {
        assert_eq!(classify(word), Class::Forbidden(kind, name), "{word:#010x}");
    }
}

#[test]
fn operands_are_named() {
    let mask = |registers: &[u32]| registers.iter().fold(0, |mask, n| mask | 1 << n);
    for (word, reads, writes) in [
        (0x0074_100B, mask(&[3, 20]), Some(2)), // pri v0, v1, s4
        (0x0242_000A, mask(&[18, 2]), None),    // joff s2, v0
        (0x0002_1043, mask(&[2]), Some(2)),     // sra v0, v0, 1
        (0x0062_1004, mask(&[3, 2]), Some(2)),  // sllv v0, v0, v1
        (0x2508_0001, mask(&[8]), Some(8)),     // addiu t0, t0, 1
        (0x3C02_1234, 0, Some(2)),              // lui v0
        (0x8E28_0004, mask(&[17]), Some(8)),    // lw t0, 4(s1)
        (0xAE28_0004, mask(&[17, 8]), None),    // sw t0, 4(s1)
        (0x1043_0001, mask(&[2, 3]), None),     // beq
        (0x0441_0001, mask(&[2]), None),        // bgez
        (0x0411_0001, 0, Some(31)),             // bal
        (0x0C00_1000, 0, Some(31)),             // jal
        (0x03E0_0008, mask(&[31]), None),       // jr
        (0x0040_F809, mask(&[2]), Some(31)),    // jalr
        (0x0000_0000, 0, None),                 // nop
    ] {
        assert_eq!(
            (sources(word), destination(word)),
            (reads, writes),
            "{word:#010x}"
        );
    }
    assert!(is_load(0x8E28_0004) && !is_load(0xAE28_0004));
    assert!(is_store(0xAE28_0004) && !is_store(0x8E28_0004));
}

#[test]
fn targets_are_relative_to_the_delay_slot() {
    assert_eq!(branch_target(0x4000, 0x1000_FFFF), 0x4000);
    assert_eq!(branch_target(0x4000, 0x1000_0001), 0x4008);
    assert_eq!(jump_target(0x4000, 0x0800_1000), 0x4000);
    assert_eq!(jump_target(0xC000_0000, 0x0800_1000), 0xC000_4000);
}
