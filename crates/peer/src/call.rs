//! What is asked of a storage service, the same whether it travels or not.

use crate::address::{Address, Target};
use crate::message::{Message, RawRequest, RequestContext, ServerKind};
use crate::{Body, Interim};
use http::{HeaderMap, Method};
use tracing::Span;

/// On answers to REPLICATE `sync`: see [`crate::message::header_names::X_MARTLET_TAKES`].
pub const OFFER_HEADER: &str = "x-martlet-takes";
/// See [`OFFER_HEADER`].
pub const OFFER_VALUE: &str = "database";
/// On REPLICATE: see [`crate::message::header_names::X_MARTLET_DATABASE`].
pub const DATABASE_HEADER: &str = "x-martlet-database";

/// What every service answers with.
pub type Response = http::Response<Body>;

/// A storage service: object, container or account server.
#[async_trait::async_trait]
pub trait Service: Send + Sync {
    /// Answers one call. Errors are answers too (`507`, `503`, …).
    async fn call(&self, call: Call) -> Response;
}

/// One request to a storage service.
#[derive(Debug)]
pub struct Call {
    /// On whose behalf. Of a [`Message::Raw`] it still stands among the headers.
    pub context: RequestContext,
    /// What is asked.
    pub message: Message,
    /// The body. Not touching it before the request is accepted is what "Expect" means.
    pub body: Body,
    /// For informational answers with headers; only on calls that came over a connection.
    pub interim: Option<Interim>,
}

impl Call {
    /// A call without a body.
    pub fn new(context: RequestContext, message: impl Into<Message>) -> Self {
        Self {
            context,
            message: message.into(),
            body: Body::empty(),
            interim: None,
        }
    }

    /// With this body.
    pub fn with_body(self, body: Body) -> Self {
        Self { body, ..self }
    }

    /// As a server of this kind understands it.
    pub fn decoded(mut self, kind: ServerKind) -> Self {
        if let Message::Raw(raw) = &mut self.message {
            self.context = RequestContext::decode(&mut raw.headers);
        }
        let message = self.message.decoded(kind);
        Self { message, ..self }
    }

    /// The span of a request that came over a connection, once it is decoded: every line logged meanwhile carries its
    /// transaction id. A call from within the process stays in the span of its caller.
    pub fn span(&self) -> Span {
        match &self.interim {
            Some(_) => tracing::error_span!("request", txn = self.context.trans_id()),
            None => Span::none(),
        }
    }

    /// As HTTP has it.
    pub fn into_raw(self) -> RawCall {
        let RawRequest {
            method,
            address,
            query,
            mut headers,
        } = self.message.into_raw();
        self.context.encode(&mut headers);
        RawCall {
            method,
            address,
            query,
            headers,
            body: self.body,
            interim: self.interim,
        }
    }
}

/// One request as HTTP has it: a bridge for senders and receivers that do not use messages yet.
#[derive(Debug)]
pub struct RawCall {
    /// The verb; Swift's own are REPLICATE, SSYNC and UPDATE, ours is DELETES.
    pub method: Method,
    /// Where it goes.
    pub address: Address,
    /// The query string, encoded; empty when there is none.
    pub query: String,
    /// Headers, Swift's backend headers among them.
    pub headers: HeaderMap,
    /// The body.
    pub body: Body,
    /// For informational answers with headers; only on calls that came over a connection.
    pub interim: Option<Interim>,
}

impl RawCall {
    /// A call without a body.
    pub fn new(method: Method, target: Target, headers: HeaderMap) -> Self {
        let (address, query) = (Address::Entity(target), String::new());
        Self {
            method,
            address,
            query,
            headers,
            body: Body::empty(),
            interim: None,
        }
    }

    /// With this body.
    pub fn with_body(self, body: Body) -> Self {
        Self { body, ..self }
    }

    /// With this query string (encoded already).
    pub fn with_query(self, query: impl Into<String>) -> Self {
        Self {
            query: query.into(),
            ..self
        }
    }
}

impl From<RawCall> for Call {
    fn from(call: RawCall) -> Self {
        let message = Message::Raw(RawRequest {
            method: call.method,
            address: call.address,
            query: call.query,
            headers: call.headers,
        });
        Self {
            context: RequestContext::default(),
            message,
            body: call.body,
            interim: call.interim,
        }
    }
}
