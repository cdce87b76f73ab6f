//! On whose behalf a message is sent.

use super::field::{FieldReader, WireField};
use super::header_names::{X_TRANS_ID, X_USE_REPLICATION_NETWORK};
use http::header::{HOST, REFERER, USER_AGENT};
use http::{HeaderMap, HeaderValue};
use std::sync::Arc;

/// What every message carries, whatever it is about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestContext {
    /// The transaction that the message belongs to.
    pub trans_id: Option<Arc<str>>,
    /// The program that sends it.
    pub user_agent: Option<HeaderValue>,
    /// The request that it follows from.
    pub referer: Option<HeaderValue>,
    /// What the sender calls the server; of messages that came over a connection.
    pub host: Option<HeaderValue>,
    /// The message belongs on the network between storage servers.
    pub uses_replication_network: bool,
}

const REPLICATION_NETWORK: (http::HeaderName, &str) = (X_USE_REPLICATION_NETWORK, "true");

impl RequestContext {
    /// Takes the context out of `headers`.
    pub fn decode(headers: &mut HeaderMap) -> Self {
        let mut fields = FieldReader::new(std::mem::take(headers));
        let trans_id = fields.take(&X_TRANS_ID);
        let text = |value: HeaderValue| Some(std::str::from_utf8(value.as_bytes()).ok()?.into());
        let context = Self {
            trans_id: trans_id.and_then(text),
            user_agent: fields.take(&USER_AGENT),
            referer: fields.take(&REFERER),
            host: fields.take(&HOST),
            uses_replication_network: bool::take(&mut fields, &REPLICATION_NETWORK),
        };
        *headers = fields.rest();
        context
    }

    /// Puts it into `headers`.
    pub fn encode(self, headers: &mut HeaderMap) {
        let trans_id = self.trans_id.and_then(|id| HeaderValue::from_str(&id).ok());
        trans_id.put(headers, X_TRANS_ID);
        self.user_agent.put(headers, USER_AGENT);
        self.referer.put(headers, REFERER);
        self.host.put(headers, HOST);
        self.uses_replication_network.put(headers, REPLICATION_NETWORK);
    }

    /// The transaction id, `-` without one.
    pub fn trans_id(&self) -> &str {
        self.trans_id.as_deref().unwrap_or("-")
    }
}
