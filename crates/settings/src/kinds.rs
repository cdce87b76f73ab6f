//! The kinds of values an option can have.
//!
//! Comes in: trimmed text. Goes out: a typed value, or nothing when the text is not of the kind.
//! Always holds: [`Value::EXPECTS`] completes "expected …" in a message to the operator.
//! Stricter than OpenStack in one point: a boolean that is neither yes nor no is refused, where
//! OpenStack takes it for no.

use std::path::PathBuf;
use std::time::Duration;
use vocabulary::IpNetworks;

/// A kind of value.
pub trait OptionValue: Sized {
    /// Completes "expected …".
    const EXPECTS: &'static str;

    /// Reads the text of an option.
    fn parse(text: &str) -> Option<Self>;
}

macro_rules! numbers {
    ($($kind:ty => $expects:literal),+ $(,)?) => {
        $(impl OptionValue for $kind {
            const EXPECTS: &'static str = $expects;
            fn parse(text: &str) -> Option<Self> {
                text.parse().ok()
            }
        })+
    };
}

numbers! {
    u16 => "a port number from 0 to 65535",
    u32 => "a whole number, zero or more",
    u64 => "a whole number, zero or more",
    usize => "a whole number, zero or more",
    i64 => "a whole number",
}

impl OptionValue for f64 {
    const EXPECTS: &'static str = "a number, zero or more";

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok().filter(|n: &f64| n.is_finite() && *n >= 0.0)
    }
}

impl OptionValue for Duration {
    const EXPECTS: &'static str = "seconds, zero or more";

    fn parse(text: &str) -> Option<Self> {
        Duration::try_from_secs_f64(f64::parse(text)?).ok()
    }
}

impl OptionValue for bool {
    const EXPECTS: &'static str = "true or false (also yes, on, t, y, 1 and no, off, f, n, 0)";

    fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "t" | "y" | "1" => Some(true),
            "false" | "no" | "off" | "f" | "n" | "0" | "" => Some(false),
            _ => None,
        }
    }
}

impl OptionValue for String {
    const EXPECTS: &'static str = "text";

    fn parse(text: &str) -> Option<Self> {
        Some(text.into())
    }
}

/// Text that no debug output shows.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(pub String);

impl OptionValue for Secret {
    const EXPECTS: &'static str = "text";
    fn parse(text: &str) -> Option<Self> {
        Some(Self(text.into()))
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

impl OptionValue for PathBuf {
    const EXPECTS: &'static str = "a path";

    fn parse(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| text.into())
    }
}

impl<T: OptionValue> OptionValue for Option<T> {
    const EXPECTS: &'static str = T::EXPECTS;

    fn parse(text: &str) -> Option<Self> {
        match text {
            "" => Some(None),
            text => T::parse(text).map(Some),
        }
    }
}

impl OptionValue for Vec<String> {
    const EXPECTS: &'static str = "a list separated by commas";

    fn parse(text: &str) -> Option<Self> {
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        Some(items.map(Into::into).collect())
    }
}

/// Header names, in lower case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeaderNames(pub Vec<String>);

impl HeaderNames {
    /// Whether `name`, in lower case, is one of them.
    pub fn contains(&self, name: &str) -> bool {
        self.0.iter().any(|n| n == name)
    }
}

impl OptionValue for HeaderNames {
    const EXPECTS: &'static str = "header names separated by commas";

    fn parse(text: &str) -> Option<Self> {
        let names = Vec::<String>::parse(&text.to_ascii_lowercase())?;
        let token = |name: &String| name.bytes().all(|b| b.is_ascii_graphic() && b != b':');
        names.iter().all(token).then_some(Self(names))
    }
}

impl OptionValue for IpNetworks {
    const EXPECTS: &'static str = "addresses and networks (10.0.0.0/8), separated by spaces or commas";

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

/// Words separated by white space.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WordList(pub Vec<String>);

impl OptionValue for WordList {
    const EXPECTS: &'static str = "words separated by spaces";

    fn parse(text: &str) -> Option<Self> {
        Some(Self(text.split_whitespace().map(Into::into).collect()))
    }
}

/// Header names and beginnings of names (`x-object-meta-*`), in lower case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeaderPatterns(pub Vec<String>);

impl HeaderPatterns {
    /// Whether one of them means `name`, in lower case.
    pub fn matches(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == pattern,
        })
    }
}

impl OptionValue for HeaderPatterns {
    const EXPECTS: &'static str = "header names separated by spaces, each perhaps ending in *";

    fn parse(text: &str) -> Option<Self> {
        let name = |word: &str| word.to_ascii_lowercase().replace('_', "-");
        Some(Self(text.split_whitespace().map(name).collect()))
    }
}

