//! A picture of what a ring goes through: for each state a chart of the bytes on each device against its size, and how
//! many replicas of partitions are left.
//!
//! Always holds: all charts have the same devices in the same places, and the same scale; bytes and sizes are those
//! that the command printed; of a large ring servers, and of a long way some of its steps are drawn; the title tells.

use super::canvas::{
    BLUE, Canvas, GREEN, GREY, LIGHT, MARGIN, Meaning, ORANGE, RED, WIDTH, fill, has_names, room_for, step,
};
use super::size;
use super::stored::Stored;
use crate::command::Desk;
use crate::terminal::Stop;
use placement::RingBuilder;
use std::collections::BTreeMap;
use std::path::Path;

/// More bars than this cannot be distinguished.
const MOST_BARS: usize = 400;
/// More charts than this are not looked at.
const MOST_CHARTS: usize = 12;
/// How high the bar of a full device is.
const FULL: f64 = 110.0;
/// Bars end here; their numbers say the rest.
const HIGHEST: f64 = 1.25;
/// From here a device is too full, and from there nearly.
const TOO_FULL: f64 = 0.95;
const NEARLY_FULL: f64 = 0.85;
/// Title and legends.
const HEAD: f64 = 92.0;
/// A chart's own title, the zones below it, and the gap to the next.
const CHART_HEAD: f64 = 34.0;
const ZONES: f64 = 22.0;
const GAP: f64 = 14.0;
/// The bar of replicas left, and its words.
const LEFT: f64 = 30.0;
/// A name of a zone needs so much.
const LABEL: f64 = 48.0;

/// Why a device stands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DeviceStanding {
    /// It does not.
    Ordinary,
    /// It is what the command is about.
    Chosen,
    /// What it holds is out of reach.
    Lost,
    /// It is no longer in the ring.
    Out,
}

/// A device, or a server's devices, in one state.
#[derive(Debug, Clone)]
struct FilledDevice {
    name: String,
    zone: (u32, u32),
    bytes: f64,
    /// How much it can hold; nothing where that is not known.
    size: f64,
    standing: DeviceStanding,
}

/// A ring at one moment.
pub(super) struct RingState {
    title: String,
    devices: Vec<FilledDevice>,
    /// For each number of replicas, the partitions that have so many; empty where that is not drawn.
    left: Vec<u64>,
    /// Where these replicas are.
    where_left: &'static str,
}

impl RingState {
    /// What `builder` places: `data` tells of a partition whether there is any. `sizes` has those devices whose weight
    /// is not their size.
    pub(super) fn of(
        title: String,
        builder: &RingBuilder,
        stored: &Stored,
        sizes: &BTreeMap<u32, f64>,
        data: impl Fn(usize) -> bool,
    ) -> Self {
        let mut parts: BTreeMap<u32, u64> = BTreeMap::new();
        for row in builder.assignments() {
            for (_, id) in row.iter().enumerate().filter(|(partition, _)| data(*partition)) {
                *parts.entry(*id).or_default() += 1;
            }
        }
        let devices = builder.devices().map(|device| FilledDevice {
            name: format!("{}/{}", device.ip, device.device),
            zone: (device.region, device.zone),
            bytes: parts.get(&device.id).copied().unwrap_or(0) as f64 * stored.per_part,
            size: sizes
                .get(&device.id)
                .copied()
                .unwrap_or_else(|| stored.capacity(device)),
            standing: DeviceStanding::Ordinary,
        });
        Self {
            title,
            devices: devices.collect(),
            left: vec![],
            where_left: "",
        }
    }

    /// Partitions by how many replicas they have, which are `where_left` ("left").
    pub(super) fn with_replicas(self, left: Vec<u64>, where_left: &'static str) -> Self {
        Self {
            left,
            where_left,
            ..self
        }
    }

    /// These devices stand out; `builder` is that of [`Self::of`].
    pub(super) fn standing(mut self, builder: &RingBuilder, ids: &[u32], standing: DeviceStanding) -> Self {
        for (drawn, device) in self.devices.iter_mut().zip(builder.devices()) {
            if ids.contains(&device.id) {
                drawn.standing = standing;
            }
        }
        self
    }

