//! What the linker refuses: imports, relocations, sizes.

use crate::{SP, init, jal, judged_beside, patch_hash, unlinked};
use spine_image::{RelocationKind, Section, Target, interface};
use spine_linker::exports::Exported;
use spine_linker::link::LinkError;
use spine_linker::verify::Refused;
use tigon2_sim::asm::{A0, NOP, addiu, lw, sw};

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
    let error = unlinked(&init(&[NOP; 300]));
    let expected = LinkError::TooLarge {
        what: "the arena",
        needs: 1208,
        has: 1024,
    };
    assert_eq!(error, expected);
}

/// Wants `numbers.sum`, and has a handler with 8 bytes of stack that calls the gate.
fn calling() -> spine_image::Builder {
    const RA: u32 = 31;
    let call = [addiu(SP, SP, -8), sw(RA, 4, SP), jal(0), NOP];
    let back = [lw(RA, 4, SP), addiu(SP, SP, 8)];
    let mut builder = init(&[&call[..], &back].concat());
    let (_, gate) = interface::find("spine.gate.call").expect("one");
    let number = builder.import(gate.name, gate.hash());
    let target = Target::Import(number);
    builder.relocation(Section::Text, 8, RelocationKind::Jump, target);
    let name = "numbers.sum";
    builder.import(name, interface::procedure_hash(name));
    builder
}

fn sum(stack: u32) -> Exported {
    Exported {
        name: "numbers.sum".to_owned(),
        domain: 2,
        stack,
    }
}

#[test]
fn procedures_of_others_are_linked_by_name_and_add_to_the_stack() {
    let (linked, proof) = judged_beside(&calling(), &[sum(100)]).expect("linked");
    assert_eq!((linked.may_call, proof.most), (1 << 2, 8 + 64 + 100));
    let error = judged_beside(&calling(), &[sum(129)]).expect_err("too deep");
    let refused = error.downcast::<Refused>().expect("by the verifier");
    assert!(
        matches!(
            *refused,
            Refused::Stack {
                needs: 201,
                has: 200,
                ..
            }
        ),
        "{refused}"
    );
    let expected = LinkError::NotExported("numbers.sum".to_owned());
    assert_eq!(unlinked(&calling()), expected);
}

#[test]
fn procedures_of_others_are_called_by_the_gate_alone() {
    let name = "numbers.sum";
    let mut builder = init(&[jal(0), NOP]);
    let number = builder.import(name, interface::procedure_hash(name));
    let target = Target::Import(number);
    builder.relocation(Section::Text, 0, RelocationKind::Jump, target);
    let error = judged_beside(&builder, &[sum(0)]).expect_err("a jump to nowhere");
    let refused = error.downcast::<Refused>().expect("by the verifier");
    assert!(
        matches!(*refused, Refused::Jump { target: 0, .. }),
        "{refused}"
    );
    // Built against another signature: it is not one of an extension's.
    let mut builder = init(&[]);
    builder.import(name, interface::procedure_hash(name) ^ 1);
    let expected = LinkError::UnknownImport(name.to_owned());
    assert_eq!(unlinked(&builder), expected);
    // Of a domain that was not granted.
    let mut builder = init(&[]);
    builder.import("others.sum", interface::procedure_hash("others.sum"));
    let expected = LinkError::NotInDomain {
        name: "others.sum".to_owned(),
        domain: "others".to_owned(),
    };
    assert_eq!(unlinked(&builder), expected);
}

#[test]
fn an_extension_exports_under_its_own_name() {
    for name in [
        "numbers.sum",
        "hostile",
        "spine.network.patch",
        "hostile.a.b",
    ] {
        let mut builder = init(&[]);
        builder.export(name, interface::procedure_hash(name));
        let expected = LinkError::NotItsOwn {
            extension: "hostile".to_owned(),
            name: name.to_owned(),
        };
        assert_eq!(unlinked(&builder), expected);
    }
    let mut builder = init(&[]);
    builder.export("hostile.sum", interface::procedure_hash("hostile.sum"));
    judged_beside(&builder, &[]).expect("its own");
}
