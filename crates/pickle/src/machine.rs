//! The pickle machine's memory: nodes, the stack with its marks, the memo, and the budget.
//!
//! What always holds: no operation reaches below the innermost mark, every node costs budget, and
//! no index on the stack or in the memo is out of range. It knows nothing of opcodes.

use std::collections::HashMap;

use crate::error::PickleError;
use crate::limits::PickleLimits;
use crate::node::{NodeId, PickleNode};

/// Integers up to this are kept once each: partition tables are long lists of small device ids.
const SMALL_INTEGERS: usize = 1 << 16;
/// … once there are so many objects that it is worth a table of all of them.
const MANY_NODES: usize = 1 << 10;

pub(crate) struct Machine<'a> {
    pub(crate) nodes: Vec<PickleNode<'a>>,
    stack: Vec<NodeId>,
    marks: Vec<usize>,
    memo: HashMap<u32, NodeId>,
    small: Vec<Option<NodeId>>,
    spent: usize,
    max_items: usize,
    /// Where the opcode at hand begins, for messages.
    pub(crate) offset: usize,
}

impl<'a> Machine<'a> {
    pub(crate) fn new(limits: &PickleLimits) -> Self {
        Machine {
            nodes: Vec::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
            small: Vec::new(),
            spent: 0,
            // Node ids are 32 bits wide.
            max_items: limits.max_items.min(u32::MAX as usize - 1),
            offset: 0,
        }
    }

    pub(crate) fn malformed(&self, what: &'static str) -> PickleError {
        PickleError::Malformed {
            offset: self.offset,
            what,
        }
    }

    /// Pays for items about to be made.
    pub(crate) fn spend(&mut self, items: usize) -> Result<(), PickleError> {
        self.spent = self.spent.saturating_add(items);
        if self.spent > self.max_items {
            return Err(PickleError::TooLarge {
                what: "items",
                limit: self.max_items,
            });
        }
        Ok(())
    }

    pub(crate) fn push(&mut self, node: PickleNode<'a>) -> Result<(), PickleError> {
        self.spend(1)?;
        self.stack.push(self.nodes.len() as NodeId);
        self.nodes.push(node);
        Ok(())
    }

    pub(crate) fn push_integer(&mut self, number: i64) -> Result<(), PickleError> {
        let is_shared = |small: &usize| *small < SMALL_INTEGERS && self.nodes.len() >= MANY_NODES;
        let small = usize::try_from(number).ok().filter(is_shared);
        let Some(small) = small else {
            return self.push(PickleNode::Int(number));
        };
        if self.small.len() <= small {
            self.small.resize(small + 1, None);
        }
        if let Some(id) = self.small[small] {
            self.spend(1)?;
            self.stack.push(id);
            return Ok(());
        }
        self.small[small] = Some(self.nodes.len() as NodeId);
        self.push(PickleNode::Int(number))
    }

    pub(crate) fn pop(&mut self) -> Result<NodeId, PickleError> {
        let floor = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() <= floor {
            return Err(self.malformed("the stack is empty"));
        }
        self.stack.pop().ok_or_else(|| self.malformed("the stack is empty"))
    }

    /// The object on top, which stays.
    pub(crate) fn top(&mut self) -> Result<NodeId, PickleError> {
        let id = self.pop()?;
        self.stack.push(id);
        Ok(id)
    }

    pub(crate) fn mark(&mut self) {
        self.marks.push(self.stack.len());
    }

    /// POP removes an object, or the mark if it is on top.
    pub(crate) fn pop_any(&mut self) -> Result<(), PickleError> {
        if self.marks.last() == Some(&self.stack.len()) {
            self.marks.pop();
            return Ok(());
        }
        self.pop().map(drop)
    }

    /// Everything above the innermost mark, and the mark.
    pub(crate) fn pop_to_mark(&mut self) -> Result<Vec<NodeId>, PickleError> {
        let floor = self.marks.pop().ok_or_else(|| self.malformed("there is no mark"))?;
        Ok(self.stack.split_off(floor))
    }

    pub(crate) fn pop_tuple(&mut self, len: usize) -> Result<(), PickleError> {
        let mut items = Vec::with_capacity(len);
        for _ in 0..len {
            items.push(self.pop()?);
        }
        items.reverse();
        self.push(PickleNode::Tuple(items))
    }

    pub(crate) fn duplicate(&mut self) -> Result<(), PickleError> {
        let id = self.top()?;
        self.spend(1)?;
        self.stack.push(id);
        Ok(())
    }

    pub(crate) fn memo_put(&mut self, number: u32) -> Result<(), PickleError> {
        let id = self.top()?;
        self.memo.insert(number, id);
        Ok(())
    }

    /// MEMOIZE numbers objects in order.
    pub(crate) fn memoize(&mut self) -> Result<(), PickleError> {
        let number = self.memo.len() as u32;
        self.memo_put(number)
    }

    pub(crate) fn memo_get(&mut self, number: u32) -> Result<(), PickleError> {
        let id = self.memo.get(&number).copied();
        let id = id.ok_or_else(|| self.malformed("the memo has no such entry"))?;
        self.spend(1)?;
        self.stack.push(id);
        Ok(())
    }

    /// Adds items to the list below them.
    pub(crate) fn extend_list(&mut self, items: Vec<NodeId>) -> Result<(), PickleError> {
        let target = self.top()?;
        match &mut self.nodes[target as usize] {
            PickleNode::List(list) => list.extend(items),
            _ => return Err(self.malformed("items are appended to something that is no list")),
        }
        Ok(())
    }

    /// Adds items to the set below them.
    pub(crate) fn extend_set(&mut self, items: Vec<NodeId>) -> Result<(), PickleError> {
        let target = self.top()?;
        match &mut self.nodes[target as usize] {
            PickleNode::Set(set) => set.extend(items),
            _ => return Err(self.malformed("items are added to something that is no set")),
        }
        Ok(())
    }

    /// Adds keys and values to the dictionary below them.
    pub(crate) fn extend_dict(&mut self, items: Vec<NodeId>) -> Result<(), PickleError> {
        let pairs = self.pairs(items)?;
        let target = self.top()?;
        match &mut self.nodes[target as usize] {
            PickleNode::Dict(dict) | PickleNode::Headers(dict) => dict.extend(pairs),
            _ => return Err(self.malformed("entries are set on something that is no dict")),
        }
        Ok(())
    }

    /// Keys and values in turn, as pairs.
    pub(crate) fn pairs(&self, items: Vec<NodeId>) -> Result<Vec<(NodeId, NodeId)>, PickleError> {
        if !items.len().is_multiple_of(2) {
            return Err(self.malformed("a dict has a key without a value"));
        }
        Ok(items.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect())
    }
}
