//! [`Sink`]: an object being written through the device's workers.
//!
//! Always holds: a sink that is dropped before its commit leaves nothing behind, and cleaning up happens
//! on the workers, too; every byte passes MD5 once, here, unless the sender in this process does it.

use crate::batch::BodyBatch;
use crate::devices::ObjectDevice;
use crate::refusal::refused_by;
use md5::{Digest as _, Md5};
use object_engine::ObjectWriter;
use parking_lot::Mutex;
use peer::Digest;
use std::sync::Arc;
use std::time::Duration;
use storage_shell::{Refusal, Turn};
use vocabulary::hex;
use world::World;

/// An object being written.
pub(crate) struct Sink {
    world: World,
    device: Arc<ObjectDevice>,
    /// Shared with the job that writes, so that a refused job does not take it along.
    writing: Arc<Mutex<Option<Writing>>>,
    /// Bytes that were written, and how long the device took for them.
    effort: Mutex<(u64, Duration)>,
}

struct Writing {
    writer: Box<dyn ObjectWriter>,
    checksum: Checksum,
}

/// A body that has been written whole.
pub(crate) struct WrittenBody {
    /// To be committed.
    pub(crate) writer: Box<dyn ObjectWriter>,
    /// In hexadecimal.
    pub(crate) md5: String,
    /// In bytes.
    pub(crate) size: u64,
}

enum Checksum {
    Ours(Md5),
    Senders(Digest),
}

impl Sink {
    pub(crate) fn new(
        world: &World,
        device: Arc<ObjectDevice>,
        writer: Box<dyn ObjectWriter>,
        digest: Option<Digest>,
    ) -> Self {
        let checksum = digest.map_or_else(|| Checksum::Ours(Md5::new()), Checksum::Senders);
        Self {
            world: world.clone(),
            device,
            writing: Arc::new(Mutex::new(Some(Writing { writer, checksum }))),
            effort: Mutex::default(),
        }
    }

    pub(crate) fn device(&self) -> &Arc<ObjectDevice> {
        &self.device
    }

    /// Bytes that were written so far, and how long the device took for them and for their commit.
    pub(crate) fn effort(&self) -> (u64, Duration) {
        *self.effort.lock()
    }

    fn spent(&self, bytes: u64, since: Duration) {
        let mut effort = self.effort.lock();
        effort.0 += bytes;
        effort.1 += self.world.clock.elapsed().saturating_sub(since);
    }

    /// Appends.
    pub(crate) async fn write(&self, batch: BodyBatch) -> Result<(), Refusal> {
        let bytes = batch.len();
        let (batch, began) = (Arc::new(batch), self.world.clock.elapsed());
        let job = || {
            let (writing, batch) = (self.writing.clone(), batch.clone());
            move |device: &ObjectDevice| {
                let mut writing = writing.lock();
                let Some(writing) = writing.as_mut() else { return Ok(()) };
                for piece in &batch.pieces {
                    writing.writer.write(piece).map_err(refused_by(device))?;
                    if let Checksum::Ours(md5) = &mut writing.checksum {
                        md5.update(piece);
                    }
                }
                if batch.is_slow {
                    writing.writer.hold_nothing().map_err(refused_by(device))?;
                }
                Ok(())
            }
        };
        let written = self.device.run_patiently(Turn::Behind, job).await;
        self.spent(bytes, began);
        written
    }

    /// Hands what was written to a job on the device that makes it an object.
    pub(crate) async fn commit<T: Send + 'static, J>(&self, publish: impl Fn() -> J) -> Result<T, Refusal>
    where
        J: FnOnce(&ObjectDevice, WrittenBody) -> Result<T, Refusal> + Send + 'static,
    {
        let began = self.world.clock.elapsed();
        let job = || {
            let (writing, publish) = (self.writing.clone(), publish());
            move |device: &ObjectDevice| {
                let Some(Writing { writer, checksum }) = writing.lock().take() else {
                    return Err(Refusal::internal());
                };
                let Some(md5) = checksum.hex() else {
                    tracing::error!("the sender in this process ended a body without its checksum");
                    return Err(Refusal::internal());
                };
                let size = writer.written();
                publish(device, WrittenBody { writer, md5, size })
            }
        };
        let committed = self.device.run_patiently(Turn::First, job).await;
        self.spent(0, began);
        committed
    }
}

impl Checksum {
    fn hex(self) -> Option<String> {
        match self {
            Checksum::Ours(md5) => Some(hex::encode(md5.finalize())),
            Checksum::Senders(digest) => digest.get().map(str::to_owned),
        }
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        // When the lock is taken a job is running; it drops the writer when it ends.
        let unfinished = self.writing.try_lock().and_then(|mut writing| writing.take());
        if let Some(unfinished) = unfinished {
            let device = self.device.clone();
            self.world.spawn(async move {
                let cleaning = move |_: &ObjectDevice| {
                    drop(unfinished);
                    Ok::<_, Refusal>(())
                };
                drop(device.run(cleaning).await);
            });
        }
    }
}
