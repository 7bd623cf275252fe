//! Writes the files of a recording.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use tigon2_sim::timeline::packets::{self, Packet};
use tigon2_sim::timeline::{Recorder, Timeline, number, page, picture, trace_events};

/// Where a recording was written to.
#[derive(Clone, Debug)]
pub struct Written {
    /// Trace events.
    pub trace: PathBuf,
    /// The page.
    pub page: PathBuf,
    /// The picture, if there is one.
    pub picture: Option<PathBuf>,
}

/// Writes `NAME.trace.json`, `NAME.html` and `NAME.svg`.
///
/// # Errors
/// If a file cannot be written.
pub fn write(
    folder: &Path,
    name: &str,
    title: &str,
    timeline: &Timeline,
    packets: &[Packet],
) -> Result<Written> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let put = |suffix: &str, text: String| -> Result<PathBuf> {
        let path = folder.join(format!("{name}{suffix}"));
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    };
    Ok(Written {
        trace: put(".trace.json", trace_events::write(timeline, packets)?)?,
        page: put(".html", page::write(timeline, packets, title)?)?,
        picture: Some(put(".svg", picture::write(timeline, packets, title))?),
    })
}

/// Writes what `--timeline FILE` asks for: trace events in FILE, the page beside it.
///
/// # Errors
/// If a file cannot be written.
pub fn write_beside(file: &Path, title: &str, timeline: &Timeline) -> Result<Written> {
    let packets = packets::follow(timeline);
    let stem = file.file_stem().context("a timeline needs a file name")?;
    let folder = file.parent().unwrap_or(Path::new(""));
    let written = Written {
        trace: file.to_path_buf(),
        page: folder.join(stem).with_extension("html"),
        picture: None,
    };
    for (path, text) in [
        (&written.trace, trace_events::write(timeline, &packets)?),
        (&written.page, page::write(timeline, &packets, title)?),
    ] {
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    println!(
        "timeline: {} and {}, {} frames, {} events left out",
        written.trace.display(),
        written.page.display(),
        packets.len(),
        timeline.left_out
    );
    Ok(written)
}

/// Who records for `--timeline FILE`: the last events of a run.
pub fn recorder() -> Recorder {
    Recorder::new(tigon2_sim::timeline::LIMIT, number::of_datagram)
}
