//! Samples of a page of metrics, in Prometheus' text format.
//! Source: "Exposition formats", Prometheus' documentation.

/// The samples of a metric: labels as they stand, and the value.
pub(super) fn samples<'t>(page: &'t str, name: &'t str) -> impl Iterator<Item = (&'t str, f64)> {
    page.lines().filter_map(move |line| {
        let rest = line.strip_prefix(name)?;
        let (labels, value) = match rest.strip_prefix('{') {
            Some(rest) => rest.rsplit_once('}')?,
            None => ("", rest.strip_prefix(' ')?),
        };
        let value = value
            .split_whitespace()
            .next()?
            .parse()
            .ok()
            .filter(|value: &f64| value.is_finite())?;
        Some((labels, value))
    })
}

/// Of those with a label.
pub(super) fn sum(page: &str, name: &str, label: &str) -> Option<f64> {
    let fitting = samples(page, name).filter(|(labels, _)| label.is_empty() || labels.contains(label));
    fitting.map(|(_, value)| value).reduce(|one, other| one + other)
}

#[cfg(test)]
mod tests {
    use super::{samples, sum};

    #[test]
    fn samples_are_those_of_the_metric_alone() {
        let page = "# HELP a x\na{role=\"proxy\",reason=\"idle\"} 3\na{role=\"}\",reason=\"plain\"} 4 17\nab 9\na NaN\na_total 5\na 2.5\n";
        let found: Vec<f64> = samples(page, "a").map(|(_, value)| value).collect();
        assert_eq!(found, [3.0, 4.0, 2.5]);
        assert_eq!(sum(page, "a", "reason=\"plain\""), Some(4.0));
        assert_eq!(sum(page, "a_total", ""), Some(5.0));
        assert_eq!(sum(page, "b", ""), None);
    }
}
