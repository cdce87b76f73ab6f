//! A picture of a ring: how full each device is compared with its share, and how replicas are spread over zones.
//!
//! Always holds: the picture of a large ring stays small (servers stand for their devices then).

use super::canvas::{BLUE, Canvas, GREY, LIGHT, MARGIN, Meaning, ORANGE, RED, WIDTH, fill, room_for, step};
use crate::command::Desk;
use crate::terminal::Stop;
use placement::{Device, RingBuilder};
use std::collections::BTreeMap;
use std::path::Path;

/// More bars than this cannot be distinguished.
const MOST_BARS: usize = 1000;
/// More places than this are not read.
const MOST_ROWS: usize = 80;

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
    let step = step(bars.len());
    let names = room_for(bars.iter().map(|bar| &*bar.name), step);
    let height = chart + 130.0 + names + rows.len() as f64 * ROW;
    let mut canvas = Canvas::new(title, height);
    draw_bars(&mut canvas, &bars, step, chart);
    canvas.names(bars.iter().map(|bar| &*bar.name), step, chart + 24.0);
    draw_rows(&mut canvas, &rows, builder.partition_count(), chart + names + 110.0);
    canvas.finish()
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

fn draw_bars(canvas: &mut Canvas, bars: &[Bar], step: f64, bottom: f64) {
    let what = if bars.iter().any(|bar| bar.devices > 1) {
        "each server's devices"
    } else {
        "each device"
    };
    let heading = format!("Partitions on {what}, in percent of the share its weight asks for, by region and zone");
    let balanced = format!("within {:.0}%", BALANCED * 100.0);
    let has = |colour: &str| bars.iter().any(|bar| bar.colour() == colour && bar.height() > 0.0);
    let meanings = [
        Meaning::of(BLUE, &balanced, has(BLUE)),
        Meaning::of(LIGHT, "less", has(LIGHT)),
        Meaning::of(ORANGE, "more", has(ORANGE)),
        Meaning::of(RED, "named in the title", has(RED)),
    ];
    canvas.legend(48.0, &heading, &meanings);
    let height = |percent: f64| bottom - FULL * percent;
    let side = " text-anchor=\"end\"";
    let place = |percent| (MARGIN - 6.0, height(percent) + 4.0);
    canvas.ticks(&[0, 50, 100, 150], place, side);
    for (place, bar) in bars.iter().enumerate() {
        draw_bar(canvas, bar, MARGIN + place as f64 * step, step, bottom);
    }
    draw_zones(canvas, bars, step, bottom);
    let end = MARGIN + bars.len() as f64 * step;
    for (percent, dashes) in [(0.0, ""), (1.0, " stroke-dasharray=\"4\"")] {
        canvas.line((MARGIN, height(percent)), (end, height(percent)), "black", dashes);
    }
}

impl Bar {
    fn fill(&self) -> f64 {
        // What should hold nothing and holds something is as far off as can be drawn.
        match self.share > 0.0 {
            true => self.parts / self.share,
            false => self.parts.min(1.0) * HIGHEST,
        }
    }

    fn height(&self) -> f64 {
        FULL * self.fill().min(HIGHEST)
    }

    fn colour(&self) -> &'static str {
        match self.fill() {
            _ if self.marked => RED,
            it if it > 1.0 + BALANCED => ORANGE,
            it if it < 1.0 - BALANCED => LIGHT,
            _ => BLUE,
        }
    }
}

fn draw_bar(canvas: &mut Canvas, bar: &Bar, x: f64, step: f64, bottom: f64) {
    let label = match bar.share > 0.0 {
        true => format!("{:.1}% of its share", bar.fill() * 100.0),
        false => "its share is nothing".to_owned(),
    };
    let words = format!("{}: {:.0} partitions, {label}", bar.name, bar.parts);
    let size = ((step * 0.85).max(0.5), bar.height());
    canvas.rect((x, bottom - bar.height()), size, &fill(bar.colour()), &words);
}

/// Where zones begin, named as far as there is room.
fn draw_zones(canvas: &mut Canvas, bars: &[Bar], step: f64, bottom: f64) {
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
        canvas.line((x, bottom), (x, bottom + 5.0), "grey", "");
        if x >= room {
            let (region, number) = bar.zone;
            canvas.text(x, bottom + 18.0, " fill=\"grey\"", &format!("r{region}z{number}"));
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

fn draw_rows(canvas: &mut Canvas, rows: &[DispersionRow], partitions: u32, top: f64) {
    let heading = format!("Replicas in each zone, in percent of the ring's {partitions} partitions");
    let colour = |replicas: usize, most: u32| match replicas {
        it if it as u64 > u64::from(most) => RED,
        0 => GREY,
        1 => LIGHT,
        _ => BLUE,
    };
    let has = |wanted: &str| {
        let shown = |(_, counts, most): &DispersionRow| {
            let mut there = counts.iter().enumerate().filter(|(_, count)| **count > 0);
            there.any(|(replicas, _)| colour(replicas, *most) == wanted)
        };
        rows.iter().any(shown)
    };
    let meanings = [
        Meaning::of(GREY, "none there", has(GREY)),
        Meaning::of(LIGHT, "one", has(LIGHT)),
        Meaning::of(BLUE, "several", has(BLUE)),
        Meaning::of(RED, "more than there should be", has(RED)),
    ];
    canvas.legend(top - 46.0, &heading, &meanings);
    let width = WIDTH - 2.0 * MARGIN;
    for (place, (name, counts, most)) in rows.iter().enumerate() {
        let y = top + place as f64 * ROW;
        let total: u64 = counts.iter().sum();
        let mut x = MARGIN;
        canvas.text(MARGIN - 6.0, y + 13.0, " text-anchor=\"end\"", name);
        for (replicas, count) in counts.iter().enumerate().rev().filter(|(_, count)| **count > 0) {
            let part = width * *count as f64 / total.max(1) as f64;
            let words = format!("{name}: {count} partitions with {replicas} replicas");
            canvas.rect((x, y), (part, ROW - 5.0), &fill(colour(replicas, *most)), &words);
            x += part;
        }
    }
    let below = top + rows.len() as f64 * ROW + 12.0;
    let middle = " text-anchor=\"middle\"";
    let place = |percent| (MARGIN + width * percent, below);
    canvas.ticks(&[0, 25, 50, 75, 100], place, middle);
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
