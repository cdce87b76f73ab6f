//! [`ListingRow`]: a row of a listing on its way, and the pending record of one that no container server took.

use crate::request::{ObjectRequest, text};
use http::{HeaderMap, HeaderName, HeaderValue};
use object_engine::{ListingUpdate, ListingUpdateRef, ObjectMetadata};
use peer::Target;
use peer::message::header_names::{RECORDED_POLICY_INDEX, STORED_UPDATE_OVERRIDE_PREFIX, UPDATE_OVERRIDE_PREFIX};
use peer::message::{HeaderField, HeaderText, RequestContext, RowChange, UpdateContainer, UpdateTargets};
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use vocabulary::header_name::title;
use vocabulary::names::unquote;
use vocabulary::{EntityPath, Partition, PathHash, PolicyIndex, Timestamp};

/// A row of a listing, on its way.
#[derive(Debug, Clone)]
pub(crate) struct ListingRow {
    /// The object's policy: chooses the directory of pending records.
    pub(crate) policy: PolicyIndex,
    /// Of `path`.
    pub(crate) hash: PathHash,
    pub(crate) timestamp: Timestamp,
    /// The row's own path.
    pub(crate) path: Arc<EntityPath>,
    /// `account/container` of the shard it belongs to.
    pub(crate) container_path: Option<String>,
    pub(crate) db_state: Option<String>,
    /// What is sent; its target has no device yet.
    pub(crate) update: UpdateContainer,
    pub(crate) context: RequestContext,
    /// Where it is sent; where none are named, the updater finds out later.
    pub(crate) servers: UpdateTargets,
}

impl ListingRow {
    /// The row of the request's own container; `None` when the gateway named no container server for this node.
    pub(crate) fn of_object(request: &ObjectRequest, change: RowChange, timestamp: Timestamp) -> Option<Self> {
        let targets = &request.rows;
        let servers = named(&targets.containers)?;
        let quoted = targets.quoted_container_path.as_ref().and_then(text);
        let quoted = quoted.and_then(|path| unquote(path).ok());
        let plain = || Some(targets.container_path.as_ref().and_then(text)?.to_owned());
        let container_path = quoted.or_else(plain).filter(|path| shard(path).is_some());
        let path = request.target.path.clone();
        Some(Self {
            policy: request.key.policy,
            hash: request.key.hash,
            timestamp,
            update: UpdateContainer {
                change,
                timestamp: timestamp.into(),
                policy: request.key.policy.into(),
                ..UpdateContainer::new(nowhere(row_path(&path, container_path.as_deref())))
            },
            path,
            container_path,
            db_state: targets.root_db_state.as_ref().and_then(text).map(str::to_owned),
            context: context(request),
            servers,
        })
    }

    /// The row of the expirer's queue for an object, yet to be sent nowhere.
    pub(crate) fn of_queue(
        request: &ObjectRequest,
        change: RowChange,
        timestamp: Timestamp,
        (path, hash): (EntityPath, PathHash),
    ) -> Self {
        let path = Arc::new(path);
        Self {
            policy: request.key.policy,
            hash,
            timestamp,
            update: UpdateContainer {
                change,
                timestamp: timestamp.into(),
                policy: PolicyIndex::LEGACY.into(),
                ..UpdateContainer::new(nowhere(path.clone()))
            },
            path,
            container_path: None,
            db_state: None,
            context: context(request),
            servers: UpdateTargets::Absent,
        }
    }

