//! Asking storage servers what time it is, for `server_clocks.rs`.
//!
//! Always holds: few machines are asked, each once, and none is waited for long.

use crate::server_clocks::TimeAnswers;
use crate::shared::Shared;
use futures_util::future::join_all;
use http::{HeaderMap, Method};
use peer::{Address, Body, Call, RawCall, Timeouts};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Machines that are asked.
const MOST_ASKED: usize = 7;
/// How long their answers are waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of an answer that are read, so that its connection can be used again.
const MOST_READ: u64 = 1 << 16;

impl Shared {
    /// The heads of answers of some machines, with their addresses.
    pub(crate) async fn ask_for_the_time(&self) -> TimeAnswers {
        let machines = self.some_machines();
        let is_one_machine = machines.len() == 1;
        let answers = join_all(machines.into_iter().map(|(ip, port)| self.ask_machine(ip, port)));
        TimeAnswers {
            heads: answers.await.into_iter().flatten().collect(),
            is_one_machine,
        }
    }

    async fn ask_machine(&self, ip: Arc<str>, port: u16) -> Option<(Arc<str>, HeaderMap)> {
        let call = Call::from(RawCall {
            method: Method::GET,
            address: Address::Plain("/healthcheck".into()),
            query: String::new(),
            headers: HeaderMap::new(),
            body: Body::empty(),
            interim: None,
        });
        let timeouts = Timeouts {
            connect: self.options.conn_timeout,
            response: PATIENCE,
        };
        let response = self.peers.send(&ip, port, call, timeouts).await.ok()?;
        let (head, body) = response.into_parts();
        // What is not read costs the connection, and no more.
        let _ = self.world.timeout(PATIENCE, body.collect(MOST_READ)).await;
        Some((ip, head.headers))
    }

    /// One server of each of some machines of the rings, chosen by chance.
    fn some_machines(&self) -> Vec<(Arc<str>, u16)> {
        let objects = self.rings.objects.values().map(|ring| ring.load_full());
        let mut machines: BTreeMap<Arc<str>, u16> = BTreeMap::new();
        for ring in objects.chain([self.rings.container.load_full(), self.rings.account.load_full()]) {
            for device in ring.devices() {
                machines.entry(device.ip.as_str().into()).or_insert(device.port);
            }
        }
        let mut machines: Vec<_> = machines.into_iter().collect();
        while machines.len() > MOST_ASKED {
            machines.swap_remove(self.world.random.below(machines.len()));
        }
        machines
    }
}
