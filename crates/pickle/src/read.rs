//! [`loads`]: the opcodes of protocols 0 to 5, as far as they are data.
//!
//! The reader walks the bytes once and drives [`crate::machine`]; [`crate::expand`] then makes the
//! value. Bytes behind the STOP are ignored, as Python ignores them.

use std::borrow::Cow;

use crate::error::PickleError;
use crate::expand::Expander;
use crate::limits::PickleLimits;
use crate::machine::Machine;
use crate::node::{Global, PickleNode};
use crate::opcode as op;
use crate::reduce;
use crate::text;
use crate::value::Value;

/// Reads a pickle of plain data.
///
/// # Errors
/// Whatever is not plain data, not complete or not within `limits`, by name.
pub fn loads(input: &[u8], limits: &PickleLimits) -> Result<Value, PickleError> {
    if input.len() > limits.max_bytes {
        return Err(PickleError::TooLarge {
            what: "bytes",
            limit: limits.max_bytes,
        });
    }
    let mut reader = Reader {
        input,
        at: 0,
        arrays: limits.arrays,
        machine: Machine::new(limits),
    };
    while reader.step()? {}
    let root = reader.machine.pop()?;
    Expander::new(&reader.machine.nodes, limits, reader.at).value(root, 0)
}

struct Reader<'a> {
    input: &'a [u8],
    at: usize,
    arrays: bool,
    machine: Machine<'a>,
}

impl<'a> Reader<'a> {
    /// Runs one opcode; false after STOP.
    fn step(&mut self) -> Result<bool, PickleError> {
        self.machine.offset = self.at;
        let opcode = self.take(1)?[0];
        match opcode {
            op::STOP => return Ok(false),
            op::PROTO => self.protocol()?,
            op::FRAME => self.frame()?,
            op::MARK | op::POP | op::POP_MARK | op::DUP => self.stack(opcode)?,
            op::PUT..=op::LONG_BINPUT | op::GET | op::BINGET | op::LONG_BINGET | op::MEMOIZE => {
                self.memo(opcode)?;
            }
            op::NONE | op::NEWTRUE | op::NEWFALSE | op::FLOAT | op::BINFLOAT => {
                self.scalar(opcode)?;
            }
            op::INT | op::LONG | op::BININT | op::BININT1 | op::BININT2 | op::LONG1 | op::LONG4 => {
                self.integer(opcode)?;
            }
            op::UNICODE | op::BINUNICODE | op::SHORT_BINUNICODE | op::BINUNICODE8 => {
                self.text(opcode)?;
            }
            op::STRING | op::BINSTRING | op::SHORT_BINSTRING => self.bytes(opcode)?,
            op::BINBYTES | op::SHORT_BINBYTES | op::BINBYTES8 | op::BYTEARRAY8 => {
                self.bytes(opcode)?;
            }
            op::GLOBAL => self.global()?,
            op::STACK_GLOBAL => self.stack_global()?,
            op::REDUCE => self.machine.reduce()?,
            op::NEWOBJ => self.machine.new_object()?,
            _ if op::FORBIDDEN.contains(&opcode) => {
                return Err(PickleError::ForbiddenOpcode {
                    opcode,
                    offset: self.machine.offset,
                });
            }
            _ => self.container(opcode)?,
        }
        Ok(true)
    }

    fn protocol(&mut self) -> Result<(), PickleError> {
        match self.take(1)?[0] {
            0..=5 => Ok(()),
            protocol => Err(PickleError::Protocol { protocol }),
        }
    }

    /// A frame only announces how much follows; the announcement must be true.
    fn frame(&mut self) -> Result<(), PickleError> {
        let len = self.length8()?;
        match self.input.len() - self.at {
            rest if len <= rest => Ok(()),
            _ => Err(PickleError::Truncated {
                offset: self.input.len(),
            }),
        }
    }

    fn stack(&mut self, opcode: u8) -> Result<(), PickleError> {
        match opcode {
            op::MARK => {
                self.machine.mark();
                Ok(())
            }
            op::POP => self.machine.pop_any(),
            op::POP_MARK => self.machine.pop_to_mark().map(drop),
            _ => self.machine.duplicate(),
        }
    }

