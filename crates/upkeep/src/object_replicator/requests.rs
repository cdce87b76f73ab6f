//! What fulfils a wish: PUT, POST or DELETE, with all that is kept of the object.
//!
//! An object that has changed since it was offered is sent as it was or as it is now, which is newer; one that has gone
//! is passed over, and the server that wished for it will be offered it again. So will be a server that was sent a POST
//! without its body: whether it could be of use there is not said.

use super::offers::Objects;
use super::ssync::Exchange;
use bytes::Bytes;
use object_engine::{
    EngineError, FoundObject, ObjectEngine, ObjectKey, ObjectMetadata, ObjectReader, OpenOptions, PartitionKey,
    Versions,
};
use peer::ssync::Wish;
use vocabulary::{EntityPath, Fault, FaultKind, HashPrefix, PathHash, header_name};

/// Bytes read at a time.
const CHUNK: usize = 256 * 1024;

/// Objects looked at together, as long as their first bytes are no more than [`MOST_BYTES`].
const AT_A_TIME: usize = 64;
const MOST_BYTES: usize = 1 << 20;

/// An object as it is found.
pub(super) enum State {
    Gone,
    Deleted(EntityPath, Versions),
    /// POSTs only.
    Lone(EntityPath, ObjectMetadata),
    Here(EntityPath, Box<Here>),
}

/// An object that exists.
pub(super) struct Here {
    size: u64,
    metadata: ObjectMetadata,
    /// What the newest POST said.
    posted: Option<ObjectMetadata>,
    first: Bytes,
    reader: Option<Box<dyn ObjectReader>>,
}

impl From<FoundObject> for Here {
    fn from(found: FoundObject) -> Self {
        Self {
            posted: found.timestamps.meta.map(|_| posted(&found)),
            size: found.size,
            metadata: found.data_metadata,
            first: found.first,
            reader: found.reader,
        }
    }
}

fn posted(found: &FoundObject) -> ObjectMetadata {
    let times = &found.timestamps;
    let mut posted = ObjectMetadata::new().with("X-Timestamp", times.newest().internal());
    for (name, value) in found.posted() {
        posted.set(name, value);
    }
    if times.content_type > times.data {
        let content_type = found.metadata.get("Content-Type").unwrap_or_default();
        posted.set("Content-Type", content_type);
        posted.set("Content-Type-Timestamp", times.content_type.internal());
    }
    posted
}

/// Whether an object of this name belongs where it was found.
fn is_its_own(path: &EntityPath, prefix: &HashPrefix, hash: PathHash) -> bool {
    match (&path.container, &path.object) {
        (Some(container), Some(object)) => prefix.object(&path.account, container, object) == hash,
        _ => false,
    }
}

/// Blocks.
fn look_at(
    engine: &dyn ObjectEngine,
    key: PartitionKey,
    prefix: &HashPrefix,
    (hash, offered): (PathHash, Option<Versions>),
) -> Result<State, EngineError> {
    let its_path = |name: &str| {
        let path = name.strip_prefix('/').and_then(|name| EntityPath::split(name).ok());
        let path = path.filter(|path| is_its_own(path, prefix, hash));
        if path.is_none() {
            tracing::warn!("{hash} holds {name:?}, which does not belong there; left alone");
        }
        path
    };
    let object = ObjectKey {
        policy: key.policy,
        partition: key.partition,
        hash,
        name: String::new(),
    };
    let listed = offered.filter(Versions::is_plain).map(|plain| plain.data);
    let options = OpenOptions {
        listed,
        ..OpenOptions::GET
    };
    match engine.open(&object, options) {
        Ok(found) => {
            let path = its_path(found.data_metadata.text("name").unwrap_or_default());
            Ok(path.map_or(State::Gone, |path| State::Here(path, Box::new(found.into()))))
        }
        Err(EngineError::NotFound { .. }) => {
            let Some(name) = engine.replica().name_of(key, hash)? else {
                let lone = engine.replica().lone_post(key, hash)?;
                let lone = lone.and_then(|post| Some((its_path(post.text("name").unwrap_or_default())?, post)));
                return Ok(lone.map_or(State::Gone, |(path, post)| State::Lone(path, post)));
            };
            let versions = engine.replica().versions(key, hash)?;
            let deleted = versions.filter(|versions| versions.deleted);
            let deleted = deleted.and_then(|versions| Some(State::Deleted(its_path(&name)?, versions)));
            Ok(deleted.unwrap_or(State::Gone))
        }
        Err(error) if matches!(error.kind(), FaultKind::Absent | FaultKind::Data | FaultKind::Caller) => {
            Ok(State::Gone)
        }
        Err(error) => Err(error),
    }
}

