//! A stage that writes until devices are so full, by the figures that recon has of them (`/recon/diskusage`).
//!
//! Always holds: how full devices are is known before the stage writes anything; it ends when they are as full as was
//! asked, when it has written all of its objects, or when no server has said how full they are for [`BLIND`], since
//! a filling that sees nothing would go on to the last byte.

use super::servers::ask_recon;
use crate::load::LoadWatch;
use crate::report::observed::FillingReport;
use crate::workload::own_format::observation::ServerSource;
use serde_json::Value;
use std::time::Duration;
use tokio::sync::watch::Receiver;
use vocabulary::Fault;
use world::World;

/// How often devices are looked at, at least: a small device is full in a second.
const SELDOM: Duration = Duration::from_millis(500);
/// How often at most, which is a small part of what a server can answer.
const OFTEN: Duration = Duration::from_millis(20);
/// How long a stage goes on writing while servers do not answer.
const BLIND: Duration = Duration::from_secs(10);

/// What watches over the filling of a stage.
pub(super) struct Filling<'a> {
    world: &'a World,
    servers: &'a [ServerSource],
    watch: &'a LoadWatch,
    report: FillingReport,
}

impl<'a> Filling<'a> {
    /// Looks at the devices for the first time; ends the load before it begins when they are full already.
    pub async fn begin(
        world: &'a World,
        servers: &'a [ServerSource],
        watch: &'a LoadWatch,
        asked: f64,
    ) -> Result<Self, Fault> {
        let mut filling = Self {
            world,
            servers,
            watch,
            report: FillingReport {
                asked,
                before: 0.0,
                reached: 0.0,
                failure: None,
            },
        };
        let full = filling.look().await.map_err(Fault::peer)?;
        filling.report.before = full;
        Ok(filling)
    }

    /// Looks again and again until the stage is over.
    pub async fn run(mut self, mut is_over: Receiver<bool>) -> FillingReport {
        let mut seen = self.world.clock.elapsed();
        let mut wait = OFTEN;
        while !*is_over.borrow_and_update() && self.report.failure.is_none() {
            tokio::select! {
                _ = is_over.changed() => {}
                () = self.world.clock.sleep(wait) => {}
            }
            let (now, before) = (self.world.clock.elapsed(), self.report.reached);
            match self.look().await {
                Ok(full) => {
                    wait = until_the_next_look(full - before, now.saturating_sub(seen), self.report.asked - full);
                    seen = now;
                }
                Err(why) if now.saturating_sub(seen) > BLIND => {
                    self.report.failure = Some(why);
                    self.watch.stop();
                }
                Err(_) => {}
            }
        }
        self.report
    }

    /// How full devices are, from 0 to 1, or why that is not known; ends the load once they are full enough.
    async fn look(&mut self) -> Result<f64, String> {
        let all = self.servers.iter().filter_map(|server| server.recon.as_deref());
        let looks = all.map(|recon| ask_recon(self.world, recon, "diskusage"));
        let (mut used, mut size) = (0.0, 0.0);
        for answer in futures_util::future::join_all(looks).await {
            for disk in devices(&answer?) {
                used += disk.0;
                size += disk.1;
            }
        }
        if size <= 0.0 {
            return Err("recon knows of no mounted device".to_owned());
        }
        self.report.reached = used / size;
        if self.report.is_reached() {
            self.watch.stop();
        }
        Ok(self.report.reached)
    }
}

/// Devices that filled by `grown` in `time` are looked at again when half of what they lack may be there.
fn until_the_next_look(grown: f64, time: Duration, lacking: f64) -> Duration {
    let halves = lacking / 2.0 / grown.max(f64::MIN_POSITIVE);
    let seconds = (time.as_secs_f64() * halves).clamp(OFTEN.as_secs_f64(), SELDOM.as_secs_f64());
    Duration::from_secs_f64(seconds)
}

/// Bytes used and bytes in all of the devices in an answer; those that are not mounted have none.
fn devices(answer: &Value) -> Vec<(f64, f64)> {
    let disks = answer.as_array().map(Vec::as_slice).unwrap_or_default();
    disks
        .iter()
        .filter_map(|disk| Some((disk["used"].as_f64()?, disk["size"].as_f64()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{OFTEN, SELDOM, devices, until_the_next_look};
    use serde_json::json;
    use std::time::Duration;

    #[test]
    fn the_faster_devices_fill_the_sooner_they_are_looked_at() {
        let second = Duration::from_secs(1);
        // A tenth in a second, and a tenth is lacking.
        assert_eq!(until_the_next_look(0.1, second, 0.1), SELDOM);
        assert_eq!(until_the_next_look(0.1, second, 0.02), Duration::from_millis(100));
        assert_eq!(until_the_next_look(0.1, second, -0.5), OFTEN);
        for grown in [0.0, -0.1] {
            assert_eq!(until_the_next_look(grown, second, 0.1), SELDOM);
        }
        assert_eq!(until_the_next_look(0.0, Duration::ZERO, 0.0), OFTEN);
    }

    #[test]
    fn devices_that_are_not_mounted_do_not_count() {
        let answer = json!([
            {"device": "d1", "mounted": true, "size": 100, "used": 30, "avail": 70},
            {"device": "d2", "mounted": false, "size": "", "used": "", "avail": ""},
        ]);
        assert_eq!(devices(&answer), [(30.0, 100.0)]);
        assert_eq!(devices(&json!({"nonsense": 1})), []);
    }
}
