//! What a request says in its first line and in single headers.

use crate::input::text;
use features::listings::listing_accept;
use peer::proxied::{self, Parsed};
use vocabulary::names::{quote, requote, unquote};
use vocabulary::timestamp::{decode_series, encode_series};
use vocabulary::{Conditions, EntityPath, Outcome, RangeSet, Timestamp, calendar, header_name};

/// `Range`: what is resolved lies inside the object, is bounded, and says the same again.
pub(crate) fn range(bytes: &[u8]) {
    let Some(set) = RangeSet::parse(&text(bytes)) else {
        return;
    };
    for length in [0, 1, 7, 100, 5 << 30, u64::MAX] {
        let ranges = set.resolve(length);
        assert!(ranges.len() <= 50);
        for range in ranges {
            assert!(range.start <= range.end && range.end <= length, "{range:?} of {length}");
            // The last bytes of an object without any: as with OpenStack, none of them.
            if range.is_empty() {
                assert_eq!(length, 0);
                continue;
            }
            let again = RangeSet::parse(&format!("bytes={}-{}", range.start, range.end - 1));
            assert_eq!(again.map(|set| set.resolve(length)), Some(vec![range]));
        }
    }
}

/// The four conditions, one a line; an empty line is a header that is not there.
pub(crate) fn conditions(bytes: &[u8]) {
    let text = text(bytes);
    let mut lines = text.split('\n');
    let mut header = || lines.next().filter(|line| !line.is_empty());
    let [a, b, c, d] = [header(), header(), header(), header()];
    let conditions = Conditions::new(a, b, c, d);
    let at = Timestamp::from_seconds(1_700_000_000);
    let outcome = conditions.check_read(&["d41d8cd98f00b204e9800998ecf8427e"], at);
    assert_eq!(
        outcome,
        conditions.clone().check_read(&["d41d8cd98f00b204e9800998ecf8427e"], at)
    );
    if conditions.is_empty() {
        assert_eq!(outcome, Outcome::Proceed);
    }
    assert!(!(conditions.insists_on_absence() && conditions.has_specific_none_match()));
    for header in [a, b, c, d].into_iter().flatten() {
        if let Some(seconds) = calendar::parse_http(header) {
            assert_eq!(
                calendar::parse_http(&calendar::http(seconds)),
                Some(seconds),
                "{header:?}"
            );
        }
    }
}

/// Paths, queries, header names and timestamps: each is read from what was written of it.
pub(crate) fn names(bytes: &[u8]) {
    let text = text(bytes);
    if let Ok(entity) = EntityPath::split(&text) {
        let path = entity.path();
        assert_eq!(EntityPath::split(&path[1..]), Ok(entity.clone()));
        let decoded = unquote(&entity.quoted());
        assert_eq!(decoded.as_deref(), Ok(&path[..]));
    }
    assert_eq!(unquote(&quote(&text)).as_deref(), Ok(&*text));
    assert_eq!(requote(&requote(&text)), requote(&text));
    let _ = vocabulary::names::query_value(&text, "marker");
    let encoded = header_name::encode_text(&text);
    assert_eq!(header_name::decode(&encoded), text.as_bytes());
    assert_eq!(header_name::decoded_len(&encoded), text.len());
    let _ = header_name::title(&text);
    if let Ok(time) = text.parse::<Timestamp>() {
        assert_eq!(time.internal().to_string().parse::<Timestamp>(), Ok(time));
        assert_eq!(
            time.normal().parse::<Timestamp>().map(Timestamp::ticks),
            Ok(time.ticks())
        );
        let _ = (time.iso(), time.last_modified());
    }
    if let Ok([first, second, third]) = decode_series(&text) {
        for explicit in [false, true] {
            let again = decode_series(&encode_series(first, &[second, third], explicit));
            assert_eq!(
                again.map(|series| series.map(Timestamp::ticks)),
                Ok([first, second, third].map(Timestamp::ticks))
            );
        }
    }
}

/// `Accept` of listings: what is chosen is on offer, and one form on offer is chosen or none.
pub(crate) fn accept(bytes: &[u8]) {
    let chosen = listing_accept::choose(bytes);
    let json = listing_accept::only_json(bytes);
    assert_eq!(chosen.is_err(), json.is_err());
    if let Ok(Some(form)) = chosen {
        assert_eq!(listing_accept::choose_among(bytes, &[form]), Ok(Some(form)));
    }
}

/// What load balancers say first: whole, or the beginning of one, or none; never two of these.
pub(crate) fn preamble(bytes: &[u8]) {
    match proxied::parse(bytes) {
        Parsed::Whole(preamble) => {
            assert!(preamble.length <= bytes.len() && preamble.length <= 16 + 2048);
            assert_eq!(proxied::parse(&bytes[..preamble.length]), Parsed::Whole(preamble));
            for length in 0..preamble.length {
                assert_eq!(proxied::parse(&bytes[..length]), Parsed::Incomplete);
            }
        }
        Parsed::Incomplete => assert!(bytes.len() < 16 + 2048),
        Parsed::Bad => assert!(!bytes.is_empty()),
    }
}
