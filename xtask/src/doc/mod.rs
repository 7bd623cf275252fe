//! `cargo xtask doc`: the book of `docs/`, and the pages of every crate.
//!
//! ```text
//!   docs/*.md, SUMMARY.md ──links: does each lead somewhere?──┐
//!   firmware ──pictures: dispatch tables, memories, a ping────┼─► mdbook ─► target/doc/book
//!   chip, host interface ──tables: registers, words, commands─┘
//!   every crate ──rustdoc, no warning────────────────────────────────────► target/doc
//! ```
//!
//! The command installs mdbook into the cache once, in the version that is named here.

pub mod crates;
pub mod links;
pub mod tables;

use anyhow::{Context, Result, bail};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use testbed::firmware::{self, FirmwareOptions, Placement, Variant};
use testbed::setup::{self, Need};
use testbed::{cache, paths, process};
use tigon_bench::trace::handlers;
use tigon_bench::{front_page, pictures};

/// The version of mdbook.
const MDBOOK: &str = "0.5.4";
/// The chapters that are made here.
const PICTURES: &str = "pictures.md";
const TABLES: &str = "tables.md";
const CRATES: &str = "crates.md";

/// mdbook's own file. Commands and their output are wider than prose.
const BOOK: &str = "[book]\ntitle = \"tigon-rs\"\n\n\
    [output.html]\nadditional-css = [\"wide.css\"]\n";
const WIDE: &str = ":root { --content-max-width: 1100px; }\n";

/// The parts to build.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Build only the book
    #[arg(long)]
    pub book: bool,
    /// Regenerate only the README's figures and pictures, in the checkout
    #[arg(long, conflicts_with = "book")]
    pub readme: bool,
    /// Report of cargo xtask qemu-run to show in the README
    #[arg(long, value_name = "FILE", requires = "readme")]
    pub report: Option<PathBuf>,
}

/// Makes it.
///
/// # Errors
/// A link that leads nowhere, a page that no chapter is, or what mdbook and rustdoc say.
pub fn run(arguments: &Arguments) -> Result<()> {
    if arguments.readme {
        return front_page::write(arguments.report.as_deref());
    }
    let docs = paths::root().join("docs");
    let faults = links::check(&docs)?;
    if !faults.is_empty() {
        bail!("links that lead nowhere:\n  {}", faults.join("\n  "));
    }
    setup::ensure(&[Need::Firmware])?;
    let mdbook = mdbook()?;
    let source = paths::target().join("book");
    let book = paths::target().join("doc/book");
    write_source(&docs, &source, !arguments.book)?;
    let mut command = Command::new(mdbook);
    command
        .args(["build", "--dest-dir"])
        .arg(&book)
        .arg(&source);
    process::run(&mut command).context("mdbook")?;
    println!("book: {}", book.join("index.html").display());
    if !arguments.book {
        let mut cargo = process::cargo();
        cargo
            .args(["doc", "--workspace", "--no-deps", "--quiet"])
            .current_dir(paths::root())
            .env("RUSTDOCFLAGS", "-D warnings");
        process::run(&mut cargo).context("rustdoc")?;
        println!("crates: {}", book.join("crates.html").display());
    }
    Ok(())
}

/// mdbook's program; it is installed if it is not there.
fn mdbook() -> Result<PathBuf> {
    let folder = cache::folder(&format!("mdbook-{MDBOOK}"))?;
    let program = folder.join("bin/mdbook");
    if !program.is_file() {
        println!("doc: installing mdbook {MDBOOK}, once");
        let mut cargo = process::cargo();
        let version = format!("={MDBOOK}");
        cargo
            .args(["install", "mdbook", "--locked", "--no-default-features"])
            .args(["--quiet", "--version", &version, "--root"])
            .arg(&folder)
            .env_remove("CARGO_TARGET_DIR");
        process::run(&mut cargo).context("cannot install mdbook")?;
    }
    Ok(program)
}

/// The book's own folder: the pages, the pictures and a page that shows them.
fn write_source(docs: &Path, folder: &Path, with_crates: bool) -> Result<()> {
    let source = folder.join("src");
    if source.exists() {
        std::fs::remove_dir_all(&source)?;
    }
    std::fs::create_dir_all(&source)?;
    for entry in std::fs::read_dir(docs)? {
        let path = entry?.path();
        if let Some(name) = path.file_name().filter(|_| path.is_file()) {
            std::fs::copy(&path, source.join(name))
                .with_context(|| format!("copy {}", path.display()))?;
        }
    }
    // The book is of the firmware that everybody has who chooses none.
    let options = FirmwareOptions {
        variant: Variant::default(),
        placement: Placement::default(),
        quiet: true,
    };
    let built = firmware::build(options)?;
    let elf = std::fs::read(&built.elf)?;
    let variant = options.variant.name();
    let handlers = handlers::names(&elf)?;
    std::fs::write(source.join("dispatch.svg"), pictures::dispatch(&handlers))?;
    std::fs::write(source.join("memories.svg"), pictures::memories(&elf)?)?;
    pictures::ping(&built.image()?, handlers, &source)?;
    let ping = pictures::PING;
    let page = format!(
        "# Pictures from the sources\n\nMade by `cargo xtask doc` from the firmware `{variant}` \
         as it was built.\n\n## Who runs what\n\nThe jump tables of both CPUs, the most urgent \
         event first.\n\n![The dispatch tables](dispatch.svg)\n\n## What lies where\n\n\
         ![The memories](memories.svg)\n\n## What happens when\n\nA ping of 1472 bytes in the \
         simulator. [The same to walk about in]({ping}.html): a click follows a frame.\n\n\
         ![A ping of 1472 bytes]({ping}.svg)\n"
    );
    std::fs::write(source.join(PICTURES), page)?;
    let mut summary = std::fs::read_to_string(docs.join(links::SUMMARY))?;
    writeln!(summary, "- [Pictures from the sources]({PICTURES})")?;
    std::fs::write(source.join(TABLES), tables::page())?;
    writeln!(summary, "- [Registers, words, commands]({TABLES})")?;
    if with_crates {
        std::fs::write(source.join(CRATES), crates::page()?)?;
        writeln!(summary, "- [The crates]({CRATES})")?;
    }
    std::fs::write(source.join(links::SUMMARY), summary)?;
    std::fs::write(folder.join("book.toml"), BOOK)?;
    std::fs::write(folder.join("wide.css"), WIDE)?;
    Ok(())
}
