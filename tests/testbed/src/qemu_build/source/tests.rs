//! Tests the search for the mirror and the validation of the user's source.

use super::*;

const STANZAS: &str = "\
Types: deb
# A comment: with a colon
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Signed-By: /keys/archive.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security

Enabled: no
URIs: http://off.example/debian
";

#[test]
fn stanzas_are_read_and_disabled_ones_are_not() {
    let uris: Vec<String> = deb822(STANZAS).into_iter().map(|a| a.uri).collect();
    assert_eq!(
        uris,
        [
            "http://mirror.example/debian",
            "http://mirror.example/debian-security"
        ]
    );
}

#[test]
fn lines_are_read_with_and_without_options() {
    let plain = one_line("deb http://mirror.example/debian/ bookworm main");
    assert_eq!(
        plain,
        Some(Archive {
            uri: "http://mirror.example/debian/".into(),
            signed_by: None
        })
    );
    let signed = one_line("deb-src [arch=amd64 signed-by=/k.gpg] file:/srv/debian bookworm main");
    assert_eq!(
        signed,
        Some(Archive {
            uri: "file:/srv/debian".into(),
            signed_by: Some("/k.gpg".into())
        })
    );
    assert_eq!(
        one_line("# deb http://mirror.example/debian bookworm main"),
        None
    );
    assert_eq!(one_line("debug http://mirror.example/debian"), None);
}

#[test]
fn only_the_main_archive_counts() -> Result<()> {
    let folder = tempfile::tempdir()?;
    fs::create_dir(folder.path().join("sources.list.d"))?;
    fs::write(folder.path().join("sources.list.d/debian.sources"), STANZAS)?;
    fs::write(
        folder.path().join("sources.list.d/other.list.disabled"),
        "deb http://x/debian y",
    )?;
    fs::write(
        folder.path().join("sources.list"),
        "deb http://other.example/tools stable main\n",
    )?;
    let found = configured(folder.path());
    assert_eq!(
        found,
        [Archive {
            uri: "http://mirror.example/debian".into(),
            signed_by: Some("/keys/archive.gpg".into())
        }]
    );
    assert_eq!(
        found[0].entry(),
        "Types: deb-src\nURIs: http://mirror.example/debian\nSuites: trixie\nComponents: main\n\
         Signed-By: /keys/archive.gpg\n"
    );
    Ok(())
}

#[test]
fn a_folder_that_is_no_source_is_refused() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().to_path_buf();
    let error = named(path.clone()).err().context("it was taken")?;
    assert_eq!(
        error.to_string(),
        format!("{} is not a QEMU source", path.display())
    );
    Ok(())
}

#[test]
fn a_source_of_another_series_is_refused() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (path, to) = (folder.path().join("qemu"), folder.path().join("copy"));
    fs::create_dir(&path)?;
    fs::write(path.join("VERSION"), "9.2.0\n")?;
    let error = named(path.clone())?.unpack(&to).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("{} is QEMU 9.2.0, but 10.0.x is needed", path.display())
    );
    fs::write(path.join("VERSION"), "10.0.3\n")?;
    named(path)?.unpack(&to)?;
    Ok(())
}

#[test]
fn a_path_that_is_not_there_is_named() {
    let error = named(PathBuf::from("/nowhere/qemu"))
        .err()
        .map(|e| e.to_string());
    assert_eq!(error.as_deref(), Some("TIGON_QEMU_SRC names /nowhere/qemu"));
}
