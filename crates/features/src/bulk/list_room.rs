//! The memory that lists of names may take together.
//!
//! A list is read before it is known who sends it: the report says of each name what the client may not do. So
//! strangers can fill the room of lists. Then further ones are read only for clients that say who they are, in a room
//! of their own.
//! Always holds: lists of strangers take no more than [`MOST_OF_LISTS`] together; what they take keeps out none of
//! those that the cluster knows; in the first room clients' addresses are the tenants, in the second the accounts that
//! they may see, or else their addresses (`memory_room.rs` in `request-pipeline` has what a tenant may take).

use super::delete::add_agent;
use super::{AGENT, SOURCE};
use http::{Method, StatusCode};
use request_pipeline::{ClientRequest, MemoryRoom, MemorySeat, Next, NoRoom};
use vocabulary::EntityPath;

/// Bytes that lists take together, and as many again those of clients that say who they are: six of the longest.
const MOST_OF_LISTS: u64 = 64 << 20;

/// Bytes that a list must find free to be read at all.
const LEAST_ROOM: u64 = 64 << 10;

/// See the module's header.
pub(super) struct ListRoom {
    everybody: MemoryRoom,
    known: MemoryRoom,
}

/// What one list has of it, until it is dropped.
pub struct ListSeat {
    everybody: MemorySeat,
    /// Once there was no more of that.
    known: Option<MemorySeat>,
    /// What to ask whether the client is known, until that was asked.
    question: Option<Box<Question>>,
}

struct Question {
    request: ClientRequest,
    account: String,
    next: Next,
    room: MemoryRoom,
}

impl ListRoom {
    /// Of so many bytes for all, and as many for those who say who they are.
    pub(super) fn of(bytes: u64) -> Self {
        Self {
            everybody: MemoryRoom::of(bytes),
            known: MemoryRoom::of(bytes),
        }
    }

    /// For the list of this client about this account; an error while there is no room for any.
    pub(super) async fn enter(&self, client: &ClientRequest, account: &str, next: &Next) -> Result<ListSeat, NoRoom> {
        let mut request = client.subrequest(Method::HEAD, EntityPath::account(account), SOURCE);
        add_agent(&mut request, AGENT);
        let question = Question {
            request,
            account: account.to_owned(),
            next: next.clone(),
            room: self.known.clone(),
        };
        let mut seat = ListSeat {
            question: Some(Box::new(question)),
            ..ListSeat::of(self.everybody.enter_from(client.from.ip()))
        };
        if seat.everybody.other().grow(LEAST_ROOM).is_err() {
            seat.go_to_known().await?.other().grow(LEAST_ROOM)?;
        }
        Ok(seat)
    }

    #[cfg(test)]
    pub(super) fn everybody(&self) -> &MemoryRoom {
        &self.everybody
    }
}

impl Default for ListRoom {
    fn default() -> Self {
        Self::of(MOST_OF_LISTS)
    }
}

impl ListSeat {
    /// In this room alone.
    pub fn in_room(room: &MemoryRoom, tenant: &str) -> Self {
        Self::of(room.enter(tenant))
    }

    fn of(everybody: MemorySeat) -> Self {
        Self {
            everybody,
            known: None,
            question: None,
        }
    }

    /// Takes so many bytes more.
    pub(super) async fn grow(&mut self, bytes: u64) -> Result<(), NoRoom> {
        if self.known.is_none() && self.everybody.grow(bytes).is_ok() {
            return Ok(());
        }
        self.go_to_known().await?.grow(bytes)
    }

    /// The seat among those who say who they are; an error when the client does not.
    async fn go_to_known(&mut self) -> Result<&mut MemorySeat, NoRoom> {
        if let Some(question) = self.question.take() {
            let Question {
                request,
                account,
                next,
                room,
            } = *question;
            self.known = match next.run(request).await.status() {
                status if status.is_success() => Some(room.enter(account)),
                // Known, perhaps by the ACLs of containers, but any account can be named.
                StatusCode::FORBIDDEN => Some(self.everybody.in_another(&room)),
                // What answers otherwise has not looked at the client.
                _ => None,
            };
        }
        self.known.as_mut().ok_or(NoRoom)
    }
}
