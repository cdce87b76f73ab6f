//! What an operation has beside names and sizes: ranges, parts, copies, conditions, versions.
//!
//! | parameter | of | means |
//! |---|---|---|
//! | `range=0-4095` | `read` | these bytes |
//! | `range=u(0,960)KB` with `range_sizes=c(64)KB` | `read` | so many bytes from there on |
//! | `part_size=5MB` | `write`, `prepare` | uploaded in parts (a static large object, a multipart upload) |
//! | `part_size=5MB` | `delete` | what is deleted was uploaded so, and its parts go as well |
//! | `to_objects=u(1,100)` | `copy` | numbers of the copies, in the container of what is copied |
//! | `if_none_match=*` | `write` | only where no such object is |
//! | `if_none_match=seen`, `if_match=seen` | `read`, `head` | unless, or only if, it is what this worker saw last |
//! | `query=format=json&limit=100` | `list` | a page of the listing, or its form (in S3 as it is signed: sorted) |
//! | `versioned=true` | `init` | containers that keep old versions |
//! | `emptied=true` | `dispose` | all that is in the container is deleted with it |
//!
//! Cleanup and disposal of the same containers remove parts and versions, too ([`complete`]).
//! Always holds: a parameter that an operation has no use for is refused by name.

use super::mistake::WorkloadMistake;
use super::parameters::Parameters;
use super::selector::Selector;
use super::size::{Sizes, bytes};
use super::{NumberedNames, OperationKind, Stage, WorkKind};

/// Parts of an upload: S3 has no more.
const MOST_PARTS: u64 = 10_000;

/// What an operation has beside names and sizes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OperationDetail {
    /// Which bytes are read; all of them otherwise.
    pub range: Option<RangeDraw>,
    /// Bytes of a part, where there are parts.
    pub part_size: Option<u64>,
    /// Names of copies.
    pub copies: Option<NumberedNames>,
    /// When the operation is to be done.
    pub condition: Option<EntityCondition>,
    /// Containers keep versions.
    pub has_versions: bool,
    /// Deletions leave no part of an object, be it one that no object refers to any more.
    pub removes_parts: bool,
    /// Disposals delete all that is in the container.
    pub is_emptied: bool,
    /// Of a listing: what stands behind its `?`, as it is sent.
    pub query: String,
}

/// Bytes from `first` to `last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteSpan {
    /// The first one.
    pub first: u64,
    /// The last one, which is none before the first.
    pub last: u64,
}

/// Which bytes are read.
#[derive(Debug, Clone, PartialEq)]
pub enum RangeDraw {
    /// Always these.
    Fixed(ByteSpan),
    /// So many from there on.
    Drawn {
        /// Where they begin.
        from: Sizes,
        /// How many.
        length: Sizes,
    },
}

impl RangeDraw {
    /// The next range.
    pub fn draw(&self, dice: &mut fastrand::Rng, position: u64) -> ByteSpan {
        match self {
            Self::Fixed(span) => *span,
            Self::Drawn { from, length } => {
                let first = from.draw(dice, position);
                let length = length.draw(dice, position).max(1);
                ByteSpan {
                    first,
                    last: first.saturating_add(length - 1),
                }
            }
        }
    }
}

/// When an operation is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntityCondition {
    /// Where there is no such object.
    Absent,
    /// Unless the object is what this worker saw last.
    Changed,
    /// Only if it is.
    Unchanged,
}

impl OperationDetail {
    /// As an operation's parameters say; `prefix` and `suffix` are those of its objects.
    pub(super) fn read(
        kind: OperationKind,
        parameters: &Parameters,
        sizes: Option<&Sizes>,
        prefix: &str,
        suffix: &str,
    ) -> Result<Self, WorkloadMistake> {
        use OperationKind::{Copy, Delete, DeleteContainer, Head, List, MakeContainer, Read, Write};
        let users: [(&str, &[OperationKind]); 9] = [
            ("range", &[Read]),
            ("range_sizes", &[Read]),
            ("part_size", &[Write, Delete]),
            ("to_objects", &[Copy]),
            ("if_none_match", &[Write, Read, Head]),
            ("if_match", &[Read, Head]),
            ("versioned", &[MakeContainer]),
            ("emptied", &[DeleteContainer]),
            ("query", &[List]),
        ];
        for (name, kinds) in users {
            if let Some(value) = parameters.get(name).filter(|_| !kinds.contains(&kind)) {
                let kinds: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
                let what = format!("no such parameter here: it is one of {}", kinds.join(", "));
                return Err(WorkloadMistake::value(name, value, what));
            }
        }
        for name in ["range", "part_size"] {
            if let Some(value) = parameters
                .get(name)
                .filter(|_| parameters.flag("hashCheck") == Ok(true))
            {
                return Err(WorkloadMistake::value(name, value, "no hashCheck beside it"));
            }
        }
        let part_size = parameters
            .get("part_size")
            .map(|text| part_size(text, sizes))
            .transpose()?;
        let copies = match kind {
            Copy => Some(NumberedNames {
                prefix: prefix.to_owned(),
                numbers: Selector::of(parameters, "to_objects")?,
                suffix: suffix.to_owned(),
            }),
            _ => None,
        };
        Ok(Self {
            range: range(parameters)?,
            part_size,
            copies,
            condition: condition(kind, parameters)?,
            has_versions: parameters.flag("versioned")?,
            removes_parts: kind == Delete && part_size.is_some(),
            is_emptied: parameters.flag("emptied")?,
            query: query(parameters)?,
        })
    }
}

