//! [`Upload`]: a PUT that was accepted, from its body to the listing rows.
//!
//! Bodies that came whole are written as a batch, often of one; a long one streams through a [`Sink`].
//! The listing rows are known, and in the device's intent log, before the object is published.
//! Always holds: once the bytes are there the rest happens whether or not the sender still waits, so that no object
//! lacks its listing row.

use crate::devices::ObjectDevice;
use crate::expiry::{self, ExpiryChange};
use crate::incoming::{BodyLimits, IncomingBody};
use crate::put_plan::{PriorObject, PutPlan};
use crate::refusal::refusal_of;
use crate::request::ObjectRequest;
use crate::sink::Sink;
use crate::state::ObjectServerState;
use crate::updates::{ListingRow, RecordedRows};
use crate::write_locks::Publishing;
use bytes::Bytes;
use futures_util::future::join;
use http::header::ETAG;
use http::{HeaderValue, StatusCode};
use md5::{Digest as _, Md5};
use object_engine::rules::{FileName, FilePart};
use object_engine::{Commit, EngineError, FoundObject, ObjectKey, ObjectMetadata, OpenOptions};
use peer::message::RowChange;
use peer::{Body, Digest, Response};
use std::sync::Arc;
use std::time::Duration;
use storage_shell::{Lane, Refusal, empty, header_value, run_detached};
use vocabulary::hex;

/// A PUT that was accepted.
pub(crate) struct Upload {
    pub(crate) state: Arc<ObjectServerState>,
    pub(crate) request: ObjectRequest,
    pub(crate) plan: PutPlan,
}

/// An upload whose body is here.
pub(crate) struct WholeUpload {
    pub(crate) upload: Upload,
    pub(crate) body: Bytes,
    /// The body's MD5, where the sender in this process has computed it.
    pub(crate) md5: Option<String>,
}

/// What is to be published, and the rows that follow from it.
struct Publication {
    commit: Commit,
    etag: String,
    rows: Vec<ListingRow>,
    /// Where it is written under a lock: to be kept until it is published.
    lock: Option<Publishing>,
}

/// Writes bodies of objects that are all of one device and partition, each object once, and sends their listing rows.
/// The entity tags, in the same order.
pub(crate) async fn write_whole(
    state: &Arc<ObjectServerState>,
    device: &str,
    lane: Lane,
    uploads: Vec<WholeUpload>,
) -> Result<Vec<Result<String, Refusal>>, Refusal> {
    let device = state.devices.device(device, lane).await?;
    let job = move |device: &ObjectDevice| Ok::<_, Refusal>(write_batch(device, &uploads));
    let (etags, rows) = device.run(job).await?;
    state.updates.send(rows, &device).await?;
    Ok(etags)
}

/// Blocks.
fn write_batch(device: &ObjectDevice, uploads: &[WholeUpload]) -> (Vec<Result<String, Refusal>>, RecordedRows) {
    let engine = device.engine();
    let keys: Vec<ObjectKey> = uploads.iter().map(|whole| whole.upload.request.key.clone()).collect();
    let found = engine.open_all(&keys, OpenOptions::BEFORE_WRITE);
    let mut etags = Vec::with_capacity(uploads.len());
    let (mut writes, mut changes) = (Vec::with_capacity(uploads.len()), Vec::with_capacity(uploads.len()));
    let mut locks = Vec::new();
    for ((whole, key), found) in uploads.iter().zip(keys).zip(found) {
        etags.push(whole.publication(found, device).map(
            |Publication {
                 commit,
                 etag,
                 rows,
                 lock,
             }| {
                locks.extend(lock);
                changes.push((data_file(&commit), rows));
                writes.push((key, whole.body.clone(), commit));
                etag
            },
        ));
    }
    let changes = writes
        .iter()
        .zip(changes)
        .map(|((key, ..), (file, rows))| (key, file, rows));
    let mut rows = RecordedRows::record(&**engine, changes);
    let written = put_all(device, uploads, writes);
    drop(locks);
    let mut accepted = etags.iter_mut().zip(uploads).filter(|(etag, _)| etag.is_ok());
    for (number, written) in written.into_iter().enumerate() {
        let Some((etag, whole)) = accepted.next() else {
            break;
        };
        if let Err(error) = written {
            rows.drop_change(number);
            *etag = Err(refusal_of(&error, device));
        } else if let Err(refusal) = whole.upload.request.link(device) {
            // It is there, and so are its rows.
            *etag = Err(refusal);
        }
    }
    (etags, rows)
}

