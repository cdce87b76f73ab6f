//! Which devices of servers are silent: they have requests under way and answer none.
//!
//! A node that hangs (its kernel, a controller, SIGSTOP) accepts connections and never answers: each request to it
//! costs its whole time-out. A device is *silent* once requests have been under way to it for `silence_timeout` and it
//! has answered none of them. It stays silent until it answers one: senders pass it over, and one request at a time
//! ([`Silence::probe`]) finds out whether it answers again, beside those that wait: one of them may wait for a reason
//! of its own.
//! Always holds: a device that answers any request in time is not silent, however slow it is; an answer with any status
//! ends the silence at once; the map holds devices with requests under way and up to [`MOST_SILENT`] silent ones,
//! whatever devices a peer has rows sent to.
//! Deliberately absent: requests whose answer rightly comes late (a body that flows, a wait in line), which senders do
//! not count; what is done instead of asking a silent device; failures ([`PeerError`](crate::PeerError)).

use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt::Display;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use world::{Clock, World};

/// A silent device that no request would have gone to for so long is forgotten: it may have left the cluster.
const FORGOTTEN: Duration = Duration::from_secs(600);

/// With so many devices known the silent ones that no request is under way to are forgotten.
const MOST_SILENT: usize = 4096;

/// A device with requests under way, or a silent one.
struct DeviceState {
    /// Requests under way to it.
    waiting: u32,
    /// When it answered last, or when the first of those requests left.
    since: Duration,
    is_silent: bool,
    /// A request that finds out whether it answers again is under way.
    is_probed: bool,
    /// When it was passed over last.
    passed_over: Duration,
}

/// See the module's header. `K` names a device of a server.
pub struct Silence<K> {
    clock: Arc<dyn Clock>,
    /// Zero: no device is ever silent.
    timeout: Duration,
    devices: Mutex<HashMap<K, DeviceState>>,
    /// How often a device became silent.
    times: AtomicU64,
}

/// A request under way to a device, from its sending to the head of its answer. Dropped, it has ended without one.
#[must_use]
pub struct AskedDevice<K: Clone + Eq + Hash + Display> {
    /// Until it has ended. `None` where no device is ever silent.
    under_way: Option<(Arc<Silence<K>>, K)>,
    is_probe: bool,
}

impl<K: Clone + Eq + Hash + Display> AskedDevice<K> {
    /// The device has answered. Whether it was silent until now.
    pub fn answered(mut self) -> bool {
        self.end(true)
    }

    fn end(&mut self, has_answered: bool) -> bool {
        let ended = match self.is_probe {
            true => Ended::Probe,
            false => Ended::Request,
        };
        let under_way = self.under_way.take();
        under_way.is_some_and(|(silence, device)| silence.note(&device, ended, has_answered))
    }
}

/// What is under way to a device no longer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// It was not counted.
    Nothing,
    Request,
    Probe,
}

impl<K: Clone + Eq + Hash + Display> Drop for AskedDevice<K> {
    fn drop(&mut self) {
        self.end(false);
    }
}

impl<K: Clone + Eq + Hash + Display> Silence<K> {
    /// A device that answers none of its requests for `timeout` is silent; none ever is when that is zero.
    pub fn new(world: &World, timeout: Duration) -> Arc<Self> {
        Arc::new(Self {
            clock: world.clock.clone(),
            timeout,
            devices: Mutex::default(),
            times: AtomicU64::new(0),
        })
    }

    /// A request leaves for `device`.
    pub fn asked(self: &Arc<Self>, device: &K) -> AskedDevice<K> {
        if self.timeout.is_zero() {
            return AskedDevice {
                under_way: None,
                is_probe: false,
            };
        }
        let now = self.clock.elapsed();
        let mut devices = self.devices.lock();
        match devices.get_mut(device) {
            Some(state) => state.waiting = state.waiting.saturating_add(1),
            None => {
                let state = DeviceState {
                    waiting: 1,
                    since: now,
                    is_silent: false,
                    is_probed: false,
                    passed_over: now,
                };
                if devices.len() >= MOST_SILENT {
                    devices.retain(|_, state| state.waiting > 0);
                }
                devices.insert(device.clone(), state);
            }
        }
        AskedDevice {
            under_way: Some((self.clone(), device.clone())),
            is_probe: false,
        }
    }

    /// For the request that finds out whether `device` answers again, if that is silent and no such request is under
    /// way.
    pub fn probe(self: &Arc<Self>, device: &K) -> Option<AskedDevice<K>> {
        let mut devices = self.devices.lock();
        let state = devices.get_mut(device)?;
        if !state.is_silent || std::mem::replace(&mut state.is_probed, true) {
            return None;
        }
        state.waiting = state.waiting.saturating_add(1);
        Some(AskedDevice {
            under_way: Some((self.clone(), device.clone())),
            is_probe: true,
        })
    }

