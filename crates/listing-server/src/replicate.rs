//! REPLICATE: what replicators ask of the other replicas of a database.
//!
//! | operation | done |
//! |---|---|
//! | `sync` | answers what this replica has; takes over timestamps, metadata and policy where the other's are newer |
//! | `merge_items`, `merge_syncs` | rows; up to which rows everything is known |
//! | `complete_rsync`, `rsync_then_merge` | a whole database is in `tmp`: it becomes this one, or takes it along |
//! | `get_shard_ranges`, `merge_shard_ranges` | containers only |
//!
//! The path is `/device/partition/hash`, the body a JSON list that begins with the operation. A database
//! may also be sent in the body of a request with [`ReplicateDatabase::database`]: then no rsync is needed. Answers
//! to `sync` offer that with [`X_MARTLET_TAKES`]; OpenStack's replicators overlook it. Rows name the replica that they
//! are for: one that has taken its place since the comparison, on a new drive, lacks what came before them.
//! Always holds: a body is read up to a limit, and only while it keeps a rate (`min_transfer_rate`); arguments take a
//! bounded part of the memory, whatever they say and however many come at a time; a name in them leads to no file
//! outside `tmp`; a database of another account or container is not taken in.

use crate::devices::{ListingDevice, check_room};
use crate::refusal::refusal_of;
use crate::state::{BODY_PATIENCE, ListingServerState};
use bytes::BytesMut;
use http::StatusCode;
use listing_engine::wire::{Numbered, Summary, ascii};
use listing_engine::{
    Arriving, Broker, CopyIdentity, Direction, Error, Info, Kind, Location, ShardRange, SyncPoint, adopt,
};
use peer::message::ReplicateDatabase;
use peer::message::header_names::X_MARTLET_TAKES;
use peer::{Body, BodyError, OFFER_VALUE, PartitionTarget, Response};
use serde_json::Value;
use std::sync::Arc;
use storage_shell::{MinimumRate, Refusal, page, put, run_detached, whole};
use vocabulary::{Partition, PathHash};

/// The most bytes of an operation's arguments.
const MAX_ARGUMENTS: u64 = 64 << 20;
/// Bytes of a database written at a time.
const PIECE: usize = 1 << 20;

/// Answers one REPLICATE.
pub(crate) async fn replicate(
    state: &Arc<ListingServerState>,
    message: ReplicateDatabase,
    body: Body,
) -> Result<Response, Refusal> {
    let PartitionTarget {
        device,
        partition,
        rest,
    } = message.target;
    if rest.is_empty() || rest.contains('/') {
        return Err(Refusal::bad_request(format!(
            "Invalid path: /{device}/{partition}/{rest}"
        )));
    }
    let place = DatabaseAddress {
        device,
        partition,
        hash: PathHash::from_hex(&rest),
    };
    let rate = MinimumRate {
        bytes: state.options.min_transfer_rate,
        window: BODY_PATIENCE,
    };
    let body = rate.watch(&state.world, body);
    if let Some(name) = message.database.as_ref().and_then(|name| name.to_str().ok()) {
        return take_database(state, place, name.to_owned(), body).await;
    }
    let whole = state.whole_bodies.collect(&state.world, body, MAX_ARGUMENTS).await?;
    let room = state.whole_bodies.room_for_values(&whole)?;
    let args: Value = serde_json::from_slice(&whole.bytes).map_err(|error| Refusal::bad_request(error.to_string()))?;
    drop(whole);
    let Value::Array(mut args) = args else {
        return Err(Refusal::bad_request("Invalid object type"));
    };
    let operation = match args.is_empty() {
        true => return Err(wrong("no operation")),
        false => args.remove(0),
    };
    let work = {
        let state = state.clone();
        async move {
            let _room = room;
            perform(&state, place, operation.as_str().unwrap_or_default().to_owned(), args).await
        }
    };
    // A caller that loses its patience does not leave half of a merge.
    run_detached(&state.world, work).await
}