    /// What the listing is to show instead: headers for this purpose, and above them what was stored with the
    /// object for it.
    #[must_use]
    pub(crate) fn with_overrides<'h>(
        mut self,
        headers: impl IntoIterator<Item = &'h HeaderMap>,
        stored: &ObjectMetadata,
    ) -> Self {
        let mut replaced = HeaderMap::new();
        let mut replace = |name: &str, value: &[u8]| {
            if !name.is_empty()
                && let Ok(name) = HeaderName::try_from(format!("x-{name}"))
                && let Ok(value) = HeaderValue::from_bytes(value)
            {
                replaced.insert(name, value);
            }
        };
        for (name, value) in headers.into_iter().flatten() {
            if let Some(name) = name.as_str().strip_prefix(UPDATE_OVERRIDE_PREFIX) {
                replace(name, value.as_bytes());
            }
        }
        for (name, value) in stored.iter() {
            let starts = name.get(..STORED_UPDATE_OVERRIDE_PREFIX.len());
            if starts.is_some_and(|start| start.eq_ignore_ascii_case(STORED_UPDATE_OVERRIDE_PREFIX)) {
                replace(&name[STORED_UPDATE_OVERRIDE_PREFIX.len()..].to_ascii_lowercase(), value);
            }
        }
        if !replaced.is_empty() {
            let (target, change) = (self.update.target.clone(), self.update.change);
            let mut headers = self.update.encode();
            headers.extend(replaced);
            let update = UpdateContainer::decode(target, headers);
            self.update = UpdateContainer { change, ..update };
        }
        self
    }

    /// The message for a server of the container.
    pub(super) fn message(&self, device: &Arc<str>, partition: Partition) -> UpdateContainer {
        let mut update = self.update.clone();
        update.target.device = device.clone();
        update.target.partition = partition;
        update
    }

    /// As a record on the object's device; with the shard that a container server named.
    pub(super) fn pending(&self, shard: Option<String>) -> ListingUpdate {
        ListingUpdate::from(ListingUpdateRef {
            container_path: shard.as_deref().or(self.container_path.as_deref()),
            ..self.recorded()
        })
    }

    /// What a record says of it, in place.
    pub(super) fn recorded(&self) -> ListingUpdateRef<'_> {
        ListingUpdateRef {
            policy: self.policy,
            hash: self.hash,
            timestamp: self.timestamp,
            op: match self.update.change {
                RowChange::Delete => "DELETE",
                RowChange::Put | RowChange::Batch => "PUT",
            },
            account: &self.path.account,
            container: self.path.container.as_deref().unwrap_or_default(),
            object: self.path.object.as_deref().unwrap_or_default(),
            headers: self.headers(),
            container_path: self.container_path.as_deref(),
            db_state: self.db_state.as_deref(),
        }
    }

    /// The headers of a record, without the map that a request needs. The names are those of
    /// `peer::message::header_names`, spelled as [`title`] spells them.
    fn headers(&self) -> Vec<(Cow<'_, str>, Cow<'_, [u8]>)> {
        let (update, context) = (&self.update, &self.context);
        // As a header can be.
        let is_plain = |id: &&str| id.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte));
        let trans_id = context.trans_id.as_deref().filter(is_plain);
        let fields = [
            ("X-Timestamp", printed(&update.timestamp)),
            ("X-Trans-Id", trans_id.map(|id| id.as_bytes().into())),
            ("Referer", sent(&context.referer)),
            ("User-Agent", sent(&context.user_agent)),
            (RECORDED_POLICY_INDEX, printed(&update.policy)),
            ("X-Size", printed(&update.size)),
            ("X-Etag", sent(&update.etag)),
            ("X-Content-Type", sent(&update.content_type)),
            ("X-Content-Type-Timestamp", printed(&update.content_type_timestamp)),
            ("X-Meta-Timestamp", printed(&update.meta_timestamp)),
        ];
        let mut headers = Vec::with_capacity(fields.len() + update.headers.len());
        let fields = fields.into_iter();
        headers.extend(fields.filter_map(|(name, value)| Some((Cow::Borrowed(name), value?))));
        let others = update.headers.iter();
        headers.extend(others.map(|(name, value)| (title(name.as_str()).into(), value.as_bytes().into())));
        headers
    }
}

/// The bytes of a field.
fn printed<T: HeaderText>(field: &HeaderField<T>) -> Option<Cow<'_, [u8]>> {
    match field {
        HeaderField::Absent => None,
        HeaderField::Malformed(text) => Some(text.as_bytes().into()),
        HeaderField::Value(value) => Some(value.print().as_bytes().to_vec().into()),
    }
}

fn sent(value: &Option<HeaderValue>) -> Option<Cow<'_, [u8]>> {
    value.as_ref().map(|value| value.as_bytes().into())
}

/// The servers named for a row; `None` when there are none, or when the lists do not belong together.
pub(crate) fn named(targets: &UpdateTargets) -> Option<UpdateTargets> {
    match targets {
        UpdateTargets::Absent => None,
        UpdateTargets::Mismatched { hosts, devices } => {
            tracing::error!("{hosts} container hosts but {devices} devices: no listing update");
            None
        }
        nodes => Some(nodes.clone()),
    }
}

/// `account/container`.
pub(super) fn shard(path: &str) -> Option<EntityPath> {
    let path = EntityPath::split(path).ok()?;
    (path.container.is_some() && path.object.is_none()).then_some(path)
}

/// Where the row stands: in the shard's listing when it has one.
fn row_path(path: &Arc<EntityPath>, container_path: Option<&str>) -> Arc<EntityPath> {
    match container_path.and_then(shard) {
        Some(container) => Arc::new(container.with_object(path.object.clone().unwrap_or_default())),
        None => path.clone(),
    }
}

fn nowhere(path: Arc<EntityPath>) -> Target {
    static NO_DEVICE: OnceLock<Arc<str>> = OnceLock::new();
    Target {
        device: NO_DEVICE.get_or_init(|| "".into()).clone(),
        partition: Partition::default(),
        path,
    }
}

fn context(request: &ObjectRequest) -> RequestContext {
    RequestContext {
        trans_id: Some(request.context.trans_id.clone().unwrap_or_else(no_trans_id)),
        user_agent: Some(user_agent()),
        referer: request.referer(),
        ..RequestContext::default()
    }
}

fn no_trans_id() -> Arc<str> {
    "-".into()
}

/// The name of this program as the sender of rows.
pub(super) fn user_agent() -> HeaderValue {
    static AGENT: OnceLock<HeaderValue> = OnceLock::new();
    let make = || HeaderValue::from_str(&format!("object-server {}", std::process::id()));
    let agent = AGENT.get_or_init(|| make().unwrap_or(HeaderValue::from_static("object-server")));
    agent.clone()
}
