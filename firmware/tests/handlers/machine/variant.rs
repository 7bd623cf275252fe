//! Reads from the manifest which variant a firmware variant is based on, as the build does.

/// Those that all others are made from.
const FIRST: [&str; 2] = ["uniprocessor", "parallel"];

/// The one of [`FIRST`] that a variant is made from, in the end.
///
/// # Panics
/// When the manifest has no such variant.
pub fn basis<'a>(manifest: &'a str, variant: &'a str) -> &'a str {
    let mut name = variant;
    // Each is made from another one, so this ends.
    for _ in manifest.lines() {
        if FIRST.contains(&name) {
            return name;
        }
        name = from(manifest, name)
            .unwrap_or_else(|| panic!("TIGON_VARIANT is {variant}: {name} is no feature"));
    }
    panic!("TIGON_VARIANT is {variant}, which is made from itself");
}

/// The first feature that a feature stands for: `name = ["from"]`.
fn from<'a>(manifest: &'a str, name: &str) -> Option<&'a str> {
    let lines = manifest.lines().skip_while(|line| *line != "[features]");
    let mut features = lines.skip(1).take_while(|line| !line.starts_with('['));
    features.find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim().trim_matches('"') == name).then(|| value.split('"').nth(1))?
    })
}

#[test]
fn a_variant_of_ones_own_is_divided_as_its_basis() {
    let manifest = "[features]\nparallel = []\nuniprocessor = []\ncount-arp = [\"parallel\"]\n\
        count-more = [\"count-arp\"]\nalone = [\"uniprocessor\"]\n[dependencies]\nx = \"1\"\n";
    for (variant, expected) in [
        ("parallel", "parallel"),
        ("uniprocessor", "uniprocessor"),
        ("count-arp", "parallel"),
        ("count-more", "parallel"),
        ("alone", "uniprocessor"),
    ] {
        assert_eq!(basis(manifest, variant), expected, "{variant}");
    }
    let unknown = std::panic::catch_unwind(|| basis(manifest, "x").to_owned());
    assert!(unknown.is_err(), "what is no feature");
}
