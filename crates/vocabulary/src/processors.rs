//! Lists of processors as Linux writes them (cpuset(7), "List format").

/// How many processors a list such as `0-3,8` names; `None` where it is no such list.
pub fn count(list: &str) -> Option<u64> {
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u64, u64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        last.checked_sub(first)?.checked_add(1)
    };
    list.split(',')
        .map(range)
        .try_fold(0_u64, |sum, count| sum.checked_add(count?))
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn ranges_and_single_processors_are_counted() {
        for (list, expected) in [
            ("0", Some(1)),
            ("0-3,8\n", Some(5)),
            ("", None),
            ("x", None),
            ("3-1", None),
            ("0-18446744073709551615", None),
        ] {
            assert_eq!(count(list), expected, "{list}");
        }
    }
}