    /// Whether `device` is to be passed over.
    pub fn is_silent(&self, device: &K) -> bool {
        if self.timeout.is_zero() {
            return false;
        }
        {
            let mut devices = self.devices.lock();
            let Some(state) = devices.get_mut(device) else {
                return false;
            };
            let now = self.clock.elapsed();
            if self.left_of(state, now) > Duration::ZERO && !state.is_silent {
                return false;
            }
            state.passed_over = now;
            if std::mem::replace(&mut state.is_silent, true) {
                return true;
            }
        }
        self.times.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(
            "{device} accepts requests and has answered none for {:?} (silence_timeout): it is passed over until it \
             answers",
            self.timeout
        );
        true
    }

    /// How long until `device` is silent if it answers nothing from now on, with a request under way; zero when it is
    /// silent. `None` when no device ever is.
    pub fn left(&self, device: &K) -> Option<Duration> {
        if self.timeout.is_zero() {
            return None;
        }
        let devices = self.devices.lock();
        Some(match devices.get(device) {
            Some(state) if state.is_silent => Duration::ZERO,
            Some(state) => self.left_of(state, self.clock.elapsed()),
            None => self.timeout,
        })
    }

    /// Completes when `device` is silent.
    pub async fn becomes_silent(&self, device: &K) {
        while !self.is_silent(device) {
            match self.left(device) {
                Some(left) => self.clock.sleep(left).await,
                None => std::future::pending().await,
            }
        }
    }

    /// `device` has answered a request that was not counted. Whether it was silent until now.
    pub fn has_answered(&self, device: &K) -> bool {
        !self.timeout.is_zero() && self.note(device, Ended::Nothing, true)
    }

    /// Whether `device`, to which a request has been under way since before `then`, has answered another one since.
    pub fn has_answered_since(&self, device: &K, then: Duration) -> bool {
        let devices = self.devices.lock();
        devices
            .get(device)
            .is_some_and(|state| !state.is_silent && state.since > then)
    }

    /// How long a device may leave all its requests unanswered (`silence_timeout`).
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// How often devices have become silent so far.
    pub fn times(&self) -> u64 {
        self.times.load(Ordering::Relaxed)
    }

    /// How many devices are silent now, as far as requests would have gone to them lately.
    pub fn silent(&self) -> usize {
        let now = self.clock.elapsed();
        let mut devices = self.devices.lock();
        devices.retain(|_, state| state.waiting > 0 || now.saturating_sub(state.passed_over) <= FORGOTTEN);
        devices.values().filter(|state| state.is_silent).count()
    }

    fn left_of(&self, state: &DeviceState, now: Duration) -> Duration {
        let unanswered_for = now.saturating_sub(state.since);
        self.timeout.saturating_sub(unanswered_for)
    }

    /// Whether that ended its silence.
    fn note(&self, device: &K, ended: Ended, has_answered: bool) -> bool {
        let now = self.clock.elapsed();
        let was_silent_for = {
            let mut devices = self.devices.lock();
            let Some(state) = devices.get_mut(device) else {
                return false;
            };
            state.waiting = state.waiting.saturating_sub(u32::from(ended != Ended::Nothing));
            state.is_probed &= ended != Ended::Probe;
            let unanswered_for = now.saturating_sub(state.since);
            let ended_silence = has_answered && std::mem::take(&mut state.is_silent);
            if has_answered {
                state.since = now;
            }
            if state.waiting == 0 && !state.is_silent {
                devices.remove(device);
            }
            ended_silence.then_some(unanswered_for)
        };
        if let Some(unanswered_for) = was_silent_for {
            tracing::info!(
                "{device} answers again, after {:.1} seconds",
                unanswered_for.as_secs_f64()
            );
        }
        was_silent_for.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocabulary::Timestamp;
    use world::BoxFuture;

    /// A clock that shows what it is set to; sleepers move it.
    #[derive(Default)]
    struct SetClock(Mutex<Duration>);

    impl SetClock {
        fn pass(&self, milliseconds: u64) {
            *self.0.lock() += Duration::from_millis(milliseconds);
        }
    }

    impl Clock for SetClock {
        fn now(&self) -> Timestamp {
            Timestamp::ZERO
        }

        fn elapsed(&self) -> Duration {
            *self.0.lock()
        }

        fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
            *self.0.lock() += duration;
            Box::pin(async {})
        }
    }

    fn silence(timeout: u64) -> (Arc<Silence<&'static str>>, Arc<SetClock>) {
        let clock = Arc::new(SetClock::default());
        let world = World {
            clock: clock.clone(),
            ..World::real()
        };
        (Silence::new(&world, Duration::from_millis(timeout)), clock)
    }

    #[test]
    fn a_device_that_answers_nothing_is_silent_until_it_answers() {
        let (silence, clock) = silence(1000);
        let first = silence.asked(&"d1");
        clock.pass(999);
        let second = silence.asked(&"d1");
        assert!(!silence.is_silent(&"d1"));
        assert_eq!(silence.left(&"d1"), Some(Duration::from_millis(1)));
        clock.pass(1);
        assert!(silence.is_silent(&"d1"));
        assert!(!silence.is_silent(&"d2"), "a device of its own");
        assert_eq!((silence.times(), silence.silent()), (1, 1));
        drop(first);
        assert!(silence.is_silent(&"d1"));
        assert!(second.answered(), "it was silent");
        assert!(!silence.is_silent(&"d1"));
        assert_eq!((silence.times(), silence.silent()), (1, 0));
        assert!(silence.devices.lock().is_empty());
    }

