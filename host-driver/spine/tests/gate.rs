//! Hostile sources: what the gate refuses, before anything is compiled.

use spine_linker::compile::{CompileError, judge_manifest};
use spine_linker::gate::{GateError, Refusal, judge, judge_folder};
use std::path::Path;

fn refusal(text: &str) -> Refusal {
    match judge(Path::new("lib.rs"), text) {
        Err(GateError::Refused { what, .. }) => what,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it passes: {text}"),
    }
}

#[test]
fn what_extensions_do_not_have_is_refused() {
    let hidden = |word: &str| Refusal::Hidden(word.to_owned());
    let of_attribute = |name: &str| Refusal::Attribute(name.to_owned());
    let of_macro = |name: &str| Refusal::Macro(name.to_owned());
    for (text, expected) in [
        ("fn f() { unsafe { } }", Refusal::Unsafe),
        ("unsafe fn f() {}", Refusal::Unsafe),
        ("unsafe impl Sync for X {}", Refusal::Unsafe),
        ("unsafe trait T {}", Refusal::Unsafe),
        ("type F = fn(u32);", Refusal::FunctionPointer),
        ("fn f(g: &[fn()]) {}", Refusal::FunctionPointer),
        (
            "fn f<F>(g: F) where for<'a> F: Fn(&'a u32) {}",
            Refusal::HigherRanked,
        ),
        (
            "fn f(g: impl for<'a> Fn(&'a u32)) {}",
            Refusal::HigherRanked,
        ),
        ("fn f(g: &dyn Sync) {}", Refusal::TraitObject),
        ("trait T<'a> {}", Refusal::TraitLifetime),
        ("trait T { type X<'a>; }", Refusal::TraitLifetime),
        (
            "impl<T: Iterator> X for <T as Iterator>::Item {}",
            Refusal::Projection,
        ),
        (
            "impl<T: Iterator> X<<T as Iterator>::Item> for T {}",
            Refusal::Projection,
        ),
        ("impl<T: Iterator> X for T::Item {}", Refusal::Projection),
        (
            "impl<T: Iterator> X<[T::Item; 2]> for T {}",
            Refusal::Projection,
        ),
        (
            "impl<T: Iterator> X for T where T::Item: Copy {}",
            Refusal::Projection,
        ),
        ("impl X<Self::Item> for u32 {}", Refusal::Projection),
        // Syntax that the parser keeps as words, in each place where it does.
        ("const fn f();", Refusal::Unknown),
        ("impl X { fn f(); }", Refusal::Unknown),
        ("trait T { pub fn f(); }", Refusal::Unknown),
        ("fn f() { match x { box y => {} } }", Refusal::Unknown),
        ("fn f<T: const X>() {}", Refusal::Unknown),
        ("fn f() { builtin # deref(x) }", Refusal::Unknown),
        ("extern \"C\" { fn f(); }", Refusal::Extern),
        ("extern \"C\" fn f() {}", Refusal::Extern),
        ("extern crate alloc;", Refusal::Extern),
        ("static mut X: u32 = 0;", Refusal::MutableStatic),
        ("async fn f() {}", Refusal::Async),
        ("macro_rules! m { () => { } }", Refusal::MacroDefinition),
        ("fn f() { core::arch::asm!(\"break\") }", of_macro("asm")),
        (
            "core::arch::global_asm!(\"break\");",
            of_macro("global_asm"),
        ),
        ("include!(\"/etc/passwd\");", of_macro("include")),
        (
            "const X: &str = include_str!(\"/etc/passwd\");",
            of_macro("include_str"),
        ),
        ("const X: &str = env!(\"HOME\");", of_macro("env")),
        ("fn f() { assert!(unsafe { true }) }", hidden("unsafe")),
        ("fn f() { assert!({ fn g() {} true }) }", hidden("fn")),
        (
            "fn f() { assert!((&1 as &dyn Sync, true).1) }",
            hidden("dyn"),
        ),
        ("#[no_mangle] fn f() {}", of_attribute("no_mangle")),
        ("#[unsafe(no_mangle)] fn f() {}", of_attribute("unsafe")),
        (
            "#[link_section = \".text\"] static X: u32 = 0;",
            of_attribute("link_section"),
        ),
        (
            "#[export_name = \"x\"] fn f() {}",
            of_attribute("export_name"),
        ),
        ("#[path = \"/tmp/x.rs\"] mod x;", of_attribute("path")),
        (
            "#![feature(asm_experimental_arch)]",
            of_attribute("feature"),
        ),
        (
            "#[cfg_attr(all(), no_mangle)] fn f() {}",
            of_attribute("cfg_attr"),
        ),
        (
            "#[global_allocator] static X: u32 = 0;",
            of_attribute("global_allocator"),
        ),
        (
            "#[derive(zerocopy::FromBytes)] struct X;",
            Refusal::Derive("path".to_owned()),
        ),
        (
            "#[derive(FromBytes)] struct X;",
            Refusal::Derive("FromBytes".to_owned()),
        ),
        ("mod a { fn f() { unsafe { } } }", Refusal::Unsafe),
        ("fn f() { let g = || { unsafe { } }; }", Refusal::Unsafe),
    ] {
        assert_eq!(refusal(text), expected, "{text}");
    }
}

