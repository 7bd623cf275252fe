//! The style of all pictures of this project: colours, type, marks.
//!
//! Charts, event graphs and the book's drawings use these definitions. The colours are those of
//! Okabe and Ito ("Color Universal Design"), which people with any kind of colour vision can
//! distinguish; and no picture relies on colour alone: each colour comes with a name, a shape or a
//! dash. Their yellow is omitted because it is invisible on white.

use std::fmt;

/// Red, green and blue; shown as HTML and SVG write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(pub u8, pub u8, pub u8);

impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:02X}{:02X}{:02X}", self.0, self.1, self.2)
    }
}

/// What lies below everything.
pub const PAPER: Colour = Colour(255, 255, 255);
/// Words and axes.
pub const INK: Colour = Colour(0x1B, 0x1F, 0x24);
/// What stands behind: conditions, numbers at axes, limits.
pub const QUIET: Colour = Colour(0x57, 0x60, 0x6A);
/// Lines between parts.
pub const RULE: Colour = Colour(0x8C, 0x95, 0x9F);
/// Lines that only guide the eye.
pub const GRID: Colour = Colour(0xE4, 0xE8, 0xEC);
/// What lies below a heading.
pub const SHADE: Colour = Colour(0xF6, 0xF8, 0xFA);

/// Okabe and Ito's orange.
pub const ORANGE: Colour = Colour(0xE6, 0x9F, 0x00);
/// Their sky blue.
pub const SKY: Colour = Colour(0x56, 0xB4, 0xE9);
/// Their bluish green.
pub const GREEN: Colour = Colour(0x00, 0x9E, 0x73);
/// Their blue.
pub const BLUE: Colour = Colour(0x00, 0x72, 0xB2);
/// Their vermilion.
pub const VERMILION: Colour = Colour(0xD5, 0x5E, 0x00);
/// Their reddish purple.
pub const PURPLE: Colour = Colour(0xCC, 0x79, 0xA7);

/// Every colour that a picture may have.
pub const PALETTE: [Colour; 12] = [
    PAPER, INK, QUIET, RULE, GRID, SHADE, ORANGE, SKY, GREEN, BLUE, VERMILION, PURPLE,
];

/// Frames out of the host, and who moves them.
pub const OUT: Colour = VERMILION;
/// Frames into the host.
pub const IN: Colour = BLUE;
/// Code, on a map of memory.
pub const CODE: Colour = SKY;
/// Data there.
pub const DATA: Colour = ORANGE;

/// The family of every letter.
pub const FONT: &str = "sans-serif";
/// Pixels: what a picture shows.
pub const TITLE: u32 = 20;
/// Pixels: under which conditions, and names of lines.
pub const TEXT: u32 = 14;
/// Pixels: names in rows and numbers at axes.
pub const SMALL: u32 = 12;

impl Colour {
    /// What can be read on it: ink or paper.
    pub const fn words(self) -> Colour {
        // The eye's share of each colour, in thousandths.
        let light = self.0 as u32 * 299 + self.1 as u32 * 587 + self.2 as u32 * 114;
        if light > 100_000 { INK } else { PAPER }
    }
}

/// The width of words in pixels, no less than they will need: for pictures that are drawn
/// where no fonts are known.
pub fn width(words: &str, pixels: u32) -> f64 {
    /// Parts of the height that a letter takes, of the wider fonts that browsers have.
    const NARROW: f64 = 0.34;
    const USUAL: f64 = 0.62;
    const WIDE: f64 = 0.92;
    let parts = words.chars().map(|letter| match letter {
        'i' | 'j' | 'l' | 'f' | 't' | 'r' | ' ' | '.' | ',' | ':' | '\'' | '|' | 'I' => NARROW,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => WIDE,
        'A'..='Z' => 0.72,
        _ => USUAL,
    });
    parts.sum::<f64>() * f64::from(pixels)
}

/// Words as they stand in SVG and HTML.
pub fn escaped(words: &str) -> String {
    words
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// The colours as the properties of a style sheet.
pub fn properties() -> String {
    let named = [
        ("paper", PAPER),
        ("ink", INK),
        ("quiet", QUIET),
        ("rule", RULE),
        ("grid", GRID),
        ("shade", SHADE),
        ("out", OUT),
        ("in", IN),
    ];
    let each = named.map(|(name, colour)| format!("--{name}: {colour};"));
    format!("{} --font: {FONT};", each.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// WCAG's relative luminance.
    fn luminance(Colour(red, green, blue): Colour) -> f64 {
        let linear = [red, green, blue].map(|part| {
            let part = f64::from(part) / 255.0;
            if part <= 0.03928 {
                part / 12.92
            } else {
                ((part + 0.055) / 1.055).powf(2.4)
            }
        });
        0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    }

    fn contrast(one: Colour, other: Colour) -> f64 {
        let (one, other) = (luminance(one) + 0.05, luminance(other) + 0.05);
        one.max(other) / one.min(other)
    }

    /// 4.5 is what WCAG asks for of text, 3 of large signs; 2 of a sign that has a shape, too.
    #[test]
    fn words_can_be_read_and_signs_be_seen() {
        assert!(contrast(INK, PAPER) >= 7.0 && contrast(QUIET, PAPER) >= 4.5);
        for colour in [ORANGE, SKY, GREEN, BLUE, VERMILION, PURPLE] {
            assert!(contrast(colour, PAPER) >= 2.0, "{colour}");
            let on_it = contrast(colour.words(), colour);
            assert!(on_it >= 4.2, "{on_it} on {colour}");
        }
    }

    /// Brettel and others' way to see as people who lack one kind of cones, as simplified by
    /// Vienot: what is left of each colour's difference to each other one.
    #[test]
    fn people_without_red_or_green_cones_tell_the_colours_apart() {
        let without_red = [
            [0.1124, 0.8876, 0.0],
            [0.1124, 0.8876, 0.0],
            [0.004, -0.004, 1.0],
        ];
        let without_green = [
            [0.2927, 0.7073, 0.0],
            [0.2927, 0.7073, 0.0],
            [-0.0223, 0.0223, 1.0],
        ];
        let seen = |Colour(red, green, blue): Colour, eye: [[f64; 3]; 3]| {
            let linear = [red, green, blue].map(|part| (f64::from(part) / 255.0).powf(2.2));
            eye.map(|row| {
                let sum: f64 = row.iter().zip(linear).map(|(a, b)| a * b).sum();
                sum.clamp(0.0, 1.0).powf(1.0 / 2.2) * 255.0
            })
        };
        let signs = [ORANGE, SKY, GREEN, BLUE, VERMILION, PURPLE, INK];
        for eye in [without_red, without_green] {
            for (n, one) in signs.iter().enumerate() {
                for other in &signs[n + 1..] {
                    let (a, b) = (seen(*one, eye), seen(*other, eye));
                    let apart: f64 = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum();
                    assert!(apart.sqrt() > 30.0, "{one} and {other}: {}", apart.sqrt());
                }
            }
        }
    }

    #[test]
    fn names_with_marks_of_markup_stay_names() {
        assert_eq!(escaped("a<b> & \"c\""), "a&lt;b&gt; &amp; &quot;c&quot;");
        assert!(width("update_receive_return_producer", 12) > 180.0);
    }
}
