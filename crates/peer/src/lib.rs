//! The backend language: how a gateway or a daemon speaks to a storage service.
//!
//! Comes in: a [`Call`] for a node of a ring. Goes out: an HTTP response whose body streams.
//! There is one interface ([`Service`]) and two ways to it ([`Peers`]): a service in this process
//! is called directly, any other over pooled keep-alive HTTP. The same service code stands behind
//! both ([`http_server`] is the door for the second).
//! Always holds: bodies stream in bounded buffers; a request body is not touched before the service
//! has accepted the request, and its first touch is what the sender sees as "100 Continue"; a body
//! that was not finished by its sender is never mistaken for a whole one.
//! Deliberately absent: rings, quorums, policies on retries; what the verbs mean.
//!
//! | question | file |
//! |---|---|
//! | what is a body and how is it fed | `body.rs` |
//! | headers that are known only at a body's end | `footer.rs`, `footer_mime.rs` |
//! | what is asked of whom | `call.rs`, `address.rs`; in which words: `message/` |
//! | local or remote | `peers.rs` |
//! | connections that are made and kept | `connect.rs`, `http_client.rs`, `url.rs` |
//! | words about a certificate that is refused | `refused_certificate.rs` |
//! | accepting connections | `http_server.rs` |
//! | how many there may be, and which have to end | `connections.rs`, `activity.rs`, `watch.rs` |
//! | how many requests an account may have | `shares.rs` |
//! | whose request is next where few go on at a time | `turn_queues.rs`; `seats.rs`, `fair_places.rs` |
//! | which devices answer none of their requests | `silence.rs` |
//! | what refused clients hear, and the log of them | `busy.rs`, `refusals.rs` |
//! | one connection's requests | `requests.rs` |
//! | TLS, PROXY preambles | `arrival.rs`, `tls.rs`, `proxied.rs` |
//! | TLS between nodes, and who may ask what | `cluster_tls/` |
//! | `100 Continue` with headers, in the middle of a request | `interim.rs` |
//! | the words of SSYNC | `ssync.rs` |
//! | many DELETE requests in one call | `deletes.rs` |
//! | header names that HTTP libraries refuse | `heads.rs` (in), `names.rs` (out) |

mod activity;
pub mod address;
mod answer;
pub mod arrival;
pub mod body;
mod body_error;
mod busy;
pub mod call;
pub mod cluster_tls;
mod connect;
mod connections;
pub mod deletes;
mod digest;
mod fair_places;
mod feed;
mod footer;
mod footer_mime;
mod heads;
mod http_client;
pub mod http_server;
mod http_service;
mod idle;
pub mod interim;
mod loan;
pub mod message;
mod names;
pub mod peers;
pub mod proxied;
pub mod refusals;
mod refused_certificate;
mod repeated;
mod requests;
mod response_date;
mod seats;
mod shares;
mod silence;
pub mod ssync;
pub mod tls;
mod turn_queues;
mod url;
mod watch;

pub use address::{Address, PartitionTarget, Target};
pub use arrival::{Arrival, Https};
pub use body::{Body, Meter};
pub use body_error::BodyError;
pub use call::{Call, DATABASE_HEADER, OFFER_HEADER, OFFER_VALUE, RawCall, Response, Service};
pub use cluster_tls::{
    ClusterArrival, ClusterClient, ClusterFiles, ClusterRole, ClusterRoles, ClusterTls, PlainNodeError, PlainNodes,
    UnknownRole,
};
pub use connect::{PeerError, Timeouts};
pub use digest::Digest;
pub use fair_places::{FairPlace, FairPlaces};
pub use feed::Feed;
pub use footer::Footer;
pub use heads::escape_requests;
pub use http_client::{HttpClient, LONGEST_HEAD};
pub use http_server::{HttpService, ServerOptions, StorageDoor};
pub use interim::Interim;
pub use loan::Loan;
pub use peers::Peers;
pub use refusals::{ServerRefusal, ServerRefusals};
pub use shares::AccountPlace;
pub use silence::{AskedDevice, Silence};
pub use tls::{Tls, TlsError};
pub use turn_queues::client_network;
pub use url::Url;
