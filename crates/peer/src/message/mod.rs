//! One struct per backend message, and its one encoding in Swift's headers.
//!
//! A message has typed fields for what servers say to each other, and `headers` for what belongs to the entity itself
//! (content type, metadata, conditions and ranges of a client). A service in this process gets the struct as it is; for
//! any other, the message is encoded once, and the receiving server decodes it once ([`Message::decoded`]).
//!
//! **To convert a receiver**: begin with `let call = call.decoded(ServerKind::Object)` and match on `call.message`. A
//! field is a [`HeaderField`]: `message.timestamp.required(missing, malformed)?` gives OpenStack's refusal at
//! the place among the checks where it belongs. What no message can be made of (an unknown verb, a path that the
//! verb does not take) stays a [`RawRequest`]. The transaction id, `User-Agent`, `Referer` and `Host` are in
//! `call.context`.
//! **To convert a sender**: `Call::new(context, PutObject { timestamp: now.into(), ..PutObject::new(target) })`. What
//! has no field goes into `headers`, made once for all replicas.
//!
//! Always holds: what is encoded is decoded to the same message; a header that no field is for is passed on as it is.
//! Deliberately absent: what the verbs mean, and what a malformed field is refused with.
//!
//! | question | file |
//! |---|---|
//! | how a header is called | `header_names.rs` |
//! | how a field is read and written | `field.rs` |
//! | which servers are sent a listing row | `row_targets.rs`, `targets.rs` |
//! | transaction id and sender | `context.rs` |
//! | objects, containers, accounts, replicators | `object.rs`, `container.rs`, `account.rs`, `replicate.rs` |

mod account;
mod container;
mod context;
mod field;
pub mod header_names;
mod object;
mod replicate;
mod row_targets;
mod targets;
#[cfg(test)]
mod tests;

pub use account::{DeleteAccount, PostAccount, PutAccount, ReadAccount, UpdateAccount};
pub use container::{DeleteContainer, PostContainer, PutContainer, ReadContainer, RowChange, UpdateContainer};
pub use context::RequestContext;
pub use field::{HeaderField, HeaderText};
pub use object::{DeleteObject, LockObject, PostObject, PutObject, ReadObject};
pub use replicate::{DeleteObjects, ReplicateDatabase, ReplicateSuffixes, Ssync};
pub use row_targets::RowTargets;
pub use targets::{UpdateNode, UpdateTargets};

use crate::address::{Address, PartitionTarget, Target};
use crate::deletes::DELETES;
use http::{HeaderMap, Method};
use std::sync::Arc;
use vocabulary::Partition;

/// A request as HTTP has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawRequest {
    /// The verb.
    pub method: Method,
    /// Where it goes.
    pub address: Address,
    /// The query string, encoded; empty when there is none.
    pub query: String,
    /// Headers, Swift's backend headers among them.
    pub headers: HeaderMap,
}

/// Which server a request is for: the same line means other things to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerKind {
    /// Objects.
    Object,
    /// Containers and their rows.
    Container,
    /// Accounts and their rows.
    Account,
}

