//! Where the listing rows of a change to an object go: fields that PUT, POST and DELETE share.

use super::field::{FieldReader, WireField};
use super::header_names as names;
use super::targets::{CONTAINER, QUEUE, UpdateTargets};
use http::{HeaderMap, HeaderValue};

/// See the module's header.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowTargets {
    /// The container's servers that are to be sent the row.
    pub containers: UpdateTargets,
    /// `account/container` of the shard that takes the row.
    pub container_path: Option<HeaderValue>,
    /// The same, quoted; it wins.
    pub quoted_container_path: Option<HeaderValue>,
    /// How far the container is sharded.
    pub root_db_state: Option<HeaderValue>,
    /// The queue's servers that are to be sent the row of the object's expiry.
    pub queue: UpdateTargets,
    /// The queue's container.
    pub queue_container: Option<HeaderValue>,
    /// Whether the queue is to forget the object's former expiry; yes unless it says no.
    pub cleans_queue: Option<bool>,
}

/// Which of the fields a message has.
#[derive(PartialEq, Eq)]
pub(super) enum RowHeaders {
    /// All but the queue's servers and its container.
    Container,
    /// All.
    ContainerAndQueue,
}

impl WireField for RowTargets {
    type Name = RowHeaders;

    fn take(headers: &mut FieldReader, which: &RowHeaders) -> Self {
        let mut rows = Self {
            containers: WireField::take(headers, &CONTAINER),
            container_path: headers.take(&names::X_CONTAINER_PATH),
            quoted_container_path: headers.take(&names::X_QUOTED_CONTAINER_PATH),
            root_db_state: headers.take(&names::X_ROOT_DB_STATE),
            cleans_queue: WireField::take(headers, &names::X_CLEAN_QUEUE),
            ..Self::default()
        };
        if *which == RowHeaders::ContainerAndQueue {
            rows.queue = WireField::take(headers, &QUEUE);
            rows.queue_container = headers.take(&names::X_DELETE_AT_CONTAINER);
        }
        rows
    }

    fn put(self, headers: &mut HeaderMap, which: RowHeaders) {
        self.containers.put(headers, CONTAINER);
        self.container_path.put(headers, names::X_CONTAINER_PATH);
        self.quoted_container_path.put(headers, names::X_QUOTED_CONTAINER_PATH);
        self.root_db_state.put(headers, names::X_ROOT_DB_STATE);
        if which == RowHeaders::ContainerAndQueue {
            self.queue.put(headers, QUEUE);
            self.queue_container.put(headers, names::X_DELETE_AT_CONTAINER);
        }
        self.cleans_queue.put(headers, names::X_CLEAN_QUEUE);
    }
}
