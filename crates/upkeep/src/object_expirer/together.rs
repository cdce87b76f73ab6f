//! Objects deleted in lots: what is due on a device goes there in one request (`peer::deletes`), past the gateway.
//!
//! Only where all is as usual: the container is known and whole, every primary of the object is a server that takes such
//! requests, and more than half of them say the same good thing, as the gateway would want it. Everything else is left
//! to the gateway, which sees it as if nobody had tried.
//! Always holds: no more than [`LOT`] objects in a request and no more requests to each of the replicas than told at the same
//! time; what is remembered of containers and servers (`known.rs`) ends with the pass.
//! Deliberately absent: rows of the queue, refusals and what they mean.

use super::known::{Known, Server};
use super::tasks::Task;
use crate::internal_client::{InternalClient, InternalRequest, is_among};
use crate::ring_client::user_agent;
use arc_swap::ArcSwap;
use futures_util::StreamExt;
use futures_util::stream::iter;
use http::{HeaderMap, HeaderValue, Method};
use peer::deletes::{self, MAX_STATUSES, OneDelete};
use peer::{Address, Body, PartitionTarget, PeerError, Peers, RawCall, Response, Timeouts};
use placement::{Device, Ring};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use vocabulary::{EntityPath, HashPrefix, Partition, PolicyIndex};

/// Objects in one request.
const LOT: usize = 128;

/// How long the answer to an empty lot is waited for, while everything waits.
const QUESTION: Duration = Duration::from_secs(5);

/// The way to the object servers themselves.
#[derive(Clone)]
pub struct ObjectServers {
    /// The rings of the policies whose objects are replicas.
    pub rings: BTreeMap<PolicyIndex, Arc<ArcSwap<Ring>>>,
    /// The ring of those who list them.
    pub containers: Arc<ArcSwap<Ring>>,
    /// The cluster's path secrets.
    pub hash: HashPrefix,
    /// The way to them.
    pub peers: Arc<Peers>,
    /// How long to wait for each.
    pub timeouts: Timeouts,
}

/// A request on its way: whom it is for, and which tasks.
struct Lot {
    server: Server,
    device: String,
    policy: PolicyIndex,
    tasks: Vec<usize>,
    deletes: Vec<OneDelete>,
}

/// Where the replicas of a task's object are.
struct Place {
    task: usize,
    policy: PolicyIndex,
    ring: Arc<Ring>,
    partition: Partition,
}

impl Place {
    fn primaries(&self) -> Vec<&Device> {
        self.ring.primaries(self.partition)
    }
}

fn server_of(device: &Device) -> Server {
    (device.replication_ip.clone(), device.replication_port)
}

impl ObjectServers {
    /// Deletes what can be deleted in lots; of each task whether its row can go.
    pub(super) async fn delete(
        &self,
        tasks: &[Task],
        client: &InternalClient,
        known: &Known,
        at_once: usize,
    ) -> Vec<bool> {
        self.learn_containers(tasks, client, known, at_once).await;
        let places: Vec<Place> = (tasks.iter().enumerate())
            .filter_map(|(number, task)| self.place(number, task, known))
            .collect();
        self.learn_servers(&places, known, at_once).await;
        let takes = |device: &&Device| known.takes_lots(&server_of(device));
        let mut replicas = vec![0; tasks.len()];
        let mut lots = Lots::default();
        for place in &places {
            let primaries = place.primaries();
            if primaries.iter().all(takes) {
                replicas[place.task] = primaries.len();
                self.add(place, &primaries, &tasks[place.task], &mut lots);
            }
        }
        let sent = lots.all().into_iter().map(|lot| self.send(lot, known));
        let mut answers: Vec<Vec<u16>> = vec![vec![]; tasks.len()];
        // An object is at several servers, which are asked at the same time as those who are asked for each by itself.
        let copies = replicas.iter().copied().max().unwrap_or_default().max(1);
        let mut sending = iter(sent).buffer_unordered(at_once.saturating_mul(copies));
        while let Some((lot, statuses)) = sending.next().await {
            for (task, status) in lot.tasks.into_iter().zip(statuses) {
                answers[task].push(status);
            }
        }
        let settled = tasks.iter().zip(&answers).zip(replicas);
        settled
            .map(|((task, statuses), replicas)| is_settled(task, statuses, replicas))
            .collect()
    }

    fn place(&self, number: usize, task: &Task, known: &Known) -> Option<Place> {
        let policy = known.policy_of(&container_of(&task.target))?;
        let ring = self.rings.get(&policy)?.load_full();
        let (account, container) = (&task.target.account, task.target.container.as_deref()?);
        let hash = self.hash.object(account, container, task.target.object.as_deref()?);
        let partition = ring.partition_of(&hash.0);
        Some(Place {
            task: number,
            policy,
            ring,
            partition,
        })
    }

    async fn learn_containers(&self, tasks: &[Task], client: &InternalClient, known: &Known, at_once: usize) {
        let named = tasks.iter().map(|task| container_of(&task.target)).collect();
        let asked = known.not_yet(named).into_iter().map(|path| async move {
            let policy = policy_of(client, &path).await;
            (path, policy)
        });
        let asked: Vec<_> = asked.collect();
        let found: Vec<_> = iter(asked).buffer_unordered(at_once.max(1)).collect().await;
        known.learn(found);
    }

