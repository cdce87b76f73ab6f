//! Rules of buckets that have been read before, so that they are not unpacked for each request about an object: a
//! thousand of them take a millisecond.
//!
//! Always holds: rules are those of just the text that is stored now, so that nothing has to be forgotten when they
//! change; together they take at most [`KEPT_BYTES`], and those make room that were asked for longest ago.

use ::lifecycle::LifecycleRules;
use lru::LruCache;
use parking_lot::Mutex;
use std::sync::Arc;

/// Bytes of all that is kept, about: clients fill buckets with rules, of which one may take 4 MiB.
const KEPT_BYTES: usize = 16 << 20;
/// What an entry takes besides its texts and rules.
const EMPTY: usize = 256;

/// See the module.
pub(in crate::operations) struct KnownRules(Mutex<KeptRules>);

struct KeptRules {
    /// By the path of the container.
    entries: LruCache<String, Entry>,
    size: usize,
}

struct Entry {
    text: String,
    /// Nothing where the text is damaged.
    rules: Option<Arc<LifecycleRules>>,
    size: usize,
}

impl Default for KnownRules {
    fn default() -> Self {
        Self(Mutex::new(KeptRules {
            entries: LruCache::unbounded(),
            size: 0,
        }))
    }
}

impl KnownRules {
    /// The rules that `text` says, which is stored in the container now; nothing where it cannot be read.
    pub(in crate::operations) fn read(&self, container: String, text: String) -> Option<Arc<LifecycleRules>> {
        if let Some(known) = self.0.lock().entries.get(&container)
            && known.text == text
        {
            return known.rules.clone();
        }
        let rules = LifecycleRules::of_text(&text).ok().map(Arc::new);
        let bytes = rules.as_ref().map_or(0, |rules| rules.bytes());
        let size = EMPTY + container.len() + text.len() + bytes;
        self.0.lock().keep(
            container,
            Entry {
                text,
                rules: rules.clone(),
                size,
            },
        );
        rules
    }
}

impl KeptRules {
    fn keep(&mut self, container: String, entry: Entry) {
        self.size += entry.size;
        if let Some((_, replaced)) = self.entries.push(container, entry) {
            self.size -= replaced.size;
        }
        while self.size > KEPT_BYTES
            && let Some((_, oldest)) = self.entries.pop_lru()
        {
            self.size -= oldest.size;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::lifecycle::{LifecycleExpiration, LifecycleRule};

    fn text_of(count: usize, prefix: &str) -> String {
        let rule = |number: usize| LifecycleRule {
            id: format!("rule-{number}"),
            is_enabled: true,
            filter: ::lifecycle::LifecycleFilter {
                prefix: Some(format!("{prefix}{number:04}/")),
                ..Default::default()
            },
            expiration: Some(LifecycleExpiration::Days(30)),
            ..LifecycleRule::default()
        };
        let rules = LifecycleRules {
            rules: (0..count).map(rule).collect(),
        };
        rules.to_text().unwrap()
    }

    #[test]
    fn rules_are_read_once_until_they_change() {
        let known = KnownRules::default();
        let (first, second) = (text_of(1000, "a"), text_of(1000, "b"));
        let read = |text: &str| known.read("/a/c".into(), text.into());
        let once = read(&first).unwrap();
        assert!(Arc::ptr_eq(&once, &read(&first).unwrap()));
        assert_eq!(read(&second).unwrap().rules[0].filter.prefix.as_deref(), Some("b0000/"));
        assert_eq!(*read(&first).unwrap(), *once);
        assert!(read("damaged").is_none() && read("damaged").is_none());
        assert_eq!(known.0.lock().entries.len(), 1);
    }

    /// A client who makes buckets with many rules takes no more memory than the bound.
    #[test]
    fn they_take_a_bounded_space() {
        let known = KnownRules::default();
        let text = text_of(1000, "a");
        for number in 0..200 {
            known.read(format!("/a/{number}"), text.clone());
            let kept = known.0.lock();
            let sizes: usize = kept.entries.iter().map(|(_, entry)| entry.size).sum();
            assert_eq!(sizes, kept.size);
            assert!(kept.size <= KEPT_BYTES);
        }
        let last = known.0.lock().entries.peek("/a/199").unwrap().size;
        assert!(last > 1000 * size_of::<LifecycleRule>());
        assert!(known.0.lock().entries.len() < 200);
    }
}