    /// Nothing is on the devices that are out: where their bars stood is a gap with their names.
    pub(super) fn emptied(mut self) -> Self {
        for device in &mut self.devices {
            if device.standing == DeviceStanding::Out {
                device.bytes = 0.0;
            }
        }
        self
    }

    /// By region and zone; one bar for each server where there are too many devices.
    fn arranged(mut self) -> Self {
        let of_server = |name: &str| name.rsplit_once('/').map_or(name, |(server, _)| server).to_owned();
        if self.devices.len() > MOST_BARS {
            let mut servers: BTreeMap<((u32, u32), String), FilledDevice> = BTreeMap::new();
            for device in std::mem::take(&mut self.devices) {
                let key = (device.zone, of_server(&device.name));
                let name = key.1.clone();
                match servers.get_mut(&key) {
                    Some(server) => {
                        server.bytes += device.bytes;
                        server.size += device.size;
                        server.standing = server.standing.max(device.standing);
                    }
                    None => drop(servers.insert(key, FilledDevice { name, ..device })),
                }
            }
            self.devices = servers.into_values().take(MOST_BARS).collect();
        }
        self.devices.sort_by_key(|device| device.zone);
        self
    }
}

/// Draws the states into a file, one below the other.
pub(super) fn save(desk: &Desk<'_, '_>, title: &str, states: Vec<RingState>, path: &str) -> Result<(), Stop> {
    desk.shelf.write_other(Path::new(path), draw(title, states).as_bytes())
}

fn draw(title: &str, states: Vec<RingState>) -> String {
    let all = states.len();
    let states: Vec<RingState> = some_of(states).into_iter().map(RingState::arranged).collect();
    let title = match states.len() < all {
        true => format!("{title} ({} of {all} states drawn)", states.len()),
        false => title.to_owned(),
    };
    let step = step(states.iter().map(|state| state.devices.len()).max().unwrap_or(0));
    let names = |state: &RingState| room_for(state.devices.iter().map(|device| &*device.name), step);
    let heights: Vec<f64> = states.iter().map(|state| height(state) + names(state)).collect();
    let mut canvas = Canvas::new(&title, HEAD + heights.iter().sum::<f64>());
    legends(&mut canvas, &states);
    let mut top = HEAD;
    for (state, height) in states.iter().zip(heights) {
        chart(&mut canvas, state, step, top);
        top += height;
    }
    canvas.finish()
}

/// The first, the last, and some between.
fn some_of(states: Vec<RingState>) -> Vec<RingState> {
    let last = states.len().saturating_sub(1);
    if last < MOST_CHARTS {
        return states;
    }
    let wanted: Vec<usize> = (0..MOST_CHARTS)
        .map(|number| number * last / (MOST_CHARTS - 1))
        .collect();
    let numbered = states.into_iter().enumerate();
    let chosen = numbered.filter(|(number, _)| wanted.contains(number));
    chosen.map(|(_, state)| state).collect()
}

fn height(state: &RingState) -> f64 {
    let left = if state.left.is_empty() { 0.0 } else { LEFT };
    CHART_HEAD + FULL * HIGHEST + ZONES + left + GAP
}

impl FilledDevice {
    fn fill(&self) -> Option<f64> {
        (self.size > 0.0).then(|| self.bytes / self.size)
    }

    fn colour(&self) -> &'static str {
        match self.fill() {
            _ if self.standing == DeviceStanding::Chosen => GREEN,
            Some(fill) if fill > TOO_FULL => RED,
            Some(fill) if fill > NEARLY_FULL => ORANGE,
            Some(_) => BLUE,
            None => LIGHT,
        }
    }

    fn paint(&self) -> String {
        match self.standing {
            DeviceStanding::Lost => hollow(),
            _ => fill(self.colour()),
        }
    }

    /// `11.2 TiB, 70%`, with what stands out.
    fn words(&self) -> String {
        let percent = self.fill().map(|fill| format!(", {:.0}%", fill * 100.0));
        let bytes = size::shown(self.bytes);
        match self.standing {
            DeviceStanding::Out => "lost".to_owned(),
            _ => format!("{bytes}{}", percent.unwrap_or_default()),
        }
    }
}

