//! Notifications of buckets: every write of an object that a bucket's rules are about leaves an event in the queue.
//!
//! It stands right in front of `versioned_writes`, so that writes of either API, copies, forms, archives and manifests
//! come by as the one PUT or DELETE of the object that they are. A write that fits a rule is noted as an intent first
//! (`queue_writes.rs`), then made, then its entry is written again with what is known of it; after that the client has
//! its answer. container-notifier (`upkeep`) delivers the entries, and finds out what became of intents.
//! Always holds: a write is acknowledged only when its event is in the queue, on as many replicas as the write
//! itself; a gateway that dies in between leaves the intent, which the object's mark ([`EVENT_MARK`]) confirms or not;
//! no client makes entries without the right to write; a target has one entry of a write, however many rules fit;
//! requests of buckets without rules cost a look at what the gateway knows of the container anyhow.
//! In container-lifecycle's own gateway it is about what lifecycle rules delete, and nothing else.
//! Deliberately absent: what object-expirer deletes, which passes no gateway; the rules' meaning (`notification`),
//! their XML (`s3`).
//! Tests: `tests.rs`, `tests/clients/test_boto3_notifications.py`.

mod queue_writes;
mod targets;

use crate::access::authorised;
use crate::context::FeatureContext;
use crate::large_objects::slo::{ETAG_AT, SIZE_AT, STATIC_LARGE_OBJECT};
use http::header::{CONTENT_LENGTH, ETAG};
use http::{HeaderMap, Method};
pub use notification::QUEUE_ACCOUNT;
use notification::{CONFIGURATION, EVENT_MARK, NotificationRules, ObjectEvent, QueuedEvent, WrittenFacts};
use peer::message::header_names::{X_LEAVE_MARKER, X_LIFECYCLE};
use queue_writes::{PlacedEntry, take_back_all, write_all};
use request_pipeline::watched::{End, Watcher, watch};
use request_pipeline::{
    ClientRequest, ContainerInfo, Feature, Next, Response, StoredAgain, WriteOrigin, WriteTimeSlot, is_true, reply,
};
use s3::NotificationTargetNames;
use settings::declare::Options;
use settings::{S3ApiSettings, SettingsError};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
pub use targets::WatchedTargets;
use vocabulary::conditional::bare_etag;
use vocabulary::{EntityPath, Timestamp};
use world::World;

/// What a copy in S3's form gives a manifest as its tag.
const S3_ETAG: &str = "x-object-sysmeta-s3api-etag";
const VERSION_ID: &str = "x-object-version-id";
/// System metadata of a container that keeps versions.
const VERSIONS_ENABLED: &str = "versions-enabled";

/// See the module.
pub struct BucketNotifications {
    targets: Arc<WatchedTargets>,
    /// The hidden account of the queue.
    queue: String,
    region: String,
    /// Only what lifecycle rules delete is an event.
    is_of_lifecycle: bool,
    world: World,
}

/// What a request is to a bucket's rules.
struct Noticed {
    entity: Arc<EntityPath>,
    event: ObjectEvent,
    /// The version that a deletion names.
    version: Option<String>,
    /// Number, target and id of the first rule of each target.
    rules: Vec<(usize, String, String)>,
}

impl BucketNotifications {
    /// As a gateway is configured.
    pub(crate) fn read(context: &FeatureContext<'_>) -> Result<Self, SettingsError> {
        let region = match context.conf.pipeline.filter("s3api") {
            Some(filter) => S3ApiSettings::read(&filter.options)?.location,
            None => S3ApiSettings::default().location,
        };
        let targets = Arc::new(WatchedTargets::new(
            &context.conf.common.swift_dir,
            context.world.clone(),
        ));
        let hidden = &context.swift.auto_create_account_prefix;
        Ok(Self::new(targets, hidden, region, context.world.clone()))
    }

    /// `hidden` is what hidden accounts begin with, `region` what records of events say.
    pub fn new(targets: Arc<WatchedTargets>, hidden: &str, region: String, world: World) -> Self {
        Self {
            targets,
            queue: format!("{hidden}{QUEUE_ACCOUNT}"),
            region,
            is_of_lifecycle: false,
            world,
        }
    }

    /// For upkeep's own gateway.
    pub(crate) fn of_lifecycle(self) -> Self {
        Self {
            is_of_lifecycle: true,
            ..self
        }
    }

