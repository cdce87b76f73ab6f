//! Runs a history of builder steps, given as JSON, and says what each rebalance did.
//!
//! For measuring and profiling the builder without the command around it: it takes the time from the history, where the
//! command takes it from the clock, and says how long each step took.
//!
//! A line of standard input is a step: `{"op": "new", "part_power": 10, "replicas": 3,
//! "min_part_hours": 1}`, `add` with the fields of a device, `remove`, `weight`, `zone`, `region`,
//! `overload`, `replicas`, `hours`, `rebalance` with `seed` and `now`, `load` and `save` with a
//! `path`, `grid` for many like devices. Each answers with a line.

#![allow(clippy::print_stdout, missing_docs)]

use std::error::Error;
use std::io::BufRead;
use std::time::Instant;

use placement::{Device, Ring, RingBuilder};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let mut builder = RingBuilder::new(1, 1.0, 1)?;
    for line in std::io::stdin().lock().lines() {
        let step: Value = serde_json::from_str(&line?)?;
        let start = Instant::now();
        let mut answer = match run(&mut builder, &step) {
            Ok(answer) => answer,
            Err(error) => json!({ "error": error.to_string() }),
        };
        answer["seconds"] = start.elapsed().as_secs_f64().into();
        println!("{answer}");
    }
    Ok(())
}

fn run(builder: &mut RingBuilder, step: &Value) -> Result<Value, Box<dyn Error>> {
    let number = |name: &str| step[name].as_u64().unwrap_or(0);
    let small = |name: &str| number(name) as u32;
    let float = |name: &str| step[name].as_f64().unwrap_or(0.0);
    let path = || step["path"].as_str().unwrap_or_default();
    match step["op"].as_str().unwrap_or_default() {
        "new" => *builder = RingBuilder::new(small("part_power"), float("replicas"), small("min_part_hours"))?,
        "add" => return Ok(json!({ "id": builder.add(device(step))? })),
        "grid" => grid(builder, small("devices"), small("zones"), small("disks"))?,
        "remove" => builder.remove(small("id"))?,
        "weight" => builder.set_weight(small("id"), float("weight"))?,
        "weights" => (small("from")..small("to")).try_for_each(|id| builder.set_weight(id, float("weight")))?,
        "removes" => (small("from")..small("to")).try_for_each(|id| builder.remove(id))?,
        "zone" => builder.set_zone(small("id"), small("zone"))?,
        "region" => builder.set_region(small("id"), small("region"))?,
        "overload" => builder.set_overload(float("overload"))?,
        "replicas" => builder.set_replicas(float("replicas"))?,
        "hours" => builder.set_min_part_hours(small("hours")),
        "pretend" => builder.pretend_min_part_hours_passed(),
        "load" => *builder = RingBuilder::from_bytes(&std::fs::read(path())?)?,
        "save" => std::fs::write(path(), builder.to_bytes())?,
        "save-ring" => {
            let ring = builder.to_ring()?;
            let bytes = if number("format") == 2 {
                ring.to_bytes_v2()
            } else {
                ring.to_bytes_v1()?
            };
            std::fs::write(path(), bytes)?;
        }
        "load-ring" => {
            return Ok(json!({ "partitions": Ring::from_bytes(&std::fs::read(path())?)?.partition_count() }));
        }
        "rebalance" => {
            let done = builder.rebalance(number("seed"), number("now") as i64)?;
            builder.validate()?;
            return Ok(json!({
                "moved": done.moved, "balance": done.balance, "removed": done.removed,
                "dispersion": builder.dispersion(),
            }));
        }
        "quick-rebalance" => {
            let done = builder.rebalance(number("seed"), number("now") as i64)?;
            return Ok(json!({
                "moved": done.moved, "balance": done.balance, "dispersion": builder.dispersion(),
            }));
        }
        other => return Err(format!("no such step: {other}").into()),
    }
    Ok(json!({}))
}

fn device(step: &Value) -> Device {
    let number = |name: &str| step[name].as_u64().unwrap_or(0);
    let text = |name: &str| step[name].as_str().unwrap_or_default().to_owned();
    Device {
        region: number("region") as u32,
        zone: number("zone") as u32,
        weight: step["weight"].as_f64().unwrap_or(0.0),
        ip: text("ip"),
        port: number("port") as u16,
        replication_ip: text("ip"),
        replication_port: number("port") as u16,
        device: text("device"),
        ..Device::default()
    }
}

/// Adds devices of weight 100, so many per server, the servers dealt out to zones.
fn grid(builder: &mut RingBuilder, devices: u32, zones: u32, disks: u32) -> Result<(), Box<dyn Error>> {
    for number in 0..devices {
        let server = number / disks;
        let ip = format!(
            "10.{}.{}.{}",
            server % zones,
            server / zones / 250,
            server / zones % 250
        );
        builder.add(Device {
            region: 1,
            zone: 1 + server % zones,
            weight: 100.0,
            replication_ip: ip.clone(),
            ip,
            port: 6200,
            replication_port: 6200,
            device: format!("sd{}", number % disks),
            ..Device::default()
        })?;
    }
    Ok(())
}
