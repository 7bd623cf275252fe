//! Reads a picture (SVG): texts and their extent, corners of shapes, colours.

use roxmltree::{Document, Node};
use std::collections::BTreeSet;
use tigon2_sim::theme;

/// A place in a picture.
pub type Place = (f64, f64);

/// A picture as it will be seen.
#[derive(Debug)]
pub struct Picture {
    /// Width and height of what is seen.
    pub size: Place,
    /// All words.
    pub words: Vec<Words>,
    /// All shapes but those that are cut to a part of the picture.
    pub shapes: Vec<Shape>,
    /// All colours, as the picture writes them.
    pub colours: BTreeSet<String>,
}

/// Some words.
#[derive(Clone, Debug)]
pub struct Words {
    /// What they are.
    pub text: String,
    /// Left and top of what they may take.
    pub from: Place,
    /// Right and bottom of it.
    pub to: Place,
}

/// A line, or a shape.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Its element's name.
    pub name: String,
    /// Its corners; of a circle the utmost places.
    pub points: Vec<Place>,
    /// What fills it; `none` for nothing.
    pub fill: String,
}

impl Shape {
    /// The middle between its utmost places.
    pub fn middle(&self) -> Place {
        let of = |part: fn(&Place) -> f64| {
            let parts = || self.points.iter().map(part);
            let (least, most) = (
                parts().fold(f64::INFINITY, f64::min),
                parts().fold(f64::NEG_INFINITY, f64::max),
            );
            (least + most) / 2.0
        };
        (of(|point| point.0), of(|point| point.1))
    }
}

impl Picture {
    /// Reads a picture.
    ///
    /// # Panics
    /// If it is none.
    pub fn read(svg: &str) -> Picture {
        let document = Document::parse(svg).expect("XML");
        let root = document.root_element();
        let view = numbers(root.attribute("viewBox").unwrap_or_default());
        let size = match view[..] {
            [_, _, width, height] => (width, height),
            _ => (number(root, "width"), number(root, "height")),
        };
        let mut picture = Picture {
            size,
            words: Vec::new(),
            shapes: Vec::new(),
            colours: BTreeSet::new(),
        };
        for node in root.descendants().filter(Node::is_element) {
            picture.take(node);
        }
        picture
    }

    fn take(&mut self, node: Node<'_, '_>) {
        for name in ["fill", "stroke"] {
            let colour = node.attribute(name).filter(|colour| *colour != "none");
            self.colours.extend(colour.map(str::to_uppercase));
        }
        let within = |name| node.ancestors().any(|it| it.has_tag_name(name));
        let cut = node.ancestors().any(|it| it.has_attribute("clip-path"));
        if within("marker") || within("clipPath") || cut {
            return;
        }
        let name = node.tag_name().name();
        if name == "text" {
            self.words.push(words(node));
        } else if let Some(points) = points(node) {
            self.shapes.push(Shape {
                name: name.to_owned(),
                points,
                fill: node.attribute("fill").unwrap_or("none").to_uppercase(),
            });
        }
    }

    /// What is not wholly in the picture, or has a colour that is not the theme's.
    pub fn faults(&self) -> Vec<String> {
        let seen = |(x, y): Place| {
            (-1.0..=self.size.0 + 1.0).contains(&x) && (-1.0..=self.size.1 + 1.0).contains(&y)
        };
        let words = self
            .words
            .iter()
            .filter(|it| !seen(it.from) || !seen(it.to));
        let words = words.map(|it| format!("beyond the edge: {it:?}"));
        let shapes = self.shapes.iter();
        let shapes = shapes.filter(|it| !it.points.iter().all(|point| seen(*point)));
        let shapes = shapes.map(|it| format!("beyond the edge: {it:?}"));
        let known = theme::PALETTE.map(|colour| colour.to_string());
        let colours = self.colours.iter().filter(|it| !known.contains(it));
        let colours = colours.map(|it| format!("no colour of the theme: {it}"));
        words.chain(shapes).chain(colours).collect()
    }

    /// The words that contain a part.
    pub fn find(&self, part: &str) -> Option<&Words> {
        self.words.iter().find(|words| words.text.contains(part))
    }
}

/// Where words reach, in the widest of the usual fonts.
fn words(node: Node<'_, '_>) -> Words {
    let of = |name| {
        let mut holders = node.ancestors().filter_map(|it| it.attribute(name));
        holders.next().unwrap_or_default().to_owned()
    };
    let texts = node.descendants().filter(Node::is_text);
    let text: String = texts.filter_map(|it| it.text()).collect();
    let text = text.trim().to_owned();
    let size = number_of(&of("font-size"));
    let wide = theme::width(&text, size as u32);
    let (x, y) = (number(node, "x"), number(node, "y"));
    let left = match of("text-anchor").as_str() {
        "middle" => -wide / 2.0,
        "end" => -wide,
        _ => 0.0,
    };
    let (from, to) = if node.has_attribute("transform") {
        // Only upwards.
        ((x - size, y - left - wide), (x + size / 2.0, y - left))
    } else {
        ((x + left, y - size), (x + left + wide, y + size / 2.0))
    };
    Words { text, from, to }
}

fn points(node: Node<'_, '_>) -> Option<Vec<Place>> {
    let of = |name| number(node, name);
    let pairs = |list: &[f64]| list.chunks_exact(2).map(|it| (it[0], it[1])).collect();
    Some(match node.tag_name().name() {
        "polyline" | "polygon" => pairs(&numbers(node.attribute("points")?)),
        "line" => vec![(of("x1"), of("y1")), (of("x2"), of("y2"))],
        // A background is as large as the picture.
        "rect" if node.attribute("width") == Some("100%") => return None,
        "rect" => {
            let (x, y) = (of("x"), of("y"));
            vec![(x, y), (x + of("width"), y + of("height"))]
        }
        "circle" => {
            let (x, y, radius) = (of("cx"), of("cy"), of("r"));
            vec![(x - radius, y - radius), (x + radius, y + radius)]
        }
        "path" => path(node.attribute("d")?),
        _ => return None,
    })
}

/// The corners of a path of straight lines, each step with its letter.
fn path(steps: &str) -> Vec<Place> {
    let mut at = (0.0, 0.0);
    let mut points = Vec::new();
    let mut rest = steps;
    while let Some(kind) = rest.chars().next() {
        let end = rest[1..].find(|c: char| c.is_ascii_alphabetic());
        let (step, others) = rest.split_at(end.map_or(rest.len(), |end| end + 1));
        match (kind, &numbers(&step[1..])[..]) {
            ('M' | 'L', [x, y]) => at = (*x, *y),
            ('H', [x]) => at.0 = *x,
            ('V', [y]) => at.1 = *y,
            ('Z', []) => {}
            _ => panic!("a step of a path that is not known here: {step}"),
        }
        points.push(at);
        rest = others;
    }
    points
}

fn numbers(list: &str) -> Vec<f64> {
    let parts = list.split(|c: char| c == ',' || c.is_whitespace());
    parts.filter_map(|part| part.parse().ok()).collect()
}

fn number(node: Node<'_, '_>, name: &str) -> f64 {
    number_of(node.attribute(name).unwrap_or_default())
}

fn number_of(text: &str) -> f64 {
    text.trim_end_matches("px").parse().unwrap_or(0.0)
}
