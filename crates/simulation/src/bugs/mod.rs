//! The test of the test: bugs that a simulation must find.
//!
//! Each stands where a seam is and does to what passes there what the bug in the code behind it would do;
//! so no production build has anything of it. What replication does wrong is in `exchanges.rs`, what replicators
//! of databases do wrong in `databases.rs`.

mod databases;
mod exchanges;

pub(crate) use databases::Hopeful;
pub(crate) use exchanges::Trusting;

use crate::disk::{SimFiles, SqliteSyncs};
use crate::executor::{Executor, TaskOwner};
use bytes::Bytes;
use http::StatusCode;
use peer::message::{HeaderField, Message, ServerKind, UpdateTargets};
use peer::{Body, Call, Response, Service};
use std::sync::Arc;
use world::World;

/// A planted bug, and which promise it breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// Durability: nothing is synced before it is acknowledged.
    SyncsNothing,
    /// Durability: a write is acknowledged that was not stored.
    AcknowledgesUnstored,
    /// Order: what arrives last wins, whatever its timestamp.
    LastArrivalWins,
    /// Order: deletions leave no trace.
    ForgetsDeletions,
    /// Whole bodies: bytes are served that do not match their checksum.
    SkipsChecksums,
    /// Whole bodies: the end of a body is missing.
    TearsBodies,
    /// Containment: a fault of a drive is a crash.
    PanicsOnFaults,
    /// Containment: temporary files stay.
    KeepsTemporaries,
    /// Accounts: an object is found by container and name alone.
    ForgetsAccounts,
    /// Memory: nothing limits what waits for a drive.
    QueuesWithoutBound,
    /// Memory: each request leaves a task behind.
    LeaksTasks,
    /// Upkeep: listing rows are sent to no server.
    ForgetsRows,
    /// Upkeep: a handoff goes when one primary has what it holds.
    RemovesHandoffsEarly,
    /// Upkeep: an exchange is acknowledged of which nothing was kept.
    ForgetsReplicas,
    /// Upkeep: what a replicator brings is acknowledged before it is safe.
    SyncsNoReplicas,
    /// Upkeep: an answer that breaks off counts as what it would have been.
    TrustsShortAnswers,
    /// Upkeep: the suffixes that have changed are not noted.
    ForgetsHints,
    /// Order: what a replicator brings wins, whatever its timestamp.
    TakesOlderReplicas,
    /// Order: replicators do not bring deletions.
    KeepsDeletionsToItself,
    /// Clocks: a gateway takes its own clock for right, whatever storage says is newer.
    TrustsOwnClock,
    /// Service: a connection has a seat, whether anything is asked over it or not.
    SeatsConnections,
    /// Service: a drive is tried out only between its jobs, so that a long one passes for a hung drive.
    TrialsWaitForJobs,
    /// Listings: container servers acknowledge rows that they do not keep.
    DropsRows,
    /// Listings: account servers acknowledge figures that they do not keep.
    DropsFigures,
    /// Expiry: an object goes when its name had an expiry, whatever was written since.
    ExpiresNewerVersions,
    /// Deletions: tombstones go before every replica has them.
    ReclaimsEarly,
    /// Policies: objects stay in the policy that their container lost.
    MovesNothing,
    /// Upkeep: object servers do not note which rows they are about to send.
    ForgetsIntents,
    /// Upkeep: no auditor sends the rows again that may have been lost with the power.
    ForgetsLateRows,
    /// Databases: rows count as brought before an answer says so.
    TrustsLostRows,
    /// Databases: rows that a replicator brings win, whatever their timestamps.
    TakesOlderRows,
    /// Databases: metadata that a replicator brings win, whatever their timestamps.
    TakesOlderMetadata,
    /// Databases: replicators do not tell of deletions of the whole.
    ForgetsDeletedContainers,
    /// Databases: replicators do not bring rows of what was deleted.
    ForgetsDeletedRows,
    /// Databases: a whole one takes the place of another without its rows.
    ReplacesDatabases,
    /// Databases: commits are not durable.
    CommitsNothing,
    /// Databases: SQLite syncs nothing, as with `synchronous=OFF`.
    SyncsNoDatabases,
    /// Databases: SQLite does not sync its journals.
    SyncsNoJournals,
    /// Databases: one from the network may bring triggers of its own.
    ObeysForeignSchemas,
}

impl Bug {
    /// All that the seeds of a test find.
    pub const ALL: [Bug; 22] = [
        Bug::SyncsNothing,
        Bug::AcknowledgesUnstored,
        Bug::LastArrivalWins,
        Bug::ForgetsDeletions,
        Bug::SkipsChecksums,
        Bug::TearsBodies,
        Bug::PanicsOnFaults,
        Bug::KeepsTemporaries,
        Bug::ForgetsAccounts,
        Bug::QueuesWithoutBound,
        Bug::LeaksTasks,
        Bug::ForgetsRows,
        Bug::RemovesHandoffsEarly,
        Bug::ForgetsReplicas,
        Bug::SyncsNoReplicas,
        Bug::TrustsShortAnswers,
        Bug::ForgetsHints,
        Bug::TakesOlderReplicas,
        Bug::KeepsDeletionsToItself,
        Bug::TrustsOwnClock,
        Bug::SeatsConnections,
        Bug::TrialsWaitForJobs,
    ];
}

impl Bug {
    fn is_of_databases(self) -> bool {
        Self::OF_DATABASES.contains(&self)
    }

