//! Containers there and back, and hostile ones.

use proptest::prelude::*;
use spine_image::format::{
    FunctionEntry, Header, InterfaceEntry, RelocationEntry, TextEntry, Trailer,
};
use spine_image::interface;
use spine_image::{
    Builder, Function, Grade, Image, ImageError, Interface, Relocation, RelocationKind, Section,
    Target,
};
use spine_text::TextError;

/// By their numbers.
const TEXTS: [&str; 2] = ["{} frames", "no route for {:x}, {} in all"];

fn sample() -> Builder {
    let mut builder = Builder::new("sample", Grade::Language, [7; 16]);
    builder.sections = [vec![0x11; 32], vec![0x22; 8], vec![0x33; 4]];
    builder.zeros = 12;
    builder.function("first", 0, 16);
    builder.init = builder.function("second", 16, 16);
    let import = builder.import("spine.clock.now", 0x1234_5678);
    builder.export("sample.sum", 0x9ABC_DEF0);
    for text in TEXTS {
        builder.text(text);
    }
    builder.relocation(
        Section::Text,
        4,
        RelocationKind::Jump,
        Target::Import(import),
    );
    builder.relocation(Section::Text, 8, RelocationKind::High, Target::Zeros(8));
    builder.relocation(
        Section::Data,
        0,
        RelocationKind::Word,
        Target::Section(Section::Constants, 8),
    );
    builder
}

fn bytes() -> Vec<u8> {
    sample().finish([1; 32], |signed| {
        assert!(signed.starts_with(b"SPNE"));
        [2; 64]
    })
}

#[test]
fn what_was_written_is_read() {
    let bytes = bytes();
    let image = Image::parse(&bytes).expect("a container");
    assert_eq!(
        (image.extension(), image.grade()),
        ("sample", Grade::Language)
    );
    assert_eq!((image.build_id(), image.init()), (&[7; 16], 1));
    assert_eq!((image.zeros(), image.region()), (12, 16));
    let text: Vec<_> = image.words(Section::Text).collect();
    assert_eq!(text, [0x1111_1111; 8]);
    let functions: Vec<_> = image.functions().collect();
    let (offset, bytes_of) = (16, 16);
    assert_eq!(
        functions[1],
        Function {
            offset,
            bytes: bytes_of,
            name: "second"
        }
    );
    let imports: Vec<_> = image.imports().collect();
    assert_eq!(
        imports,
        [Interface {
            name: "spine.clock.now",
            hash: 0x1234_5678
        }]
    );
    let exports: Vec<_> = image.exports().collect();
    assert_eq!(
        exports,
        [Interface {
            name: "sample.sum",
            hash: 0x9ABC_DEF0
        }]
    );
    assert!(image.texts().eq(TEXTS));
    let relocations: Vec<_> = image.relocations().collect();
    assert_eq!(
        relocations[2],
        Relocation {
            section: Section::Data,
            site: 0,
            kind: RelocationKind::Word,
            target: Target::Section(Section::Constants, 8),
        }
    );
    assert_eq!(relocations.len(), 3);
    assert_eq!(image.trailer().signature, [2; 64]);
    assert_eq!(image.signed().len(), bytes.len() - size_of::<Trailer>());
}

#[test]
fn each_cut_is_refused() {
    let bytes = bytes();
    for length in 0..bytes.len() {
        let error = Image::parse(&bytes[..length]).expect_err("it is cut");
        assert!(matches!(error, ImageError::Cut { .. }), "{length}: {error}");
    }
    let mut longer = bytes;
    longer.push(0);
    assert_eq!(
        Image::parse(&longer).expect_err("longer"),
        ImageError::TooLong(1)
    );
}

/// Changes bytes of the container and says what becomes of it.
fn refused(at: usize, value: &[u8]) -> ImageError {
    let mut bytes = bytes();
    bytes[at..at + value.len()].copy_from_slice(value);
    Image::parse(&bytes).expect_err("it was changed")
}

#[test]
fn hostile_headers_are_refused() {
    assert_eq!(refused(0, b"ELF "), ImageError::Magic);
    for layout in [2, 4] {
        assert_eq!(refused(4, &[0, layout]), ImageError::Layout(layout.into()));
    }
    assert_eq!(refused(6, &[0, 0]), ImageError::Grade(0));
    assert_eq!(refused(6, &[0, 3]), ImageError::Grade(3));
    let huge = [0xFF; 4];
    for (at, what) in [
        (8, "text"),
        (12, "constants"),
        (16, "data"),
        (20, "zeros"),
        (24, "functions"),
        (28, "relocations"),
        (32, "imports"),
        (36, "exports"),
        (40, "texts"),
        (44, "names"),
    ] {
        let error = refused(at, &huge);
        let expected = matches!(error, ImageError::TooMany { what: found, .. } if found == what);
        assert!(expected, "{what}: {error}");
    }
    let error = refused(8, &[0, 0, 0, 30]);
    assert_eq!(
        error,
        ImageError::Unaligned {
            what: "text",
            bytes: 30
        }
    );
    assert_eq!(refused(48, &[0, 0, 0, 2]), ImageError::Init(2));
    let error = refused(52, &[0, 1, 0, 0]);
    assert_eq!(
        error,
        ImageError::Name {
            what: "extension",
            index: 0
        }
    );
}

const FUNCTIONS: usize = size_of::<Header>() + 32 + 8 + 4;
const RELOCATIONS: usize = FUNCTIONS + 2 * size_of::<FunctionEntry>();
const IMPORTS: usize = RELOCATIONS + 3 * size_of::<RelocationEntry>();
const EXPORTS: usize = IMPORTS + size_of::<InterfaceEntry>();
const TEXT_ENTRIES: usize = EXPORTS + size_of::<InterfaceEntry>();

