//! A picture of a ring: how full each device is compared with its share, and how replicas are spread over zones.
//!
//! Always holds: names from the ring are escaped; the picture of a large ring stays small (servers stand for their
//! devices then).

use crate::command::Desk;
use crate::terminal::Stop;
use placement::{Device, RingBuilder};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// More bars than this cannot be distinguished.
const MOST_BARS: usize = 1000;
/// More places than this are not read.
const MOST_ROWS: usize = 80;

const WIDTH: f64 = 1000.0;
const MARGIN: f64 = 70.0;
/// How high the bar of a device with exactly its share is.
const FULL: f64 = 160.0;
/// Bars end here: what has more than this part of its share says so in its title.
const HIGHEST: f64 = 1.5;
/// How far from its share a device may be and still count as balanced.
const BALANCED: f64 = 0.05;
const ROW: f64 = 22.0;
/// The title and a legend need so much above a chart.
const HEAD: f64 = 80.0;
/// A name of a zone needs so much; one with less room is left out.
const LABEL: f64 = 48.0;

const RED: &str = "#c0392b";
const ORANGE: &str = "#e08e0b";
const LIGHT: &str = "#7fb3d5";
const BLUE: &str = "#2e86c1";
const GREY: &str = "#e5e8e8";

/// A bar: one device, or a server's devices.
struct Bar {
    name: String,
    zone: (u32, u32),
    /// How many it stands for.
    devices: usize,
    parts: f64,
    share: f64,
    marked: bool,
}

/// Draws the ring into a file.
pub(crate) fn save(
    desk: &Desk<'_, '_>,
    builder: &RingBuilder,
    title: &str,
    marked: &[u32],
    path: &str,
) -> Result<(), Stop> {
    desk.shelf
        .write_other(Path::new(path), draw(builder, title, marked).as_bytes())
}

/// The picture; the devices in `marked` (sorted or not) stand out.
fn draw(builder: &RingBuilder, title: &str, marked: &[u32]) -> String {
    let bars = bars(builder, marked);
    let rows = rows(builder);
    let chart = HEAD + FULL * HIGHEST;
    let height = chart + 130.0 + rows.len() as f64 * ROW;
    let title = escaped(title);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<title>{title}</title>\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"white\"/>\n\
         <text x=\"{MARGIN}\" y=\"24\" font-size=\"16\">{title}</text>\n"
    );
    draw_bars(&mut out, &bars, chart);
    draw_rows(&mut out, &rows, builder.partition_count(), chart + 110.0);
    out.push_str("</svg>\n");
    out
}

/// A line of text.
fn text(out: &mut String, x: f64, y: f64, extra: &str, words: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "<text x=\"{x:.2}\" y=\"{y:.2}\"{extra}>{}</text>", escaped(words));
}

/// What colours mean: a heading, and in the line below it a square and words for each.
fn legend(out: &mut String, y: f64, heading: &str, meanings: &[(&str, &str)]) {
    text(out, MARGIN, y, " font-size=\"14\"", heading);
    let mut x = MARGIN;
    for (colour, words) in meanings {
        let _ = writeln!(
            out,
            "<rect x=\"{x:.2}\" y=\"{:.2}\" width=\"10\" height=\"10\" fill=\"{colour}\"/>",
            y + 8.0
        );
        text(out, x + 14.0, y + 17.0, "", words);
        x += 30.0 + 6.5 * words.len() as f64;
    }
}

/// Percents along the side of a chart, or below it.
fn ticks(out: &mut String, percents: &[u32], place: impl Fn(f64) -> (f64, f64), extra: &str) {
    for percent in percents {
        let (x, y) = place(f64::from(*percent) / 100.0);
        text(out, x, y, extra, &format!("{percent}%"));
    }
}

