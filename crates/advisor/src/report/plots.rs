//! Pictures as SVG: lines with the bands that they lie in, and marks.
//!
//! Always holds: a picture refers to nothing outside itself.

use crate::model::estimate::readable;
use plotters::prelude::{
    BLACK, ChartBuilder, IntoDrawingArea, LineSeries, Polygon, RGBColor, SVGBackend, TRANSPARENT, Text, WHITE,
};
use plotters::style::Color;
use vocabulary::Fault;

/// Width and height, in pixels.
const SIZE: (u32, u32) = (900, 300);
/// Distinct for the colour-blind as well (Okabe and Ito).
const LINE: RGBColor = RGBColor(0, 114, 178);
const MARK: RGBColor = RGBColor(213, 94, 0);

/// A line with its band.
pub struct BandedLine<'a> {
    /// What lies across.
    pub across: &'a str,
    /// What stands upright.
    pub unit: &'a str,
    /// Where, the figure, and its band. Bands that have no end are left out of the picture from there on.
    pub points: Vec<(f64, f64, f64, f64)>,
    /// Points of their own, with names.
    pub marks: Vec<(f64, f64, String)>,
}

fn failed(error: impl std::fmt::Display) -> Fault {
    Fault::caller(format!("a picture of the page could not be drawn: {error}"))
}

/// The picture.
pub fn drawn(line: &BandedLine<'_>) -> Result<String, Fault> {
    let points: Vec<_> = line.points.iter().filter(|point| point.1.is_finite()).collect();
    let marks = line.marks.iter().map(|mark| (mark.0, mark.1));
    let across = points
        .iter()
        .map(|point| point.0)
        .chain(marks.clone().map(|mark| mark.0))
        .fold(1e-9, f64::max);
    // An end of a band far above everything else would leave the line flat.
    let line_most = points
        .iter()
        .map(|point| point.1)
        .chain(marks.map(|mark| mark.1))
        .fold(1e-9, f64::max);
    let band_most = points
        .iter()
        .map(|point| point.3)
        .filter(|high| high.is_finite())
        .fold(line_most, f64::max);
    let most = band_most.min(line_most * 3.0) * 1.08;
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        area.fill(&WHITE).map_err(failed)?;
        let mut chart = ChartBuilder::on(&area)
            .margin(10)
            .x_label_area_size(40)
            .y_label_area_size(80)
            .build_cartesian_2d(0.0..across * 1.05, 0.0..most)
            .map_err(failed)?;
        let label = |value: &f64| match value.fract() == 0.0 {
            true => format!("{value:.0}"),
            false => readable(*value),
        };
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(BLACK.mix(0.12))
            .x_labels(10)
            .x_desc(line.across)
            .x_label_formatter(&label)
            .y_labels(6)
            .y_desc(line.unit)
            .y_label_formatter(&label)
            .draw()
            .map_err(failed)?;
        let upper = points.iter().map(|point| (point.0, point.3.min(most)));
        let lower = points.iter().rev().map(|point| (point.0, point.2.min(most)));
        let band: Vec<(f64, f64)> = upper.chain(lower).collect();
        chart.draw_series([Polygon::new(band, LINE.mix(0.2))]).map_err(failed)?;
        let likely = points.iter().map(|point| (point.0, point.1));
        chart
            .draw_series(LineSeries::new(likely, LINE.stroke_width(2)))
            .map_err(failed)?;
        for (number, (x, y, name)) in line.marks.iter().enumerate() {
            let mark = LineSeries::new([(*x, *y)], MARK.filled()).point_size(4);
            chart.draw_series(mark).map_err(failed)?;
            // One below the other, so that names of neighbours do not cover each other.
            let height = (*y - most * 0.07 * number as f64).max(0.0);
            let name = Text::new(format!("   {name}"), (*x, height), ("sans-serif", 12));
            chart.draw_series([name]).map_err(failed)?;
        }
        area.present().map_err(failed)?;
    }
    Ok(text)
}