/// A digest that a signature is made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DigestKind {
    /// Deprecated.
    Sha1,
    /// What to use.
    Sha256,
    /// The longest.
    Sha512,
}

impl DigestKind {
    /// All there are.
    pub const ALL: [Self; 3] = [Self::Sha1, Self::Sha256, Self::Sha512];

    /// As clients and operators spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    /// Bytes of a signature.
    pub fn length(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
            Self::Sha512 => 64,
        }
    }
}

/// Some digests, at least one, in the order of [`DigestKind::ALL`]. Unknown names are left out, as OpenStack does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digests(pub Vec<DigestKind>);

impl OptionValue for Digests {
    const EXPECTS: &'static str = "at least one of sha1, sha256 and sha512, separated by spaces";

    fn parse(text: &str) -> Option<Self> {
        let named = |digest: &DigestKind| text.split_whitespace().any(|word| word == digest.name());
        let digests: Vec<DigestKind> = DigestKind::ALL.into_iter().filter(named).collect();
        (!digests.is_empty()).then_some(Self(digests))
    }
}

/// How many things are done at the same time: at least 1, at most 1000.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Concurrency(pub usize);

impl OptionValue for Concurrency {
    const EXPECTS: &'static str = "a whole number";

    fn parse(text: &str) -> Option<Self> {
        let number = text.parse::<i64>().ok()?.clamp(1, 1000);
        usize::try_from(number).ok().map(Self)
    }
}

/// A number that is at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AtLeastOne(pub usize);

impl OptionValue for AtLeastOne {
    const EXPECTS: &'static str = "a whole number, one or more";

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok().filter(|n| *n > 0).map(Self)
    }
}

/// `workers`: as many as there are processors, or a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerCount {
    /// One per processor.
    Auto,
    /// That many; zero and one mean one.
    Count(usize),
}

impl OptionValue for WorkerCount {
    const EXPECTS: &'static str = "auto or a whole number";

    fn parse(text: &str) -> Option<Self> {
        match text {
            _ if text.eq_ignore_ascii_case("auto") => Some(Self::Auto),
            text => text.parse().ok().map(Self::Count),
        }
    }
}

/// `fallocate_reserve`: room on a device that stays free.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FallocateReserve {
    /// That many bytes.
    Bytes(u64),
    /// That part of the device, in percent.
    Percent(f64),
}

impl FallocateReserve {
    /// Whether a device with `free` of `total` bytes can take `wanted` more.
    pub fn allows(self, free: u64, total: u64, wanted: u64) -> bool {
        let left = free.saturating_sub(wanted);
        match self {
            Self::Bytes(0) | Self::Percent(0.0) => free >= wanted,
            Self::Bytes(bytes) => left > bytes,
            Self::Percent(percent) => left as f64 / total.max(1) as f64 * 100.0 > percent,
        }
    }
}

impl OptionValue for FallocateReserve {
    const EXPECTS: &'static str = "bytes, or a percentage like 1%";

    fn parse(text: &str) -> Option<Self> {
        match text.strip_suffix('%') {
            Some(number) => f64::parse(number).filter(|p| *p <= 100.0).map(Self::Percent),
            None => text.parse().ok().map(Self::Bytes),
        }
    }
}

/// How many nodes to try: a number, or a multiple of the replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeCount {
    /// That many.
    Fixed(usize),
    /// That many times the replicas.
    TimesReplicas(usize),
}

impl NodeCount {
    /// How many that is in a ring with so many replicas.
    pub fn for_replicas(self, replicas: usize) -> usize {
        match self {
            Self::Fixed(count) => count,
            Self::TimesReplicas(factor) => factor.saturating_mul(replicas),
        }
    }
}

impl OptionValue for NodeCount {
    const EXPECTS: &'static str = "a whole number, or one times the replicas like `2 * replicas`";

    fn parse(text: &str) -> Option<Self> {
        let lower = text.to_ascii_lowercase();
        let words: Vec<&str> = lower.split_whitespace().collect();
        match words.as_slice() {
            [count] => count.parse().ok().map(Self::Fixed),
            [factor, "*", "replicas"] => factor.parse().ok().map(Self::TimesReplicas),
            _ => None,
        }
    }
}

/// `write_affinity_handoff_delete_count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandoffDeleteCount {
    /// Replicas less local primaries.
    Auto,
    /// That many.
    Count(usize),
}

impl OptionValue for HandoffDeleteCount {
    const EXPECTS: &'static str = "auto or a whole number";