struct DatabaseAddress {
    device: Arc<str>,
    partition: Partition,
    /// `None` for what is no hash: there is nothing of such a name.
    hash: Option<PathHash>,
}

impl DatabaseAddress {
    fn location(&self, state: &ListingServerState, device: &ListingDevice) -> Result<Location, Refusal> {
        let hash = self.hash.ok_or_else(|| Refusal::not_found(None))?;
        Ok(Location::new(
            device.engine().root().clone(),
            state.kind,
            self.partition,
            hash,
        ))
    }
}

/// What an operation works on, on a worker of its device.
struct ReplicaJob<'b> {
    state: &'b ListingServerState,
    device: &'b ListingDevice,
    location: Location,
}

async fn perform(
    state: &Arc<ListingServerState>,
    place: DatabaseAddress,
    operation: String,
    args: Vec<Value>,
) -> Result<Response, Refusal> {
    let server = state.clone();
    let device = place.device.clone();
    let job = move |device: &ListingDevice| {
        let job = ReplicaJob {
            state: &server,
            device,
            location: place.location(&server, device)?,
        };
        job.perform(&operation, args)
    };
    state.run_on(&device, job).await
}

impl ReplicaJob<'_> {
    fn perform(&self, operation: &str, args: Vec<Value>) -> Result<Response, Refusal> {
        let container = self.state.kind == Kind::Container;
        if !matches!(operation, "complete_rsync" | "rsync_then_merge") {
            // OpenStack's replicators may have rsync put a database there next, which makes no directories.
            self.location.make_tmp().map_err(|error| self.refuse(&error))?;
        }
        match operation {
            "complete_rsync" => self.complete_rsync(&args),
            "rsync_then_merge" => self.rsync_then_merge(&args),
            "sync" => self.sync(&args),
            "merge_items" => self.merge_items(&args),
            "merge_syncs" => self.merge_syncs(&args),
            "get_shard_ranges" if container => self.get_shard_ranges(),
            "merge_shard_ranges" if container => self.merge_shard_ranges(&args),
            other => {
                self.open()?;
                Err(wrong(&format!("{other:?} is no operation of replicas")))
            }
        }
    }

    fn open(&self) -> Result<Arc<Broker>, Refusal> {
        let opened = self.state.brokers.open(&self.location);
        opened.map_err(|error| match error {
            // A replicator that wanted to compare finds nothing, and sends what it has.
            Error::NotFound { .. } | Error::Quarantined { .. } => self.nothing_here(&error),
            other => self.refuse(&other),
        })
    }

    fn nothing_here(&self, error: &Error) -> Refusal {
        if matches!(error, Error::Quarantined { .. }) {
            tracing::error!("{error}");
        }
        let mut response = page(StatusCode::NOT_FOUND);
        put(&mut response, X_MARTLET_TAKES, OFFER_VALUE);
        Refusal::Whole(Box::new(response))
    }

    fn refuse(&self, error: &Error) -> Refusal {
        match error {
            // It went after it had been opened: a handoff's, which has been brought to its primaries.
            Error::NotFound { .. } | Error::Quarantined { .. } => self.nothing_here(error),
            other => refusal_of(other, self.device.name()),
        }
    }

    fn sync(&self, args: &[Value]) -> Result<Response, Refusal> {
        let broker = self.open()?;
        let theirs = Summary::from_sync(args).ok_or_else(|| wrong("sync: a summary was expected"))?;
        let summary = self.compare(&broker, &theirs).map_err(|error| self.refuse(&error))?;
        let mut response = whole(StatusCode::OK, "text/html; charset=UTF-8", ascii(&summary));
        put(&mut response, X_MARTLET_TAKES, OFFER_VALUE);
        Ok(response)
    }

    /// Answers what is here, and takes over what is newer there.
    fn compare(&self, broker: &Broker, theirs: &Summary) -> Result<Value, Error> {
        let now = self.state.world.clock.now();
        let (before, mut mine) = broker.learn(theirs, now)?;
        if before.summary.metadata != mine.summary.metadata {
            self.keep_sync_link(broker);
        }
        let mut point = broker.sync_point(&theirs.id, Direction::Incoming)?;
        if mine.summary.hash == theirs.hash && point < theirs.max_row {
            point = theirs.max_row;
            let known = SyncPoint {
                remote_id: theirs.id.clone(),
                point,
            };
            broker.merge_sync_points(&[known], Direction::Incoming)?;
        }
        mine.summary.point = point;
        let state = broker.sharding_state()?;
        Ok(mine.summary.to_answer(&mine.info, state))
    }

    fn merge_items(&self, args: &[Value]) -> Result<Response, Refusal> {
        let broker = self.open()?;
        let [Value::Array(items), source, ..] = args else {
            return Err(wrong("merge_items: rows and their source were expected"));
        };
        let source = source
            .as_str()
            .ok_or_else(|| wrong("merge_items: a source was expected"))?;
        self.check_is_meant(&broker, args.get(2))?;
        let (mut rows, mut skipped) = (Vec::with_capacity(items.len()), vec![]);
        for item in items {
            let id = item.get("ROWID").and_then(Value::as_i64);
            let id = id.ok_or_else(|| wrong("merge_items: an item is no row"))?;
            match Numbered::from_json(self.state.kind, item) {
                Some(row) => rows.push(row),
                // What cannot be a row here keeps no other from coming.
                None => skipped.push(id),
            }
        }
        if let Some(first) = skipped.first() {
            tracing::warn!(
                "{}: {} rows of {source:?} are skipped, the first of them ROWID {first}: no name, time or policy",
                broker.location().db_file().display(),
                skipped.len()
            );
        }
        check_room(self.device)?;
        let merged = broker.merge_rows_from(rows, source);
        merged.map_err(|error| self.refuse(&error))?;
        Ok(page(StatusCode::ACCEPTED))
    }

    /// Refuses what is for another replica than this one; OpenStack's replicators name none.
    fn check_is_meant(&self, broker: &Broker, id: Option<&Value>) -> Result<(), Refusal> {
        let meant = id
            .and_then(Value::as_str)
            .map_or(Ok(()), |id| broker.check_is_still(id));
        meant.map_err(|error| self.refuse(&error))
    }

    fn merge_syncs(&self, args: &[Value]) -> Result<Response, Refusal> {
        let broker = self.open()?;
        let points = listed(args, SyncPoint::from_json).ok_or_else(|| wrong("merge_syncs: points were expected"))?;
        self.check_is_meant(&broker, args.get(1))?;
        let merged = broker.merge_sync_points(&points, Direction::Incoming);
        merged.map_err(|error| self.refuse(&error))?;
        Ok(page(StatusCode::ACCEPTED))
    }

    fn get_shard_ranges(&self) -> Result<Response, Refusal> {
        let ranges = self.open()?.shard_ranges().map_err(|error| self.refuse(&error))?;
        let ranges: Vec<Value> = ranges.iter().map(ShardRange::to_json).collect();
        Ok(whole(StatusCode::OK, "application/json", ascii(&Value::Array(ranges))))
    }

    fn merge_shard_ranges(&self, args: &[Value]) -> Result<Response, Refusal> {
        let broker = self.open()?;
        let ranges =
            listed(args, ShardRange::from_json).ok_or_else(|| wrong("merge_shard_ranges: ranges were expected"))?;
        let merged = broker.merge_shard_ranges(&ranges);
        merged.map_err(|error| self.refuse(&error))?;
        Ok(page(StatusCode::ACCEPTED))
    }

    fn complete_rsync(&self, args: &[Value]) -> Result<Response, Refusal> {
        let (name, unique) = (text(args, 0)?, self.state.unique());
        let identity = CopyIdentity { name, unique: &unique };
        let file = args.get(1).and_then(Value::as_str);
        let adopted = adopt(&self.location, file, identity, |info| self.belongs(info));
        adopted.map_err(|error| self.refuse(&error))?;
        self.keep_sync_link(&*self.open()?);
        Ok(page(StatusCode::NO_CONTENT))
    }

    fn rsync_then_merge(&self, args: &[Value]) -> Result<Response, Refusal> {
        let (name, unique) = (text(args, 0)?, self.state.unique());
        let broker = self.open()?;
        let identity = CopyIdentity { name, unique: &unique };
        let replaced = broker.replace_with(identity, |info| self.belongs(info));
        replaced.map_err(|error| self.refuse(&error))?;
        self.keep_sync_link(&broker);
        Ok(page(StatusCode::NO_CONTENT))
    }

    /// Metadata may have come along. What fails is made good by the replicator of this server.
    fn keep_sync_link(&self, broker: &Broker) {
        if let Err(error) = broker.keep_sync_link() {
            tracing::error!("{}: {error}", self.location.db_file().display());
        }
    }

    /// Whether a database of this account or container belongs in this place.
    fn belongs(&self, info: &Info) -> bool {
        let prefix = &self.state.options.hash_prefix;
        let hash = match &info.container {
            None => prefix.account(&info.account),
            Some(container) => prefix.container(&info.account, container),
        };
        hash == self.location.hash()
    }
}

