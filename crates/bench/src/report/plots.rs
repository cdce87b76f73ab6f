//! Pictures of a run as SVG: lines over time, and the heat map of latencies.
//!
//! Always holds: a picture refers to nothing outside itself. A logarithmic axis is a linear one of logarithms, with
//! labels that are powers of ten.

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::{
    BLACK, Cartesian2d, ChartBuilder, ChartContext, DrawingArea, IntoDrawingArea, LineSeries, RGBColor, Rectangle,
    SVGBackend, TRANSPARENT, Text, WHITE,
};
use plotters::style::Color;
use std::collections::BTreeMap;
use vocabulary::Fault;

/// Width and height, in pixels.
const SIZE: (u32, u32) = (900, 260);
/// One for each line, distinct for the colour-blind as well (Okabe and Ito).
pub(super) const COLORS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(80, 80, 80),
];

/// How values lie on the upright axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlotScale {
    /// From 0 on.
    Linear,
    /// By powers of ten.
    Logarithmic,
}

/// One line of a picture: seconds and values.
pub(super) struct PlotLine {
    /// For the legend.
    pub name: String,
    /// By time.
    pub points: Vec<(f64, f64)>,
}

type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

fn failed(error: impl std::fmt::Display) -> Fault {
    Fault::caller(format!("a picture of the report could not be drawn: {error}"))
}

/// Lines over time.
pub(super) fn lines(
    unit: &str,
    scale: PlotScale,
    lines: &[PlotLine],
    marks: &[(f64, String)],
) -> Result<String, Fault> {
    lines_across("seconds", unit, scale, lines, marks)
}

/// Lines over what lies across, from 0 on.
pub(super) fn lines_across(
    across: &str,
    unit: &str,
    scale: PlotScale,
    lines: &[PlotLine],
    marks: &[(f64, String)],
) -> Result<String, Fault> {
    let points = || lines.iter().flat_map(|line| &line.points);
    let until = points().map(|point| point.0).fold(0.0, f64::max);
    let (least, most) = match scale {
        PlotScale::Linear => (0.0, points().map(|point| point.1).fold(0.0, f64::max) * 1.05),
        PlotScale::Logarithmic => powers(points().map(|point| point.1)),
    };
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        let mut chart = chart(&area, (across, unit), scale, until, (least, most))?;
        for (line, color) in lines.iter().zip(COLORS.iter().cycle()) {
            let at = |value: f64| match scale {
                PlotScale::Linear => Some(value),
                PlotScale::Logarithmic => (value > 0.0).then(|| value.log10()),
            };
            // Where there is no value the line has a gap.
            for part in line.points.split(|point| at(point.1).is_none()) {
                let points = part.iter().filter_map(|(x, y)| Some((*x, at(*y)?)));
                let dot = if part.len() == 1 { 2 } else { 0 };
                chart
                    .draw_series(LineSeries::new(points, color.stroke_width(2)).point_size(dot))
                    .map_err(failed)?;
            }
        }
        draw_marks(&mut chart, marks, (least, most))?;
        area.present().map_err(failed)?;
    }
    Ok(text)
}

/// Upright lines at moments, each with what happened then.
fn draw_marks(chart: &mut Chart<'_, '_>, marks: &[(f64, String)], (least, most): (f64, f64)) -> Result<(), Fault> {
    let most = most.max(least + 1e-9);
    for (number, (at, what)) in marks.iter().enumerate() {
        let line = LineSeries::new([(*at, least), (*at, most)], BLACK.mix(0.6).stroke_width(1));
        chart.draw_series(line).map_err(failed)?;
        // One below the other, so that names of neighbours do not cover each other.
        let height = most - (most - least) * (0.02 + 0.08 * (number % 4) as f64);
        let label = Text::new(format!(" {what}"), (*at, height), ("sans-serif", 12));
        chart.draw_series([label]).map_err(failed)?;
    }
    Ok(())
}

/// How many requests took how long, over time: `columns` are the end of an interval, and counts by tenths of a decade
/// of microseconds ([`crate::figures::Latencies::spread`]).
pub(super) fn heat_map(columns: &[(f64, BTreeMap<i32, u64>)], marks: &[(f64, String)]) -> Result<String, Fault> {
    let until = columns.last().map_or(0.0, |column| column.0);
    let millis = |step: i32| f64::from(step) / 10.0 - 3.0;
    let steps = || columns.iter().flat_map(|column| column.1.keys());
    let (least, most) = (
        steps().min().map_or(-1.0, |step| millis(*step).floor()),
        steps().max().map_or(0.0, |step| millis(step + 1).ceil()),
    );
    let highest = columns
        .iter()
        .flat_map(|column| column.1.values())
        .max()
        .copied()
        .unwrap_or(1) as f64;
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        let mut chart = chart(&area, ("seconds", "ms"), PlotScale::Logarithmic, until, (least, most))?;
        let starts = std::iter::once(0.0).chain(columns.iter().map(|column| column.0));
        let cells = starts.zip(columns).flat_map(|(start, (end, counts))| {
            counts.iter().map(move |(step, count)| {
                // The root, so that a few slow ones among many are seen.
                let heat = 0.12 + 0.88 * (*count as f64 / highest).sqrt();
                let corners = [(start, millis(*step)), (*end, millis(step + 1))];
                Rectangle::new(corners, COLORS[0].mix(heat).filled())
            })
        });
        chart.draw_series(cells).map_err(failed)?;
        draw_marks(&mut chart, marks, (least, most))?;
        area.present().map_err(failed)?;
    }
    Ok(text)
}