/// The arguments of a macro that an extension may call are code like any other.
#[test]
fn what_stands_in_the_arguments_of_macros_is_refused_too() {
    let hidden = |word: &str| Refusal::Hidden(word.to_owned());
    let of_attribute = |name: &str| Refusal::Attribute(name.to_owned());
    let of_macro = |name: &str| Refusal::Macro(name.to_owned());
    for (arguments, expected) in [
        ("assert!(include!(\"/tmp/x.rs\"))", of_macro("include")),
        ("assert!(include ! [\"/tmp/x.rs\"])", of_macro("include")),
        ("assert!(!include! { \"/tmp/x.rs\" })", of_macro("include")),
        ("assert!(r#include!(\"/tmp/x.rs\"))", of_macro("r#include")),
        (
            "assert_eq!(0, core::include_str!(\"/tmp/x\").len())",
            of_macro("include_str"),
        ),
        (
            "matches!(include_bytes!(\"/tmp/x\"), [0, ..])",
            of_macro("include_bytes"),
        ),
        ("matches!(0, _ if env!(\"X\") == \"\")", of_macro("env")),
        ("matches!(0, pattern!())", of_macro("pattern")),
        ("assert!(0 == 0 as kind!())", of_macro("kind")),
        (
            "panic!(\"{:?}\", option_env!(\"X\"))",
            of_macro("option_env"),
        ),
        ("panic!(concat!(\"{\", \"}\"), 0)", of_macro("concat")),
        ("todo!(\"{}\", x = line!())", of_macro("line")),
        (
            "assert!(core::arch::asm!(\"break\") == ())",
            of_macro("asm"),
        ),
        (
            "assert!(matches!(assert!(include!(\"/tmp/x.rs\")), ()))",
            of_macro("include"),
        ),
        (
            "assert!(matches!(0, 0) && other::panic!())",
            of_macro("panic"),
        ),
        (
            "assert!({ macro_rules! m { () => {} } true })",
            of_macro("macro_rules"),
        ),
        (
            "assert!({ #[path = \"/tmp/x.rs\"] mod m; true })",
            of_attribute("path"),
        ),
        (
            "assert!({ #![feature(asm_experimental_arch)] true })",
            of_attribute("feature"),
        ),
        (
            "assert!({ #[derive(FromBytes)] struct X; true })",
            Refusal::Derive("FromBytes".to_owned()),
        ),
        ("assert!({ mod m; true })", hidden("mod")),
        ("assert!({ static mut X: u32 = 0; true })", hidden("static")),
        ("assert!({ extern crate alloc; true })", hidden("extern")),
        ("assert!({ trait T<'a> {} true })", hidden("trait")),
        (
            "assert!({ impl X for <Y as Z>::W {} true })",
            hidden("impl"),
        ),
        ("assert!(x as fn() == y)", hidden("fn")),
        ("assert!(f::<for<'a> fn(&'a u32)>())", hidden("for")),
        ("assert!({ async { }; true })", Refusal::Async),
        ("matches!(async { }, _)", Refusal::Async),
        ("assert!(true; 0)", Refusal::Unknown),
        ("matches!(0; 0)", Refusal::Unknown),
        ("panic!(# \"\")", Refusal::Unknown),
        (
            "spine::view! { #[path = \"x\"] struct X: 4 bytes at 2 { } }",
            of_attribute("path"),
        ),
        (
            "view! { #[doc = include_str!(\"/tmp/x\")] struct X: 4 bytes at 2 { } }",
            of_macro("include_str"),
        ),
        (
            "view! { #[doc = other::panic!()] struct X: 4 bytes at 2 { } }",
            of_macro("panic"),
        ),
        ("view! { mod x; }", hidden("mod")),
    ] {
        let text = format!("fn f() {{ let _ = {arguments}; }}");
        assert_eq!(refusal(&text), expected, "{text}");
    }
    for (attribute, expected) in [
        ("#[doc = include_str!(\"/tmp/x\")]", of_macro("include_str")),
        ("#[must_use = env!(\"X\")]", of_macro("env")),
        (
            "#[expect(dead_code, reason = concat!())]",
            of_macro("concat"),
        ),
    ] {
        assert_eq!(refusal(&format!("{attribute} fn f() {{}}")), expected);
    }
}