/// Text for a request line, which ends at a space.
fn query(parameters: &Parameters) -> Result<String, WorkloadMistake> {
    let query = parameters.get("query").unwrap_or_default();
    match query.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') {
        true => Ok(query.to_owned()),
        false => {
            let allowed = "a query of a URL without the ?, percent-encoded: format=json&limit=100";
            Err(WorkloadMistake::value("query", query, allowed))
        }
    }
}

fn part_size(text: &str, sizes: Option<&Sizes>) -> Result<u64, WorkloadMistake> {
    let size = bytes("part_size", text)?;
    let parts = sizes.map_or(1, |sizes| sizes.most().div_ceil(size));
    match parts > MOST_PARTS {
        true => Err(WorkloadMistake::value(
            "part_size",
            text,
            format_args!("at most {MOST_PARTS} parts, where the largest object has {parts}"),
        )),
        false => Ok(size),
    }
}

fn range(parameters: &Parameters) -> Result<Option<RangeDraw>, WorkloadMistake> {
    let Some(text) = parameters.get("range") else {
        return match parameters.get("range_sizes") {
            None => Ok(None),
            Some(sizes) => Err(WorkloadMistake::value("range_sizes", sizes, "a range beside it")),
        };
    };
    if text.contains('(') {
        return Ok(Some(RangeDraw::Drawn {
            from: Sizes::parse("range", text)?,
            length: Sizes::parse("range_sizes", parameters.need("range_sizes")?)?,
        }));
    }
    let ends = text.split_once('-');
    let span = ends.and_then(|(first, last)| Some((first.trim().parse().ok()?, last.trim().parse().ok()?)));
    match span {
        Some((first, last)) if first <= last => Ok(Some(RangeDraw::Fixed(ByteSpan { first, last }))),
        _ => {
            let allowed = "FIRST-LAST in bytes, or a selector and a unit: u(0,960)KB";
            Err(WorkloadMistake::value("range", text, allowed))
        }
    }
}

fn condition(kind: OperationKind, parameters: &Parameters) -> Result<Option<EntityCondition>, WorkloadMistake> {
    let words = ["if_none_match", "if_match"].map(|name| (name, parameters.get(name)));
    match (words, kind) {
        ([(_, None), (_, None)], _) => Ok(None),
        ([(_, Some("*")), (_, None)], OperationKind::Write) => Ok(Some(EntityCondition::Absent)),
        ([(name, Some(other)), _], OperationKind::Write) => Err(WorkloadMistake::value(name, other, "*")),
        ([(_, Some("seen")), (_, None)], _) => Ok(Some(EntityCondition::Changed)),
        ([(_, None), (_, Some("seen"))], _) => Ok(Some(EntityCondition::Unchanged)),
        ([(_, Some(_)), (name, Some(other))], _) => {
            Err(WorkloadMistake::value(name, other, "no if_none_match beside it"))
        }
        ([(name, Some(other)), _] | [_, (name, Some(other))], _) => Err(WorkloadMistake::value(name, other, "seen")),
    }
}

/// Tells cleanups and disposals of containers what else is in them: parts, and old versions.
pub fn complete(stages: &mut [Stage]) {
    let operations = || {
        stages
            .iter()
            .flat_map(|stage| &stage.works)
            .flat_map(|work| &work.operations)
    };
    let prefixes = |has: fn(&OperationDetail) -> bool| -> Vec<String> {
        let those = operations().filter(|operation| has(&operation.detail));
        those.map(|operation| operation.containers.prefix.clone()).collect()
    };
    let (with_versions, with_parts) = (
        prefixes(|one| one.has_versions),
        prefixes(|one| one.part_size.is_some()),
    );
    for work in stages.iter_mut().flat_map(|stage| &mut stage.works) {
        if !matches!(work.kind, WorkKind::Cleanup | WorkKind::Dispose) {
            continue;
        }
        for operation in &mut work.operations {
            operation.detail.has_versions |= with_versions.contains(&operation.containers.prefix);
            operation.detail.removes_parts |= with_parts.contains(&operation.containers.prefix);
        }
    }
}

#[cfg(test)]
#[path = "detail_tests.rs"]
mod tests;
