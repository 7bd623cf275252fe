//! The symbols of points and the styles of lines.

use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use tigon2_sim::theme::Colour;

/// A pixel.
pub(super) type Pixel = (i32, i32);
/// What drawing on an area may fail with.
pub(super) type Fault<B> = DrawingAreaErrorKind<<B as DrawingBackend>::ErrorType>;

/// The shape of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// A circle.
    Circle,
    /// A square.
    Square,
    /// A triangle on its side.
    Triangle,
    /// A square on its corner.
    Diamond,
    /// A triangle on its tip.
    Wedge,
}

impl Sign {
    /// All of them.
    pub const ALL: [Sign; 5] = [
        Sign::Circle,
        Sign::Square,
        Sign::Triangle,
        Sign::Diamond,
        Sign::Wedge,
    ];

    /// The corners round a pixel; a circle has none.
    fn corners(self, (x, y): Pixel, radius: i32) -> Vec<Pixel> {
        let (half, long) = (radius * 9 / 10, radius * 6 / 5);
        let round: &[Pixel] = match self {
            Sign::Circle => &[],
            Sign::Square => &[(-half, -half), (half, -half), (half, half), (-half, half)],
            Sign::Triangle => &[(0, -long), (long, radius), (-long, radius)],
            Sign::Diamond => &[(0, -long), (long, 0), (0, long), (-long, 0)],
            Sign::Wedge => &[(0, long), (long, -radius), (-long, -radius)],
        };
        round.iter().map(|(dx, dy)| (x + dx, y + dy)).collect()
    }

    /// Draws it round a pixel, filled or hollow.
    pub(super) fn draw<B: DrawingBackend>(
        self,
        area: &DrawingArea<B, Shift>,
        at: Pixel,
        radius: i32,
        colour: Colour,
        hollow: bool,
    ) -> Result<(), Fault<B>> {
        let colour = ink(colour);
        // What is below a hollow one is seen.
        let edge = colour.stroke_width((radius / 3).max(1) as u32);
        if self == Sign::Circle {
            let style = if hollow { edge } else { colour.filled() };
            return area.draw(&Circle::new(at, radius, style));
        }
        let corners = self.corners(at, radius);
        if !hollow {
            return area.draw(&Polygon::new(corners, colour.filled()));
        }
        let first = corners.first().copied();
        let closed: Vec<Pixel> = corners.into_iter().chain(first).collect();
        area.draw(&PathElement::new(closed, edge))
    }
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stroke {
    /// Without a gap.
    Solid,
    /// In long pieces.
    Long,
    /// In short ones.
    Short,
    /// In dots.
    Dotted,
}

impl Stroke {
    /// All of them.
    pub const ALL: [Stroke; 4] = [Stroke::Solid, Stroke::Long, Stroke::Short, Stroke::Dotted];

    /// Draws a line through pixels.
    pub(super) fn draw<B: DrawingBackend>(
        self,
        area: &DrawingArea<B, Shift>,
        pixels: Vec<Pixel>,
        colour: Colour,
        width: u32,
    ) -> Result<(), Fault<B>> {
        let style = ink(colour).stroke_width(width);
        let (piece, gap) = match self {
            Stroke::Solid => return area.draw(&PathElement::new(pixels, style)),
            Stroke::Long => (6 * width, 3 * width),
            Stroke::Short => (3 * width, 2 * width),
            Stroke::Dotted => (width, 2 * width),
        };
        area.draw(&DashedPathElement::new(pixels, piece, gap, style))
    }
}

/// A colour of the theme, for drawing.
pub(super) const fn ink(Colour(red, green, blue): Colour) -> RGBColor {
    RGBColor(red, green, blue)
}