    fn entries(&self, noticed: &Noticed, request: &ClientRequest, next: &Next) -> Vec<PlacedEntry> {
        let mut random = [0; 16];
        self.world.random.fill(&mut random);
        let noted = next.info().write_time().unwrap_or_else(|| self.world.clock.now());
        let user = request.notes.read().user.clone();
        let event = QueuedEvent {
            id: vocabulary::hex::encode(random),
            account: noticed.entity.account.clone(),
            bucket: noticed.entity.container.clone().unwrap_or_default(),
            key: noticed.entity.object.clone().unwrap_or_default(),
            event: noticed.event,
            rule: String::new(),
            noted: noted.ticks(),
            written: None,
            version: noticed.version.clone(),
            region: self.region.clone(),
            request: request.trans_id.to_string(),
            user: user.unwrap_or_default(),
            from: request.from.ip().to_string(),
        };
        let of_rule = |(number, target, rule): &(usize, String, String)| {
            let event = QueuedEvent {
                rule: rule.clone(),
                ..event.clone()
            };
            PlacedEntry::new(&self.queue, target, *number, event)
        };
        noticed.rules.iter().map(of_rule).collect()
    }

    /// Intent, write, event.
    async fn announce(
        &self,
        noticed: Noticed,
        mut request: ClientRequest,
        info: &ContainerInfo,
        next: Next,
    ) -> Response {
        if let Err(refusal) = authorised::check(&request, next.info(), info.write_acl.clone()).await {
            return refusal;
        }
        let mut entries = self.entries(&noticed, &request, &next);
        // Everything that goes to the queue is asked in the name of this.
        let template = request.without_body();
        if let Err(error) = write_all(&entries, &template, &next).await {
            tracing::error!(
                "the event of {} was not queued: {error}; nothing was written",
                request.path
            );
            take_back_all(&entries, &template, &next).await;
            return reply::status_for(&request.method, 503);
        }
        let slot = WriteTimeSlot::default();
        request.extensions.insert(slot.clone());
        let counted = Arc::new(AtomicU64::new(0));
        if request.method == Method::PUT {
            if let Some(entry) = entries.first() {
                request.set_header(EVENT_MARK, &entry.event.id);
            }
            if !request.headers.contains_key(CONTENT_LENGTH) {
                request.body = watch(request.body, None, Counted(counted.clone()));
            }
        }
        let sent = request.headers.clone();
        let response = next.clone().run(request).await;
        if !has_happened(noticed.event, &response) {
            // After an error of the cluster's own the write may have been made all the same.
            if response.status().is_client_error() {
                take_back_all(&entries, &template, &next).await;
            }
            return response;
        }
        let facts = facts(&sent, &response, slot.latest(), &counted);
        for entry in &mut entries {
            entry.event.written = Some(facts.clone());
        }
        match write_all(&entries, &template, &next).await {
            Ok(()) => response,
            Err(error) => {
                tracing::error!("the event of {} was not confirmed: {error}", template.path);
                reply::status_for(&template.method, 503)
            }
        }
    }
}

/// Counts a body of undeclared length.
struct Counted(Arc<AtomicU64>);

