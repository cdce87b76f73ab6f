//! `Range` headers, with Swift's limits on abusive ones.
//!
//! A header that cannot be read is ignored (the whole object is sent); one that can be read but
//! fits nowhere is 416. Source: RFC 9110 §14 and Swift's answers.
//! Always holds: a resolved [`ByteRange`] lies inside the object.

/// More ranges than this in one header are refused (416), as Swift does.
const MAX_RANGES: usize = 50;
/// More pairs of different ranges that overlap are refused.
const MAX_OVERLAPS: usize = 2;
/// Ranges that start before their predecessor more often than this are refused.
const MAX_NONASCENDING: usize = 8;

/// Bytes `start..end` of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteRange {
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
}

impl ByteRange {
    /// How many bytes.
    pub fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Whether it holds no byte at all.
    pub fn is_empty(&self) -> bool {
        self.end == self.start
    }

    /// `bytes 0-9/100`, for `Content-Range`.
    pub fn content_range(&self, total: u64) -> String {
        format!("bytes {}-{}/{total}", self.start, self.end.saturating_sub(1))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spec {
    FromTo(u64, Option<u64>),
    Last(u64),
}

/// A `Range` header that could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeSet(Vec<Spec>);

impl RangeSet {
    /// `bytes=0-9,20-,-5`; `None` when the header is to be ignored. White space around numbers and a
    /// plus before them are allowed, as Python's `int` allows them.
    pub fn parse(header: &str) -> Option<Self> {
        let (unit, list) = header.split_once('=')?;
        if !unit.trim().eq_ignore_ascii_case("bytes") {
            return None;
        }
        Some(Self(list.split(',').map(parse_spec).collect::<Option<Vec<_>>>()?))
    }

    /// The ranges inside an object of `length` bytes, in the order asked. An empty answer is 416.
    pub fn resolve(&self, length: u64) -> Vec<ByteRange> {
        let ranges: Vec<ByteRange> = self.0.iter().filter_map(|spec| resolve_one(*spec, length)).collect();
        if is_abusive(&ranges) { Vec::new() } else { ranges }
    }
}

fn parse_spec(text: &str) -> Option<Spec> {
    let number = |t: &str| -> Option<u64> {
        let t = t.trim();
        let t = t.strip_prefix('+').unwrap_or(t);
        let digits = !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
        // Numbers beyond 64 bits are beyond every object as well.
        digits.then(|| t.parse().unwrap_or(u64::MAX))
    };
    match text.trim().split_once('-')? {
        ("", last) => Some(Spec::Last(number(last)?)),
        (start, "") => Some(Spec::FromTo(number(start)?, None)),
        (start, end) => {
            let (start, end) = (number(start)?, number(end)?);
            (start <= end).then_some(Spec::FromTo(start, Some(end)))
        }
    }
}

fn resolve_one(spec: Spec, length: u64) -> Option<ByteRange> {
    match spec {
        Spec::Last(0) => None,
        Spec::Last(count) => Some(ByteRange {
            start: length.saturating_sub(count),
            end: length,
        }),
        Spec::FromTo(start, _) if start >= length => None,
        Spec::FromTo(start, end) => Some(ByteRange {
            start,
            end: end.map_or(length, |e| e.saturating_add(1).min(length)),
        }),
    }
}

fn is_abusive(ranges: &[ByteRange]) -> bool {
    if ranges.len() > MAX_RANGES {
        return true;
    }
    let nonascending = ranges.windows(2).filter(|pair| pair[1].start < pair[0].start).count();
    let overlap = |a: &ByteRange, b: &ByteRange| a != b && a.start < b.end && b.start < a.end;
    let pairs = ranges.iter().enumerate();
    let overlaps: usize = pairs
        .map(|(at, range)| ranges[..at].iter().filter(|other| overlap(range, other)).count())
        .sum();
    overlaps > MAX_OVERLAPS || nonascending >= MAX_NONASCENDING
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn resolve(header: &str, length: u64) -> Option<Vec<(u64, u64)>> {
        Some(
            RangeSet::parse(header)?
                .resolve(length)
                .iter()
                .map(|r| (r.start, r.end))
                .collect(),
        )
    }

    #[test]
    fn reads_what_clients_send() {
        assert_eq!(resolve("bytes=0-9", 100), Some(vec![(0, 10)]));
        assert_eq!(resolve("bytes=90-", 100), Some(vec![(90, 100)]));
        assert_eq!(resolve("bytes=-5, 1-2", 100), Some(vec![(95, 100), (1, 3)]));
        assert_eq!(resolve("bytes=-500", 100), Some(vec![(0, 100)]));
        assert_eq!(resolve("bytes=0-99999999999999999999999", 100), Some(vec![(0, 100)]));
        assert_eq!(resolve("bytes=100-", 100), Some(vec![]));
        assert_eq!(resolve("bytes=-0", 100), Some(vec![]));
        assert_eq!(resolve("Bytes = +0 - 1", 100), Some(vec![(0, 2)]));
        for ignored in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=a-b",
            "bytes=5-1",
            "chunks=1-2",
            "bytes=1-2-3",
        ] {
            assert_eq!(resolve(ignored, 100), None, "{ignored}");
        }
    }

    #[test]
    fn abuse_is_unsatisfiable() {
        let many: Vec<String> = (0..51).map(|i| format!("{}-{}", i * 2, i * 2)).collect();
        assert_eq!(resolve(&format!("bytes={}", many.join(",")), 1000), Some(vec![]));
        assert_eq!(resolve("bytes=0-50,1-51,2-52,3-53", 100), Some(vec![]));
        // As OpenStack's resolve them: `swift.common.swob.Range(header).ranges_for_length(100)`.
        for (header, count) in [
            ("bytes=0-50,0-50,0-50", 3),
            ("bytes=0-5,2-7,4-9", 0),
            ("bytes=0-10,5-15,10-20", 0),
            ("bytes=0-10,5-15,11-20", 3),
            ("bytes=0-9,0-8,0-7", 0),
            ("bytes=0-20,1-2,3-4", 3),
            ("bytes=0-20,1-2,3-4,5-6", 0),
            ("bytes=0-10,5-15,16-20,17-18", 4),
        ] {
            assert_eq!(resolve(header, 100).map(|ranges| ranges.len()), Some(count), "{header}");
        }
    }

    proptest! {
        #[test]
        fn resolved_ranges_lie_inside(header in "bytes=[0-9,-]{0,40}", length in 0u64..100) {
            if let Some(set) = RangeSet::parse(&header) {
                for range in set.resolve(length) {
                    prop_assert!(range.start <= range.end && range.end <= length);
                }
            }
        }

        #[test]
        fn any_text_is_read_or_ignored(text in "\\PC*") {
            let _ = RangeSet::parse(&text);
        }
    }
}
