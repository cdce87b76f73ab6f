//! `X-Delete-At` and `X-Delete-After`: when an object is to vanish, and which queue container says so.
//!
//! Source: Swift's `doc/source/overview_expiring_objects.rst` and the containers its proxies name.
//! Always holds: a deletion time that reaches the object servers is in the future.

use crate::backend::{header, text};
use crate::route::Route;
use crate::shared::Shared;
use request_pipeline::{ClientRequest, Response, reply};
use vocabulary::{EntityPath, PathHash, Timestamp};

/// The latest time Swift can spell in its queue.
const END_OF_TIME: i128 = 9_999_999_999;
/// Objects of one hour are spread over so many containers.
const SPREAD: u128 = 100;

/// Turns `X-Delete-After` into `X-Delete-At` and checks both. `now` is the moment of the write, not of the request: it
/// may have waited for its authorisation.
pub(crate) fn deletion_time(request: &mut ClientRequest, now: Timestamp) -> Result<Option<u64>, Response> {
    let now = i128::from(now.seconds());
    if let Some(after) = header(&request.headers, "x-delete-after") {
        let after = integer(after).ok_or_else(|| reply::plain(400, "Non-integer X-Delete-After"))?;
        if after <= 0 {
            return Err(reply::plain(400, "X-Delete-After in past"));
        }
        let at = now.saturating_add(after).min(END_OF_TIME);
        request.headers.insert("x-delete-at", text(&at.to_string()));
        request.headers.remove("x-delete-after");
    }
    let Some(at) = request.headers.get("x-delete-at") else {
        return Ok(None);
    };
    let at: i128 = std::str::from_utf8(at.as_bytes())
        .ok()
        .and_then(integer)
        .ok_or_else(|| reply::plain(400, "Non-integer X-Delete-At"))?;
    if at <= now {
        return Err(reply::plain(400, "X-Delete-At in past"));
    }
    let at = at.min(END_OF_TIME);
    request.headers.insert("x-delete-at", text(&at.to_string()));
    Ok(u64::try_from(at).ok())
}

/// A number as Swift's servers read one: a sign, white space around it and single underscores between digits may be
/// there; beyond what fits, the largest that does.
fn integer(text: &str) -> Option<i128> {
    let text = text.trim();
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let groups_are_digits = digits
        .split('_')
        .all(|group| !group.is_empty() && group.bytes().all(|b| b.is_ascii_digit()));
    if !groups_are_digits {
        return None;
    }
    let size = digits.bytes().filter(u8::is_ascii_digit).fold(0_i128, |sum, digit| {
        sum.saturating_mul(10).saturating_add(i128::from(digit - b'0'))
    });
    Some(if text.starts_with('-') { -size } else { size })
}

/// The queue container of an object that is to vanish at `at`, and where it lives.
pub(crate) struct ExpiryQueue {
    pub(crate) container: String,
    pub(crate) route: Route,
}

impl ExpiryQueue {
    pub(crate) fn of(shared: &Shared, path: &EntityPath, at: u64) -> Self {
        let (container, object) = (
            path.container.as_deref().unwrap_or(""),
            path.object.as_deref().unwrap_or(""),
        );
        let hash = shared.rings.object_hash(&path.account, container, object);
        let name = container_name(&hash, at, shared.options.expiring_objects_container_divisor);
        let prefix = &shared.options.auto_create_account_prefix;
        let account = format!("{prefix}{}", shared.options.expiring_objects_account_name);
        let route = shared.rings.container_route(&account, &name);
        Self { container: name, route }
    }
}

fn container_name(hash: &PathHash, at: u64, divisor: u64) -> String {
    let spread = u64::try_from(u128::from_be_bytes(hash.0) % SPREAD).unwrap_or(0);
    let slot = at / divisor.max(1) * divisor.max(1);
    format!("{:010}", slot.saturating_sub(spread))
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocabulary::HashPrefix;

    /// As OpenStack 2.38.3 took them.
    #[test]
    fn numbers_are_read_as_openstack_reads_them() {
        for (text, number) in [
            (" 17 ", Some(17)),
            ("+5", Some(5)),
            ("-1", Some(-1)),
            ("1_7", Some(17)),
            ("1__7", None),
            ("_17", None),
            ("1.5", None),
            ("", None),
            ("-", None),
        ] {
            assert_eq!(integer(text), number, "{text}");
        }
        assert_eq!(integer(&"1".repeat(100)), Some(i128::MAX));
    }

    /// The names OpenStack 2.38.3 gives for `/a/c/o` with prefix `pre` and suffix `suf`.
    #[test]
    fn queues_are_openstacks() {
        let hash = HashPrefix::new("pre", "suf").unwrap().object("a", "c", "o");
        for (at, name) in [
            (1_700_000_000, "1699919925"),
            (9_999_999_999, "9999935925"),
            (50, "0000000000"),
        ] {
            assert_eq!(container_name(&hash, at, 86_400), name);
        }
    }
}