/// The time of an object that is written by itself is measured.
fn put_all(
    device: &ObjectDevice,
    uploads: &[WholeUpload],
    writes: Vec<(ObjectKey, Bytes, Commit)>,
) -> Vec<Result<(), EngineError>> {
    let ([WholeUpload { upload, body, .. }], [_]) = (uploads, &writes[..]) else {
        return device.engine().put_all(writes);
    };
    let clock = &upload.state.world.clock;
    let began = clock.elapsed();
    let written = device.engine().put_all(writes);
    let took = clock.elapsed().saturating_sub(began);
    measure(&upload.state, device.name(), body.len() as u64, took);
    written
}

fn data_file(commit: &Commit) -> FileName {
    FileName {
        timestamp: commit.timestamp,
        part: FilePart::Data,
    }
}

impl WholeUpload {
    fn publication(
        &self,
        found: Result<FoundObject, EngineError>,
        device: &ObjectDevice,
    ) -> Result<Publication, Refusal> {
        let upload = &self.upload;
        let prior = upload.plan.judge(found, device)?;
        let etag = match &self.md5 {
            Some(md5) => md5.clone(),
            None => hex::encode(Md5::digest(&self.body)),
        };
        let size = self.body.len() as u64;
        let publication = upload.publication(&prior, etag, size);
        // A body that is refused is counted as one that is written and taken back, which OpenStack's server does.
        publication.inspect_err(|_| measure(&upload.state, device.name(), size, Duration::ZERO))
    }
}

impl Upload {
    /// How the body arrives.
    pub(crate) fn incoming(&self, body: Body, length: Option<u64>) -> IncomingBody {
        let options = &self.state.options;
        let limits = BodyLimits {
            patience: options.client_timeout,
            whole: options.max_upload_time,
            bytes: options.limits.max_file_size,
        };
        IncomingBody::new(&self.state.world, body, length, limits).with_statsd(&options.statsd)
    }

    /// Receives the body, then looks and writes in one hop.
    pub(crate) async fn at_once(mut self, body: Body, length: Option<u64>) -> Result<Response, Refusal> {
        let (digest, footer) = (body.digest(), body.footer());
        let body = self.incoming(body, length).all().await?;
        self.take_footer(footer)?;
        let state = self.state.clone();
        run_detached(&state.world, self.write_at_once(body, digest)).await
    }

    async fn write_at_once(self, body: Bytes, digest: Option<Digest>) -> Result<Response, Refusal> {
        let (state, device, lane) = (
            self.state.clone(),
            self.request.target.device.clone(),
            self.request.lane,
        );
        let whole = WholeUpload {
            upload: self,
            body,
            md5: digest.as_ref().and_then(Digest::get).map(str::to_owned),
        };
        let etags = write_whole(&state, &device, lane, vec![whole]).await?;
        etags
            .into_iter()
            .next()
            .unwrap_or_else(|| Err(Refusal::internal()))
            .map(created)
    }

    fn publication(&self, prior: &PriorObject, etag: String, size: u64) -> Result<Publication, Refusal> {
        let commit = self.plan.commit(&etag, size)?;
        let rows = self.rows(prior, &commit.metadata, &etag, size);
        let (locks, target) = (&self.state.write_locks, &self.request.target);
        let lock = locks.publish(
            &*self.state.world.clock,
            (&target.device, &target.path),
            &self.request.key,
            self.plan.write_lock.as_ref(),
        )?;
        Ok(Publication {
            commit,
            etag,
            rows,
            lock,
        })
    }

