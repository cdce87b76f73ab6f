//! The globals that stand for data, and what they make of their arguments.
//!
//! The list is the one of Swift's restricted unpickler, plus `array.array` where the caller says
//! that it reads a builder file. Nothing is looked up, imported or called: each name is a case.

use crate::error::PickleError;
use crate::machine::Machine;
use crate::node::{Global, NodeId, PickleNode};
use crate::text;
use crate::value::ArrayCode;

/// The global of a name, if it stands for data.
pub(crate) fn lookup(module: &str, name: &str, arrays: bool) -> Result<Global, PickleError> {
    match (module, name) {
        ("_codecs", "encode") => Ok(Global::Encode),
        ("__builtin__" | "builtins", "bytes") => Ok(Global::Bytes),
        ("__builtin__" | "builtins", "dict") => Ok(Global::Dict),
        ("swift.common.header_key_dict", "HeaderKeyDict") => Ok(Global::Headers),
        ("copy_reg" | "copyreg", "_reconstructor") => Ok(Global::Reconstructor),
        ("array", "array") if arrays => Ok(Global::Array),
        _ => Err(PickleError::ForbiddenGlobal {
            name: shown(module, name),
        }),
    }
}

/// The name for a message: short and printable whatever the pickle holds.
fn shown(module: &str, name: &str) -> String {
    let safe = |text: &str| -> String { text.chars().take(80).flat_map(char::escape_debug).collect() };
    format!("{}.{}", safe(module), safe(name))
}

impl Machine<'_> {
    /// REDUCE: a global applied to a tuple of arguments.
    pub(crate) fn reduce(&mut self) -> Result<(), PickleError> {
        let arguments = self.pop()?;
        let function = self.pop()?;
        let PickleNode::Global(global) = self.nodes[function as usize] else {
            return Err(self.malformed("something that is no global is called"));
        };
        let PickleNode::Tuple(arguments) = &self.nodes[arguments as usize] else {
            return Err(self.malformed("the arguments of a global are no tuple"));
        };
        let node = match (global, arguments.as_slice()) {
            (Global::Encode, &[text, encoding]) => self.encoded(text, encoding)?,
            (Global::Bytes, []) => PickleNode::Bytes(Vec::new().into()),
            (Global::Dict, []) => PickleNode::Dict(Vec::new()),
            (Global::Headers, []) => PickleNode::Headers(Vec::new()),
            (Global::Reconstructor, &[class, base, state]) => self.reconstructed(class, base, state)?,
            (Global::Array, &[code, items]) => self.array(code, items)?,
            _ => return Err(self.malformed("a global is applied to arguments it does not take")),
        };
        self.push(node)
    }

    /// NEWOBJ: a class and an empty tuple; only `HeaderKeyDict` and `dict` are data.
    pub(crate) fn new_object(&mut self) -> Result<(), PickleError> {
        let arguments = self.pop()?;
        let class = self.pop()?;
        let empty = matches!(&self.nodes[arguments as usize], PickleNode::Tuple(items) if items.is_empty());
        match (&self.nodes[class as usize], empty) {
            (PickleNode::Global(Global::Headers), true) => self.push(PickleNode::Headers(Vec::new())),
            (PickleNode::Global(Global::Dict), true) => self.push(PickleNode::Dict(Vec::new())),
            _ => Err(self.malformed("an object is made of a class that is no data")),
        }
    }

    fn encoded<'a>(&mut self, text: NodeId, encoding: NodeId) -> Result<PickleNode<'a>, PickleError> {
        let (PickleNode::Str(text), PickleNode::Str(encoding)) =
            (&self.nodes[text as usize], &self.nodes[encoding as usize])
        else {
            return Err(self.malformed("bytes are encoded from something that is no text"));
        };
        if !matches!(encoding.as_ref(), "latin1" | "latin-1" | "iso-8859-1") {
            return Err(self.malformed("bytes are encoded in something other than latin1"));
        }
        let bytes = text::latin1(text).ok_or_else(|| self.malformed("bytes are encoded from text beyond latin1"))?;
        // The same text may be encoded many times through the memo: each copy is paid for.
        self.spend(bytes.len() / size_of::<PickleNode>())?;
        Ok(PickleNode::Bytes(bytes.into()))
    }

    fn reconstructed<'a>(&mut self, class: NodeId, base: NodeId, state: NodeId) -> Result<PickleNode<'a>, PickleError> {
        let node = |id: NodeId| &self.nodes[id as usize];
        match (node(class), node(base), node(state)) {
            (PickleNode::Global(Global::Headers), PickleNode::Global(Global::Dict), PickleNode::Dict(pairs)) => {
                let pairs = pairs.clone();
                self.spend(pairs.len())?;
                Ok(PickleNode::Headers(pairs))
            }
            _ => Err(self.malformed("an object is reconstructed of a class that is no data")),
        }
    }

    fn array<'a>(&mut self, code: NodeId, items: NodeId) -> Result<PickleNode<'a>, PickleError> {
        let code = match &self.nodes[code as usize] {
            PickleNode::Str(letter) => ArrayCode::from_letter(letter),
            PickleNode::Bytes(letter) => std::str::from_utf8(letter).ok().and_then(ArrayCode::from_letter),
            _ => None,
        };
        let code = code.ok_or_else(|| self.malformed("an array is of an unknown item type"))?;
        let PickleNode::List(items) = &self.nodes[items as usize] else {
            return Err(self.malformed("an array is made of something that is no list"));
        };
        let count = items.len();
        let values: Option<Vec<u64>> = items.iter().map(|&item| self.array_item(code, item)).collect();
        let values = values.ok_or_else(|| self.malformed("an array holds an item out of range"))?;
        self.spend(count)?;
        Ok(PickleNode::Array(code, values))
    }

    fn array_item(&self, code: ArrayCode, item: NodeId) -> Option<u64> {
        let PickleNode::Int(number) = self.nodes[item as usize] else {
            return None;
        };
        u64::try_from(number).ok().filter(|&number| number <= code.max())
    }
}
