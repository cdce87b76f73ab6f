//! Silent devices of storage servers, which answer none of their requests ([`peer::Silence`]): what the gateway does.
//!
//! A silent device is passed over: a read asks it after all others, and only if those leave the result open; a write
//! goes to a handoff, and where none is left, to the silent device only if there is no quorum without it. A request
//! that passes one over starts a HEAD of the gateway's own to it unless such a HEAD is under way: its answer ends the
//! silence.
//! A write under a write lock passes none over: what lies on handoffs is not seen by the next who takes the lock, for
//! whom primaries speak.
//! What a silent device did not answer in time has been counted against it, as any failure. It may be left alone for
//! that, and is asked for its silence all the same: its answer ends both, unless it says that the device
//! is gone, or has ended both lately (`suppression.rs`).
//! Always holds: no device is given up; where all are silent, all are asked and waited for as if none were.
//! Deliberately absent: nodes that fail or refuse otherwise (`suppression.rs`).

use crate::nodes::Node;
use crate::shared::Shared;
use http::StatusCode;
use peer::message::{HeaderField, Message, ReadAccount, ReadContainer, ReadObject};
use peer::{Call, Target, Timeouts};
use vocabulary::{PolicyIndex, Timestamp};

impl Shared {
    /// Whether `node`, to which `call` would have gone, is left alone for its failures.
    pub(crate) fn is_left_alone(&self, node: &Node, call: impl FnOnce() -> Call) -> bool {
        let is_suppressed = self.suppression.is_suppressed(node);
        if is_suppressed {
            // They may be over with its silence.
            self.is_silent(node, call);
        }
        is_suppressed
    }

    /// Whether `node`, to which `call` would have gone, is to be passed over.
    pub(crate) fn is_silent(&self, node: &Node, call: impl FnOnce() -> Call) -> bool {
        if !self.silence.is_silent(node) {
            return false;
        }
        let call = call();
        if is_under_lock(&call.message) {
            return false;
        }
        if let Some(asked) = self.silence.probe(node) {
            let (peers, suppression, call) = (self.peers.clone(), self.suppression.clone(), head_of(call));
            let (ip, port) = node.address(&call.context);
            let (ip, node) = (ip.clone(), node.clone());
            let timeouts = Timeouts {
                connect: self.options.conn_timeout,
                response: self.options.node_timeout,
            };
            self.world.spawn(async move {
                let Ok(response) = peers.send(&ip, port, call, timeouts).await else {
                    return;
                };
                if asked.answered() {
                    suppression.forgive(&node);
                }
                if response.status() == StatusCode::INSUFFICIENT_STORAGE {
                    suppression.out_of_service(&node);
                }
            });
        }
        true
    }
}

/// Whether it is a write that counts only while a write lock is held.
pub(crate) fn is_under_lock(message: &Message) -> bool {
    match message {
        Message::PutObject(put) => put.write_lock.is_some(),
        Message::PostObject(post) => post.write_lock.is_some(),
        Message::DeleteObject(delete) => delete.write_lock.is_some(),
        _ => false,
    }
}

/// A HEAD of what `call` is about: it reaches the device, and costs it little.
fn head_of(call: Call) -> Call {
    let message = match call.message {
        Message::PutObject(put) => object(put.target, put.policy),
        Message::PostObject(post) => object(post.target, post.policy),
        Message::DeleteObject(delete) => object(delete.target, delete.policy),
        Message::LockObject(lock) => object(lock.target, lock.policy),
        Message::ReadObject(read) => object(read.target, read.policy),
        Message::PutContainer(put) => container(put.target, put.timestamp),
        Message::PostContainer(post) => container(post.target, post.timestamp),
        Message::DeleteContainer(delete) => container(delete.target, delete.timestamp),
        Message::UpdateContainer(update) => container(update.target, update.timestamp),
        Message::ReadContainer(read) => container(read.target, read.timestamp),
        Message::PutAccount(put) => account(put.target, put.timestamp),
        Message::PostAccount(post) => account(post.target, post.timestamp),
        Message::DeleteAccount(delete) => account(delete.target, delete.timestamp),
        Message::ReadAccount(read) => account(read.target, read.timestamp),
        // No gateway sends these.
        other => other,
    };
    Call::new(call.context, message)
}

fn object(target: Target, policy: HeaderField<PolicyIndex>) -> Message {
    let read = ReadObject::new(target);
    Message::ReadObject(ReadObject {
        head_only: true,
        policy,
        ..read
    })
}

fn container(target: Target, timestamp: HeaderField<Timestamp>) -> Message {
    let read = ReadContainer::new(target);
    Message::ReadContainer(ReadContainer {
        head_only: true,
        timestamp,
        ..read
    })
}

fn account(target: Target, timestamp: HeaderField<Timestamp>) -> Message {
    let read = ReadAccount::new(target);
    Message::ReadAccount(ReadAccount {
        head_only: true,
        timestamp,
        ..read
    })
}
