//! What the reader builds while it runs: nodes in one vector that refer to each other by index.
//!
//! A pickle may name an object many times through its memo. Here that costs one index; only
//! [`crate::expand`] turns the graph into a tree, and counts as it does. So the memory of reading
//! is in proportion to the input, whatever the input says.

use std::borrow::Cow;

use crate::value::ArrayCode;

/// Index of a node.
pub(crate) type NodeId = u32;

/// One object of the pickle.
#[derive(Debug)]
pub(crate) enum PickleNode<'a> {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Bytes(Cow<'a, [u8]>),
    Str(Cow<'a, str>),
    List(Vec<NodeId>),
    Tuple(Vec<NodeId>),
    Set(Vec<NodeId>),
    Dict(Vec<(NodeId, NodeId)>),
    Headers(Vec<(NodeId, NodeId)>),
    Array(ArrayCode, Vec<u64>),
    Global(Global),
}

/// A global that stands for data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Global {
    /// `_codecs.encode`: how protocols 0 to 2 write bytes.
    Encode,
    /// `bytes`: how they write empty bytes.
    Bytes,
    /// `dict`: the base class in the reconstruction of a `HeaderKeyDict`.
    Dict,
    /// `HeaderKeyDict`: Swift's dict of headers.
    Headers,
    /// `copyreg._reconstructor`: how protocols 0 and 1 write a `HeaderKeyDict`.
    Reconstructor,
    /// `array.array`: only where the caller allows it.
    Array,
}