    fn memo(&mut self, opcode: u8) -> Result<(), PickleError> {
        let number = match opcode {
            op::MEMOIZE => return self.machine.memoize(),
            op::PUT | op::GET => {
                let line = self.line()?;
                let number = text::integer(line).and_then(|number| u32::try_from(number).ok());
                number.ok_or_else(|| self.machine.malformed("a memo number is no number"))?
            }
            op::BINPUT | op::BINGET => u32::from(self.take(1)?[0]),
            _ => self.word()?,
        };
        match opcode {
            op::PUT..=op::LONG_BINPUT => self.machine.memo_put(number),
            _ => self.machine.memo_get(number),
        }
    }

    fn scalar(&mut self, opcode: u8) -> Result<(), PickleError> {
        let node = match opcode {
            op::NONE => PickleNode::None,
            op::NEWTRUE => PickleNode::Bool(true),
            op::NEWFALSE => PickleNode::Bool(false),
            op::BINFLOAT => PickleNode::Float(f64::from_be_bytes(self.array()?)),
            _ => {
                let line = self.line()?;
                let number = text::float(line);
                PickleNode::Float(number.ok_or_else(|| self.machine.malformed("a float is no number"))?)
            }
        };
        self.machine.push(node)
    }

    fn integer(&mut self, opcode: u8) -> Result<(), PickleError> {
        let number = match opcode {
            op::BININT1 => i64::from(self.take(1)?[0]),
            op::BININT2 => i64::from(u16::from_le_bytes(self.array()?)),
            op::BININT => i64::from(i32::from_le_bytes(self.array()?)),
            op::LONG1 | op::LONG4 => {
                let len = if opcode == op::LONG1 {
                    self.length1()?
                } else {
                    self.length4()?
                };
                let digits = self.take(len)?;
                text::long(digits).ok_or_else(|| self.beyond())?
            }
            _ => match self.line()? {
                b"00" if opcode == op::INT => return self.machine.push(PickleNode::Bool(false)),
                b"01" if opcode == op::INT => return self.machine.push(PickleNode::Bool(true)),
                line => {
                    let digits = line.strip_suffix(b"L").unwrap_or(line);
                    text::integer(digits).ok_or_else(|| self.beyond())?
                }
            },
        };
        self.machine.push_integer(number)
    }

    fn text(&mut self, opcode: u8) -> Result<(), PickleError> {
        let text = match opcode {
            op::UNICODE => text::raw_unicode(self.line()?).map(Cow::Owned),
            _ => {
                let len = match opcode {
                    op::SHORT_BINUNICODE => self.length1()?,
                    op::BINUNICODE => self.length4()?,
                    _ => self.length8()?,
                };
                std::str::from_utf8(self.take(len)?).ok().map(Cow::Borrowed)
            }
        };
        let offset = self.machine.offset;
        self.machine
            .push(PickleNode::Str(text.ok_or(PickleError::NotUnicode { offset })?))
    }

    fn bytes(&mut self, opcode: u8) -> Result<(), PickleError> {
        let len = match opcode {
            op::STRING => {
                let quoted = text::quoted(self.line()?);
                let bytes = quoted.ok_or_else(|| self.machine.malformed("a string is not quoted"))?;
                return self.machine.push(PickleNode::Bytes(Cow::Owned(bytes)));
            }
            op::SHORT_BINSTRING | op::SHORT_BINBYTES => self.length1()?,
            op::BINSTRING | op::BINBYTES => self.length4()?,
            _ => self.length8()?,
        };
        let bytes = self.take(len)?;
        self.machine.push(PickleNode::Bytes(Cow::Borrowed(bytes)))
    }