    fn parse(text: &str) -> Option<Self> {
        match WorkerCount::parse(text)? {
            WorkerCount::Auto => Some(Self::Auto),
            WorkerCount::Count(count) => Some(Self::Count(count)),
        }
    }
}

/// In which order replicas are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortingMethod {
    /// At random.
    Shuffle,
    /// Those that answered fastest lately first.
    Timing,
    /// By `read_affinity`.
    Affinity,
}

impl OptionValue for SortingMethod {
    const EXPECTS: &'static str = "shuffle, timing or affinity";

    fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "shuffle" => Some(Self::Shuffle),
            "timing" => Some(Self::Timing),
            "affinity" => Some(Self::Affinity),
            _ => None,
        }
    }
}

/// `log_level`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of syslog's levels")]
pub enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
}

impl OptionValue for LogLevel {
    const EXPECTS: &'static str = "DEBUG, INFO, NOTICE, WARNING, ERROR or CRITICAL";

    fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_uppercase().as_str() {
            "DEBUG" => Some(Self::Debug),
            "INFO" => Some(Self::Info),
            "NOTICE" => Some(Self::Notice),
            "WARN" | "WARNING" => Some(Self::Warning),
            "ERROR" => Some(Self::Error),
            "CRITICAL" | "FATAL" => Some(Self::Critical),
            _ => None,
        }
    }
}

/// `log_facility`: syslog's number of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogFacility(pub u8);

/// syslog's facilities, in the order of their numbers; the empty ones are not for programs.
const FACILITIES: [&str; 24] = [
    "KERN", "USER", "MAIL", "DAEMON", "AUTH", "SYSLOG", "LPR", "NEWS", "UUCP", "CRON", "AUTHPRIV", "FTP", "", "", "",
    "", "LOCAL0", "LOCAL1", "LOCAL2", "LOCAL3", "LOCAL4", "LOCAL5", "LOCAL6", "LOCAL7",
];

impl OptionValue for LogFacility {
    const EXPECTS: &'static str = "a facility of syslog such as LOG_LOCAL0";

    fn parse(text: &str) -> Option<Self> {
        let name = text.to_ascii_uppercase();
        let name = name.strip_prefix("LOG_").filter(|name| !name.is_empty())?;
        let number = FACILITIES.iter().position(|facility| *facility == name)?;
        u8::try_from(number).ok().map(Self)
    }
}

/// `storage_url_scheme` of TempAuth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlScheme {
    /// As the request came in.
    Default,
    /// Always `http`.
    Http,
    /// Always `https`.
    Https,
}

impl OptionValue for UrlScheme {
    const EXPECTS: &'static str = "default, http or https";

    fn parse(text: &str) -> Option<Self> {
        match text {
            "default" => Some(Self::Default),
            "http" => Some(Self::Http),
            "https" => Some(Self::Https),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_as_openstack_reads_them() {
        assert_eq!(FallocateReserve::parse("1.5%"), Some(FallocateReserve::Percent(1.5)));
        for bad in ["abc", "-1", "1024.5", "1k", "%", "101%"] {
            assert_eq!(FallocateReserve::parse(bad), None, "{bad}");
        }
        assert_eq!(NodeCount::parse("2  * Replicas"), Some(NodeCount::TimesReplicas(2)));
        for bad in ["2* replicas", "* replicas", "replicas", "1.5 * replicas", "-1"] {
            assert_eq!(NodeCount::parse(bad), None, "{bad}");
        }
        assert_eq!(WorkerCount::parse("AUTO"), Some(WorkerCount::Auto));
        assert_eq!(bool::parse("Yes"), Some(true));
        assert_eq!(bool::parse("maybe"), None);
        assert_eq!(Duration::parse("0.3"), Some(Duration::from_millis(300)));
        for bad in ["-1", "a", "nan", "inf", "1e400", "1e30"] {
            assert_eq!(Duration::parse(bad), None, "{bad}");
        }
        assert_eq!(
            Vec::<String>::parse(" a, b,,c "),
            Some(vec!["a".into(), "b".into(), "c".into()])
        );
    }

    #[test]
    fn reserve_is_kept_free() {
        let one_percent = FallocateReserve::Percent(1.0);
        assert!(one_percent.allows(200, 1000, 0));
        assert!(!one_percent.allows(10, 1000, 0));
        assert!(!one_percent.allows(200, 1000, 190));
        assert!(FallocateReserve::Bytes(0).allows(5, 10, 5));
        assert!(!FallocateReserve::Bytes(5).allows(10, 10, 5));
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC*") {
            let _ = (NodeCount::parse(&text), FallocateReserve::parse(&text));
            let _ = (Duration::parse(&text), HeaderNames::parse(&text));
        }
    }
}
