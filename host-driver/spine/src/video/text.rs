//! Screens and windows as text: `640x480x16` has 16 bits a pixel, `320x240+10-5` has its first pixel
//! in column 10 of the screen, five lines above it (as X11 writes geometries).

use super::{Screen, Window};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Columns and lines, at most: pieces name them with 16 bits.
const LONGEST: u32 = 0xFFFF;

/// Text that names no screen, or no window.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum GeometryError {
    /// No screen.
    #[error("{0:?} is no screen: width, height and 8, 16 or 32 bits a pixel, as 640x480x16")]
    Screen(String),
    /// No window.
    #[error("{0:?} is no window: width, height, column and line, as 320x240+10-5")]
    Window(String),
}

/// Columns or lines.
fn length(text: &str) -> Option<u32> {
    let value = text.parse().ok()?;
    (1..=LONGEST).contains(&value).then_some(value)
}

impl FromStr for Screen {
    type Err = GeometryError;

    fn from_str(text: &str) -> Result<Screen, GeometryError> {
        let screen = || {
            let (width, rest) = text.split_once('x')?;
            let (height, bits) = rest.split_once('x')?;
            let depth = match bits {
                "8" => 0,
                "16" => 1,
                "32" => 2,
                _ => return None,
            };
            let (width, height) = (length(width)?, length(height)?);
            let pitch = width << depth;
            let bytes = u64::from(pitch) * u64::from(height);
            (bytes <= u64::from(host_interface::spine::lease::LONGEST)).then_some(Screen {
                width,
                height,
                pitch,
                depth,
            })
        };
        screen().ok_or_else(|| GeometryError::Screen(text.to_owned()))
    }
}

impl FromStr for Window {
    type Err = GeometryError;

    fn from_str(text: &str) -> Result<Window, GeometryError> {
        let window = || {
            let (size, place) = text.split_at(text.find(['+', '-'])?);
            let (width, height) = size.split_once('x')?;
            let second = place.get(1..)?.find(['+', '-'])? + 1;
            let (left, top) = place.split_at(second);
            let on_screen = |text: &str| {
                let value: i32 = text.parse().ok()?;
                (value.unsigned_abs() <= LONGEST).then_some(value)
            };
            Some(Window {
                left: on_screen(left)?,
                top: on_screen(top)?,
                width: length(width)?,
                height: length(height)?,
            })
        };
        window().ok_or_else(|| GeometryError::Window(text.to_owned()))
    }
}

impl fmt::Display for Window {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Window {
            left,
            top,
            width,
            height,
        } = self;
        write!(out, "{width}x{height}{left:+}{top:+}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn screens_and_windows_are_read_as_they_are_written() {
        let screen: Screen = "640x480x16".parse().expect("a screen");
        assert_eq!((screen.width, screen.height), (640, 480));
        assert_eq!((screen.pitch, screen.depth), (1280, 1));
        for text in ["320x240+10-5", "1x1-65535+0"] {
            let window: Window = text.parse().expect("a window");
            assert_eq!(window.to_string(), text);
        }
        let most: Window = "65535x65535-65535+65535".parse().expect("a window");
        assert_eq!((most.left, most.top), (-65_535, 65_535));
    }

    #[test]
    fn other_text_is_refused() {
        for text in [
            "",
            "640x480",
            "640x480x24",
            "0x480x8",
            "640x70000x8",
            "65535x65535x32",
            "-1x1x8",
        ] {
            assert!(text.parse::<Screen>().is_err(), "{text}");
        }
        for text in [
            "",
            "320x240",
            "320x240+1",
            "320+1+1",
            "0x1+0+0",
            "1x1+99999+0",
            "1x1++1",
            "1x1+1+",
            "70000x1+0+0",
            "+1+1",
        ] {
            assert!(text.parse::<Window>().is_err(), "{text}");
        }
    }
}