impl Exchange<'_> {
    /// Sends what is wished for; whether the wish is fulfilled then.
    pub(super) async fn requests(&mut self, wish: &Wish, state: State) -> Result<bool, Fault> {
        match state {
            State::Gone => return Ok(false),
            State::Deleted(path, versions) => {
                self.line(&format!("DELETE {}", path.quoted())).await?;
                self.line(&format!("X-Timestamp: {}", versions.data.internal())).await?;
                self.line("").await?;
            }
            State::Lone(path, posted) => {
                if !wish.data {
                    self.post(&path, &posted).await?;
                }
                return Ok(false);
            }
            State::Here(path, here) => {
                let mut here = *here;
                let posted = here.posted.take().filter(|_| wish.meta);
                if wish.data {
                    self.put(&path, here).await?;
                }
                if let Some(posted) = posted {
                    self.post(&path, &posted).await?;
                }
            }
        }
        Ok(true)
    }

    /// The first of these objects, one at least, as they are found.
    pub(super) async fn look(&self, wishes: &[(PathHash, Wish)], offered: &Objects) -> Result<Vec<State>, Fault> {
        let key = self.task.key;
        let prefix = self.shared.ring_client.hash.clone();
        let wished = wishes.iter().take(AT_A_TIME);
        let wished: Vec<_> = wished.map(|(hash, _)| (*hash, offered.get(hash).copied())).collect();
        let look = move |engine: &dyn ObjectEngine| {
            let (mut found, mut bytes) = (vec![], 0);
            for one in wished {
                let state = look_at(engine, key, &prefix, one)?;
                if let State::Here(_, here) = &state {
                    bytes += here.first.len();
                }
                found.push(state);
                if bytes >= MOST_BYTES {
                    break;
                }
            }
            Ok(found)
        };
        self.task.local.run(look).await
    }

    async fn put(&mut self, path: &EntityPath, here: Here) -> Result<(), Fault> {
        self.line(&format!("PUT {}\r\nContent-Length: {}", path.quoted(), here.size))
            .await?;
        self.headers(&here.metadata).await?;
        self.line("").await?;
        self.bytes(here.first).await?;
        let mut reader = here.reader;
        while let Some(opened) = reader {
            let chunk;
            (chunk, reader) = self.read(opened).await?;
            self.bytes(chunk).await?;
        }
        Ok(())
    }

    /// The next chunk, and the reader unless that was the last.
    async fn read(&self, mut reader: Box<dyn ObjectReader>) -> Result<(Bytes, Option<Box<dyn ObjectReader>>), Fault> {
        let reading = move |_: &dyn ObjectEngine| {
            let chunk = reader.read(CHUNK)?;
            let more = (!chunk.is_empty()).then_some(reader);
            Ok((chunk, more))
        };
        self.task.local.run(reading).await
    }

    async fn post(&mut self, path: &EntityPath, posted: &ObjectMetadata) -> Result<(), Fault> {
        self.line(&format!("POST {}", path.quoted())).await?;
        self.headers(posted).await?;
        self.line("").await
    }

    async fn headers(&mut self, metadata: &ObjectMetadata) -> Result<(), Fault> {
        for (name, value) in metadata.iter() {
            if name.eq_ignore_ascii_case("name") || name.eq_ignore_ascii_case("content-length") {
                continue;
            }
            self.pieces(&[&header_name::decode(name), b": ", value, b"\r\n"])
                .await?;
        }
        Ok(())
    }
}