    /// Looks, then receives and writes in turns.
    pub(crate) async fn streamed(self, body: Body, length: Option<u64>) -> Result<Response, Refusal> {
        let (digest, footer) = (body.digest(), body.footer());
        let (mut upload, prior, sink) = self.begin(length, digest).await?;
        let mut incoming = upload.incoming(body, length);
        let mut batch = incoming.batch().await?;
        while !batch.is_empty() {
            let (written, next) = join(sink.write(batch), incoming.batch()).await;
            written?;
            batch = next?;
        }
        upload.take_footer(footer)?;
        upload.finish(prior, sink).await
    }

    /// Asks everything that can be asked without the body, and begins to write.
    pub(crate) async fn begin(
        self,
        expected_size: Option<u64>,
        digest: Option<Digest>,
    ) -> Result<(Self, PriorObject, Sink), Refusal> {
        let state = self.state.clone();
        let device = state
            .devices
            .device(&self.request.target.device, self.request.lane)
            .await?;
        let job = move |device: &ObjectDevice| {
            let key = &self.request.key;
            let prior = self.plan.look(device, key)?;
            let writer = device.engine().create(key, expected_size);
            let writer = writer.map_err(|error| refusal_of(&error, device))?;
            Ok::<_, Refusal>((self, prior, writer))
        };
        let (upload, prior, writer) = device.run_behind(job).await?;
        Ok((upload, prior, Sink::new(&state.world, device, writer, digest)))
    }

    /// Commits, and sends the listing rows.
    pub(crate) async fn finish(self, prior: PriorObject, sink: Sink) -> Result<Response, Refusal> {
        let state = self.state.clone();
        let finishing = async move {
            let upload = Arc::new((self, prior));
            let job = || {
                let upload = upload.clone();
                move |device: &ObjectDevice, written: crate::sink::WrittenBody| {
                    let (upload, prior) = &*upload;
                    upload.plan.look_again(device, &upload.request, prior)?;
                    let publication = upload.publication(prior, written.md5, written.size)?;
                    let Publication {
                        commit,
                        etag,
                        rows,
                        lock,
                    } = publication;
                    let change = (&upload.request.key, data_file(&commit), rows);
                    let rows = RecordedRows::record(&**device.engine(), [change]);
                    let committed = written.writer.commit(commit);
                    drop(lock);
                    committed.map_err(|error| refusal_of(&error, device))?;
                    Ok((upload.request.link(device).map(|()| etag), rows))
                }
            };
            let committed = sink.commit(job).await;
            let (bytes, took) = sink.effort();
            let upload = &upload.0;
            measure(&upload.state, &upload.request.target.device, bytes, took);
            let (etag, rows) = committed?;
            upload.state.updates.send(rows, sink.device()).await?;
            etag.map(created)
        };
        run_detached(&state.world, finishing).await
    }

    /// The rows that listings are to get.
    fn rows(&self, prior: &PriorObject, metadata: &ObjectMetadata, etag: &str, size: u64) -> Vec<ListingRow> {
        let timestamp = self.plan.timestamp;
        let change = ExpiryChange {
            old: prior.delete_at,
            new: Some(metadata),
            size,
            timestamp,
            content_type_timestamp: timestamp,
        };
        let mut rows = expiry::queue_rows(&self.request, &self.state.options, &change);
        let row = ListingRow::of_object(&self.request, RowChange::Put, timestamp);
        rows.extend(row.map(|mut row| {
            row.update.size = size.into();
            row.update.etag = HeaderValue::from_str(etag).ok();
            row.update.content_type = Some(self.plan.content_type.clone());
            row.with_overrides([&*self.request.headers, &self.request.overrides], metadata)
        }));
        rows
    }
}

/// How long the device took for so many bytes, where metrics are sent.
fn measure(state: &ObjectServerState, device: &str, bytes: u64, took: Duration) {
    if bytes > 0 {
        state
            .options
            .statsd
            .transfer(format_args!("PUT.{device}.timing"), took, bytes);
    }
}

fn created(etag: String) -> Response {
    let mut response = empty(StatusCode::CREATED);
    if let Some(value) = header_value(format_args!("\"{etag}\"")) {
        response.headers_mut().insert(ETAG, value);
    }
    response
}