    /// Plants it in the drives of a node, if that is where it is.
    pub(crate) fn plant(self, files: &SimFiles) {
        match self {
            Bug::SyncsNothing | Bug::CommitsNothing => files.lie(true),
            Bug::SyncsNoDatabases => files.skip_syncs_of_sqlite(SqliteSyncs::None),
            Bug::SyncsNoJournals => files.skip_syncs_of_sqlite(SqliteSyncs::NotOfJournals),
            Bug::KeepsTemporaries => files.keep_temporaries(),
            Bug::ForgetsHints => files.forget("hashes.invalid"),
            Bug::ForgetsIntents => files.forget("/tmp/.updates-"),
            Bug::ObeysForeignSchemas => files.obey_any_schema(),
            _ => {}
        }
    }

    /// All of whole clusters that the seeds of a test find.
    pub const OF_WHOLE_CLUSTERS: [Bug; 7] = [
        Bug::DropsRows,
        Bug::DropsFigures,
        Bug::ExpiresNewerVersions,
        Bug::ReclaimsEarly,
        Bug::MovesNothing,
        Bug::ForgetsIntents,
        Bug::ForgetsLateRows,
    ];

    /// All of databases that the seeds of a test find.
    pub const OF_DATABASES: [Bug; 10] = [
        Bug::TrustsLostRows,
        Bug::TakesOlderRows,
        Bug::TakesOlderMetadata,
        Bug::ForgetsDeletedContainers,
        Bug::ForgetsDeletedRows,
        Bug::ReplacesDatabases,
        Bug::CommitsNothing,
        Bug::SyncsNoDatabases,
        Bug::SyncsNoJournals,
        Bug::ObeysForeignSchemas,
    ];
}

/// A server of objects or containers with a bug.
pub(crate) struct Bugged {
    pub(crate) inner: Arc<dyn Service>,
    pub(crate) bug: Bug,
    pub(crate) kind: ServerKind,
    pub(crate) world: World,
    pub(crate) executor: Executor,
    pub(crate) home: TaskOwner,
    pub(crate) files: SimFiles,
}

fn status(code: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = code;
    response
}

#[async_trait::async_trait]
impl Service for Bugged {
    async fn call(&self, call: Call) -> Response {
        let mut call = call.decoded(self.kind);
        match &call.message {
            Message::Ssync(_) => return self.exchange(call).await,
            Message::ReplicateDatabase(_) if self.bug.is_of_databases() => return self.level(call).await,
            _ => {}
        }
        match (self.bug, &mut call.message) {
            (Bug::AcknowledgesUnstored, Message::PutObject(_)) if self.world.random.below(3) == 0 => {
                // A body that fails is refused as ever.
                return match call.body.collect(1 << 24).await {
                    Ok(_) => status(StatusCode::CREATED),
                    Err(_) => status(StatusCode::SERVICE_UNAVAILABLE),
                };
            }
            (Bug::LastArrivalWins, Message::PutObject(put)) => put.timestamp = self.world.clock.now().into(),
            (Bug::LastArrivalWins, Message::DeleteObject(delete)) => delete.timestamp = self.world.clock.now().into(),
            (Bug::ForgetsDeletions, Message::DeleteObject(_)) => return status(StatusCode::NO_CONTENT),
            (Bug::ForgetsAccounts, message) => forget_account(message),
            (Bug::LeaksTasks, _) => self.executor.spawn(self.home, Box::pin(std::future::pending())),
            (Bug::DropsRows, Message::UpdateContainer(_)) => return status(StatusCode::CREATED),
            (Bug::DropsFigures, Message::UpdateAccount(update)) => update.object_count = 0.into(),
            (Bug::ExpiresNewerVersions, Message::DeleteObject(delete)) if delete.if_delete_at.value().is_some() => {
                delete.if_delete_at = HeaderField::Absent;
            }
            (Bug::ExpiresNewerVersions, Message::DeleteObjects(_)) => return status(StatusCode::METHOD_NOT_ALLOWED),
            // The gateway's look at what there is.
            (Bug::ExpiresNewerVersions, Message::ReadObject(read)) if read.head_only && read.opens_expired => {
                return status(StatusCode::NOT_FOUND);
            }
            (Bug::ExpiresNewerVersions, Message::PutObject(put)) => put.rows.cleans_queue = Some(false),
            (Bug::ForgetsRows, Message::PutObject(put)) => put.rows.containers = UpdateTargets::Absent,
            (Bug::ForgetsRows, Message::PostObject(post)) => post.rows.containers = UpdateTargets::Absent,
            (Bug::ForgetsRows, Message::DeleteObject(delete)) => delete.rows.containers = UpdateTargets::Absent,
            _ => {}
        }
        let reads = matches!(&call.message, Message::ReadObject(read) if !read.head_only);
        let response = self.inner.call(call).await;
        match self.bug {
            Bug::PanicsOnFaults if response.status().as_u16() == 507 => panic!("planted: a drive has a fault"),
            Bug::TearsBodies if reads && response.status() == StatusCode::OK => response.map(torn),
            _ => response,
        }
    }
}

fn forget_account(message: &mut Message) {
    let target = match message {
        Message::PutObject(put) => &mut put.target,
        Message::PostObject(post) => &mut post.target,
        Message::DeleteObject(delete) => &mut delete.target,
        Message::ReadObject(read) => &mut read.target,
        _ => return,
    };
    Arc::make_mut(&mut target.path).account = "AUTH_any".into();
}

/// The last quarter is zeros.
fn torn(body: Body) -> Body {
    let Some(bytes) = body.as_whole() else { return body };
    let mut torn = bytes.to_vec();
    let kept = torn.len() - torn.len() / 4;
    torn[kept..].fill(0);
    Body::whole(Bytes::from(torn))
}
