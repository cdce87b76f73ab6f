//! Conditions of statements: where a request comes from and how, when, and what it asks for.
//!
//! Always holds: a condition on something that the request has not holds for the operators that deny (`…Not…`) only;
//! a text too long to be compared fulfils the conditions of denials and none of allowances.

use super::{PolicyFacts, PolicyProblem, object, problem, texts};
use identity::wildcard;
use serde_json::Value;
use std::net::IpAddr;
use vocabulary::calendar;

/// Keys with texts, in lower case.
const TEXT_KEYS: [&str; 5] = [
    "aws:referer",
    "aws:useragent",
    "s3:delimiter",
    "s3:prefix",
    "s3:x-amz-acl",
];

/// Bytes of a header or parameter that are compared with patterns.
const LONGEST_TEXT: usize = 2 * 1024;

/// One operator on one key: one of the values has to fit, or none of them where it `is_negated`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ConditionTest {
    is_negated: bool,
    wanted: Wanted,
}

#[derive(Debug, Clone, PartialEq)]
enum Wanted {
    /// The key, the patterns; plain texts where there are none.
    Texts(&'static str, Vec<String>, bool),
    Addresses(Vec<Network>),
    Secure(Vec<bool>),
    /// The time is before these (else after), or equal.
    Times(Vec<u64>, bool, bool),
}

/// Addresses that begin alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    bits: u32,
}

/// The conditions of a statement; all have to hold.
pub(super) fn read(value: Option<&Value>) -> Result<Vec<ConditionTest>, PolicyProblem> {
    let Some(value) = value else {
        return Ok(Vec::new());
    };
    let mut conditions = Vec::new();
    for (operator, keys) in object(value, "Condition")? {
        for (key, values) in object(keys, operator)? {
            conditions.push(read_one(operator, key, values)?);
        }
    }
    Ok(conditions)
}

fn read_one(operator: &str, key: &str, values: &Value) -> Result<ConditionTest, PolicyProblem> {
    let lower = key.to_ascii_lowercase();
    let text_key = TEXT_KEYS.into_iter().find(|known| *known == lower);
    let values = match values {
        Value::Bool(flag) => vec![flag.to_string()],
        values => texts(values, key)?,
    };
    let wrong = |value: &str| problem(format!("Invalid value of {key} in {operator}: {value}."));
    let (is_negated, wanted) = match (operator, text_key, lower.as_str()) {
        ("StringEquals", Some(key), _) => (false, Wanted::Texts(key, values, false)),
        ("StringNotEquals", Some(key), _) => (true, Wanted::Texts(key, values, false)),
        ("StringLike", Some(key), _) => (false, Wanted::Texts(key, values, true)),
        ("StringNotLike", Some(key), _) => (true, Wanted::Texts(key, values, true)),
        ("IpAddress" | "NotIpAddress", _, "aws:sourceip") => {
            let networks = values.iter().map(|text| Network::read(text).ok_or_else(|| wrong(text)));
            (
                operator == "NotIpAddress",
                Wanted::Addresses(networks.collect::<Result<_, _>>()?),
            )
        }
        ("Bool", _, "aws:securetransport") => {
            let flags = values.iter().map(|text| text.parse().map_err(|_| wrong(text)));
            (false, Wanted::Secure(flags.collect::<Result<_, _>>()?))
        }
        ("DateLessThan" | "DateLessThanEquals" | "DateGreaterThan" | "DateGreaterThanEquals", _, "aws:currenttime") => {
            let times = values.iter().map(|text| time(text).ok_or_else(|| wrong(text)));
            let (is_before, is_equal) = (operator.starts_with("DateLess"), operator.ends_with("Equals"));
            (
                false,
                Wanted::Times(times.collect::<Result<_, _>>()?, is_before, is_equal),
            )
        }
        _ => return Err(problem(format!("Condition {operator} of {key} is not served."))),
    };
    Ok(ConditionTest { is_negated, wanted })
}

impl ConditionTest {
    /// Whether it holds for a request, in a statement that denies or allows.
    pub(super) fn holds(&self, facts: &PolicyFacts, is_denial: bool) -> bool {
        let fits = match &self.wanted {
            Wanted::Texts(key, wanted, are_patterns) => {
                let found = facts.texts.iter().find(|(known, _)| known == key);
                if found.is_some_and(|(_, text)| text.len() > LONGEST_TEXT) {
                    return is_denial;
                }
                found.is_some_and(|(_, text)| {
                    wanted.iter().any(|wanted| match are_patterns {
                        true => wildcard::fits(wanted, text),
                        false => wanted == text,
                    })
                })
            }
            Wanted::Addresses(networks) => networks.iter().any(|network| network.holds(facts.source)),
            Wanted::Secure(flags) => flags.contains(&facts.is_secure),
            Wanted::Times(times, is_before, is_equal) => times.iter().any(|time| {
                *is_equal && facts.now == *time
                    || if *is_before {
                        facts.now < *time
                    } else {
                        facts.now > *time
                    }
            }),
        };
        fits != self.is_negated
    }

    /// Whether it lets requests of some networks pass only, none of them so large that it could be anyone's.
    pub(super) fn names_few_addresses(&self) -> bool {
        let is_small = |network: &Network| network.bits >= if network.address.is_ipv4() { 8 } else { 32 };
        match &self.wanted {
            Wanted::Addresses(networks) => !self.is_negated && networks.iter().all(is_small),
            _ => false,
        }
    }
}

impl Network {
    /// `10.0.0.0/8`, `2001:db8::1`.
    fn read(text: &str) -> Option<Self> {
        let (address, bits) = text
            .split_once('/')
            .map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().ok()?;
        let all = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Some(all), |bits| bits.parse().ok())?;
        (bits <= all).then_some(Self { address, bits })
    }

    fn holds(self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                (own.to_bits() ^ other.to_bits())
                    .checked_shr(32 - self.bits)
                    .unwrap_or(0)
                    == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                (own.to_bits() ^ other.to_bits())
                    .checked_shr(128 - self.bits)
                    .unwrap_or(0)
                    == 0
            }
            _ => false,
        }
    }
}

/// Seconds since 1970 of `2030-01-31T12:00:00Z` or `2030-01-31`.
fn time(text: &str) -> Option<u64> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let whole = if text.len() == 10 {
        format!("{text}T00:00:00")
    } else {
        text.to_owned()
    };
    let (seconds, rest) = calendar::parse_iso(&whole, 59)?;
    rest.is_empty().then_some(seconds)
}