impl Watcher for Counted {
    fn passed(&mut self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
    fn ended(&mut self, _how: End) {}
}

/// Whether the answer says that the write was made. A deletion that finds nothing is one, too: it may be the later of
/// itself and a write under way, which it then takes away. A delete marker may be the first that there is of its key. A
/// lifecycle rule deletes what has been there.
fn has_happened(event: ObjectEvent, response: &Response) -> bool {
    let finds_nothing = match event {
        ObjectEvent::DeleteMarkerCreated => response.headers().contains_key(VERSION_ID),
        ObjectEvent::Delete => true,
        _ => false,
    };
    response.status().is_success() || (finds_nothing && response.status() == 404)
}

/// What is known of a write, from what was sent and what was answered.
fn facts(sent: &HeaderMap, response: &Response, at: Option<Timestamp>, counted: &AtomicU64) -> WrittenFacts {
    let text = |headers: &HeaderMap, name: &str| headers.get(name)?.to_str().ok().map(str::to_owned);
    let declared = [SIZE_AT, CONTENT_LENGTH.as_str()]
        .iter()
        .find_map(|name| text(sent, name)?.parse().ok());
    // A copy sends it empty, where its source was not made of parts.
    let own_etag = text(sent, S3_ETAG).filter(|etag| !etag.is_empty());
    // What is answered here is the tag of the manifest.
    let large_etag = || text(sent, ETAG_AT).map(|etag| notification::shown_of_large(&etag));
    let etag = own_etag.or_else(large_etag);
    let etag = etag.or_else(|| text(response.headers(), ETAG.as_str()));
    let version = text(response.headers(), VERSION_ID);
    let of_version = || version.as_deref()?.parse().ok();
    WrittenFacts {
        at: at.or_else(of_version).map(Timestamp::ticks),
        size: Some(declared.unwrap_or_else(|| counted.load(Ordering::Relaxed))),
        etag: etag.map(|etag| bare_etag(&etag).to_owned()),
        version,
    }
}

/// Which event the write of an object would be; nothing where it is part of another operation.
fn event_of(request: &ClientRequest, info: &ContainerInfo, version: Option<&str>) -> Option<ObjectEvent> {
    if request.extensions.get::<StoredAgain>().is_some() {
        return None;
    }
    let origin = request.extensions.get::<WriteOrigin>();
    match (&request.method, origin) {
        (_, Some(WriteOrigin::Inner)) => None,
        (&Method::DELETE, _) => {
            let keeps = info.sysmeta.get(VERSIONS_ENABLED).is_some_and(|text| is_true(text));
            let keeps = keeps || info.bucket_lock().is_some();
            let is_of_rule = request.headers.contains_key(X_LIFECYCLE);
            let leaves_marker = version.is_none() && (keeps || request.headers.contains_key(X_LEAVE_MARKER));
            Some(match (leaves_marker, is_of_rule) {
                (true, false) => ObjectEvent::DeleteMarkerCreated,
                (false, false) => ObjectEvent::Delete,
                (true, true) => ObjectEvent::LifecycleDeleteMarkerCreated,
                (false, true) => ObjectEvent::LifecycleDelete,
            })
        }
        (_, Some(WriteOrigin::Copy)) => Some(ObjectEvent::Copy),
        (_, Some(WriteOrigin::Post)) => Some(ObjectEvent::Post),
        _ if request.headers.contains_key(STATIC_LARGE_OBJECT) => Some(ObjectEvent::CompleteMultipartUpload),
        _ => Some(ObjectEvent::Put),
    }
}

/// What a write is to the rules of its bucket; nothing where it fits none of a target that serves the account.
fn notice(
    targets: &WatchedTargets,
    request: &ClientRequest,
    entity: Arc<EntityPath>,
    info: &ContainerInfo,
) -> Option<Noticed> {
    let stored = info.sysmeta.get(CONFIGURATION).filter(|stored| !stored.is_empty())?;
    let version = match request.query.is_empty() {
        true => None,
        false => request.param("version-id").and_then(Result::ok),
    };
    let version = version.filter(|version| !version.is_empty());
    let event = event_of(request, info, version.as_deref())?;
    let rules = NotificationRules::of_text(stored)
        .inspect_err(|error| tracing::error!("{}: {error}; nobody is notified", entity.path()))
        .ok()?;
    let key = entity.object.as_deref().unwrap_or_default();
    let fitting = rules
        .rules
        .into_iter()
        .enumerate()
        .filter(|(_, rule)| rule.fits(event, key));
    // Configurations that were stored before such were refused have rules that overlap. A target hears of it once.
    let mut noticed = BTreeSet::new();
    let rules: Vec<_> = fitting
        .filter_map(|(number, rule)| Some((number, rule.target()?.to_owned(), rule.id)))
        .filter(|(_, target, _)| noticed.insert(target.clone()) && !targets.refuses(target, &entity.account))
        .collect();
    (!rules.is_empty()).then_some(Noticed {
        entity,
        event,
        version: version.filter(|_| request.method == Method::DELETE),
        rules,
    })
}

#[async_trait::async_trait]
impl Feature for BucketNotifications {
    fn name(&self) -> &'static str {
        "bucket_notifications"
    }

    fn wants(&self, request: &ClientRequest) -> bool {
        let writes = match self.is_of_lifecycle {
            true => request.method == Method::DELETE && request.headers.contains_key(X_LIFECYCLE),
            false => matches!(request.method, Method::PUT | Method::DELETE),
        };
        writes && request.entity.as_ref().is_some_and(|entity| entity.object.is_some()) && self.targets.is_any()
    }

    async fn handle(&self, request: ClientRequest, next: Next) -> Response {
        let Some(entity) = request.entity.clone() else {
            return next.run(request).await;
        };
        let container = entity.container.as_deref().unwrap_or_default();
        let info = next.info().container(&entity.account, container).await;
        match notice(&self.targets, &request, entity, &info) {
            None => next.run(request).await,
            Some(noticed) => Box::pin(self.announce(noticed, request, &info, next)).await,
        }
    }
}

#[cfg(test)]
mod tests;
