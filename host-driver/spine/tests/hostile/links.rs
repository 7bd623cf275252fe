//! What the linker refuses: imports, relocations, sizes.

use crate::{init, jal, patch_hash, unlinked};
use spine_image::{RelocationKind, Section, Target, interface};
use spine_linker::link::LinkError;
use tigon2_sim::asm::{A0, NOP, addiu};

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
