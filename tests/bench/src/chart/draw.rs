//! Draws a chart: heading, axes, lines and their names, marks and their key.

use super::names::spread;
use super::signs::{Fault, Pixel, Sign, Stroke, ink};
use super::{Axis, Chart, Line, Marks, Scale};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Once;
use tigon2_sim::theme::{self, Colour};

/// Pixels of a picture, of which an area may have a multiple.
pub const SIZE: (u32, u32) = (1200, 660);
/// Round the whole.
const EDGE: i32 = 16;
/// The heading above the axes, and its two lines.
const HEADING: i32 = 74;
const TITLE: i32 = 26;
const CONDITIONS: i32 = 52;
/// The key below them.
const KEY: i32 = 30;
/// Numbers and name of each axis.
const AXES: (i32, i32) = (46, 66);
/// Between two names at lines' ends.
const ROW: i32 = 19;
/// From the axes to those names, and from a sign to its name.
const LEAD: i32 = 30;
const BESIDE: i32 = 11;
/// Radius of our signs, and of others'.
const OURS: i32 = 4;
const OTHERS: i32 = 6;

/// Draws a chart on an area of [`SIZE`], or of a multiple of it.
///
/// # Errors
/// What the backend cannot do.
pub fn draw<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    chart: &Chart,
) -> Result<(), Fault<B>> {
    // Only bitmaps need the letters themselves; without them their widths are unknown, too.
    static FONT: Once = Once::new();
    FONT.call_once(|| {
        // The only way for it to fail is a font that is none.
        let font = epaint_default_fonts::UBUNTU_LIGHT;
        let _ = plotters::style::register_font(theme::FONT, FontStyle::Normal, font);
    });
    let scale = area.dim_in_pixel().0 / SIZE.0;
    Pen {
        area,
        scale: scale.max(1) as i32,
    }
    .chart(chart)
}

/// Draws on an area in pixels of [`SIZE`].
struct Pen<'a, B: DrawingBackend> {
    area: &'a DrawingArea<B, Shift>,
    scale: i32,
}