/// Axes, for seconds and values between two.
fn chart<'a, 'b>(
    area: &'a DrawingArea<SVGBackend<'b>, Shift>,
    (across, unit): (&str, &str),
    scale: PlotScale,
    until: f64,
    (least, most): (f64, f64),
) -> Result<Chart<'a, 'b>, Fault> {
    area.fill(&WHITE).map_err(failed)?;
    let mut chart = ChartBuilder::on(area)
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d(0.0..until.max(1e-3), least..most.max(least + 1e-9))
        .map_err(failed)?;
    let value = |value: &f64| match scale {
        PlotScale::Linear => readable(*value),
        PlotScale::Logarithmic => readable(10_f64.powf(*value)),
    };
    let labels = match scale {
        PlotScale::Linear => 6,
        PlotScale::Logarithmic => (most - least).round().max(1.0) as usize + 1,
    };
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.12))
        .x_labels(10)
        .x_desc(across)
        .x_label_formatter(&|seconds: &f64| readable(*seconds))
        .y_labels(labels)
        .y_desc(unit)
        .y_label_formatter(&value)
        .draw()
        .map_err(failed)?;
    Ok(chart)
}

/// The powers of ten around these values.
fn powers(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (least, most) = values
        .filter(|value| *value > 0.0)
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| {
            (least.min(value), most.max(value))
        });
    if least > most {
        return (0.0, 1.0);
    }
    let (low, high) = (least.log10().floor(), most.log10().ceil());
    (low, high.max(low + 1.0))
}

/// A number with as many digits as an axis needs.
pub(super) fn readable(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size >= 1e6 => format!("{}M", trimmed(value / 1e6)),
        size if size >= 1e4 => format!("{}k", trimmed(value / 1e3)),
        _ => trimmed(value),
    }
}

fn trimmed(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::{PlotLine, PlotScale, heat_map, lines, powers, readable};
    use std::collections::BTreeMap;

    #[test]
    fn axes_reach_around_their_values() {
        assert_eq!(powers([0.5, 20.0, 0.0].into_iter()), (-1.0, 2.0));
        assert_eq!(powers([1.0].into_iter()), (0.0, 1.0));
        assert_eq!(powers([0.0].into_iter()), (0.0, 1.0));
        let texts = [0.0, 0.01, 12.5, 12_500.0, 3e6].map(readable);
        assert_eq!(texts, ["0", "0.01", "12.5", "12.5k", "3M"]);
    }

    #[test]
    fn each_line_and_each_cell_is_drawn() {
        let line = |name: &str, height: f64| PlotLine {
            name: name.to_owned(),
            points: vec![(1.0, height), (2.0, 2.0 * height), (3.0, 0.0)],
        };
        for scale in [PlotScale::Linear, PlotScale::Logarithmic] {
            let drawn = lines("op/s", scale, &[line("a", 10.0), line("b", 100.0)], &[]).unwrap();
            assert_eq!(drawn.matches("stroke-width=\"2\"").count(), 2, "{drawn}");
        }
        let gap = PlotLine {
            name: "c".to_owned(),
            points: [1.0, 2.0, 0.0, 3.0, 0.0, 4.0, 5.0]
                .into_iter()
                .enumerate()
                .map(|(x, y)| (x as f64, y))
                .collect(),
        };
        let drawn = lines("ms", PlotScale::Logarithmic, &[gap], &[(2.5, "node <down>".to_owned())]).unwrap();
        // Three parts, and a dot for the one that is a single value.
        let parts = drawn.matches("stroke-width=\"2\" points=").count();
        assert_eq!((parts, drawn.matches("<circle").count()), (3, 1), "{drawn}");
        assert!(drawn.contains("node &lt;down&gt;"), "{drawn}");
        let counts = |steps: &[i32]| -> BTreeMap<i32, u64> { steps.iter().map(|step| (*step, 5)).collect() };
        let cells = |text: &str| text.matches("#0072B2").count();
        assert_eq!(
            cells(&heat_map(&[(1.0, counts(&[20, 21])), (2.0, counts(&[30]))], &[]).unwrap()),
            3
        );
        assert_eq!(cells(&heat_map(&[], &[]).unwrap()), 0);
    }
}
