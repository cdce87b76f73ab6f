//! Sending questions to Keystone: how many at once, how often again, and what their failures say about Keystone.
//!
//! A question that a client causes fails for one of two reasons. No connection is Keystone's doing, and so is no
//! answer in time where it has answered no other question meanwhile: they begin an outage (`outage.rs`). A connection
//! that breaks, an answer that is an error of the server, and one that is late while others come, may be due to what
//! the client sent: a server that reads four KiB of headers closes the connection on a longer token, and a balancer in
//! front of it makes a 502 of that. They are [`Answered::Doubtful`]: Keystone is asked something of the gateway's own
//! before other clients' questions are refused. That begins an outage however it fails.
//! Always holds: at most [`MOST_AT_ONCE`] questions are under way, besides one each second of an outage, and none
//! waits to be sent for longer than [`LONGEST_WAIT`]; clients' addresses take turns, so that the questions of one leave
//! places to the others'; a question whose connection broke is sent twice at most.

use super::connections::{Ask, KeystoneConnections, KeystoneResponse};
use super::outage::{KeystoneOutage, Passage};
use super::unavailable::Unavailable;
use peer::{FairPlace, FairPlaces, PeerError, client_network};
use std::net::IpAddr;
use std::time::Duration;
use world::World;

/// Questions under way to Keystone; more wait.
const MOST_AT_ONCE: usize = 64;

/// Questions that wait for that; beyond, those of the address that has most are not sent.
const MOST_WAITING: usize = 4096;

/// How long a question waits for its place among those, or for a login that is under way.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The first pause before a question that found no connection is sent again; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// The pause before a question whose connection broke is sent again, perhaps to another process of Keystone.
const BROKEN_PAUSE: Duration = Duration::from_millis(100);

/// The reason for a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// It is about what a client sent.
    Client,
    /// It is the same whatever clients send.
    Gateway,
}

/// What became of a question.
pub(super) enum Answered {
    /// Keystone answered, or the outage has begun.
    Clear(Result<KeystoneResponse, Unavailable>),
    /// It failed, and either Keystone or the question is the reason.
    Doubtful(Result<KeystoneResponse, Unavailable>),
}

/// The way to Keystone.
pub(super) struct KeystoneQuestions {
    connections: KeystoneConnections,
    retries: u32,
    places: FairPlaces<IpAddr>,
    pub(super) outage: KeystoneOutage,
    pub(super) world: World,
}

impl KeystoneQuestions {
    /// `retries` are those of questions that find no connection.
    pub(super) fn new(connections: KeystoneConnections, retries: u32, world: World) -> Self {
        Self {
            connections,
            retries,
            places: FairPlaces::new(MOST_AT_ONCE, MOST_WAITING),
            outage: KeystoneOutage::default(),
            world,
        }
    }

    /// A place for a question that a client at this address causes; none is needed for one that finds out whether an
    /// outage is over.
    pub(super) async fn place(&self, from: IpAddr) -> Result<Option<FairPlace<IpAddr>>, Unavailable> {
        let began = self.now();
        match self.outage.passage(began) {
            Passage::InTurn => {}
            Passage::AtOnce => return Ok(None),
            Passage::None => return Err(Unavailable::Away),
        }
        match self
            .world
            .timeout(LONGEST_WAIT, self.places.wait(client_network(from)))
            .await
        {
            Ok(place) => place.map(Some).ok_or(Unavailable::Crowded),
            Err(_) if self.outage.late(began, self.now()) => Err(Unavailable::Away),
            Err(_) => Err(Unavailable::Crowded),
        }
    }

    /// Sends, and again after a pause when it did not get there.
    pub(super) async fn send(&self, ask: &Ask<'_>, cause: Cause) -> Answered {
        let began = self.now();
        let mut pause = FIRST_PAUSE;
        let mut left = self.retries;
        let mut is_broken = false;
        let answered = loop {
            match self.connections.send(ask).await {
                Err(PeerError::Connect(_)) if left > 0 => {
                    left -= 1;
                    self.world.clock.sleep(pause).await;
                    pause *= 2;
                }
                Err(PeerError::Broken(_)) if !is_broken => {
                    is_broken = true;
                    self.world.clock.sleep(BROKEN_PAUSE).await;
                }
                // What is late has been waited for long enough.
                answered => break answered,
            }
        };
        let is_at_fault = match &answered {
            Ok(answer) if !is_servers_error(answer.status()) => {
                self.outage.over(self.now());
                return Answered::Clear(answered.map_err(Into::into));
            }
            Err(PeerError::Connect(_) | PeerError::ConnectTimeout) => true,
            Err(PeerError::ResponseTimeout) if self.outage.late(began, self.now()) => true,
            Ok(_) | Err(_) => cause == Cause::Gateway,
        };
        let answered = answered.map_err(Into::into);
        match is_at_fault {
            true => {
                self.outage.failed(self.now());
                Answered::Clear(answered)
            }
            false => Answered::Doubtful(answered),
        }
    }

    fn now(&self) -> Duration {
        self.world.clock.elapsed()
    }
}

/// Whether an answer says that the server, or a balancer in front of it, cannot answer at the moment.
fn is_servers_error(status: u16) -> bool {
    status >= 500 || status == 429
}
