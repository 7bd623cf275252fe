//! Tests the book: every link in `docs/` must have a target, and a broken one is named.

use testbed::firmware::{self, FirmwareOptions, Variant};
use testbed::paths;
use tigon_bench::pictures;
use tigon_bench::trace::handlers;
use xtask::doc::links;

#[test]
fn every_link_of_the_book_leads_somewhere() {
    let faults = links::check(&paths::root().join("docs")).expect("readable pages");
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn links_that_lead_nowhere_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("a page");
    };
    write("SUMMARY.md", "- [one](one.md)\n- [gone](gone.md)\n");
    write(
        "one.md",
        "# A `title`, of one\n[self](#a-title-of-one) [bad](#title) [two](two.md#there)\n\
         ![picture](none.svg) [out](../README.md) [web](https://example.org/#x)\n\
         `[code](nowhere.md)`\n",
    );
    write("two.md", "## There\n");
    let faults = links::check(folder.path()).expect("readable pages");
    assert_eq!(
        faults,
        [
            "SUMMARY.md: gone.md",
            "one.md: #title",
            "one.md: none.svg",
            "one.md: ../README.md",
            "SUMMARY.md: two.md is no chapter",
        ]
    );
}

#[test]
fn the_picture_of_the_dispatch_has_the_more_urgent_event_first() {
    let handlers = [
        ((0, 6), "receive_complete".to_owned()),
        ((1, 4), "send_bd_ready".to_owned()),
    ];
    let picture = pictures::dispatch(&handlers.into());
    assert!(picture.starts_with("<svg "));
    let complete = picture.find("6 ReceiveComplete").expect("the event");
    let ready = picture.find("send_bd_ready").expect("the handler");
    assert!(complete < ready, "{picture}");
    assert!(pictures::memories(b"no ELF").is_err());
}

/// A request and its answer, with the handlers' names, in the firmware that was just built.
#[test]
fn the_picture_of_a_ping_is_that_of_the_firmware() {
    let built = firmware::build(FirmwareOptions {
        quiet: true,
        variant: Variant::Parallel,
        ..FirmwareOptions::default()
    });
    let built = built.expect("the firmware builds");
    let elf = std::fs::read(&built.elf).expect("the ELF");
    let handlers = handlers::names(&elf).expect("its jump tables");
    let folder = tempfile::tempdir().expect("a folder");
    let image = built.image().expect("an image");
    pictures::ping(&image, handlers, folder.path()).expect("it runs");
    for kind in ["svg", "html"] {
        let file = folder.path().join(pictures::PING).with_extension(kind);
        let text = std::fs::read_to_string(file).expect("the picture");
        for part in ["CPU B", "receive_complete", "send_data_ready"] {
            assert!(text.contains(part), "{kind}: {part}");
        }
    }
}

/// A page is read in a terminal and in a diff, too: prose is wrapped at 100 columns. Tables, code
/// and a link that is longer by itself are not.
#[test]
fn prose_is_wrapped_at_100_columns() {
    let root = paths::root();
    let pages = std::fs::read_dir(root.join("docs")).expect("the book");
    let mut pages: Vec<_> = pages.map(|entry| entry.expect("a page").path()).collect();
    pages.extend(["README.md", "CHANGELOG.md"].map(|name| root.join(name)));
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    let mut wide = Vec::new();
    for page in pages {
        let text = std::fs::read_to_string(&page).expect("text");
        let mut code = false;
        for (number, line) in (1..).zip(text.lines()) {
            if line.trim_start().starts_with("```") {
                code = !code;
            }
            let set = line.trim_start().starts_with(['|', '#', '<']) || line.starts_with("    ");
            let words = line.split_whitespace().count();
            if !code && !set && words > 1 && line.chars().count() > 100 {
                wide.push(format!("{}:{number}", page.display()));
            }
        }
    }
    assert!(wide.is_empty(), "{wide:#?}");
}
