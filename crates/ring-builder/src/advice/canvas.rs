//! What pictures are drawn with: texts, marks, and legends of what is shown.
//!
//! Always holds: names from the ring are escaped; a legend explains those colours alone that were drawn.

use std::fmt::Write;

pub(super) const WIDTH: f64 = 1000.0;
pub(super) const MARGIN: f64 = 70.0;
/// Below this width a bar has no room for a name beside it.
const NAMED: f64 = 10.5;

pub(super) const RED: &str = "#c0392b";
pub(super) const ORANGE: &str = "#e08e0b";
pub(super) const LIGHT: &str = "#7fb3d5";
pub(super) const BLUE: &str = "#2e86c1";
pub(super) const GREY: &str = "#e5e8e8";
pub(super) const GREEN: &str = "#1e8449";

/// A picture that is being drawn.
pub(super) struct Canvas {
    out: String,
}

impl Canvas {
    /// White, with a title.
    pub(super) fn new(title: &str, height: f64) -> Self {
        let title = escaped(title);
        let out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
             font-size=\"12\">\n<title>{title}</title>\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"white\"/>\n\
             <text x=\"{MARGIN}\" y=\"24\" font-size=\"16\">{title}</text>\n"
        );
        Self { out }
    }

    /// The file.
    pub(super) fn finish(mut self) -> String {
        self.out.push_str("</svg>\n");
        self.out
    }

    /// A line of text.
    pub(super) fn text(&mut self, x: f64, y: f64, extra: &str, words: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(
            self.out,
            "<text x=\"{x:.2}\" y=\"{y:.2}\"{extra}>{}</text>",
            escaped(words)
        );
    }

    /// A text that reads upwards, beginning at (or, with `ends`, ending at) a point.
    pub(super) fn upright(&mut self, (x, y): (f64, f64), ends: bool, colour: &str, words: &str) {
        let anchor = if ends { " text-anchor=\"end\"" } else { "" };
        let extra = format!(" font-size=\"9\" fill=\"{colour}\"{anchor} transform=\"rotate(-90 {x:.2} {y:.2})\"");
        self.text(x, y, &extra, words);
    }

    /// A filled rectangle, with words that a viewer shows under the pointer.
    pub(super) fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), paint: &str, words: &str) {
        let _ = writeln!(
            self.out,
            "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" {paint}><title>{}</title></rect>",
            escaped(words)
        );
    }

    /// A line; `extra` are further attributes.
    pub(super) fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), colour: &str, extra: &str) {
        let _ = writeln!(
            self.out,
            "<line x1=\"{x1:.2}\" y1=\"{y1:.2}\" x2=\"{x2:.2}\" y2=\"{y2:.2}\" stroke=\"{colour}\"{extra}/>"
        );
    }

    /// What colours mean: a heading, and in the line below it a square and words for each that is shown.
    pub(super) fn legend(&mut self, y: f64, heading: &str, meanings: &[Meaning<'_>]) {
        self.text(MARGIN, y, " font-size=\"14\"", heading);
        let mut x = MARGIN;
        for meaning in meanings.iter().filter(|meaning| meaning.is_shown) {
            let _ = writeln!(
                self.out,
                "<rect x=\"{x:.2}\" y=\"{:.2}\" width=\"10\" height=\"10\" {}/>",
                y + 8.0,
                meaning.paint
            );
            self.text(x + 14.0, y + 17.0, "", meaning.words);
            x += 30.0 + 6.5 * meaning.words.len() as f64;
        }
    }

    /// Percents along the side of a chart, or below it.
    pub(super) fn ticks(&mut self, percents: &[u32], place: impl Fn(f64) -> (f64, f64), extra: &str) {
        for percent in percents {
            let (x, y) = place(f64::from(*percent) / 100.0);
            self.text(x, y, extra, &format!("{percent}%"));
        }
    }

    /// The names of bars below them, each `step` wide, where they can be read.
    pub(super) fn names<'a>(&mut self, names: impl IntoIterator<Item = &'a str>, step: f64, y: f64) {
        if !has_names(step) {
            return;
        }
        for (place, name) in names.into_iter().enumerate() {
            let x = MARGIN + place as f64 * step + step * 0.425 + 3.0;
            self.upright((x, y), true, "black", name);
        }
    }
}

/// A colour, and what it says if it is there.
pub(super) struct Meaning<'a> {
    /// `fill="…"` and the like.
    pub(super) paint: String,
    pub(super) words: &'a str,
    pub(super) is_shown: bool,
}

impl<'a> Meaning<'a> {
    /// `colour` means `words`.
    pub(super) fn of(colour: &str, words: &'a str, is_shown: bool) -> Self {
        Self {
            paint: fill(colour),
            words,
            is_shown,
        }
    }
}

/// The paint of a plain colour.
pub(super) fn fill(colour: &str) -> String {
    format!("fill=\"{colour}\"")
}

/// Whether bars so far apart have their names below them.
pub(super) fn has_names(step: f64) -> bool {
    step >= NAMED
}

/// How much room names take.
pub(super) fn room_for<'a>(names: impl IntoIterator<Item = &'a str>, step: f64) -> f64 {
    let longest = names.into_iter().map(|name| name.chars().count()).max().unwrap_or(0);
    match has_names(step) {
        true => 10.0 + 5.2 * longest as f64,
        false => 0.0,
    }
}

/// How wide a bar is, with the gap behind it.
pub(super) fn step(bars: usize) -> f64 {
    ((WIDTH - 2.0 * MARGIN) / bars.max(1) as f64).min(60.0)
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars().filter(|it| !it.is_control()) {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            it => out.push(it),
        }
    }
    out
}