fn hollow() -> String {
    format!("fill=\"white\" stroke=\"{RED}\" stroke-dasharray=\"3 2\"")
}

fn legends(canvas: &mut Canvas, states: &[RingState]) {
    let any = |wanted: &dyn Fn(&FilledDevice) -> bool| {
        let drawn = |device: &&FilledDevice| device.bytes > 0.0;
        states
            .iter()
            .any(|state| state.devices.iter().filter(drawn).any(wanted))
    };
    let has =
        |colour: &'static str| any(&|device| device.standing != DeviceStanding::Lost && device.colour() == colour);
    let lost = any(&|device| device.standing == DeviceStanding::Lost);
    let mut meanings = vec![
        Meaning::of(BLUE, "has room", has(BLUE)),
        Meaning::of(ORANGE, "over 85% full", has(ORANGE)),
        Meaning::of(RED, "over 95% full", has(RED)),
        Meaning::of(GREEN, "the devices of the command", has(GREEN)),
        Meaning::of(LIGHT, "size not known", has(LIGHT)),
    ];
    meanings.push(Meaning {
        paint: hollow(),
        words: "lost",
        is_shown: lost,
    });
    canvas.legend(
        48.0,
        "Bytes on each device, in percent of its size, by region and zone",
        &meanings,
    );
}

fn chart(canvas: &mut Canvas, state: &RingState, step: f64, top: f64) {
    canvas.text(
        MARGIN,
        top + 16.0,
        " font-size=\"13\" font-weight=\"bold\"",
        &state.title,
    );
    let bottom = top + CHART_HEAD + FULL * HIGHEST;
    let height = |fill: f64| bottom - FULL * fill;
    let side = " text-anchor=\"end\"";
    canvas.ticks(&[0, 50, 100], |fill| (MARGIN - 6.0, height(fill) + 4.0), side);
    // What has no size is drawn against the largest of them.
    let most = state.devices.iter().map(|device| device.bytes).fold(0.0, f64::max);
    for (place, device) in state.devices.iter().enumerate() {
        let x = MARGIN + place as f64 * step;
        let unsized_fill = if most > 0.0 { device.bytes / most } else { 0.0 };
        let drawn = FULL * device.fill().unwrap_or(unsized_fill).min(HIGHEST);
        let words = device.words();
        let place = (x, bottom - drawn);
        let lost = if device.standing == DeviceStanding::Lost {
            " out of reach"
        } else {
            ""
        };
        let title = format!("{}: {words}{lost}", device.name);
        canvas.rect(place, ((step * 0.85).max(0.5), drawn), &device.paint(), &title);
        if has_names(step) && (device.bytes > 0.0 || device.standing == DeviceStanding::Out) {
            let inside = drawn > 5.0 + 4.7 * words.len() as f64;
            let is_dark = device.standing != DeviceStanding::Lost && device.colour() != LIGHT;
            let colour = if inside && is_dark { "white" } else { "black" };
            let y = if inside { bottom - 4.0 } else { bottom - drawn - 4.0 };
            canvas.upright((x + step * 0.425 + 3.0, y), false, colour, &words);
        }
    }
    let end = MARGIN + state.devices.len() as f64 * step;
    for (fill, dashes) in [(0.0, ""), (1.0, " stroke-dasharray=\"4\"")] {
        canvas.line((MARGIN, height(fill)), (end, height(fill)), "black", dashes);
    }
    zones(canvas, state, step, bottom);
    let names = state.devices.iter().map(|device| &*device.name);
    canvas.names(names.clone(), step, bottom + ZONES);
    if !state.left.is_empty() {
        replicas_left(
            canvas,
            (&state.left, state.where_left),
            bottom + ZONES + room_for(names, step),
        );
    }
}

/// Where zones begin, named as far as there is room.
fn zones(canvas: &mut Canvas, state: &RingState, step: f64, bottom: f64) {
    let (mut zone, mut room) = (None, MARGIN);
    for (place, device) in state.devices.iter().enumerate() {
        let x = MARGIN + place as f64 * step;
        if zone == Some(device.zone) {
            continue;
        }
        zone = Some(device.zone);
        canvas.line((x, bottom), (x, bottom + 5.0), "grey", "");
        if x >= room {
            let (region, number) = device.zone;
            canvas.text(x, bottom + 16.0, " fill=\"grey\"", &format!("r{region}z{number}"));
            room = x + LABEL;
        }
    }
}