    /// Asks each server that is not known yet with an empty lot.
    async fn learn_servers(&self, places: &[Place], known: &Known, at_once: usize) {
        let now = self.peers.world().clock.elapsed();
        let mut new: HashMap<Server, Lot> = HashMap::new();
        for place in places {
            for device in place.primaries() {
                let server = server_of(device);
                if known.is_to_be_asked(&server, now) {
                    let lot = || Lot::new(device, place.policy);
                    new.entry(server).or_insert_with(lot);
                }
            }
        }
        let asked = new.into_values().map(|lot| self.send(lot, known));
        let asked: Vec<_> = asked.collect();
        iter(asked).buffer_unordered(at_once.max(1)).collect::<Vec<_>>().await;
    }

    /// Puts the task into the lots of all its devices.
    fn add(&self, place: &Place, primaries: &[&Device], task: &Task, lots: &mut Lots) {
        let container = task.target.container.as_deref().unwrap_or_default();
        let listing = self.containers.load_full();
        let partition = listing.partition_of(&self.hash.container(&task.target.account, container).0);
        let told = listing.primaries(partition);
        for (replica, device) in primaries.iter().enumerate() {
            let mine = || told.iter().skip(replica).step_by(primaries.len().max(1));
            let mut headers = headers_of(task);
            if mine().next().is_some() {
                let hosts = mine().map(|to| format!("{}:{}", to.replication_ip, to.replication_port));
                let devices = mine().map(|to| to.device.as_str());
                headers.push(("x-container-partition", partition.to_string()));
                headers.push(("x-container-host", hosts.collect::<Vec<_>>().join(",")));
                headers.push(("x-container-device", devices.collect::<Vec<_>>().join(",")));
            }
            let delete = OneDelete {
                partition: place.partition,
                path: task.target.clone(),
                headers: headers.into_iter().map(|(name, value)| (name.into(), value)).collect(),
            };
            lots.add(device, place.policy, place.task, delete);
        }
    }

    /// The statuses of all in the lot, or none; whether its server takes lots is noted.
    async fn send(&self, lot: Lot, known: &Known) -> (Lot, Vec<u16>) {
        let statuses = self.ask(&lot).await;
        let now = self.peers.world().clock.elapsed();
        known.note(&lot.server, lot.tasks.is_empty(), statuses.is_some(), now);
        (lot, statuses.unwrap_or_default())
    }

    /// Sends it. A server may hang up on an idle connection just when this comes (RFC 9112, 9.3.1), so that it is sent again then.
    /// What had been done nevertheless is refused the second time, and left to the gateway.
    async fn sent(&self, lot: &Lot) -> Result<Response, PeerError> {
        match self.send_once(lot).await {
            Err(PeerError::Broken(_)) => self.send_once(lot).await,
            other => other,
        }
    }

    async fn send_once(&self, lot: &Lot) -> Result<Response, PeerError> {
        let mut headers = HeaderMap::with_capacity(4);
        headers.insert("user-agent", user_agent(super::NAME));
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        headers.insert("x-backend-storage-policy-index", HeaderValue::from(lot.policy.0));
        let call = RawCall {
            method: deletes::method(),
            address: Address::Partition(PartitionTarget {
                device: lot.device.as_str().into(),
                partition: Partition(0),
                rest: String::new(),
            }),
            query: String::new(),
            headers,
            body: Body::whole(deletes::encode(&lot.deletes)),
            interim: None,
        };
        let (ip, port) = &lot.server;
        let timeouts = Timeouts {
            response: match lot.tasks.is_empty() {
                true => self.timeouts.response.min(QUESTION),
                false => self.timeouts.response,
            },
            ..self.timeouts
        };
        self.peers.send(ip, *port, call, timeouts).await
    }

    async fn ask(&self, lot: &Lot) -> Option<Vec<u16>> {
        let why = match self.sent(lot).await {
            Ok(response) if response.status() == http::StatusCode::OK => {
                let body = response.into_body();
                let body = (body.collect_within(self.peers.world(), MAX_STATUSES, self.timeouts.response)).await;
                let statuses = body
                    .ok()
                    .and_then(|body| deletes::decode_statuses(&body, lot.tasks.len()));
                if statuses.is_some() {
                    return statuses;
                }
                "not the statuses of what it was asked".to_owned()
            }
            Ok(response) => response.status().to_string(),
            Err(error) => error.to_string(),
        };
        let (name, (ip, port), device) = (super::NAME, &lot.server, &lot.device);
        match lot.tasks.len() {
            0 => tracing::debug!("{name}: {ip}:{port} takes deletions one by one: {why}"),
            count => tracing::info!("{name}: {ip}:{port}/{device} did not take {count} deletions at once: {why}"),
        }
        None
    }
}

impl Lot {
    fn new(device: &Device, policy: PolicyIndex) -> Self {
        Self {
            server: server_of(device),
            device: device.device.clone(),
            policy,
            tasks: vec![],
            deletes: vec![],
        }
    }
}

