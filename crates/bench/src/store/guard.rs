//! Keeps a workload away from containers that no benchmark has made.
//!
//! Containers that this program makes carry a mark. Before a work that writes or deletes begins, its containers are
//! looked at: one that is there and has no mark belongs to other users.
//! Always holds: looking changes nothing. Of more than [`MOST`] containers a sample is looked at.

use super::digest::DigestState;
use super::http::{Outgoing, StoreAnswer, StoreConnection};
use super::http_store::{Dialect, HttpStore};
use super::{RequestDetail, Store, StoreRequest, s3, swift};
use crate::content::ContentKey;
use crate::figures::Failure;
use crate::workload::{OperationKind, Work};
use vocabulary::Fault;
use world::World;

/// Containers that are looked at for each operation.
const MOST: u64 = 200;
/// Bytes that are read at a time.
const BUFFER: usize = 16 << 10;

/// Refuses a work that would write to other users' containers.
pub async fn check(world: &World, store: &Store, work: &Work) -> Result<(), Fault> {
    let Store::Http(store) = &store.for_worker(0) else {
        return Ok(());
    };
    let mut looks = Looks {
        world,
        store,
        connection: None,
        digest: DigestState::default(),
    };
    for operation in &work.operations {
        if matches!(
            operation.kind,
            OperationKind::Read | OperationKind::Head | OperationKind::List
        ) {
            continue;
        }
        let span = operation.containers.numbers.span();
        let step = usize::try_from(span.count().div_ceil(MOST).max(1)).unwrap_or(usize::MAX);
        for number in (span.first..=span.last).step_by(step) {
            let name = operation.containers.name(number);
            if looks.is_of_others(&name).await? {
                return Err(Fault::caller(format!(
                    "container {name} is there, and no benchmark has made it: choose another prefix (cprefix), or say \
                     --anything-goes"
                )));
            }
        }
    }
    Ok(())
}

/// The first of these containers that is there without the mark.
pub async fn container_of_others(world: &World, store: &Store, names: &[String]) -> Result<Option<String>, Fault> {
    let Store::Http(store) = &store.for_worker(0) else {
        return Ok(None);
    };
    let mut looks = Looks {
        world,
        store,
        connection: None,
        digest: DigestState::default(),
    };
    for name in names {
        if looks.is_of_others(name).await? {
            return Ok(Some(name.clone()));
        }
    }
    Ok(None)
}

struct Looks<'a> {
    world: &'a World,
    store: &'a HttpStore,
    connection: Option<StoreConnection>,
    digest: DigestState,
}

impl Looks<'_> {
    /// Whether a container is there and has no mark.
    async fn is_of_others(&mut self, name: &str) -> Result<bool, Fault> {
        let (status, has_mark) = self.look(name, "").await?;
        match (&self.store.dialect, status) {
            (_, 404) => Ok(false),
            (Dialect::Swift(_), 200..=299) => Ok(!has_mark),
            (Dialect::DirectObjectServer(_), _) => Ok(false),
            (Dialect::S3(_), 200..=299) => match self.look(name, s3::MARKER).await?.0 {
                200..=299 => Ok(false),
                404 => Ok(true),
                status => Err(self.failed(&format_args!("HEAD {name}/{}: status {status}", s3::MARKER))),
            },
            (_, status) => Err(self.failed(&format_args!("HEAD {name}: status {status}"))),
        }
    }

    /// Asks for metadata: the status, and whether Swift's mark is among them.
    async fn look(&mut self, container: &str, object: &str) -> Result<(u16, bool), Fault> {
        let request = StoreRequest {
            kind: OperationKind::Head,
            container,
            object,
            size: 0,
            body: ContentKey::ZEROS,
            chunked: false,
            verifies: false,
            file: None,
            detail: RequestDetail::default(),
        };
        let mut head = vec![];
        self.store.head(&request, self.world.clock.now(), &mut head);
        let login = self.store.digest_login();
        let proven = login.and_then(|login| self.digest.proven(login, &head));
        let (answer, has_mark, refusal) = self.ask(proven.as_deref().unwrap_or(&head)).await?;
        match login {
            Some(login) if answer.status == 401 && self.digest.is_asked(self.world, login, &refusal) => {
                let proven = self.digest.proven(login, &head);
                let (answer, has_mark, _) = self.ask(proven.as_deref().unwrap_or(&head)).await?;
                Ok((answer.status, has_mark))
            }
            _ => Ok((answer.status, has_mark)),
        }
    }

    /// Sends a request without a body: its answer, whether that has the mark, and its head where it refuses the user.
    async fn ask(&mut self, head: &[u8]) -> Result<(StoreAnswer, bool, Vec<u8>), Fault> {
        let outgoing = Outgoing {
            is_head: true,
            head,
            body: None,
            expects: None,
        };
        let connection = self.connection.take();
        let work = async {
            let mut open = match connection {
                Some(open) => open,
                None => StoreConnection::open(self.world, &self.store.url, self.store.tls.as_ref(), BUFFER).await?,
            };
            let answered = open.exchange_looking_for(self.world, &outgoing, swift::MARK).await?;
            Ok((answered, open))
        };
        let looked = self.world.timeout(self.store.patience, work).await;
        let looked = looked.map_err(|late| self.failed(&late))?;
        let ((answer, has_mark), mut open) = looked.map_err(|failure: Failure| self.failed(&failure))?;
        let refusal = open.take_refusal();
        self.connection = answer.is_kept.then_some(open);
        Ok((answer, has_mark, refusal))
    }

    fn failed(&self, why: &dyn std::fmt::Display) -> Fault {
        Fault::peer(format!("{}: {why}", self.store.url.authority()))
    }
}