/// Writes the body to `tmp`; 201. What becomes of it a second request says.
async fn take_database(
    state: &Arc<ListingServerState>,
    place: DatabaseAddress,
    name: String,
    mut body: Body,
) -> Result<Response, Refusal> {
    let server = state.clone();
    let name_of_device = place.device.clone();
    let begin = move |device: &ListingDevice| {
        check_room(device)?;
        let location = place.location(&server, device)?;
        let (name, unique) = (name.as_str(), server.unique());
        let identity = CopyIdentity { name, unique: &unique };
        Arriving::begin(&location, identity).map_err(|error| refusal_of(&error, device.name()))
    };
    let mut arriving = state.run_on(&name_of_device, begin).await?;
    loop {
        let (piece, over) = next_piece(&mut body)
            .await
            .map_err(|error| Refusal::unreadable(&error))?;
        let write = move |device: &ListingDevice| {
            check_room(device)?;
            let written = arriving.write(&piece);
            let refuse = |error: Error| refusal_of(&error, device.name());
            written.map_err(refuse)?;
            match over {
                true => arriving.finish().map(|()| None).map_err(refuse),
                false => Ok(Some(arriving)),
            }
        };
        match state.run_on(&name_of_device, write).await? {
            Some(more) => arriving = more,
            None => return Ok(page(StatusCode::CREATED)),
        }
    }
}

/// The next bytes, and whether they are the last.
async fn next_piece(body: &mut Body) -> Result<(BytesMut, bool), BodyError> {
    let mut piece = BytesMut::new();
    while piece.len() < PIECE {
        match body.next().await.transpose()? {
            None => return Ok((piece, true)),
            Some(chunk) => piece.extend_from_slice(&chunk),
        }
    }
    Ok((piece, false))
}

/// 408 for a sender that is too slow.
fn text(args: &[Value], at: usize) -> Result<&str, Refusal> {
    let found = args.get(at).and_then(Value::as_str);
    found.ok_or_else(|| wrong("the name of a file was expected"))
}

/// The first argument as a list.
fn listed<T>(args: &[Value], read: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    args.first()?.as_array()?.iter().map(read).collect()
}

/// What OpenStack answers with a traceback.
fn wrong(why: &str) -> Refusal {
    Refusal::Text(StatusCode::INTERNAL_SERVER_ERROR, why.to_owned())
}
