//! Tests that the README shows current output: figures and pictures are regenerated and compared
//! with the checked-in ones.

use integration_tests::svg::Picture;
use testbed::paths;
use tigon_bench::front_page::{self, EVENT_GRAPH, File, PLOT};

fn checked_in(name: &str) -> String {
    let path = paths::root().join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn figures_and_pictures_of_the_readme_are_fresh() {
    let made = front_page::make().expect("the README and its pictures");
    for File { name, text } in &made {
        let old = checked_in(name);
        let differs = text.lines().zip(old.lines()).find(|(new, old)| new != old);
        assert!(
            differs.is_none() && *text == old,
            "{name} is stale, `cargo xtask doc --readme` makes it anew: {differs:#?}"
        );
    }
    let readme = checked_in("README.md");
    for picture in [PLOT, EVENT_GRAPH] {
        assert!(readme.contains(&format!("]({picture})")), "no {picture}");
        let faults = Picture::read(&checked_in(picture)).faults();
        assert!(faults.is_empty(), "{picture}: {faults:#?}");
    }
}

#[test]
fn only_what_stands_between_the_marks_is_replaced() {
    let marks = |content: &str| {
        format!(
            "before\n<!-- one: made by cargo xtask doc --readme -->\n{content}<!-- end of one -->\n\
             after\n"
        )
    };
    let filled = front_page::fill(&marks("old\n"), "one", "new\n").expect("its marks");
    assert_eq!(filled, marks("new\n"));
    for (text, missing) in [
        ("no marks", "no mark <!-- one"),
        (
            "<!-- one: made by cargo xtask doc --readme -->\n",
            "no mark <!-- end",
        ),
    ] {
        let error = front_page::fill(text, "one", "new\n").expect_err("a mark is missing");
        assert!(error.to_string().starts_with(missing), "{error}");
    }
}