    #[test]
    fn a_slow_device_that_answers_others_is_not_silent() {
        let (silence, clock) = silence(1000);
        let _slow = silence.asked(&"d");
        for _ in 0..10 {
            let other = silence.asked(&"d");
            clock.pass(900);
            assert!(!other.answered(), "it was not silent");
            assert!(!silence.is_silent(&"d"));
            let now = clock.elapsed();
            assert!(silence.has_answered_since(&"d", now - Duration::from_millis(1)));
            assert!(!silence.has_answered_since(&"d", now));
        }
        clock.pass(900);
        assert!(!silence.has_answered(&"d"));
        clock.pass(900);
        assert!(
            !silence.is_silent(&"d"),
            "answers to requests that were not counted count"
        );
        clock.pass(100);
        assert!(silence.is_silent(&"d"));
        assert!(silence.has_answered(&"d"));
        assert!(!silence.is_silent(&"d"));
    }

    #[test]
    fn what_was_given_up_before_says_nothing_of_a_later_request() {
        let (silence, clock) = silence(1000);
        let given_up = silence.asked(&"d");
        clock.pass(900);
        drop(given_up);
        clock.pass(60_000);
        let _later = silence.asked(&"d");
        assert!(!silence.is_silent(&"d"));
        clock.pass(1000);
        assert!(silence.is_silent(&"d"));
    }

    #[test]
    fn silent_devices_are_so_many_at_most() {
        let (silence, clock) = silence(1000);
        for number in 0..2 * MOST_SILENT {
            let device: &'static str = format!("d{number}").leak();
            let asked = silence.asked(&device);
            clock.pass(1000);
            assert!(silence.is_silent(&device));
            drop(asked);
            assert!(silence.devices.lock().len() <= MOST_SILENT);
        }
    }

    #[test]
    fn one_request_at_a_time_finds_out_whether_a_silent_device_answers_again() {
        let (silence, clock) = silence(1000);
        assert!(silence.probe(&"d").is_none(), "it is not silent");
        let asked = silence.asked(&"d");
        assert!(silence.probe(&"d").is_none());
        clock.pass(1000);
        assert!(silence.is_silent(&"d"));
        let probe = silence.probe(&"d").unwrap();
        assert!(silence.probe(&"d").is_none());
        drop(asked);
        assert!(silence.probe(&"d").is_none(), "it is under way still");
        drop(probe);
        assert!(silence.is_silent(&"d"), "a probe without an answer changes nothing");
        silence.probe(&"d").unwrap().answered();
        assert!(!silence.is_silent(&"d"));
        assert!(silence.devices.lock().is_empty());
    }

    #[test]
    fn a_request_that_waits_for_a_reason_of_its_own_does_not_keep_a_device_silent() {
        let (silence, clock) = silence(1000);
        let stuck = silence.asked(&"d");
        clock.pass(1000);
        assert!(silence.is_silent(&"d"));
        assert!(silence.probe(&"d").unwrap().answered());
        assert!(!silence.is_silent(&"d"));
        clock.pass(999);
        assert!(!silence.is_silent(&"d"));
        clock.pass(1);
        assert!(silence.is_silent(&"d"), "it has answered nothing since");
        assert!(stuck.answered());
        assert!(silence.devices.lock().is_empty());
    }

    #[test]
    fn a_silent_device_that_no_request_would_go_to_is_forgotten() {
        let (silence, clock) = silence(1000);
        let asked = silence.asked(&"d");
        clock.pass(1000);
        assert!(silence.is_silent(&"d"));
        drop(asked);
        for _ in 0..3 {
            clock.pass(600_000);
            assert_eq!(silence.silent(), 1);
            assert!(silence.is_silent(&"d"));
        }
        clock.pass(600_001);
        assert_eq!(silence.silent(), 0);
        assert!(!silence.is_silent(&"d"));
        assert!(silence.devices.lock().is_empty());
    }

    #[test]
    fn without_a_timeout_nothing_is_silent() {
        let (silence, clock) = silence(0);
        let _asked = silence.asked(&"d");
        clock.pass(1_000_000);
        assert!(!silence.is_silent(&"d"));
        assert_eq!(silence.left(&"d"), None);
        assert!(silence.devices.lock().is_empty());
    }

    #[tokio::test]
    async fn silence_can_be_waited_for() {
        let (silence, clock) = silence(1000);
        let _asked = silence.asked(&"d");
        clock.pass(300);
        silence.becomes_silent(&"d").await;
        assert_eq!(clock.elapsed(), Duration::from_millis(1000));
    }
}
