//! One object: read piece by piece, judged, and shown to the watcher of dark data when it is sound.

use super::dark_data::Listedness;
use super::figures::AuditVerdict;
use super::{AuditError, AuditedDevice, DarkDataAction, NAME, ObjectAuditor, Scan};
use crate::walk::WorkedItem;
use object_engine::{AuditPlace, Audited, EngineError, Examined, ObjectAudit};
use std::path::PathBuf;
use std::time::Duration;

/// Bytes read in one step.
pub(super) const PIECE: usize = 1 << 20;

/// An object's directory, and how far the object in it has been read.
pub(crate) struct ObjectItem {
    place: AuditPlace,
    /// Its row may be missing in listings, and is on its way.
    is_late: bool,
    reading: Option<(Box<Audited>, Duration)>,
}

impl ObjectItem {
    pub(super) fn new(place: AuditPlace) -> Self {
        Self {
            place,
            is_late: false,
            reading: None,
        }
    }
}

/// What a step has found out about an object.
#[derive(Default)]
pub(crate) struct ObjectOutcome {
    /// Bytes read.
    pub(super) bytes: u64,
    /// The object's length, once it has been read to its end.
    pub(super) size: Option<u64>,
    /// What does not belong into its directory.
    pub(super) foreign: Vec<PathBuf>,
    /// What containers say of it, if they were asked.
    pub(super) listed: Option<Listedness>,
    /// What it came to and how long that took; `None` while there is more to read.
    pub(super) verdict: Option<(AuditVerdict, Duration)>,
    pub(super) device_gone: bool,
}

/// How far an object has been read.
enum ReadProgress {
    Absent,
    /// To its end.
    Whole(Box<Audited>, u64),
    Part(Box<Audited>, u64),
}

/// Reads some of an object, or all that is left of it, and judges it at its end.
pub(super) async fn audit(
    auditor: &ObjectAuditor,
    device: &AuditedDevice,
    item: ObjectItem,
) -> WorkedItem<ObjectAuditor> {
    let clock = &auditor.state.world().clock;
    let (scan, chunk) = (auditor.options.scan, auditor.options.chunk);
    let ObjectItem {
        place,
        mut is_late,
        reading,
    } = item;
    let (read, began) = match reading {
        Some((object, began)) => (device.run(move |_| read_on(object, chunk)).await, began),
        None => {
            let (began, place) = (clock.elapsed(), place.clone());
            let late_rows = auditor.pass.as_ref().and_then(|pass| pass.late_checks.current());
            let examined = device.run(move |audit| {
                let read = examine(audit, &place, scan, chunk)?;
                let is_late = late_rows.map_or(Ok(false), |rows| rows.keep(audit, &place))?;
                Ok((read, is_late))
            });
            let examined = examined.await.map(|(read, late)| {
                is_late = late;
                read
            });
            (examined, began)
        }
    };
    let mut outcome = ObjectOutcome::default();
    let path = place.directory.display();
    let verdict = match read {
        Ok(ReadProgress::Part(object, bytes)) => {
            outcome.bytes = bytes;
            let reading = Some((object, began));
            return WorkedItem {
                outcome,
                rest: Some(ObjectItem {
                    place,
                    is_late,
                    reading,
                }),
            };
        }
        Ok(ReadProgress::Absent) => AuditVerdict::Fine,
        Ok(ReadProgress::Whole(object, bytes)) => {
            (outcome.bytes, outcome.size) = (bytes, Some(object.size));
            outcome.foreign.clone_from(&object.foreign);
            let (listed, verdict) = match is_late {
                true => (None, AuditVerdict::Fine),
                false => watch(auditor, device, &place, &object).await,
            };
            outcome.listed = listed;
            verdict
        }
        Err(AuditError::Engine(EngineError::Quarantined { why, .. } | EngineError::Corrupt { why, .. })) => {
            tracing::error!("ERROR Object {path} failed audit and was quarantined: {why}");
            AuditVerdict::Quarantined
        }
        Err(error) => {
            tracing::error!("ERROR Trying to audit {path}: {error}");
            outcome.device_gone = error.is_device_gone();
            AuditVerdict::Unknown
        }
    };
    outcome.verdict = Some((verdict, clock.elapsed().saturating_sub(began)));
    WorkedItem { outcome, rest: None }
}

/// Shows a sound object to the watcher, and does what it asks for; what is held by an object lock stays.
async fn watch(
    auditor: &ObjectAuditor,
    device: &AuditedDevice,
    place: &AuditPlace,
    object: &Audited,
) -> (Option<Listedness>, AuditVerdict) {
    let Some(watcher) = &auditor.dark_data else {
        return (None, AuditVerdict::Fine);
    };
    let listed = watcher.look(&object.name, object.newest, place.policy).await;
    if listed != Listedness::Unlisted {
        return (Some(listed), AuditVerdict::Fine);
    }
    let is_held = object_engine::rules::lock_of(&object.metadata).is_held(auditor.state.world().clock.now(), false);
    if is_held && watcher.action() != DarkDataAction::Log {
        let name = &object.name;
        tracing::warn!("dark data {name} stays, as an object lock holds it");
        return (Some(listed), AuditVerdict::Fine);
    }
    let (name, at) = (object.name.clone(), place.clone());
    let (done, verdict) = match watcher.action() {
        DarkDataAction::Log => {
            tracing::info!("reporting dark data {name}");
            (Ok(()), AuditVerdict::Fine)
        }
        DarkDataAction::Delete => {
            tracing::info!("deleting dark data {} ({name})", place.directory.display());
            let newest = object.newest;
            let removed = device.run(move |audit| audit.remove(&at, newest));
            (removed.await, AuditVerdict::Fine)
        }
        DarkDataAction::Quarantine => {
            tracing::info!("quarantining dark data {name}");
            let moved = device.run(move |audit| audit.quarantine(&at, &name, "no container lists it"));
            (moved.await, AuditVerdict::Quarantined)
        }
    };
    let verdict = match done {
        Ok(()) => verdict,
        Err(error) => {
            tracing::error!("{NAME}: {}: {error}", place.directory.display());
            AuditVerdict::Unknown
        }
    };
    (Some(listed), verdict)
}

fn examine(audit: &ObjectAudit, place: &AuditPlace, scan: Scan, chunk: usize) -> Result<ReadProgress, EngineError> {
    match audit.examine(place, scan == Scan::All)? {
        Examined::Absent => Ok(ReadProgress::Absent),
        Examined::Object(object) => read_on(object, chunk),
    }
}

fn read_on(mut object: Box<Audited>, chunk: usize) -> Result<ReadProgress, EngineError> {
    let mut sum = 0;
    while sum < PIECE {
        match object.read(chunk.clamp(1, PIECE))? {
            0 => return Ok(ReadProgress::Whole(object, sum as u64)),
            bytes => sum += bytes,
        }
    }
    Ok(ReadProgress::Part(object, sum as u64))
}
