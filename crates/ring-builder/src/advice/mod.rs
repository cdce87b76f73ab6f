//! Advice on rings, beyond OpenStack's program: nothing here changes a ring.
//!
//! | question | file |
//! |---|---|
//! | which part power, how many replicas and zones | `plan.rs`; its commands and picture `plan_{commands,picture}.rs` |
//! | what is planned for | `planned_cluster.rs`, its servers `inventory.rs` |
//! | in which steps do devices come in or go out | `ramp/mod.rs`, laid out and tried in `ramp/way.rs` |
//! | what is at risk when places fail, how long does repair take | `simulate.rs` |
//! | a picture of fill and dispersion | `svg.rs` |
//! | a picture of what a ring goes through: a loss, a ramp | `states.rs` |
//! | what pictures are drawn with | `canvas.rs` |
//! | how much is stored | `stored.rs` |
//! | sizes and speeds | `size.rs` |

mod canvas;
mod inventory;
mod plan;
mod plan_commands;
mod plan_picture;
mod planned_cluster;
mod ramp;
mod simulate;
pub mod size;
mod states;
mod stored;
mod svg;

pub(crate) use plan::plan;
pub(crate) use ramp::ramp;
pub(crate) use simulate::simulate;
pub(crate) use svg::save as save_picture;

use crate::options::{Declared, Takes, long};
use serde_json::Value;

/// Output for programs.
const JSON: Declared = long("json", Takes::Nothing, "print JSON");
/// A picture of each state besides.
const STATES: Declared = long(
    "svg",
    Takes::Text,
    "draw what devices hold, before, in between and after, into this file",
);
/// A picture besides.
pub(crate) const SVG: Declared = long("svg", Takes::Text, "draw fill and dispersion into this file");

/// How wide paragraphs are.
const WIDTH: usize = 100;

/// A text in lines, a title before the first, the others indented as far.
fn paragraph(title: &str, text: &str) -> String {
    let mut out = title.to_owned();
    let mut column = title.len();
    for word in text.split_whitespace() {
        if column > title.len() && column + 1 + word.len() > WIDTH {
            out.push_str(&format!("\n{:1$}", "", title.len()));
            column = title.len();
        } else if column > title.len() {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += word.len();
    }
    out
}

fn pretty(value: &Value) -> String {
    format!("{value:#}")
}