macro_rules! message_enum {
    ($($name:ident),*) => {
        /// What one server says to another.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[expect(clippy::large_enum_variant, reason = "a box would cost each request an allocation")]
        pub enum Message {
            $(#[doc = concat!("See [`struct@", stringify!($name), "`].")] $name($name),)*
            /// Not decoded yet, or nothing that is a message: `/healthcheck`, OPTIONS, unknown verbs.
            Raw(RawRequest),
        }

        $(impl From<$name> for Message {
            fn from(message: $name) -> Self {
                Self::$name(message)
            }
        })*

        impl Message {
            /// As HTTP has it.
            pub fn into_raw(self) -> RawRequest {
                let method = self.method();
                let query = self.query().to_owned();
                match self {
                    $(Self::$name(message) => RawRequest {
                        method,
                        query,
                        address: message.target.clone().into(),
                        headers: message.encode(),
                    },)*
                    Self::Raw(raw) => raw,
                }
            }

            /// The same for this device and partition.
            pub fn sent_to(&self, device: &Arc<str>, partition: Partition) -> Self {
                let mut sent = self.clone();
                match &mut sent {
                    $(Self::$name(message) => {
                        message.target.device = device.clone();
                        message.target.partition = partition;
                    })*
                    Self::Raw(_) => {}
                }
                sent
            }

            /// Where it goes.
            pub fn address(&self) -> Address {
                match self {
                    $(Self::$name(message) => message.target.clone().into(),)*
                    Self::Raw(raw) => raw.address.clone(),
                }
            }
        }
    };
}

message_enum!(
    PutObject,
    PostObject,
    DeleteObject,
    ReadObject,
    PutContainer,
    PostContainer,
    DeleteContainer,
    ReadContainer,
    UpdateContainer,
    PutAccount,
    PostAccount,
    DeleteAccount,
    ReadAccount,
    UpdateAccount,
    ReplicateSuffixes,
    ReplicateDatabase,
    Ssync,
    DeleteObjects,
    LockObject
);

impl Message {
    /// Its verb.
    pub fn method(&self) -> Method {
        let read = |head_only: bool| if head_only { Method::HEAD } else { Method::GET };
        match self {
            Self::PutObject(_) | Self::PutContainer(_) | Self::PutAccount(_) | Self::UpdateAccount(_) => Method::PUT,
            Self::PostObject(_) | Self::PostContainer(_) | Self::PostAccount(_) => Method::POST,
            Self::DeleteObject(_) | Self::DeleteContainer(_) | Self::DeleteAccount(_) => Method::DELETE,
            Self::ReadObject(read_object) => read(read_object.head_only),
            Self::ReadContainer(read_container) => read(read_container.head_only),
            Self::ReadAccount(read_account) => read(read_account.head_only),
            Self::UpdateContainer(update) => match update.change {
                RowChange::Put => Method::PUT,
                RowChange::Delete => Method::DELETE,
                RowChange::Batch => own_verb("UPDATE"),
            },
            Self::ReplicateSuffixes(_) | Self::ReplicateDatabase(_) => own_verb("REPLICATE"),
            Self::Ssync(_) => own_verb("SSYNC"),
            Self::DeleteObjects(_) => own_verb(DELETES),
            Self::LockObject(_) => own_verb(LOCK),
            Self::Raw(raw) => raw.method.clone(),
        }
    }

    /// Its query string, encoded; empty when there is none.
    pub fn query(&self) -> &str {
        match self {
            Self::ReadContainer(read) => &read.query,
            Self::ReadAccount(read) => &read.query,
            Self::Raw(raw) => &raw.query,
            _ => "",
        }
    }

    /// The message as a server of this kind understands it: what has been decoded already stays as it is.
    pub fn decoded(self, kind: ServerKind) -> Self {
        match self {
            Self::Raw(raw) => raw.decode(kind),
            decoded => decoded,
        }
    }
}

/// The verb of [`LockObject`].
const LOCK: &str = "LOCK";

fn own_verb(name: &'static str) -> Method {
    // Letters only: always a method.
    Method::from_bytes(name.as_bytes()).unwrap_or_default()
}

impl RawRequest {
    fn decode(self, kind: ServerKind) -> Message {
        match self.address {
            Address::Entity(_) => self.decode_entity(kind),
            Address::Partition(_) => self.decode_partition(kind),
            Address::Plain(_) => Message::Raw(self),
        }
    }

    fn decode_entity(self, kind: ServerKind) -> Message {
        let Address::Entity(target) = self.address else {
            return Message::Raw(self);
        };
        let (has_container, has_object) = (target.path.container.is_some(), target.path.object.is_some());
        let decode = match (kind, has_container, has_object) {
            (ServerKind::Object, true, true) => about_object,
            (ServerKind::Container, true, false) => about_container,
            (ServerKind::Container, true, true) => about_object_row,
            (ServerKind::Account, false, false) => about_account,
            (ServerKind::Account, true, false) => about_container_row,
            _ => unknown,
        };
        let (method, query, headers) = (self.method, self.query, self.headers);
        decode(Line { method, target, query }, headers)
    }

    fn decode_partition(self, kind: ServerKind) -> Message {
        let Address::Partition(target) = self.address else {
            return Message::Raw(self);
        };
        match (self.method.as_str(), kind) {
            ("REPLICATE", ServerKind::Object) => ReplicateSuffixes::decode(target, self.headers).into(),
            ("REPLICATE", _) => ReplicateDatabase::decode(target, self.headers).into(),
            ("SSYNC", ServerKind::Object) => Ssync::decode(target, self.headers).into(),
            (DELETES, ServerKind::Object) => DeleteObjects::decode(target, self.headers).into(),
            _ => Message::Raw(RawRequest {
                address: Address::Partition(target),
                ..self
            }),
        }
    }
}

/// A request's line.
struct Line {
    method: Method,
    target: Target,
    query: String,
}

fn unknown(line: Line, headers: HeaderMap) -> Message {
    let Line { method, target, query } = line;
    Message::Raw(RawRequest {
        method,
        address: Address::Entity(target),
        query,
        headers,
    })
}

fn about_object(line: Line, headers: HeaderMap) -> Message {
    match line.method.as_str() {
        "PUT" => PutObject::decode(line.target, headers).into(),
        "POST" => PostObject::decode(line.target, headers).into(),
        "DELETE" => DeleteObject::decode(line.target, headers).into(),
        LOCK => LockObject::decode(line.target, headers).into(),
        "GET" | "HEAD" => Message::ReadObject(ReadObject {
            head_only: line.method == Method::HEAD,
            ..ReadObject::decode(line.target, headers)
        }),
        _ => unknown(line, headers),
    }
}

fn about_container(line: Line, headers: HeaderMap) -> Message {
    match line.method.as_str() {
        "PUT" => PutContainer::decode(line.target, headers).into(),
        "POST" => PostContainer::decode(line.target, headers).into(),
        "DELETE" => DeleteContainer::decode(line.target, headers).into(),
        "GET" | "HEAD" => read_container(line, headers),
        "UPDATE" => update_container(line, headers, RowChange::Batch),
        _ => unknown(line, headers),
    }
}

fn about_object_row(line: Line, headers: HeaderMap) -> Message {
    match line.method.as_str() {
        "PUT" => update_container(line, headers, RowChange::Put),
        "DELETE" => update_container(line, headers, RowChange::Delete),
        // As OpenStack's server has it: the object is overlooked.
        "GET" | "HEAD" => read_container(line, headers),
        _ => unknown(line, headers),
    }
}

fn read_container(line: Line, headers: HeaderMap) -> Message {
    Message::ReadContainer(ReadContainer {
        head_only: line.method == Method::HEAD,
        query: line.query,
        ..ReadContainer::decode(line.target, headers)
    })
}

fn update_container(line: Line, headers: HeaderMap, change: RowChange) -> Message {
    Message::UpdateContainer(UpdateContainer {
        change,
        ..UpdateContainer::decode(line.target, headers)
    })
}

fn about_account(line: Line, headers: HeaderMap) -> Message {
    match line.method.as_str() {
        "PUT" => PutAccount::decode(line.target, headers).into(),
        "POST" => PostAccount::decode(line.target, headers).into(),
        "DELETE" => DeleteAccount::decode(line.target, headers).into(),
        "GET" | "HEAD" => Message::ReadAccount(ReadAccount {
            head_only: line.method == Method::HEAD,
            query: line.query,
            ..ReadAccount::decode(line.target, headers)
        }),
        _ => unknown(line, headers),
    }
}

fn about_container_row(line: Line, headers: HeaderMap) -> Message {
    match line.method {
        Method::PUT => UpdateAccount::decode(line.target, headers).into(),
        _ => unknown(line, headers),
    }
}

impl From<Target> for Address {
    fn from(target: Target) -> Self {
        Self::Entity(target)
    }
}

impl From<PartitionTarget> for Address {
    fn from(target: PartitionTarget) -> Self {
        Self::Partition(target)
    }
}