fn bars(builder: &RingBuilder, marked: &[u32]) -> Vec<Bar> {
    let total: f64 = builder.devices().map(|device| device.weight).sum();
    let cells: f64 = builder.assignments().iter().map(|row| row.len() as f64).sum();
    let bar = |device: &Device, name: String| Bar {
        name,
        zone: (device.region, device.zone),
        devices: 1,
        parts: builder.parts_of(device.id).unwrap_or(0) as f64,
        share: if total > 0.0 {
            cells * device.weight / total
        } else {
            0.0
        },
        marked: marked.contains(&device.id),
    };
    let by_device = builder.devices().count() <= MOST_BARS;
    let mut bars: BTreeMap<((u32, u32), String, u32), Bar> = BTreeMap::new();
    for device in builder.devices() {
        let (id, name) = match by_device {
            true => (device.id, format!("{}/{}", device.ip, device.device)),
            false => (0, device.ip.clone()),
        };
        let new = bar(device, name);
        match bars.get_mut(&(new.zone, device.ip.clone(), id)) {
            Some(known) => {
                known.devices += 1;
                known.parts += new.parts;
                known.share += new.share;
                known.marked |= new.marked;
            }
            None => drop(bars.insert((new.zone, device.ip.clone(), id), new)),
        }
    }
    bars.into_values().take(MOST_BARS).collect()
}

fn draw_bars(out: &mut String, bars: &[Bar], bottom: f64) {
    let what = if bars.iter().any(|bar| bar.devices > 1) {
        "each server's devices"
    } else {
        "each device"
    };
    let heading = format!("Partitions on {what}, in percent of the share its weight asks for, by region and zone");
    let balanced = format!("within {:.0}%", BALANCED * 100.0);
    let mut meanings = vec![(BLUE, &*balanced), (LIGHT, "less"), (ORANGE, "more")];
    if bars.iter().any(|bar| bar.marked) {
        meanings.push((RED, "named in the title"));
    }
    legend(out, 48.0, &heading, &meanings);
    let height = |percent: f64| bottom - FULL * percent;
    let side = " text-anchor=\"end\"";
    ticks(
        out,
        &[0, 50, 100, 150],
        |percent| (MARGIN - 6.0, height(percent) + 4.0),
        side,
    );
    let step = (WIDTH - 2.0 * MARGIN) / bars.len().max(1) as f64;
    for (place, bar) in bars.iter().enumerate() {
        draw_bar(out, bar, MARGIN + place as f64 * step, step, bottom);
    }
    draw_zones(out, bars, step, bottom);
    for (percent, dashes) in [(0.0, ""), (1.0, " stroke-dasharray=\"4\"")] {
        let y = height(percent);
        let _ = writeln!(
            out,
            "<line x1=\"{MARGIN}\" y1=\"{y}\" x2=\"{}\" y2=\"{y}\" stroke=\"black\"{dashes}/>",
            WIDTH - MARGIN
        );
    }
}

fn draw_bar(out: &mut String, bar: &Bar, x: f64, step: f64, bottom: f64) {
    // What should hold nothing and holds something is as far off as can be drawn.
    let fill = match bar.share > 0.0 {
        true => bar.parts / bar.share,
        false => bar.parts.min(1.0) * HIGHEST,
    };
    let colour = match fill {
        _ if bar.marked => RED,
        it if it > 1.0 + BALANCED => ORANGE,
        it if it < 1.0 - BALANCED => LIGHT,
        _ => BLUE,
    };
    let height = FULL * fill.min(HIGHEST);
    let label = match bar.share > 0.0 {
        true => format!("{:.1}% of its share", fill * 100.0),
        false => "its share is nothing".to_owned(),
    };
    let _ = writeln!(
        out,
        "<rect x=\"{x:.2}\" y=\"{:.2}\" width=\"{:.2}\" height=\"{height:.2}\" fill=\"{colour}\"><title>{}: {:.0} \
         partitions, {label}</title></rect>",
        bottom - height,
        (step * 0.85).max(0.5),
        escaped(&bar.name),
        bar.parts
    );
}

