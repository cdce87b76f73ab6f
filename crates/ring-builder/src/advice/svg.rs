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

/// More bars than this cannot be told apart.
const MOST_BARS: usize = 1000;
/// More places than this are not read.
const MOST_ROWS: usize = 80;

const WIDTH: f64 = 1000.0;
const MARGIN: f64 = 60.0;
/// How high the bar of a device with exactly its share is.
const FULL: f64 = 160.0;
const ROW: f64 = 22.0;

/// A bar: one device, or a server's devices.
struct Bar {
    name: String,
    zone: (u32, u32),
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
    let chart = 60.0 + FULL * 1.5;
    let height = chart + 90.0 + rows.len() as f64 * ROW;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"white\"/>\n\
         <text x=\"{MARGIN}\" y=\"24\" font-size=\"16\">{}</text>\n",
        escaped(title)
    );
    draw_bars(&mut out, &bars, chart);
    draw_rows(&mut out, &rows, chart + 60.0);
    out.push_str("</svg>\n");
    out
}

fn bars(builder: &RingBuilder, marked: &[u32]) -> Vec<Bar> {
    let total: f64 = builder.devices().map(|device| device.weight).sum();
    let cells: f64 = builder.assignments().iter().map(|row| row.len() as f64).sum();
    let bar = |device: &Device, name: String| Bar {
        name,
        zone: (device.region, device.zone),
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
    let line = bottom - FULL;
    let step = (WIDTH - 2.0 * MARGIN) / bars.len().max(1) as f64;
    let mut zone = None;
    for (place, bar) in bars.iter().enumerate() {
        let x = MARGIN + place as f64 * step;
        let fill = if bar.share > 0.0 {
            bar.parts / bar.share
        } else {
            bar.parts.min(1.0) * 1.5
        };
        let height = FULL * fill.min(1.5);
        let colour = match fill {
            _ if bar.marked => "#c0392b",
            it if it > 1.05 => "#e08e0b",
            it if it < 0.95 => "#7fb3d5",
            _ => "#2e86c1",
        };
        let percent = fill * 100.0;
        let _ = writeln!(
            out,
            "<rect x=\"{x:.2}\" y=\"{:.2}\" width=\"{:.2}\" height=\"{height:.2}\" fill=\"{colour}\"><title>{}: {:.0} \
             partitions, {percent:.1}% of its share</title></rect>",
            bottom - height,
            (step * 0.85).max(0.5),
            escaped(&bar.name),
            bar.parts
        );
        if zone != Some(bar.zone) {
            zone = Some(bar.zone);
            let (region, number) = bar.zone;
            let _ = writeln!(
                out,
                "<line x1=\"{x:.2}\" y1=\"{bottom}\" x2=\"{x:.2}\" y2=\"{}\" stroke=\"grey\"/><text x=\"{:.2}\" \
                 y=\"{}\" fill=\"grey\">r{region}z{number}</text>",
                bottom + 14.0,
                x + 3.0,
                bottom + 14.0
            );
        }
    }
    let _ = writeln!(
        out,
        "<line x1=\"{MARGIN}\" y1=\"{line}\" x2=\"{}\" y2=\"{line}\" stroke=\"black\" stroke-dasharray=\"4\"/><text \
         x=\"4\" y=\"{}\">its share</text>",
        WIDTH - MARGIN,
        line + 4.0
    );
}

/// A zone: its name, how many partitions have 0, 1, 2 … replicas in it, and how many they should have at most.
type Row = (String, Vec<u64>, u32);

fn rows(builder: &RingBuilder) -> Vec<Row> {
    let is_zone = |name: &str| name.contains('z') && !name.contains('-');
    // A ring that cannot be measured has no dispersion to draw.
    let report = builder.dispersion_report(is_zone).unwrap_or_default();
    let rows = report.rows.into_iter().take(MOST_ROWS);
    rows.map(|row| (row.name, row.replicas, row.max_replicas)).collect()
}

fn draw_rows(out: &mut String, rows: &[Row], top: f64) {
    let _ = writeln!(
        out,
        "<text x=\"{MARGIN}\" y=\"{}\" font-size=\"14\">Partitions by their replicas in each zone (red: more than \
         there should be)</text>",
        top - 12.0
    );
    let width = WIDTH - 2.0 * MARGIN;
    for (place, (name, counts, most)) in rows.iter().enumerate() {
        let y = top + place as f64 * ROW;
        let total: u64 = counts.iter().sum();
        let mut x = MARGIN;
        let _ = writeln!(out, "<text x=\"4\" y=\"{:.2}\">{}</text>", y + 13.0, escaped(name));
        for (replicas, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let part = width * *count as f64 / total.max(1) as f64;
            let colour = match replicas {
                it if it as u64 > u64::from(*most) => "#c0392b",
                0 => "#e5e8e8",
                1 => "#7fb3d5",
                _ => "#2e86c1",
            };
            let _ = writeln!(
                out,
                "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{part:.2}\" height=\"{}\" fill=\"{colour}\"><title>{count} \
                 partitions with {replicas}</title></rect>",
                ROW - 5.0
            );
            x += part;
        }
    }
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
    }
}
