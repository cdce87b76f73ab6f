//! Servers and devices that do not answer, and when they are asked no more.
//!
//! Always holds: a device is set aside after [`MOST`] rounds in a row without an answer. Requests that are under way at
//! the same time are one round, so that a pause of a server costs no more than the requests of that moment, and their
//! repetitions still find it. A server is set aside with all of its devices when several of them are and it has never
//! answered for any. Thus what a report waits for depends on how many are silent, not on how many copies they should
//! have. What is set aside stays so until the report ends.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Rounds without an answer.
pub(super) const MOST: u32 = 3;

/// So many silent devices are no matter of single drives.
const SILENT_DEVICES: u32 = 2;

/// A device of a server, by name.
#[derive(Debug, Clone, Copy)]
pub(super) struct AskedPlace<'n> {
    /// `ip:port`.
    pub(super) server: &'n str,
    /// `ip:port/device`.
    pub(super) device: &'n str,
}

/// What is known of servers and devices.
#[derive(Default)]
pub(super) struct SilentPlaces(Mutex<Known>);

#[derive(Default)]
struct Known {
    devices: HashMap<String, Silence>,
    servers: HashMap<String, ServerSilence>,
}

#[derive(Default)]
struct Silence {
    rounds: u32,
    /// When the last of them ended.
    ended: Duration,
}

#[derive(Default)]
struct ServerSilence {
    has_answered: bool,
    silent_devices: u32,
}

impl SilentPlaces {
    /// A request that was sent at `asked` was not answered.
    pub(super) fn unanswered(&self, place: AskedPlace<'_>, asked: Duration, now: Duration) {
        let mut known = self.known();
        let silence = known.devices.entry(place.device.to_owned()).or_default();
        if silence.rounds > 0 && asked < silence.ended {
            return;
        }
        silence.rounds += 1;
        silence.ended = now;
        if silence.rounds == MOST {
            let server = known.servers.entry(place.server.to_owned()).or_default();
            server.silent_devices += 1;
        }
    }

    /// An answer came.
    pub(super) fn answered(&self, place: AskedPlace<'_>) {
        let mut known = self.known();
        if let Some(silence) = known.devices.get_mut(place.device)
            && silence.rounds < MOST
        {
            silence.rounds = 0;
        }
        known.servers.entry(place.server.to_owned()).or_default().has_answered = true;
    }

    /// The server or the device, when it is asked no more.
    pub(super) fn set_aside<'n>(&self, place: AskedPlace<'n>) -> Option<&'n str> {
        let known = self.known();
        let server = known.servers.get(place.server);
        if server.is_some_and(|server| !server.has_answered && server.silent_devices >= SILENT_DEVICES) {
            return Some(place.server);
        }
        let silence = known.devices.get(place.device);
        silence
            .is_some_and(|silence| silence.rounds >= MOST)
            .then_some(place.device)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    const fn place(device: &str) -> AskedPlace<'_> {
        let server = "s";
        AskedPlace { server, device }
    }

    fn be_silent(places: &SilentPlaces, device: &str) {
        for round in 0..3 {
            assert_eq!(places.set_aside(place(device)), None);
            places.unanswered(place(device), at(round * 16), at(round * 16 + 15));
        }
    }

    #[test]
    fn requests_of_one_moment_are_one_round() {
        let places = SilentPlaces::default();
        for _ in 0..25 {
            places.unanswered(place("s/a"), at(0), at(15));
        }
        places.unanswered(place("s/a"), at(1), at(16));
        places.unanswered(place("s/a"), at(16), at(31));
        assert_eq!(places.set_aside(place("s/a")), None);
        places.unanswered(place("s/a"), at(32), at(47));
        assert_eq!(places.set_aside(place("s/a")), Some("s/a"));
        // Too late: the report has left copies out already.
        places.answered(place("s/a"));
        assert_eq!(places.set_aside(place("s/a")), Some("s/a"));
    }

    #[test]
    fn an_answer_ends_the_silence() {
        let places = SilentPlaces::default();
        for round in 0..10 {
            places.unanswered(place("s/a"), at(round * 16), at(round * 16 + 15));
            if round % 2 == 1 {
                places.answered(place("s/a"));
            }
        }
        assert_eq!(places.set_aside(place("s/a")), None);
    }

    #[test]
    fn a_server_is_set_aside_that_answers_for_none_of_its_devices() {
        let places = SilentPlaces::default();
        be_silent(&places, "s/a");
        assert_eq!(places.set_aside(place("s/b")), None);
        be_silent(&places, "s/b");
        assert_eq!(places.set_aside(place("s/c")), Some("s"));
        let places = SilentPlaces::default();
        places.answered(place("s/c"));
        be_silent(&places, "s/a");
        be_silent(&places, "s/b");
        assert_eq!(places.set_aside(place("s/b")), Some("s/b"));
        assert_eq!(places.set_aside(place("s/c")), None);
    }
}
