//! Charts: measured values as curves, published values as points.
//!
//! A [`Line`] joins values that were measured or computed here, and has its name at its end.
//! [`Marks`] are values of other authors and are not joined: filled ones were published, hollow
//! ones follow from published ones. The style is that of [`theme`].
//!
//! [`theme`]: tigon2_sim::theme

mod draw;
mod names;
mod signs;

pub use draw::{SIZE, draw};
pub use signs::{Sign, Stroke};

use anyhow::{Context, Result, anyhow};
use plotters::prelude::*;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use tigon2_sim::theme::Colour;

/// Pixels of a bitmap on each of the drawing's.
const FINE: u32 = 2;

/// A picture of figures over a quantity.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// Under which conditions.
    pub conditions: String,
    /// The quantity.
    pub x: Axis,
    /// The figures.
    pub y: Axis,
    /// What was measured or computed here.
    pub lines: Vec<Line>,
    /// What others have.
    pub marks: Vec<Marks>,
    /// What a filled mark is, and what a hollow one.
    pub key: [String; 2],
}

/// From its scale's beginning to an end.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What it has, and in which unit.
    pub name: String,
    /// The largest value.
    pub end: f64,
    /// How far its values are apart.
    pub scale: Scale,
}

/// How far values of an axis are apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// As far as they differ; from 0 on.
    Linear,
    /// Each one as far as the double of it; from 1 on.
    Doubling,
}

impl Scale {
    /// The value of which an axis has this one in its place.
    fn place(self, value: f64) -> f64 {
        match self {
            Scale::Linear => value,
            Scale::Doubling => value.log2(),
        }
    }

    /// The value that has this place.
    fn value(self, place: f64) -> f64 {
        match self {
            Scale::Linear => place,
            Scale::Doubling => place.exp2(),
        }
    }
}

/// Figures that belong together.
#[derive(Clone, Debug)]
pub struct Line {
    /// Stands at its end.
    pub name: String,
    /// Of the line, its points, and the sign beside its name.
    pub colour: Colour,
    /// How it is drawn.
    pub stroke: Stroke,
    /// On each of its points; none for what is computed at every place.
    pub sign: Option<Sign>,
    /// By x.
    pub points: Vec<(f64, f64)>,
}

/// Figures of other authors.
#[derive(Clone, Debug)]
pub struct Marks {
    /// Stands in the key.
    pub name: String,
    /// Of each mark.
    pub colour: Colour,
    /// Of each mark.
    pub sign: Sign,
    /// Where, and whether the figure was derived.
    pub points: Vec<Mark>,
}

/// A figure of other authors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mark {
    /// Where it stands.
    pub at: (f64, f64),
    /// Whether it follows from what was published, but was not.
    pub derived: bool,
}

impl Chart {
    /// The chart as SVG.
    ///
    /// # Errors
    /// If it cannot be drawn.
    pub fn svg(&self) -> Result<String> {
        let mut text = String::new();
        let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        // The backends' errors borrow from them.
        draw(&area, self).map_err(|error| anyhow!("cannot draw: {error}"))?;
        drop(area);
        Ok(text)
    }

    /// Writes `NAME.svg`, and `NAME.png` for screens of any kind.
    ///
    /// # Errors
    /// If it cannot be drawn, or a file cannot be written.
    pub fn write(&self, folder: &Path, name: &str) -> Result<()> {
        let path = |extension: &str| folder.join(format!("{name}.{extension}"));
        let svg = path("svg");
        std::fs::write(&svg, self.svg()?)
            .with_context(|| format!("cannot write {}", svg.display()))?;
        let size = (SIZE.0 * FINE, SIZE.1 * FINE);
        let mut pixels = vec![0; (size.0 * size.1 * 3) as usize];
        let area = BitMapBackend::with_buffer(&mut pixels, size).into_drawing_area();
        draw(&area, self).map_err(|error| anyhow!("cannot draw: {error}"))?;
        drop(area);
        write_png(&path("png"), size, &pixels)
    }
}

/// Red, green and blue of each pixel, as a file.
fn write_png(path: &Path, (width, height): (u32, u32), pixels: &[u8]) -> Result<()> {
    let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    let mut encoder = png::Encoder::new(BufWriter::new(file), width, height);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    Ok(writer.finish()?)
}