/// How many partitions have how many replicas: a bar, and the same in words.
fn replicas_left(canvas: &mut Canvas, (left, place): (&[u64], &str), top: f64) {
    let total: u64 = left.iter().sum();
    let width = WIDTH - 2.0 * MARGIN;
    let mut x = MARGIN;
    let mut words = vec![];
    for (replicas, count) in left.iter().enumerate().rev().filter(|(_, count)| **count > 0) {
        let part = *count as f64 / total.max(1) as f64;
        let colour = match left.len() - 1 - replicas {
            _ if replicas == 0 => "black",
            0 => GREY,
            1 => LIGHT,
            _ if replicas == 1 => RED,
            _ => ORANGE,
        };
        let label = match replicas {
            1 => format!("1 replica {place}: {count} partitions ({:.1}%)", part * 100.0),
            _ => format!("{replicas} replicas {place}: {count} partitions ({:.1}%)", part * 100.0),
        };
        canvas.rect((x, top), (width * part, 10.0), &fill(colour), &label);
        x += width * part;
        words.push(label);
    }
    canvas.text(MARGIN, top + 23.0, "", &words.join("; "));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str, bytes: f64, size: f64, standing: DeviceStanding) -> FilledDevice {
        FilledDevice {
            name: name.to_owned(),
            zone: (1, 1),
            bytes,
            size,
            standing,
        }
    }

    fn state(title: &str, devices: Vec<FilledDevice>, left: Vec<u64>) -> RingState {
        RingState {
            title: title.to_owned(),
            devices,
            left,
            where_left: "left",
        }
    }

    #[test]
    fn a_legend_explains_what_is_shown_and_nothing_else() {
        let half = device("a/d1", 50.0, 100.0, DeviceStanding::Ordinary);
        let plain = draw("t", vec![state("before", vec![half.clone()], vec![])]);
        assert!(
            plain.contains("a/d1: 50 B, 50%") && plain.contains(">has room<"),
            "{plain}"
        );
        for absent in [
            "over 85%",
            "over 95%",
            ">lost<",
            "of the command",
            "not known",
            "replicas left",
        ] {
            assert!(!plain.contains(absent), "{absent}");
        }
        let devices = vec![
            device("a/d1", 90.0, 100.0, DeviceStanding::Ordinary),
            device("a/d2", 99.0, 100.0, DeviceStanding::Ordinary),
            device("a/d3", 9.0, 100.0, DeviceStanding::Chosen),
            device("a/d4", 9.0, 0.0, DeviceStanding::Ordinary),
            device("a/d5", 9.0, 100.0, DeviceStanding::Lost),
        ];
        let full = draw("t", vec![state("after", devices, vec![1, 2, 0, 5])]);
        for there in [
            "over 85% full",
            "over 95% full",
            ">lost<",
            "of the command",
            "not known",
        ] {
            assert!(full.contains(there), "{there}");
        }
        assert!(!full.contains(">has room<"));
        assert!(full.contains("0 replicas left: 1 partitions (12.5%)") && full.contains("1 replica left: 2"));
        assert!(full.contains("a/d5: 9 B, 9% out of reach"), "{full}");
    }

    #[test]
    fn a_long_way_is_drawn_in_part_and_a_large_ring_by_servers() {
        let many = || {
            (0..MOST_BARS + 2).map(|number| device(&format!("10.0.0.1/d{number}"), 1.0, 2.0, DeviceStanding::Ordinary))
        };
        let states = (0..40).map(|number| state(&format!("step <{number}>"), many().collect(), vec![]));
        let drawn = draw("t", states.collect());
        assert!(drawn.contains("(12 of 40 states drawn)"));
        assert!(drawn.contains("step &lt;0&gt;") && drawn.contains("step &lt;39&gt;"));
        assert!(drawn.contains("10.0.0.1: 402 B, 50%") && !drawn.contains("10.0.0.1/d7"));
    }
}