impl<B: DrawingBackend> Pen<'_, B> {
    fn chart(&self, chart: &Chart) -> Result<(), Fault<B>> {
        self.area.fill(&ink(theme::PAPER))?;
        self.words(&chart.title, (EDGE, TITLE), theme::TITLE, theme::INK)?;
        let below_title = (EDGE, CONDITIONS);
        self.words(&chart.conditions, below_title, theme::TEXT, theme::QUIET)?;
        let names = chart.lines.iter().map(|line| wide(&line.name));
        let names = names.max().unwrap_or_default() + LEAD + BESIDE;
        let key = if chart.marks.is_empty() { 0 } else { KEY };
        let mut axes = ChartBuilder::on(self.area)
            .margin_top(self.of(HEADING))
            .margin_left(self.of(EDGE))
            .margin_right(self.of(names + EDGE))
            .margin_bottom(self.of(EDGE + key))
            .x_label_area_size(self.of(AXES.0))
            .y_label_area_size(self.of(AXES.1))
            .build_cartesian_2d(range(&chart.x), range(&chart.y))?;
        let (across, up) = (chart.x.scale, chart.y.scale);
        let number = |scale: Scale| move |place: &f64| format!("{:.0}", scale.value(*place));
        axes.configure_mesh()
            .x_desc(&chart.x.name)
            .y_desc(&chart.y.name)
            .axis_desc_style(self.style(theme::TEXT, theme::INK))
            .label_style(self.style(theme::SMALL, theme::QUIET))
            .axis_style(ink(theme::RULE).stroke_width(self.scale as u32))
            .bold_line_style(ink(theme::GRID).stroke_width(self.scale as u32))
            .light_line_style(ink(theme::PAPER))
            .set_all_tick_mark_size(self.of(5))
            .x_label_formatter(&number(across))
            .y_label_formatter(&number(up))
            .draw()?;
        let pixel = |(x, y): &(f64, f64)| {
            let (x, y) = axes.backend_coord(&(across.place(*x), up.place(*y)));
            (x / self.scale, y / self.scale)
        };
        for line in &chart.lines {
            self.curve(line, line.points.iter().map(pixel).collect())?;
        }
        for marks in &chart.marks {
            for mark in &marks.points {
                let (sign, at) = (marks.sign, pixel(&mark.at));
                self.sign(sign, at, OTHERS, marks.colour, mark.derived)?;
            }
        }
        let (columns, down) = axes.plotting_area().get_pixel_range();
        let ends: Vec<(&Line, Pixel)> = ends(&chart.lines)
            .into_iter()
            .filter_map(|line| Some((line, pixel(line.points.last()?))))
            .collect();
        let x = columns.end / self.scale + LEAD;
        let between = down.start / self.scale..down.end / self.scale;
        self.names(&ends, x, between)?;
        if key > 0 {
            self.key(&chart.marks, &chart.key, SIZE.1 as i32 - EDGE - KEY / 2)?;
        }
        self.area.present()
    }

    /// A line and its points.
    fn curve(&self, line: &Line, pixels: Vec<Pixel>) -> Result<(), Fault<B>> {
        let width = if line.sign.is_some() { 2 } else { 1 };
        self.stroke(line.stroke, &pixels, line.colour, width)?;
        for at in pixels {
            if let Some(sign) = line.sign {
                self.sign(sign, at, OURS, line.colour, false)?;
            }
        }
        Ok(())
    }

    /// Writes the name of each line, with its sign, and leads from the line's end to it.
    fn names(&self, ends: &[(&Line, Pixel)], x: i32, between: Range<i32>) -> Result<(), Fault<B>> {
        let wanted: Vec<f64> = ends.iter().map(|(_, end)| f64::from(end.1)).collect();
        let (from, to) = (f64::from(between.start), f64::from(between.end));
        let places = spread(&wanted, f64::from(ROW), from, to);
        for ((line, end), place) in ends.iter().zip(places) {
            let y = place.round() as i32;
            let mut to = x + BESIDE / 2;
            if let Some(sign) = line.sign {
                self.sign(sign, (x, y), OURS, line.colour, false)?;
                to = x - BESIDE;
            }
            let lead = [(end.0 + OURS + 3, end.1), (to, y)];
            self.stroke(Stroke::Solid, &lead, line.colour, 1)?;
            self.words(&line.name, (x + BESIDE, y), theme::TEXT, theme::INK)?;
        }
        Ok(())
    }

    /// Whose the marks are, and what filled and hollow ones are.
    fn key(&self, marks: &[Marks], key: &[String; 2], y: i32) -> Result<(), Fault<B>> {
        let cards = marks.iter().map(|marks| {
            (
                marks.name.as_str(),
                marks.sign,
                marks.colour,
                theme::INK,
                false,
            )
        });
        let [filled, hollow] = key;
        let kinds = [(filled.as_str(), false), (hollow.as_str(), true)];
        let kinds =
            kinds.map(|(words, hollow)| (words, Sign::Circle, theme::QUIET, theme::QUIET, hollow));
        let mut x = EDGE + OTHERS;
        for (words, sign, colour, ink, hollow) in cards.chain(kinds) {
            self.sign(sign, (x, y), OTHERS, colour, hollow)?;
            self.words(words, (x + BESIDE, y), theme::TEXT, ink)?;
            x += BESIDE + wide(words) + BESIDE;
        }
        Ok(())
    }

    fn words(&self, words: &str, at: Pixel, size: u32, colour: Colour) -> Result<(), Fault<B>> {
        let style = self.style(size, colour);
        self.area.draw(&Text::new(words, self.at(at), style))
    }

    fn sign(
        &self,
        sign: Sign,
        at: Pixel,
        radius: i32,
        colour: Colour,
        hollow: bool,
    ) -> Result<(), Fault<B>> {
        sign.draw(self.area, self.at(at), radius * self.scale, colour, hollow)
    }

    fn stroke(
        &self,
        stroke: Stroke,
        pixels: &[Pixel],
        colour: Colour,
        width: i32,
    ) -> Result<(), Fault<B>> {
        let pixels = pixels.iter().map(|pixel| self.at(*pixel)).collect();
        stroke.draw(self.area, pixels, colour, (width * self.scale) as u32)
    }

    fn at(&self, pixel: Pixel) -> Pixel {
        (pixel.0 * self.scale, pixel.1 * self.scale)
    }

    fn of(&self, pixels: i32) -> i32 {
        pixels * self.scale
    }

    fn style(&self, size: u32, colour: Colour) -> TextStyle<'static> {
        let size = size * self.scale as u32;
        TextStyle {
            color: ink(colour).to_backend_color(),
            pos: Pos::new(HPos::Left, VPos::Center),
            ..TextStyle::from((theme::FONT, size).into_font())
        }
    }
}

/// The places that an axis has.
fn range(axis: &Axis) -> Range<f64> {
    0.0..axis.scale.place(axis.end)
}

/// The lines in the order of their ends, the highest first; of those that end together, the
/// one that came from higher.
fn ends(lines: &[Line]) -> Vec<&Line> {
    let heights = |line: &Line| -> Vec<f64> { line.points.iter().rev().map(|it| -it.1).collect() };
    let mut lines: Vec<&Line> = lines.iter().collect();
    lines.sort_by(|a, b| {
        let order = heights(a).partial_cmp(&heights(b));
        order.unwrap_or(Ordering::Equal)
    });
    lines
}

/// Pixels that words need in any font.
fn wide(words: &str) -> i32 {
    theme::width(words, theme::TEXT).ceil() as i32
}
