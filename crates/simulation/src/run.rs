//! One run: what a seed has in store happens, then all is well again, then everything is looked at.
//!
//! Always holds: the same seed gives the same run, to the last step.

use crate::bugs::Bug;
use crate::client::{self, Told};
use crate::cluster::{Atlas, Cluster};
use crate::dice::Dice;
use crate::executor::Progress;
use crate::history::{Fate, History, Verb, Violation, Write};
use crate::inspect;
use crate::plan::{Ask, Event, PATHS, Plan};
use crate::trace::Trace;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use vocabulary::Timestamp;
use world::Clock;

/// Longer than all time-outs in a row.
const PATIENCE: Duration = Duration::from_secs(900);
/// Longer than any message is under way, and than whoever gets it then works on it.
pub(crate) const CALM: Duration = Duration::from_secs(120);

/// The atlases for all sizes of clusters; made once for many runs.
pub struct Atlases(pub(crate) BTreeMap<usize, Arc<Atlas>>);

impl Atlases {
    /// For all sizes that plans have.
    pub fn new() -> Result<Self, String> {
        let made = (4..=6).map(|nodes| Ok((nodes, Arc::new(Atlas::new(nodes)?))));
        made.collect::<Result<_, String>>().map(Self)
    }
}

/// What came of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The promise that was broken, if one was.
    pub violation: Option<Violation>,
    /// Equal for equal runs.
    pub fingerprint: u64,
    /// What happened, if words were wanted.
    pub lines: Vec<String>,
}

/// Runs what belongs to `seed`, with a planted bug or without.
pub fn run(atlases: &Atlases, seed: u64, bug: Option<Bug>, in_words: bool) -> Outcome {
    outcome(in_words, |trace| play(atlases, seed, bug, trace))
}

/// What comes of `play`, a panic included.
pub(crate) fn outcome(in_words: bool, play: impl FnOnce(&Trace) -> Result<(), Violation>) -> Outcome {
    let trace = Trace::new(in_words);
    let ran = catch_unwind(AssertUnwindSafe(|| play(&trace)));
    let violation = match ran {
        Ok(violation) => violation.err(),
        Err(panic) => Some(Violation(format!("a panic: {}", words(&*panic)))),
    };
    Outcome {
        violation,
        fingerprint: trace.fingerprint(),
        lines: trace.take_lines(),
    }
}

fn words(panic: &dyn std::any::Any) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default()
}

fn play(atlases: &Atlases, seed: u64, bug: Option<Bug>, trace: &Trace) -> Result<(), Violation> {
    let dice = Dice::new(seed);
    let plan = Plan::new(&dice, bug);
    let atlas = atlases
        .0
        .get(&plan.nodes)
        .ok_or_else(|| Violation("no atlas".into()))?
        .clone();
    let mut run = Run {
        cluster: Cluster::new(&atlas, dice, trace.clone(), plan.manner),
        history: History {
            paths: PATHS.map(|(a, c, o)| (a.to_owned(), c.to_owned(), o.to_owned())).into(),
            writes: vec![],
        },
        plan,
        told: Arc::default(),
        waiting: 0,
        stamps: HashSet::new(),
    };
    let played = run.play();
    run.cluster.dismantle();
    played
}

/// A run under way.
pub(crate) struct Run {
    pub(crate) cluster: Cluster,
    pub(crate) history: History,
    pub(crate) plan: Plan,
    told: Arc<Mutex<Vec<Told>>>,
    waiting: usize,
    stamps: HashSet<u64>,
}

impl Run {
    fn play(&mut self) -> Result<(), Violation> {
        for number in 0..self.plan.nodes {
            self.cluster.begin(number)?;
        }
        for (at, event) in std::mem::take(&mut self.plan.events) {
            self.advance(at, |_| false)?;
            match event {
                Event::Client { node, path, ask } => self.ask(node, path, ask),
                Event::Misfortune(misfortune) => self.cluster.befall(misfortune)?,
            }
        }
        let end = self.cluster.executor.now() + PATIENCE;
        self.advance(end, |run| run.waiting == 0)?;
        if self.waiting > 0 {
            return Err(Violation(format!("{} requests were never answered", self.waiting)));
        }
        self.heal()?;
        inspect::everything(self)
    }

    /// On to `until`, or until `enough`.
    pub(crate) fn advance(&mut self, until: Duration, enough: impl Fn(&Self) -> bool) -> Result<(), Violation> {
        while !enough(self) {
            if self.cluster.turn(until)? == Progress::Reached {
                // A life that ended outside of any step has answered by its end.
                return self.listen();
            }
            self.listen()?;
        }
        Ok(())
    }

    fn ask(&mut self, node: usize, path: usize, ask: Ask) {
        let at = self.stamp(node);
        let number = self.history.writes.len();
        let verb = match ask {
            Ask::Put { size, .. } => Some(Verb::Put(self.history.body(path, number, size))),
            Ask::Post => Some(Verb::Post),
            Ask::Delete => Some(Verb::Delete),
            Ask::Get { .. } => None,
        };
        self.cluster
            .trace
            .note(format!("client: {ask:?} {path} by n{node} at {at} is {number}"));
        let cut_short = matches!(ask, Ask::Put { cut_short: true, .. });
        let write = verb.map(|verb| Write {
            path,
            verb,
            at,
            fate: if cut_short { Fate::CutShort } else { Fate::Unknown },
        });
        self.history.writes.extend(write.clone());
        if client::ask(
            &self.cluster,
            node,
            &self.history.paths[path],
            (path, number),
            ask,
            write,
            &self.told,
        ) {
            self.waiting += 1;
        }
    }

    /// A timestamp of a node's clock that no other write has.
    fn stamp(&mut self, node: usize) -> Timestamp {
        let mut at = self.cluster.nodes[node].clock.now();
        while !self.stamps.insert(at.ticks()) {
            at = at.next_tick();
        }
        at
    }

    /// What clients have been told meanwhile.
    fn listen(&mut self) -> Result<(), Violation> {
        let told = std::mem::take(&mut *self.told.lock());
        for Told {
            path,
            number,
            ask,
            status,
            body,
        } in told
        {
            self.waiting -= 1;
            self.cluster.trace.note(format!("client: {number} was told {status}"));
            match (ask, status) {
                (Ask::Get { .. }, 200) => {
                    if let Some(body) = body {
                        self.history.recognise(path, &body)?;
                    }
                }
                (Ask::Put { cut_short: false, .. }, 201) | (Ask::Post, 202) | (Ask::Delete, 204) => {
                    self.history.writes[number].fate = Fate::Acknowledged;
                }
                (Ask::Put { cut_short: true, .. }, 201) => {
                    return Err(Violation(format!("upload {number} was cut short and acknowledged")));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// All is well again.
    fn heal(&mut self) -> Result<(), Violation> {
        self.cluster.heal()?;
        // What is still under way arrives.
        let calm = self.cluster.executor.now() + CALM;
        self.advance(calm, |_| false)
    }
}
