//! From the graph of nodes to a tree of values, counting what it makes.
//!
//! This is where a small pickle could become a huge value (an object named again and again
//! through the memo) or an endless one (a list inside itself): items, bytes and depth are bounded.

use std::collections::HashMap;

use crate::error::PickleError;
use crate::limits::PickleLimits;
use crate::node::{NodeId, PickleNode};
use crate::value::Value;

pub(crate) struct Expander<'m, 'a> {
    nodes: &'m [PickleNode<'a>],
    limits: &'m PickleLimits,
    items: usize,
    bytes: usize,
    end: usize,
}

impl<'m, 'a> Expander<'m, 'a> {
    pub(crate) fn new(nodes: &'m [PickleNode<'a>], limits: &'m PickleLimits, end: usize) -> Self {
        Expander {
            nodes,
            limits,
            items: 0,
            bytes: 0,
            end,
        }
    }

    pub(crate) fn value(&mut self, id: NodeId, depth: usize) -> Result<Value, PickleError> {
        self.enter(depth)?;
        let nodes = self.nodes;
        Ok(match &nodes[id as usize] {
            PickleNode::None => Value::None,
            PickleNode::Bool(flag) => Value::Bool(*flag),
            PickleNode::Int(number) => Value::Int(*number),
            PickleNode::Float(number) => Value::Float(*number),
            PickleNode::Bytes(bytes) => {
                self.count(0, bytes.len())?;
                Value::Bytes(bytes.to_vec())
            }
            PickleNode::Str(text) => {
                self.count(0, text.len())?;
                Value::Str(text.to_string())
            }
            PickleNode::List(items) => Value::List(self.all(items, depth)?),
            PickleNode::Tuple(items) => Value::Tuple(self.all(items, depth)?),
            PickleNode::Set(items) => self.set(items, depth)?,
            PickleNode::Dict(pairs) => Value::Dict(self.entries(pairs.iter().copied(), depth)?),
            PickleNode::Headers(pairs) => Value::Headers(self.entries(pairs.iter().copied(), depth)?),
            PickleNode::Array(code, items) => {
                self.count(items.len(), 0)?;
                Value::Array(*code, items.clone())
            }
            PickleNode::Global(_) => return Err(self.malformed("a bare global is not data")),
        })
    }

    /// Counts a value at this depth.
    fn enter(&mut self, depth: usize) -> Result<(), PickleError> {
        let limit = self.limits.max_depth;
        if depth > limit {
            let what = "levels of nesting";
            return Err(PickleError::TooLarge { what, limit });
        }
        self.count(1, 0)
    }

    fn all(&mut self, items: &[NodeId], depth: usize) -> Result<Vec<Value>, PickleError> {
        items.iter().map(|&item| self.value(item, depth + 1)).collect()
    }

    fn set(&mut self, items: &[NodeId], depth: usize) -> Result<Value, PickleError> {
        let entries = self.entries(items.iter().map(|&item| (item, item)), depth)?;
        Ok(Value::Set(entries.into_iter().map(|(key, _)| key).collect()))
    }

    /// As in Python, a key that comes again keeps its place and takes the later value.
    fn entries(
        &mut self,
        pairs: impl Iterator<Item = (NodeId, NodeId)>,
        depth: usize,
    ) -> Result<Vec<(Value, Value)>, PickleError> {
        // Grown as entries are counted, so that nothing is reserved before it is paid for.
        let mut entries: Vec<(Value, Value)> = Vec::new();
        let mut places: HashMap<Key, usize> = HashMap::new();
        for (key, value) in pairs {
            let place = *places.entry(self.key(key, depth + 1)?).or_insert(entries.len());
            let value = self.value(value, depth + 1)?;
            if let Some(entry) = entries.get_mut(place) {
                entry.1 = value;
            } else {
                entries.push((self.value(key, depth + 1)?, value));
            }
        }
        Ok(entries)
    }

    /// The key by which a dictionary tells its entries apart; mutable objects cannot be one.
    fn key(&mut self, id: NodeId, depth: usize) -> Result<Key<'m>, PickleError> {
        self.enter(depth)?;
        let nodes = self.nodes;
        Ok(match &nodes[id as usize] {
            PickleNode::None => Key::None,
            PickleNode::Bool(flag) => Key::Int(i64::from(*flag)),
            PickleNode::Int(number) => Key::Int(*number),
            PickleNode::Float(number) => Key::Float(number.to_bits()),
            PickleNode::Bytes(bytes) => {
                self.count(0, bytes.len())?;
                Key::Bytes(bytes)
            }
            PickleNode::Str(text) => {
                self.count(0, text.len())?;
                Key::Str(text)
            }
            PickleNode::Tuple(items) => {
                let keys: Result<Vec<_>, _> = items.iter().map(|&item| self.key(item, depth + 1)).collect();
                Key::Tuple(keys?)
            }
            _ => return Err(self.malformed("a dict key is not hashable")),
        })
    }

    fn count(&mut self, items: usize, bytes: usize) -> Result<(), PickleError> {
        self.items = self.items.saturating_add(items);
        self.bytes = self.bytes.saturating_add(bytes);
        if self.items > self.limits.max_items {
            return Err(PickleError::TooLarge {
                what: "items",
                limit: self.limits.max_items,
            });
        }
        if self.bytes > self.limits.max_bytes {
            return Err(PickleError::TooLarge {
                what: "bytes",
                limit: self.limits.max_bytes,
            });
        }
        Ok(())
    }

    fn malformed(&self, what: &'static str) -> PickleError {
        PickleError::Malformed { offset: self.end, what }
    }
}

/// What a dictionary compares.
#[derive(PartialEq, Eq, Hash)]
enum Key<'m> {
    None,
    Int(i64),
    Float(u64),
    Bytes(&'m [u8]),
    Str(&'m str),
    Tuple(Vec<Key<'m>>),
}
