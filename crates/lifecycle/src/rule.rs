//! What a rule consists of, and which objects it is about.
//!
//! Source: AWS, "Lifecycle configuration elements".

use serde::{Deserialize, Serialize};
use vocabulary::names::unquote;

/// The rules of a bucket, in the order sent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LifecycleRules {
    /// One after the other.
    pub rules: Vec<LifecycleRule>,
}

impl LifecycleRules {
    /// Bytes of memory that they take, about.
    pub fn bytes(&self) -> usize {
        let of_rule = |rule: &LifecycleRule| {
            let prefix = rule.filter.prefix.as_ref().map_or(0, String::len);
            let tags = rule.filter.tags.iter();
            let tags: usize = tags
                .map(|(key, value)| size_of::<(String, String)>() + key.len() + value.len())
                .sum();
            size_of::<LifecycleRule>() + rule.id.len() + prefix + tags
        };
        self.rules.iter().map(of_rule).sum()
    }
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LifecycleRule {
    /// Unique in the bucket.
    #[serde(rename = "id")]
    pub id: String,
    /// Whether it counts.
    #[serde(rename = "on")]
    pub is_enabled: bool,
    /// Which objects it is about.
    #[serde(flatten)]
    pub filter: LifecycleFilter,
    /// What becomes of current versions.
    #[serde(rename = "exp", default, skip_serializing_if = "Option::is_none")]
    pub expiration: Option<LifecycleExpiration>,
    /// What becomes of older versions.
    #[serde(rename = "old", default, skip_serializing_if = "Option::is_none")]
    pub noncurrent: Option<NoncurrentExpiration>,
    /// After how many days an upload that was never completed goes.
    #[serde(rename = "abort", default, skip_serializing_if = "Option::is_none")]
    pub abort_after_days: Option<u32>,
}

/// Which objects a rule is about: those that fit all that is named.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LifecycleFilter {
    /// It is written as `Prefix` in the rule itself, as older clients do, and is to be read back so.
    #[serde(rename = "plain", default, skip_serializing_if = "is_false")]
    pub is_rules_prefix: bool,
    /// What their keys begin with.
    #[serde(rename = "pre", default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Tags that they all have.
    #[serde(rename = "tags", default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<(String, String)>,
    /// They have more bytes than this.
    #[serde(rename = "gt", default, skip_serializing_if = "Option::is_none")]
    pub larger_than: Option<u64>,
    /// They have fewer bytes than this.
    #[serde(rename = "lt", default, skip_serializing_if = "Option::is_none")]
    pub smaller_than: Option<u64>,
}

fn is_false(flag: &bool) -> bool {
    !*flag
}

/// What becomes of current versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LifecycleExpiration {
    /// They expire so many days after they were written.
    #[serde(rename = "days")]
    Days(u32),
    /// They expire from this second since 1970 on, a midnight.
    #[serde(rename = "date")]
    Date(u64),
    /// Delete markers with nothing behind them go, if so.
    #[serde(rename = "markers")]
    DeleteMarkers(bool),
}

/// What becomes of older versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoncurrentExpiration {
    /// They go so many days after something newer took their place.
    #[serde(rename = "days")]
    pub days: u32,
    /// But so many of the newest of them stay.
    #[serde(rename = "keep", default, skip_serializing_if = "Option::is_none")]
    pub newer_versions: Option<u32>,
}

/// The tags in the text of `x-amz-tagging`, or as an object keeps them: `key=value&key2=value2`, encoded; nothing where
/// it is damaged.
pub fn read_tags(text: &str) -> Option<Vec<(String, String)>> {
    let decode = |text: &str| unquote(&text.replace('+', " ")).ok();
    let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((decode(key)?, decode(value)?))
    });
    pairs.collect()
}

/// What is known of an object's tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownTags<'a> {
    /// Not looked up yet: no filter for tags fits.
    Unknown,
    /// These and no others.
    These(&'a [(String, String)]),
}

/// An object as filters see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LifecycleSubject<'a> {
    /// Its key.
    pub key: &'a str,
    /// Its bytes; nothing for a delete marker or an upload, which no filter for sizes fits.
    pub size: Option<u64>,
    /// Its tags.
    pub tags: KnownTags<'a>,
}

impl<'a> LifecycleSubject<'a> {
    /// A key without size and tags: of a delete marker, of an upload.
    pub fn bare(key: &'a str) -> Self {
        Self {
            key,
            size: None,
            tags: KnownTags::These(&[]),
        }
    }
}