/// A name of the lists means what it means in the language.
#[test]
fn what_is_permitted_under_another_name_is_refused() {
    let renamed = |name: &str| Refusal::Renamed(name.to_owned());
    for (text, expected) in [
        ("use core::include as todo;", renamed("todo")),
        ("pub use core::include_str as r#panic;", renamed("panic")),
        ("use core::{env as view, fmt};", renamed("view")),
        ("use core::marker::CoercePointee as Copy;", renamed("Copy")),
        (
            "use core::prelude::v1::global_allocator as test;",
            renamed("test"),
        ),
        (
            "fn f() { assert!({ use core::include as matches; true }) }",
            renamed("matches"),
        ),
    ] {
        assert_eq!(refusal(text), expected, "{text}");
    }
    let plain = "use core::fmt::{self as format, Debug as _};";
    judge(Path::new("lib.rs"), plain).expect("other names");
}

/// What handlers say in macros is none of that.
#[test]
fn plain_arguments_of_macros_pass() {
    for plain in [
        "assert!(x != y, \"{x} is not {}\", y)",
        "assert!(x!=y && !z, \"{x} {more}\", more = !1)",
        "assert!(if !(x || y) { return !(z) } else { !z },)",
        "assert_eq!([1, 2].map(|x| { #[allow(unused)] let y = x; !y }), [!1, !2])",
        "debug_assert_ne!(x as u32, <[u32]>::len(&[]) as u32)",
        "matches!(x, Some(1) | None)",
        "matches!(x, | X::Y { z: 1..=3, .. } if !z && matches!(z, 1 | 2),)",
        "panic!()",
        "unreachable!(\"for dyn unsafe mod include!()\")",
        "assert!({ assert!(x); debug_assert!(matches!(y, _)); z })",
        "assert!({ spine::view! { struct X: 4 bytes at 2 { } } true })",
        "assert!(spine::log!(context, \"unsafe {}\", !x).is_ok())",
    ] {
        judge(
            Path::new("lib.rs"),
            &format!("fn f() {{ let _ = {plain}; }}"),
        )
        .unwrap_or_else(|error| panic!("{plain}: {error}"));
    }
    let header = "
        spine::view! {
            /// TCP's first words, for `view!` (RFC 9293, section 3.1).
            #[allow(missing_docs)]
            pub(crate) struct Tcp: 8 bytes at 2 {
                /// Source port.
                source: u16 at 0,
                sequence: u32 at 4,
            }
        }";
    judge(Path::new("lib.rs"), header).expect("a header");
}

#[test]
fn extensions_of_the_project_pass() {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs it");
    let root = Path::new(&folder).join("../..");
    for folder in ["firmware/spine/extensions", "tests/extensions"] {
        let crates = std::fs::read_dir(root.join(folder)).expect(folder);
        let mut count = 0;
        for one in crates {
            let sources = one.expect(folder).path().join("src");
            let files = judge_folder(&sources);
            count += files.unwrap_or_else(|error| panic!("{error}")).files;
        }
        assert!(count >= 3, "{folder}");
    }
}

