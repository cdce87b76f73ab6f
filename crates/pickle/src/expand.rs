//! From the graph of nodes to a tree of values, counting what it makes.
//!
//! This is where a small pickle could become a huge value (an object named again and again
//! through the memo) or an endless one (a list inside itself): items, bytes and depth are bounded.

use std::collections::HashMap;

use crate::error::PickleError;
use crate::node::{Node, NodeId};
use crate::read::Limits;
use crate::value::Value;

pub(crate) struct Expander<'m, 'a> {
    nodes: &'m [Node<'a>],
    limits: &'m Limits,
    items: usize,
    bytes: usize,
    end: usize,
}

impl<'m, 'a> Expander<'m, 'a> {
    pub(crate) fn new(nodes: &'m [Node<'a>], limits: &'m Limits, end: usize) -> Self {
        Expander {
            nodes,
            limits,
            items: 0,
            bytes: 0,
            end,
        }
    }

    pub(crate) fn value(&mut self, id: NodeId, depth: usize) -> Result<Value, PickleError> {
        if depth > self.limits.max_depth {
            let limit = self.limits.max_depth;
            return Err(PickleError::TooLarge {
                what: "levels of nesting",
                limit,
            });
        }
        self.count(1, 0)?;
        let nodes = self.nodes;
        Ok(match &nodes[id as usize] {
            Node::None => Value::None,
            Node::Bool(flag) => Value::Bool(*flag),
            Node::Int(number) => Value::Int(*number),
            Node::Float(number) => Value::Float(*number),
            Node::Bytes(bytes) => {
                self.count(0, bytes.len())?;
                Value::Bytes(bytes.to_vec())
            }
            Node::Str(text) => {
                self.count(0, text.len())?;
                Value::Str(text.to_string())
            }
            Node::List(items) => Value::List(self.all(items, depth)?),
            Node::Tuple(items) => Value::Tuple(self.all(items, depth)?),
            Node::Set(items) => self.set(items, depth)?,
            Node::Dict(pairs) => Value::Dict(self.entries(pairs.iter().copied(), depth)?),
            Node::Headers(pairs) => Value::Headers(self.entries(pairs.iter().copied(), depth)?),
            Node::Array(code, items) => {
                self.count(items.len(), 0)?;
                Value::Array(*code, items.clone())
            }
            Node::Global(_) => return Err(self.malformed("a bare global is not data")),
        })
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
        if depth > self.limits.max_depth {
            let limit = self.limits.max_depth;
            return Err(PickleError::TooLarge {
                what: "levels of nesting",
                limit,
            });
        }
        self.count(1, 0)?;
        let nodes = self.nodes;
        Ok(match &nodes[id as usize] {
            Node::None => Key::None,
            Node::Bool(flag) => Key::Int(i64::from(*flag)),
            Node::Int(number) => Key::Int(*number),
            Node::Float(number) => Key::Float(number.to_bits()),
            Node::Bytes(bytes) => {
                self.count(0, bytes.len())?;
                Key::Bytes(bytes)
            }
            Node::Str(text) => {
                self.count(0, text.len())?;
                Key::Str(text)
            }
            Node::Tuple(items) => {
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