/// Where zones begin, named as far as there is room.
fn draw_zones(out: &mut String, bars: &[Bar], step: f64, bottom: f64) {
    let (mut zone, mut room) = (None, MARGIN);
    for (place, bar) in bars
        .iter()
        .enumerate()
        .filter(|(_, bar)| bar.share > 0.0 || bar.parts > 0.0)
    {
        let x = MARGIN + place as f64 * step;
        if zone == Some(bar.zone) {
            continue;
        }
        zone = Some(bar.zone);
        let _ = writeln!(
            out,
            "<line x1=\"{x:.2}\" y1=\"{bottom}\" x2=\"{x:.2}\" y2=\"{}\" stroke=\"grey\"/>",
            bottom + 5.0
        );
        if x >= room {
            let (region, number) = bar.zone;
            text(out, x, bottom + 18.0, " fill=\"grey\"", &format!("r{region}z{number}"));
            room = x + LABEL;
        }
    }
}

/// A zone: its name, how many partitions have 0, 1, 2 … replicas in it, and how many they should have at most.
type DispersionRow = (String, Vec<u64>, u32);

fn rows(builder: &RingBuilder) -> Vec<DispersionRow> {
    let is_zone = |name: &str| name.contains('z') && !name.contains('-');
    // A ring that cannot be measured has no dispersion to draw.
    let report = builder.dispersion_report(is_zone).unwrap_or_default();
    let rows = report.rows.into_iter().take(MOST_ROWS);
    rows.map(|row| (row.name, row.replicas, row.max_replicas)).collect()
}

fn draw_rows(out: &mut String, rows: &[DispersionRow], partitions: u32, top: f64) {
    let heading = format!("Replicas in each zone, in percent of the ring's {partitions} partitions");
    let meanings = [
        (GREY, "none there"),
        (LIGHT, "one"),
        (BLUE, "several"),
        (RED, "more than there should be"),
    ];
    legend(out, top - 46.0, &heading, &meanings);
    let width = WIDTH - 2.0 * MARGIN;
    for (place, (name, counts, most)) in rows.iter().enumerate() {
        let y = top + place as f64 * ROW;
        let total: u64 = counts.iter().sum();
        let mut x = MARGIN;
        text(out, MARGIN - 6.0, y + 13.0, " text-anchor=\"end\"", name);
        for (replicas, count) in counts.iter().enumerate().rev().filter(|(_, count)| **count > 0) {
            let part = width * *count as f64 / total.max(1) as f64;
            let colour = match replicas {
                it if it as u64 > u64::from(*most) => RED,
                0 => GREY,
                1 => LIGHT,
                _ => BLUE,
            };
            let _ = writeln!(
                out,
                "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{part:.2}\" height=\"{}\" fill=\"{colour}\"><title>{}: {count} \
                 partitions with {replicas} replicas</title></rect>",
                ROW - 5.0,
                escaped(name)
            );
            x += part;
        }
    }
    let below = top + rows.len() as f64 * ROW + 12.0;
    let middle = " text-anchor=\"middle\"";
    ticks(
        out,
        &[0, 25, 50, 75, 100],
        |percent| (MARGIN + width * percent, below),
        middle,
    );
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_text() {
        let mut builder = RingBuilder::new(4, 1.0, 1).unwrap();
        let device = Device {
            ip: "</text><script>".to_owned(),
            device: "a\"&\u{7}b".to_owned(),
            weight: 1.0,
            ..Device::default()
        };
        builder.add(device).unwrap();
        builder.rebalance(1, 0).unwrap();
        let picture = draw(&builder, "a < b", &[0]);
        assert!(!picture.contains("<script>") && picture.contains("a &lt; b") && picture.ends_with("</svg>\n"));
        assert!(picture.contains("16 partitions, 100.0% of its share"));
        assert!(picture.contains("<title>a &lt; b</title>") && picture.contains("percent of the ring's 16 partitions"));
        assert!(picture.contains(">150%</text>") && picture.contains("named in the title"));
    }
}