    fn container(&mut self, opcode: u8) -> Result<(), PickleError> {
        let machine = &mut self.machine;
        match opcode {
            op::EMPTY_LIST => machine.push(PickleNode::List(Vec::new())),
            op::EMPTY_TUPLE => machine.push(PickleNode::Tuple(Vec::new())),
            op::EMPTY_DICT => machine.push(PickleNode::Dict(Vec::new())),
            op::EMPTY_SET => machine.push(PickleNode::Set(Vec::new())),
            op::LIST => {
                let items = machine.pop_to_mark()?;
                machine.push(PickleNode::List(items))
            }
            op::TUPLE => {
                let items = machine.pop_to_mark()?;
                machine.push(PickleNode::Tuple(items))
            }
            op::FROZENSET => {
                let items = machine.pop_to_mark()?;
                machine.push(PickleNode::Set(items))
            }
            op::DICT => {
                let items = machine.pop_to_mark()?;
                let pairs = machine.pairs(items)?;
                machine.push(PickleNode::Dict(pairs))
            }
            op::TUPLE1 => machine.pop_tuple(1),
            op::TUPLE2 => machine.pop_tuple(2),
            op::TUPLE3 => machine.pop_tuple(3),
            _ => self.fill(opcode),
        }
    }

    /// Opcodes that add to the container below.
    fn fill(&mut self, opcode: u8) -> Result<(), PickleError> {
        let machine = &mut self.machine;
        match opcode {
            op::APPEND => {
                let item = machine.pop()?;
                machine.extend_list(vec![item])
            }
            op::SETITEM => {
                let value = machine.pop()?;
                let key = machine.pop()?;
                machine.extend_dict(vec![key, value])
            }
            op::APPENDS => {
                let items = machine.pop_to_mark()?;
                machine.extend_list(items)
            }
            op::SETITEMS => {
                let items = machine.pop_to_mark()?;
                machine.extend_dict(items)
            }
            op::ADDITEMS => {
                let items = machine.pop_to_mark()?;
                machine.extend_set(items)
            }
            _ => Err(PickleError::UnknownOpcode {
                opcode,
                offset: machine.offset,
            }),
        }
    }

    fn global(&mut self) -> Result<(), PickleError> {
        let module = String::from_utf8_lossy(self.line()?);
        let name = String::from_utf8_lossy(self.line()?);
        let global = reduce::lookup(&module, &name, self.arrays)?;
        self.machine.push(PickleNode::Global(global))
    }

    fn stack_global(&mut self) -> Result<(), PickleError> {
        let name = self.machine.pop()?;
        let module = self.machine.pop()?;
        let nodes = &self.machine.nodes;
        let global: Global = match (&nodes[module as usize], &nodes[name as usize]) {
            (PickleNode::Str(module), PickleNode::Str(name)) => reduce::lookup(module, name, self.arrays)?,
            _ => return Err(self.machine.malformed("the name of a global is no text")),
        };
        self.machine.push(PickleNode::Global(global))
    }

    fn beyond(&self) -> PickleError {
        PickleError::IntegerRange {
            offset: self.machine.offset,
        }
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], PickleError> {
        let rest = &self.input[self.at..];
        let Some(taken) = rest.get(..len) else {
            return Err(PickleError::Truncated {
                offset: self.input.len(),
            });
        };
        self.at += len;
        Ok(taken)
    }

    /// The bytes up to the next line feed, which is consumed.
    fn line(&mut self) -> Result<&'a [u8], PickleError> {
        let rest = &self.input[self.at..];
        let end = rest.iter().position(|&byte| byte == b'\n');
        let end = end.ok_or(PickleError::Truncated {
            offset: self.input.len(),
        })?;
        self.at += end + 1;
        Ok(&rest[..end])
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], PickleError> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N)?);
        Ok(bytes)
    }

    fn word(&mut self) -> Result<u32, PickleError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn length1(&mut self) -> Result<usize, PickleError> {
        Ok(usize::from(self.take(1)?[0]))
    }

    fn length4(&mut self) -> Result<usize, PickleError> {
        Ok(self.word()? as usize)
    }

    fn length8(&mut self) -> Result<usize, PickleError> {
        let len = u64::from_le_bytes(self.array()?);
        Ok(usize::try_from(len).unwrap_or(usize::MAX))
    }
}
