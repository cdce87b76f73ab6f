//! One event: its entry is read, posted, and taken out.
//!
//! Always holds: only an answer of 2xx is a delivery; a redirect is a refusal, and is not followed; a secret is in no
//! log; a target gets events of accounts that it serves now, not of those that it served when they were noted.

use super::intent::{IntentFate, X_NEWEST, look};
use super::target::{EntryOutcome, TargetRun, Webhook};
use crate::internal_client::{InternalRequest, UnexpectedStatus};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use http::{Method, Request};
use notification::{LARGEST_ENTRY, QueuedEvent, SIGNATURE, SIGNED_AT, WrittenFacts, document, noted_at, sign};
use peer::PeerError;
use std::time::Duration;
use vocabulary::{EntityPath, Timestamp};

/// Bytes of a target's answer that are passed over for the next event to go on the same connection.
const LONGEST_ANSWER: u64 = 1 << 20;

/// What an object has that was encrypted, where a gateway does not decrypt.
const CRYPTO_META: HeaderName = HeaderName::from_static("x-object-sysmeta-crypto-body-meta");

/// An entry of the queue as it was read.
struct ReadEntry {
    bytes: Bytes,
    is_encrypted: bool,
}

/// How a delivery failed.
enum PostFailure {
    /// The target does not answer, or says that it is too busy: others would fare no better.
    Target(String),
    /// It answers, and does not take this event.
    Refused(String),
    /// The connection broke; the event may be the reason.
    Broken(String),
}

impl TargetRun {
    /// Does what there is to do about the entry `name`.
    pub(super) async fn see_to(&self, container: &EntityPath, name: &str) -> EntryOutcome {
        let elapsed = self.shared.world.clock.elapsed();
        if self.pauses.is_paused(elapsed) || self.pauses.has_event(name, elapsed) {
            return EntryOutcome::Waiting;
        }
        if self.hook.is_none() && !self.is_old(noted_at(name)) {
            return EntryOutcome::Waiting;
        }
        let place = container.with_object(name);
        let done = match self.read(&place, false).await {
            Ok(None) => return EntryOutcome::Gone,
            Ok(Some(read)) => match QueuedEvent::of_text(&read.bytes) {
                Some(entry) => self.see_to_event(&place, name, entry).await,
                None if read.is_encrypted => {
                    tracing::error!(
                        "{}: {} is encrypted; put keymaster and encryption into the pipeline of \
                         internal_client_conf_path, as the gateways have them. The event waits",
                        super::NAME,
                        place.path()
                    );
                    let most = self.shared.options.max_backoff;
                    self.pauses.event_failed(name, false, elapsed, most);
                    return EntryOutcome::Failed;
                }
                None => {
                    tracing::error!("{}: {} is no event", super::NAME, place.path());
                    self.fail(&place, name, None, true).await
                }
            },
            Err(error) => Err(error),
        };
        done.unwrap_or_else(|error| {
            tracing::warn!("{}: {error}; the event waits", super::NAME);
            let most = self.shared.options.max_backoff;
            self.pauses.event_failed(name, false, elapsed, most);
            EntryOutcome::Failed
        })
    }

    /// An entry; nothing when there is none.
    async fn read(&self, place: &EntityPath, newest: bool) -> Result<Option<ReadEntry>, UnexpectedStatus> {
        let mut get = InternalRequest::new(Method::GET, place.clone());
        if newest {
            get = get.with(X_NEWEST, "true");
        }
        let response = self.shared.client.ask(&get, &[2, 404]).await?;
        if !response.status().is_success() {
            return Ok(None);
        }
        Ok(Some(ReadEntry {
            is_encrypted: response.headers().contains_key(CRYPTO_META),
            // One that breaks off is none that can be read, and is tried again.
            bytes: response.into_body().collect(LARGEST_ENTRY).await.unwrap_or_default(),
        }))
    }

    async fn see_to_event(
        &self,
        place: &EntityPath,
        name: &str,
        mut entry: QueuedEvent,
    ) -> Result<EntryOutcome, UnexpectedStatus> {
        if entry.written.is_none() {
            match self.see_to_intent(place, name, &mut entry).await? {
                None => {}
                Some(outcome) => return Ok(outcome),
            }
        }
        let Some(hook) = &self.hook else {
            return self.fail(place, name, Some(&entry), false).await;
        };
        if !hook.serves(&entry.account) {
            self.note_failure("serves other accounts only");
            return self.fail(place, name, Some(&entry), false).await;
        }
        match self.post(hook, &entry).await {
            Ok(()) => {
                self.pauses.target_answered();
                self.take_out(place, name).await?;
                Ok(EntryOutcome::Delivered)
            }
            Err(PostFailure::Target(why)) => {
                let now = self.shared.world.clock.elapsed();
                self.pauses.target_failed(now, self.shared.options.max_backoff);
                self.note_failure(&why);
                self.fail(place, name, Some(&entry), false).await
            }
            Err(PostFailure::Broken(why)) => {
                self.note_failure(&why);
                self.fail(place, name, Some(&entry), false).await
            }
            Err(PostFailure::Refused(why)) => {
                self.pauses.target_answered();
                self.note_failure(&why);
                self.fail(place, name, Some(&entry), true).await
            }
        }
    }