#[test]
fn hostile_functions_are_refused() {
    let word = |value: u32| value.to_be_bytes();
    for (at, value) in [
        (FUNCTIONS + 4, word(0)),            // of no bytes
        (FUNCTIONS + 4, word(20)),           // the second begins inside of it
        (FUNCTIONS + 16, word(17)),          // not where instructions begin
        (FUNCTIONS + 16 + 4, word(20)),      // longer than the text
        (FUNCTIONS + 16, word(0xFFFF_FFFC)), // round the end of the address space
    ] {
        let error = refused(at, &value);
        assert!(matches!(error, ImageError::Function { .. }), "{error}");
    }
    let error = refused(FUNCTIONS + 8, &word(0xFFFF_FFFF));
    assert_eq!(
        error,
        ImageError::Name {
            what: "function",
            index: 0
        }
    );
    let error = refused(IMPORTS + 4, &word(0x1000));
    assert_eq!(
        error,
        ImageError::Name {
            what: "import",
            index: 0
        }
    );
    let error = refused(EXPORTS, &word(0x1000));
    assert_eq!(
        error,
        ImageError::Name {
            what: "export",
            index: 0
        }
    );
}

#[test]
fn hostile_texts_are_refused() {
    let word = |value: u32| value.to_be_bytes();
    let first = || bytes()[TEXT_ENTRIES..][..size_of::<TextEntry>()].to_vec();
    let second = TEXT_ENTRIES + size_of::<TextEntry>();
    let what = "text";
    let outside = refused(second + 4, &word(0x1000));
    assert_eq!(outside, ImageError::Name { what, index: 1 });
    // Twice the same one, which is also what two texts with one number are.
    assert_eq!(refused(second, &first()), ImageError::TextNumber(1));
    let of = |texts: &[&str]| {
        let mut builder = sample();
        texts.iter().for_each(|text| builder.text(text));
        let bytes = builder.finish([1; 32], |_| [2; 64]);
        Image::parse(&bytes).expect_err("hostile texts")
    };
    assert_eq!(of(&["costarring", "liquid"]), ImageError::TextNumber(3));
    for (text, error) in [
        ("{name}", TextError::Hole(0)),
        ("two\nlines", TextError::Control(3)),
        (&"a".repeat(121), TextError::TooLong(121)),
        ("{}{}{}{}{}{}{}{}{}", TextError::TooManyHoles(9)),
    ] {
        assert_eq!(of(&[text]), ImageError::Text { index: 2, error });
    }
    let many = of(&["one more"; 255]);
    assert!(
        matches!(
            many,
            ImageError::TooMany {
                what: "texts",
                count: 257,
                most: 256
            }
        ),
        "{many}"
    );
}

#[test]
fn hostile_relocations_are_refused() {
    let word = |value: u32| value.to_be_bytes();
    let code = |what, value| ImageError::RelocationCode {
        index: 0,
        what,
        value,
    };
    assert_eq!(refused(RELOCATIONS, &[3]), code("section", 3));
    assert_eq!(refused(RELOCATIONS + 1, &[4]), code("kind", 4));
    assert_eq!(refused(RELOCATIONS + 2, &[5]), code("target", 5));
    // A jump in the constants.
    assert_eq!(refused(RELOCATIONS, &[1]), code("kind", 1));
    for site in [2, 32, 0xFFFF_FFFC] {
        let error = refused(RELOCATIONS + 4, &word(site));
        assert_eq!(error, ImageError::RelocationSite { index: 0, site });
    }
    for (index, addend) in [(0, 1), (1, 13), (2, 9)] {
        let error = refused(RELOCATIONS + 12 * index + 8, &word(addend));
        assert_eq!(error, ImageError::RelocationTarget { index, addend });
    }
}

#[test]
fn hashes_tell_interfaces_apart() {
    let mut hashes: Vec<_> = interface::ALL
        .iter()
        .map(interface::Interface::hash)
        .collect();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), interface::COUNT);
    let (number, patch) = interface::find("spine.network.patch").expect("one of them");
    assert_eq!(number, interface::Number::Patch as usize);
    assert_ne!(patch.hash(), interface::hash(patch.name, "fn(u32) -> u32"));
    assert_eq!(interface::domain(patch.name), "spine.network");
    assert_eq!(interface::find("spine.network"), None);
}

proptest! {
    /// Whatever the bytes are: an answer, and what is read of an accepted one lies inside.
    #[test]
    fn no_bytes_lead_a_reader_astray(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6)) {
        let mut bytes = bytes();
        for (index, value) in changes {
            let at = index.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(image) = Image::parse(&bytes) {
            let end = image.section(Section::Text).len() as u32;
            prop_assert!(image.functions().all(|one| one.offset + one.bytes <= end));
            for one in image.relocations() {
                prop_assert!(one.site as usize + 4 <= image.section(one.section).len());
            }
            prop_assert_eq!((image.imports().count(), image.exports().count()), (1, 1));
            let texts: Vec<_> = image.texts().collect();
            prop_assert_eq!(texts.len(), TEXTS.len());
            prop_assert!(texts.iter().all(|text| spine_text::holes(text).is_ok()));
            prop_assert!(texts.is_sorted_by_key(|text| spine_text::number(text)));
        }
    }

    #[test]
    fn random_bytes_are_no_container(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(Image::parse(&bytes).is_err());
    }
}
