//! The texts of a crate's log, as the gate finds and refuses them.

use spine_linker::gate::{GateError, Judged, Refusal, judge, judge_folder};
use spine_text::{TEXTS_MOST, TextError};
use std::path::Path;

fn judged(code: &str) -> Result<Judged, GateError> {
    judge(Path::new("lib.rs"), &format!("fn f() {{ {code} }}"))
}

fn refusal(code: &str) -> Refusal {
    match judged(code) {
        Err(GateError::Refused { what, .. }) => what,
        Err(other) => panic!("{code}: {other}"),
        Ok(_) => panic!("it passes: {code}"),
    }
}

#[test]
fn a_crate_says_what_it_logs() {
    let said = judged(
        "let _ = spine::log!(context, \"{} frames\", count);
         use spine::log;
         if log!(context, \"{{plain}}\").is_err() || log!(context, r\"{{plain}}\",).is_ok() { }
         match 1 { _ => { let g = || log!(&context, \"{:x}\\u{2013}{:#x}\", a + 1, { b },); } }
         assert!(spine::log!(context, \"within {}\", f(log!(context, \"within it\"))).is_ok());",
    );
    let said = said.expect("plain");
    let expected = [
        "{} frames",
        "{{plain}}",
        "{:x}–{:#x}",
        "within {}",
        "within it",
    ];
    let mut expected = expected.map(|text| (spine_text::number(text), text));
    expected.sort_unstable();
    assert!(said.texts.iter().eq(expected.map(|(_, text)| text)));
}

#[test]
fn what_is_no_line_of_a_log_is_refused() {
    let words = |holes, words| Refusal::Words { holes, words };
    for (code, expected) in [
        ("log!(c, \"{}\")", words(1, 0)),
        ("log!(c, \"\", 1)", words(0, 1)),
        ("spine::log!(c, \"{:x} {}\", 1, 2, 3)", words(2, 3)),
        ("log!(c, \"a {name}\")", Refusal::Text(TextError::Hole(2))),
        ("log!(c, \"{:?}\", 1)", Refusal::Text(TextError::Hole(0))),
        ("log!(c, \"{0}\", 1)", Refusal::Text(TextError::Hole(0))),
        ("log!(c, \"}\")", Refusal::Text(TextError::Hole(0))),
        ("log!(c, \"a\\n\")", Refusal::Text(TextError::Control(1))),
        (
            "log!(c, \"\\u{1b}[2J\")",
            Refusal::Text(TextError::Control(0)),
        ),
        (
            "log!(c, \"{}{}{}{}{}{}{}{}{}\", 1, 2, 3, 4, 5, 6, 7, 8, 9)",
            Refusal::Text(TextError::TooManyHoles(9)),
        ),
        ("log!()", Refusal::NoLine),
        ("log!(c)", Refusal::NoLine),
        ("log!(\"text\")", Refusal::NoLine),
        ("log!(c, TEXT)", Refusal::NoLine),
        ("log!(c, b\"text\")", Refusal::NoLine),
        ("log!(c, \"text\"; 1)", Refusal::NoLine),
        ("log!(c, \"text\" 1)", Refusal::NoLine),
        ("log!(c, \"text\", x = 1)", words(0, 1)),
        ("other::log!(c, \"text\")", Refusal::Macro("log".to_owned())),
    ] {
        assert_eq!(refusal(code), expected, "{code}");
    }
    let long = "a".repeat(121);
    let expected = Refusal::Text(TextError::TooLong(121));
    assert_eq!(refusal(&format!("log!(c, {long:?})")), expected);
    let alias = "use core::include as log;";
    assert_eq!(refusal(alias), Refusal::Renamed("log".to_owned()));
}

/// The arguments are code like any other.
#[test]
fn what_stands_between_the_words_is_refused_too() {
    let hidden = |word: &str| Refusal::Hidden(word.to_owned());
    let of_macro = |name: &str| Refusal::Macro(name.to_owned());
    for (code, expected) in [
        ("log!(unsafe { c }, \"text\")", hidden("unsafe")),
        (
            "log!(c, \"{}\", unsafe { *(8 as *const u32) })",
            hidden("unsafe"),
        ),
        ("spine::log!(c, \"{}\", { fn g() {} 1 })", hidden("fn")),
        (
            "log!(c, \"{}\", { extern crate alloc; 1 })",
            hidden("extern"),
        ),
        (
            "log!(c, \"{}\", { static mut X: u32 = 0; 1 })",
            hidden("static"),
        ),
        (
            "log!(c, \"{}\", include!(\"/tmp/x.rs\"))",
            of_macro("include"),
        ),
        (
            "log!({ include!(\"/tmp/x.rs\"); c }, \"text\")",
            of_macro("include"),
        ),
        (
            "log!(c, include_str!(\"/etc/passwd\"))",
            of_macro("include_str"),
        ),
        ("log!(c, concat!(\"a\", \"b\"))", of_macro("concat")),
        (
            "log!(c, \"{}\", core::arch::asm!(\"break\"))",
            of_macro("asm"),
        ),
        ("log!(c, \"{}\", other::log!(c, \"\"))", of_macro("log")),
        (
            "log!(c, \"{}\", { #[path = \"/tmp/x.rs\"] mod m; 1 })",
            Refusal::Attribute("path".to_owned()),
        ),
        ("log!(c, \"{}\", { async { }; 1 })", Refusal::Async),
        ("log!(c, \"{}\", builtin # deref(x))", Refusal::Unknown),
    ] {
        assert_eq!(refusal(code), expected, "{code}");
    }
}

#[test]
fn two_texts_with_one_number_are_refused() {
    let expected = Refusal::TextNumber("costarring".to_owned(), "liquid".to_owned());
    let code = "log!(c, \"costarring\"); log!(c, \"costarring\"); log!(c, \"liquid\");";
    assert_eq!(refusal(code), expected);
    // Also in two files of the crate.
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("below")).expect("a folder");
    for (file, text) in [("below/a.rs", "costarring"), ("b.rs", "liquid")] {
        let code = format!("fn f() {{\n log!(c, {text:?}); }}");
        std::fs::write(folder.path().join(file), code).expect("a file");
    }
    match judge_folder(folder.path()) {
        Err(GateError::Refused { path, line, what }) => {
            assert_eq!(
                (line, what),
                (
                    2,
                    Refusal::TextNumber("liquid".to_owned(), "costarring".to_owned())
                )
            );
            assert!(path.ends_with("below/a.rs"), "{}", path.display());
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn texts_have_a_bound() {
    let code = |count: usize| {
        let lines = (0..count).map(|number| format!("log!(c, \"text {number}\");"));
        lines.collect::<String>()
    };
    let most = judged(&code(TEXTS_MOST)).expect("as many as there may be");
    assert_eq!(most.texts.iter().count(), TEXTS_MOST);
    assert_eq!(refusal(&code(TEXTS_MOST + 1)), Refusal::TooManyTexts);
}