    /// Says what is done about an intent, or makes an event of it.
    async fn see_to_intent(
        &self,
        place: &EntityPath,
        name: &str,
        entry: &mut QueuedEvent,
    ) -> Result<Option<EntryOutcome>, UnexpectedStatus> {
        let options = &self.shared.options;
        let age = self.age(entry.noted());
        if age < options.patience {
            return Ok(Some(EntryOutcome::Waiting));
        }
        // A replica may have missed that it was confirmed.
        let newest = self.read(place, true).await?;
        let newest = newest.and_then(|read| QueuedEvent::of_text(&read.bytes));
        match newest {
            None => return Ok(Some(EntryOutcome::Gone)),
            Some(newest) if newest.written.is_some() => {
                *entry = newest;
                return Ok(None);
            }
            Some(_) => {}
        }
        match look(&self.shared, entry).await? {
            IntentFate::Made(facts) => entry.written = Some(facts),
            IntentFate::Overtaken if age >= options.grace => entry.written = Some(WrittenFacts::default()),
            IntentFate::NotMade if age >= options.grace => {
                self.take_out(place, name).await?;
                return Ok(Some(EntryOutcome::Unmade));
            }
            IntentFate::Overtaken | IntentFate::NotMade => {
                let now = self.shared.world.clock.elapsed();
                let most = options.max_backoff.min(options.grace);
                self.pauses.event_failed(name, false, now, most);
                return Ok(Some(EntryOutcome::Waiting));
            }
        }
        Ok(None)
    }

    async fn post(&self, hook: &Webhook, entry: &QueuedEvent) -> Result<(), PostFailure> {
        let body = document(entry).to_string();
        let now = self.shared.world.clock.now().seconds();
        let mut request = Request::new(Bytes::from(body));
        *request.method_mut() = Method::POST;
        let signature = hook.secret.as_ref().map(|secret| sign(secret, now, request.body()));
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static("Martlet-Notifier"));
        headers.insert(SIGNED_AT, HeaderValue::from(now));
        if let Some(signature) = signature.and_then(|text| HeaderValue::try_from(text).ok()) {
            headers.insert(SIGNATURE, signature);
        }
        let patience = self.shared.options.request_timeout;
        let sent = self
            .shared
            .http
            .tell(&hook.url, request, LONGEST_ANSWER, patience)
            .await;
        match sent {
            Ok(status) if status.is_success() => Ok(()),
            Ok(status) => {
                let why = format!("answered {}", status.as_u16());
                Err(match status.as_u16() {
                    429 | 502..=504 => PostFailure::Target(why),
                    _ => PostFailure::Refused(why),
                })
            }
            Err(error @ (PeerError::Broken(_) | PeerError::Abandoned)) => Err(PostFailure::Broken(error.to_string())),
            Err(error) => Err(PostFailure::Target(error.to_string())),
        }
    }

    /// Leaves an entry for later, or drops it where it is too old or was refused too often.
    async fn fail(
        &self,
        place: &EntityPath,
        name: &str,
        entry: Option<&QueuedEvent>,
        is_refusal: bool,
    ) -> Result<EntryOutcome, UnexpectedStatus> {
        let options = &self.shared.options;
        let now = self.shared.world.clock.elapsed();
        let refusals = self.pauses.event_failed(name, is_refusal, now, options.max_backoff);
        let noted = entry.map(QueuedEvent::noted).or_else(|| noted_at(name));
        let is_old = self.is_old(noted);
        let is_refused = options.max_refusals > 0 && refusals >= options.max_refusals;
        if !is_old && !is_refused {
            return Ok(EntryOutcome::Failed);
        }
        self.take_out(place, name).await?;
        let why = match is_old {
            true => format!(
                "it is {} seconds old",
                noted.map_or(0, |noted| self.age(noted).as_secs())
            ),
            false => format!("the target refused it {refusals} times"),
        };
        let event = entry.map_or_else(String::new, |entry| document(entry).to_string());
        tracing::error!(
            "{}: event {name} for target {} is dropped: {why}: {event}",
            super::NAME,
            self.name
        );
        Ok(EntryOutcome::Dropped)
    }

    async fn take_out(&self, place: &EntityPath, name: &str) -> Result<(), UnexpectedStatus> {
        let delete = InternalRequest::new(Method::DELETE, place.clone());
        self.shared.client.tell(&delete, &[2, 404]).await?;
        self.pauses.event_over(name);
        Ok(())
    }

    /// Whether an event of this time is dropped once it fails.
    fn is_old(&self, noted: Option<Timestamp>) -> bool {
        let max_age = self.shared.options.max_age;
        !max_age.is_zero() && noted.is_some_and(|noted| self.age(noted) >= max_age)
    }

    fn age(&self, since: Timestamp) -> Duration {
        let age = self.shared.world.clock.now().as_f64() - since.as_f64();
        Duration::try_from_secs_f64(age).unwrap_or_default()
    }
}