/// What is to be deleted on each device of a server: which task, and how.
#[derive(Default)]
struct Lots(BTreeMap<(Server, String, PolicyIndex), Vec<(usize, OneDelete)>>);

impl Lots {
    fn add(&mut self, device: &Device, policy: PolicyIndex, task: usize, delete: OneDelete) {
        let key = (server_of(device), device.device.clone(), policy);
        self.0.entry(key).or_default().push((task, delete));
    }

    /// What is in one partition goes together, for the server takes the lock of a partition once for a lot; the lots of
    /// one device are not next to each other.
    fn all(self) -> Vec<Lot> {
        let mut in_turn = vec![];
        for ((server, device, policy), mut deletes) in self.0 {
            deletes.sort_by_key(|(_, delete)| delete.partition);
            let mut deletes = deletes.into_iter();
            for turn in 0_usize.. {
                let (tasks, deletes): (Vec<_>, Vec<_>) = deletes.by_ref().take(LOT).unzip();
                if tasks.is_empty() {
                    break;
                }
                let (server, device) = (server.clone(), device.clone());
                in_turn.push((
                    turn,
                    Lot {
                        server,
                        device,
                        policy,
                        tasks,
                        deletes,
                    },
                ));
            }
        }
        in_turn.sort_by_key(|(turn, _)| *turn);
        in_turn.into_iter().map(|(_, lot)| lot).collect()
    }
}

fn container_of(target: &EntityPath) -> EntityPath {
    EntityPath {
        object: None,
        ..target.clone()
    }
}

/// As the gateway's DELETE carries them.
fn headers_of(task: &Task) -> Vec<(&'static str, String)> {
    let due = task.due.normal();
    let mut headers = vec![
        ("x-timestamp", due.clone()),
        ("x-container-root-db-state", "unsharded".into()),
    ];
    if !task.is_async {
        headers.push(("x-if-delete-at", due));
        headers.push(("x-backend-clean-expiring-object-queue", "no".into()));
    }
    headers
}

/// The policy of a container that is there and whole.
async fn policy_of(client: &InternalClient, path: &EntityPath) -> Option<PolicyIndex> {
    let response = client
        .ask(&InternalRequest::new(Method::HEAD, path.clone()), &[2])
        .await
        .ok()?;
    let header = |name: &str| response.headers().get(name)?.to_str().ok();
    let is_whole = matches!(header("x-backend-sharding-state"), None | Some("unsharded"));
    let policy = header("x-backend-storage-policy-index")?.parse().ok()?;
    is_whole.then_some(PolicyIndex(policy))
}

/// Whether more than half of the replicas say the same, and it is good.
fn is_settled(task: &Task, statuses: &[u16], replicas: usize) -> bool {
    let good = |hoped: u16| statuses.iter().filter(|status| is_among(**status, &[hoped])).count();
    let hoped = super::hoped(task);
    replicas > 0 && hoped.iter().any(|hoped| good(*hoped) > replicas / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lots_are_full_sorted_and_in_turn() {
        let mut lots = Lots::default();
        let on = |name: &str| Device {
            device: name.into(),
            ..Device::default()
        };
        let delete = |partition| OneDelete {
            partition,
            path: EntityPath::account("a").with_container("c").with_object("o"),
            headers: vec![],
        };
        for task in 0..LOT + 1 {
            lots.add(&on("sda"), PolicyIndex(0), task, delete(Partition(1000 - task as u32)));
            lots.add(&on("sdb"), PolicyIndex(0), task, delete(Partition(task as u32)));
        }
        let lots = lots.all();
        let told: Vec<_> = lots.iter().map(|lot| (lot.device.as_str(), lot.tasks.len())).collect();
        assert_eq!(told, [("sda", LOT), ("sdb", LOT), ("sda", 1), ("sdb", 1)]);
        assert_eq!((lots[0].tasks[0], lots[2].tasks[0]), (LOT, 0));
        assert!(lots[0].deletes.is_sorted_by_key(|delete| delete.partition));
    }

    #[test]
    fn most_replicas_must_say_the_same_good_thing() {
        let task = |kind| Task::read(&"1".into(), "1-a/c/o".into(), kind).unwrap();
        let (own, asked) = (task("text/plain"), task("application/async-deleted"));
        for (statuses, replicas, settled, settled_if_asked) in [
            (&[204, 204, 204][..], 3, true, true),
            (&[204, 204, 507], 3, true, true),
            (&[204, 204], 3, true, true),
            (&[204, 404, 409], 3, false, false),
            (&[409, 409, 204], 3, true, true),
            (&[404, 404, 204], 3, false, true),
            (&[412, 412, 412], 3, false, false),
            (&[204, 404], 2, false, false),
            (&[204], 1, true, true),
            (&[], 0, false, false),
            (&[], 3, false, false),
        ] {
            assert_eq!(is_settled(&own, statuses, replicas), settled, "{statuses:?}");
            assert_eq!(is_settled(&asked, statuses, replicas), settled_if_asked, "{statuses:?}");
        }
    }
}
