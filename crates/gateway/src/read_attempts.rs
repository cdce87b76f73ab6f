//! The requests of one read: one node after the other, and one beside the other where those asked do not answer.
//!
//! With `concurrent_gets` the next node is asked beside those under way after a short while (`concurrency_timeout`); in
//! any case it is asked once all those under way are silent ([`peer::Silence`]). Nodes that are silent already come
//! last, one every `silence_timeout`, so that a cluster that stalls as a whole does not get each read several times.
//! Always holds: a node is asked once; requests that are under way when the read has its answer are given up.
//! Deliberately absent: what the answers mean (`read.rs`).

use crate::backend::Question;
use crate::candidates::{Candidate, Candidates};
use crate::shared::Shared;
use peer::Response;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;
use world::BoxFuture;

/// See the module's header.
pub(crate) struct ReadAttempts<'a> {
    shared: &'a Shared,
    candidates: &'a mut Candidates,
    question: &'a Question,
    under_way: Vec<UnderWay<'a>>,
    /// When one was asked last.
    last: Duration,
    /// That one was silent before.
    last_was_silent: bool,
}

/// A candidate that is being asked.
struct UnderWay<'a> {
    candidate: Candidate,
    answer: BoxFuture<'a, Option<Response>>,
}

/// A candidate, and its response if it gave one.
type ReadAnswer = (Candidate, Option<Response>);

impl<'a> ReadAttempts<'a> {
    /// None is asked yet.
    pub(crate) fn new(shared: &'a Shared, candidates: &'a mut Candidates, question: &'a Question) -> Self {
        Self {
            shared,
            candidates,
            question,
            under_way: Vec::new(),
            last: Duration::ZERO,
            last_was_silent: false,
        }
    }

    /// The next node that answered, or failed to; `None` when all have been asked. Where the answers so far are
    /// enough, no silent node is asked or waited for.
    pub(crate) async fn next(&mut self, is_enough: bool) -> Option<ReadAnswer> {
        if self.under_way.is_empty() && !self.begin(is_enough) {
            return None;
        }
        let mut has_more = true;
        loop {
            let Some(wait) = self.wait(has_more, is_enough) else {
                return Some(first(&mut self.under_way).await);
            };
            if let Ok(answer) = self.shared.world.timeout(wait, first(&mut self.under_way)).await {
                return Some(answer);
            }
            let are_silent = self.are_silent();
            if has_more && (are_silent || self.is_next_due()) {
                has_more = self.begin(is_enough);
                if has_more {
                    continue;
                }
            }
            if are_silent && is_enough {
                return None;
            }
        }
    }

    /// Asks one more; false when there is none.
    fn begin(&mut self, is_enough: bool) -> bool {
        let next = self.candidates.next(self.shared, self.question);
        let is_silent = next.is_none();
        let next = match is_silent && !is_enough {
            true => self.candidates.next_silent(self.shared),
            false => next,
        };
        let Some(candidate) = next else { return false };
        let (shared, node) = (self.shared, candidate.node.clone());
        let call = self.question.call(self.candidates.route(), &node);
        let limit = shared.options.recoverable_node_timeout;
        self.under_way.push(UnderWay {
            candidate,
            answer: Box::pin(async move { shared.ask(&node, call, limit).await }),
        });
        self.last = shared.world.clock.elapsed();
        self.last_was_silent = is_silent;
        true
    }

    /// How long to wait before the next one is asked beside those under way, or before those are given up; without end
    /// where nothing is to be done.
    fn wait(&self, has_more: bool, is_enough: bool) -> Option<Duration> {
        let patience = self.patience().filter(|_| has_more);
        let silence = self.until_silent().filter(|_| has_more || is_enough);
        match (patience, silence) {
            (Some(patience), Some(silence)) => Some(patience.min(silence)),
            (patience, silence) => patience.or(silence),
        }
    }

    /// What is left of `concurrency_timeout`, with `concurrent_gets`.
    fn patience(&self) -> Option<Duration> {
        let patience = self.candidates.patience()?;
        Some(patience.saturating_sub(self.since_last()))
    }

    fn is_next_due(&self) -> bool {
        self.patience().is_some_and(|left| left.is_zero())
    }

    /// How long those under way may say nothing until all of them are silent.
    fn until_silent(&self) -> Option<Duration> {
        let silence = &self.shared.silence;
        let left = self.under_way.iter().map(|asked| silence.left(&asked.candidate.node));
        let longest = left.max().flatten()?;
        Some(match self.last_was_silent {
            true => longest.max(silence.timeout().saturating_sub(self.since_last())),
            false => longest,
        })
    }

    fn are_silent(&self) -> bool {
        let silence = &self.shared.silence;
        let mut asked = self.under_way.iter();
        let has_had_time = !self.last_was_silent || self.since_last() >= silence.timeout();
        has_had_time && asked.all(|asked| silence.is_silent(&asked.candidate.node))
    }

    fn since_last(&self) -> Duration {
        self.shared.world.clock.elapsed().saturating_sub(self.last)
    }
}

/// The first of those under way that has answered, or failed to.
async fn first(under_way: &mut Vec<UnderWay<'_>>) -> ReadAnswer {
    poll_fn(|context| {
        for place in 0..under_way.len() {
            if let Poll::Ready(response) = under_way[place].answer.as_mut().poll(context) {
                let UnderWay { candidate, .. } = under_way.swap_remove(place);
                return Poll::Ready((candidate, response));
            }
        }
        Poll::Pending
    })
    .await
}