impl LifecycleFilter {
    /// What keys begin with; empty for all.
    pub fn prefix(&self) -> &str {
        self.prefix.as_deref().unwrap_or_default()
    }

    /// Whether an object fits, its tags aside.
    pub(crate) fn fits_but_for_tags(&self, subject: &LifecycleSubject<'_>) -> bool {
        let is_larger = |least: u64| subject.size.is_some_and(|size| size > least);
        let is_smaller = |most: u64| subject.size.is_some_and(|size| size < most);
        subject.key.starts_with(self.prefix())
            && self.larger_than.is_none_or(is_larger)
            && self.smaller_than.is_none_or(is_smaller)
    }

    /// Whether an object fits.
    pub(crate) fn fits(&self, subject: &LifecycleSubject<'_>) -> bool {
        let has_tags = match subject.tags {
            KnownTags::Unknown => self.tags.is_empty(),
            KnownTags::These(tags) => self.tags.iter().all(|wanted| tags.contains(wanted)),
        };
        has_tags && self.fits_but_for_tags(subject)
    }
}

impl LifecycleRules {
    /// The rules that count.
    pub(crate) fn enabled(&self) -> impl Iterator<Item = &LifecycleRule> {
        self.rules.iter().filter(|rule| rule.is_enabled)
    }

    /// Whether any rule may make objects, versions or delete markers due.
    pub fn concern_objects(&self) -> bool {
        self.enabled()
            .any(|rule| rule.expiration.is_some() || rule.noncurrent.is_some())
    }

    /// Whether any rule may make uploads due.
    pub fn concern_uploads(&self) -> bool {
        self.enabled().any(|rule| rule.abort_after_days.is_some())
    }

    /// What all keys begin with that any rule is about, so that no others need to be listed.
    pub fn common_prefix(&self) -> &str {
        let mut prefixes = self.enabled().map(|rule| rule.filter.prefix());
        let first = prefixes.next().unwrap_or_default();
        prefixes.fold(first, |common, next| {
            let equal = common.chars().zip(next.chars()).take_while(|(a, b)| a == b);
            &common[..equal.map(|(a, _)| a.len_utf8()).sum()]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        let pair = |word: &str| word.split_once('=').map(|(key, value)| (key.into(), value.into()));
        text.split_whitespace().filter_map(pair).collect()
    }

    #[test]
    fn filters_ask_for_all_that_they_name() {
        let filter = LifecycleFilter {
            prefix: Some("a/".into()),
            tags: pairs("k=v l=w"),
            larger_than: Some(10),
            smaller_than: Some(20),
            ..LifecycleFilter::default()
        };
        let both = pairs("k=v l=w m=x");
        let one = pairs("k=v l=x");
        for (key, size, tags, fits) in [
            ("a/1", Some(11), KnownTags::These(&both[..]), true),
            ("a/1", Some(19), KnownTags::These(&both), true),
            ("a/1", Some(10), KnownTags::These(&both), false),
            ("a/1", Some(20), KnownTags::These(&both), false),
            ("a/1", None, KnownTags::These(&both), false),
            ("b/1", Some(11), KnownTags::These(&both), false),
            ("a/1", Some(11), KnownTags::These(&one), false),
            ("a/1", Some(11), KnownTags::Unknown, false),
        ] {
            let subject = LifecycleSubject { key, size, tags };
            assert_eq!(filter.fits(&subject), fits, "{subject:?}");
        }
        let all = LifecycleFilter::default();
        assert!(all.fits(&LifecycleSubject::bare("x")));
    }

    #[test]
    fn only_what_rules_are_about_needs_to_be_listed() {
        let rules = |prefixes: &[(&str, bool)]| LifecycleRules {
            rules: prefixes
                .iter()
                .map(|(prefix, is_enabled)| LifecycleRule {
                    is_enabled: *is_enabled,
                    filter: LifecycleFilter {
                        prefix: Some((*prefix).into()),
                        ..LifecycleFilter::default()
                    },
                    ..LifecycleRule::default()
                })
                .collect(),
        };
        for (prefixes, common) in [
            (&[("logs/a", true), ("logs/ä", true)][..], "logs/"),
            (&[("ä1", true), ("ö1", true)], ""),
            (&[("logs/a", true), ("x", false)], "logs/a"),
            (&[("logs/a", true), ("", true)], ""),
            (&[], ""),
        ] {
            assert_eq!(rules(prefixes).common_prefix(), common);
        }
    }
}