/// rust-lang/rust#25860, as the crate cve-rs has it: a lifetime is made longer by the
/// contravariance of a function pointer.
#[test]
fn the_known_hole_by_which_lifetimes_grow_is_closed() {
    let exploit = "
        static STATIC_UNIT: &&() = &&();
        fn lifetime_translator<'a, 'b, T>(_a: &'a &'b (), b: &'b T) -> &'a T { b }
        pub fn expand<'a, 'b, T>(x: &'a T) -> &'b T {
            let f: fn(_, &'a T) -> &'b T = lifetime_translator;
            f(STATIC_UNIT, x)
        }";
    assert_eq!(refusal(exploit), Refusal::FunctionPointer);
    let by_bound = "
        fn foo<T>(x: T) -> impl for<'a> Fn(&'a &'static ()) -> T { move |_| todo!() }";
    assert_eq!(refusal(by_bound), Refusal::HigherRanked);
}

#[test]
fn what_is_no_rust_is_refused_and_what_is_plain_passes() {
    let error = judge(Path::new("lib.rs"), "fn (").expect_err("no Rust");
    assert!(matches!(error, GateError::Syntax { .. }));
    judge(
        Path::new("lib.rs"),
        "#![no_std]\n#[derive(Clone, Copy)]\nstruct X<'a>(&'a u32);\n\
         impl<'a> X<'a> { #[inline] fn f(&self) -> Option<u32> { matches!(1, 1).then_some(2) } }",
    )
    .expect("plain");
}

#[test]
fn manifests_say_nothing_that_is_not_heeded() {
    let plain = "[package]\nname = \"x\"\n[dependencies]\nspine = \"1\"\n";
    assert_eq!(judge_manifest(plain).expect("plain"), "x");
    for (more, expected) in [
        ("libc = \"0.2\"\n", "the dependency libc"),
        ("[features]\ndefault = []\n", "[features]"),
        ("[build-dependencies]\ncc = \"1\"\n", "[build-dependencies]"),
        ("[profile.release]\noverflow-checks = false\n", "[profile]"),
        ("[patch.crates-io]\n", "[patch]"),
        ("[lib]\nproc-macro = true\n", "lib.proc-macro"),
        (
            "[target.'cfg(all())'.dependencies]\nlibc = \"1\"\n",
            "[target]",
        ),
    ] {
        let error = judge_manifest(&format!("{plain}{more}")).expect_err(expected);
        let CompileError::NotAllowed(what) = error else {
            panic!("{error}");
        };
        assert_eq!(what, expected);
    }
    let script = "[package]\nname = \"x\"\nbuild = \"other.rs\"\n";
    let error = judge_manifest(script).expect_err("a build script");
    assert!(matches!(error, CompileError::NotAllowed(what) if what == "package.build"));
}

#[test]
fn a_crate_says_what_it_exports_and_imports() {
    let text = "spine::export!(A = \"mine.first\");\nspine::export!(pub B = \"mine.second\");\n\
                spine::import!(C = \"yours.third\");";
    let said = judge(Path::new("lib.rs"), text).expect("plain").interfaces;
    let names = |names: std::collections::BTreeSet<String>| Vec::from_iter(names);
    assert_eq!(names(said.exports), ["mine.first", "mine.second"]);
    assert_eq!(names(said.imports), ["yours.third"]);
    for name in [
        "",
        "mine",
        "mine.",
        ".first",
        "mine.first.second",
        "Mine.first",
        "a b.c",
    ] {
        let text = format!("spine::import!(A = {name:?});");
        assert_eq!(refusal(&text), Refusal::InterfaceName(name.to_owned()));
    }
    // Where an expression stands, by another path, or with more than a name.
    let inside = "fn f() { spine::import!(A = \"a.b\") }";
    assert_eq!(refusal(inside), Refusal::Macro("import".to_owned()));
    assert_eq!(
        refusal("import!(A = \"a.b\");"),
        Refusal::Macro("import".to_owned())
    );
    assert_eq!(refusal("spine::export!(A = \"a.b\", B);"), Refusal::Unknown);
    assert_eq!(
        refusal("spine::export!(A = concat!(\"a.\", \"b\"));"),
        Refusal::Unknown
    );
    assert_eq!(
        refusal("#[path = \"x\"]\nspine::export!(A = \"a.b\");"),
        Refusal::Attribute("path".to_owned())
    );
}
