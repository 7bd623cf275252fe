//! Checks the links of the book: pages, headings, pictures.

use anyhow::{Context, Result};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The list of chapters.
pub const SUMMARY: &str = "SUMMARY.md";

/// What a page links to, and the names of its headings.
#[derive(Debug, Default, PartialEq, Eq)]
struct Page {
    links: Vec<String>,
    headings: BTreeSet<String>,
}

/// The links of a folder's pages that lead nowhere, and the pages that are no chapter, one
/// line each. Addresses of the web are not looked at.
///
/// # Errors
/// If a page cannot be read.
pub fn check(folder: &Path) -> Result<Vec<String>> {
    let mut pages = BTreeMap::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if let Some(name) = name.filter(|name| name.ends_with(".md")) {
            let text = std::fs::read_to_string(&path)
                .with_context(|| format!("read {}", path.display()))?;
            pages.insert(name.to_owned(), read(&text));
        }
    }
    let mut faults = Vec::new();
    for (name, page) in &pages {
        for link in &page.links {
            if !leads_somewhere(folder, &pages, name, link) {
                faults.push(format!("{name}: {link}"));
            }
        }
    }
    let chapters = pages.get(SUMMARY).map(|summary| &summary.links);
    for name in pages.keys().filter(|name| *name != SUMMARY) {
        if !chapters.is_some_and(|chapters| chapters.contains(name)) {
            faults.push(format!("{SUMMARY}: {name} is no chapter"));
        }
    }
    Ok(faults)
}

fn leads_somewhere(folder: &Path, pages: &BTreeMap<String, Page>, page: &str, link: &str) -> bool {
    if ["http://", "https://", "mailto:"]
        .iter()
        .any(|scheme| link.starts_with(scheme))
    {
        return true;
    }
    let (file, heading) = match link.split_once('#') {
        Some((file, heading)) => (file, Some(heading)),
        None => (link, None),
    };
    let file = if file.is_empty() { page } else { file };
    match (pages.get(file), heading) {
        (Some(page), Some(heading)) => page.headings.contains(heading),
        (Some(_), None) => true,
        // A picture. What lies outside of the folder is not in the book.
        (None, None) => !file.contains("..") && folder.join(file).is_file(),
        (None, Some(_)) => false,
    }
}

fn read(text: &str) -> Page {
    let mut page = Page::default();
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                page.links.push(dest_url.into_string());
            }
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                page.headings
                    .extend(heading.take().map(|words| name_of(&words)));
            }
            Event::Text(words) | Event::Code(words) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&words);
                }
            }
            _ => {}
        }
    }
    page
}

/// The name by which mdbook and others link to a heading.
fn name_of(heading: &str) -> String {
    let words = heading.trim().to_lowercase();
    let kept = words.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
        _ => None,
    });
    kept.collect()
}
