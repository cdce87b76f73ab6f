//! Whether all servers of a bucket list the same versions of a key.
//!
//! What the gateway lists is what one of them knows. One that was away when a version was written would hide it, and
//! with it that it is made of parts which are to go.
//! Always holds: one server that does not answer, or lists something else than the others, is an error of the key, so
//! that parts stay until replication has made them alike, and what has no parts goes; a bucket whose servers gave no
//! answer is left alone for a while (`unlisted.rs`).

use super::alone::{ListedOfKey, VersionsAsked};
use super::remover::{Remover, RuledBucket};
use crate::internal_client::{InternalRequest, UnexpectedStatus};
use http::Method;
use vocabulary::Timestamp;

const DIFFERENT: &str = "its servers do not list the same versions yet, so that parts stay until the next pass";

const LEFT_ALONE: &str = "not all of its servers listed its versions a moment ago; parts stay";

impl Remover {
    /// Checks it of a key's versions `since` then.
    pub(super) async fn check_listed_alike(
        &self,
        bucket: &RuledBucket,
        key: &str,
        since: Option<Timestamp>,
    ) -> Result<(), UnexpectedStatus> {
        let Some(hidden) = bucket.hidden() else {
            return Ok(());
        };
        let (name, now) = (bucket.path.path(), self.world.clock.elapsed());
        // As of what cannot be read: the servers do what else they are asked for.
        let error = || InternalRequest::new(Method::GET, hidden.clone()).unexpected(500, "-".to_owned());
        if self.unlisted.has(&name, now) {
            self.failures.note_item(name, LEFT_ALONE);
            return Err(error());
        }
        let mut asked = VersionsAsked::of_key(key, self.page);
        if let Some(since) = since {
            asked.end_behind(key, since);
        }
        let why = loop {
            let mut answers = vec![];
            for sent in self.ask_for_versions(&hidden, &asked, "auto").await {
                let place = sent.place.clone();
                answers.push(self.listed_of_key(sent).await.map_err(|why| (place, why)));
            }
            if answers.iter().any(Result::is_err) {
                self.unlisted.note(name.clone(), now);
            }
            match alike(answers) {
                Ok(names) if names.len() < self.page => return Ok(()),
                Ok(mut names) => match names.pop() {
                    Some(last) if last > asked.behind => asked.behind = last,
                    _ => break DIFFERENT.to_owned(),
                },
                Err(why) => break why,
            }
        };
        self.failures.note_item(bucket.path.with_object(key).path(), why);
        Err(error())
    }
}

/// The names that all list; why there are none.
fn alike(answers: Vec<Result<ListedOfKey, (String, String)>>) -> Result<Vec<String>, String> {
    let mut same: Option<Vec<String>> = None;
    for answer in answers {
        let names = match answer {
            Ok(ListedOfKey::Versions(versions)) => versions.into_iter().map(|version| version.name).collect(),
            Ok(ListedOfKey::Shards(_)) => return Err("its versions are sharded, so that parts stay".to_owned()),
            Err((place, why)) => return Err(format!("{place}: {why}; parts stay until the next pass")),
        };
        match &same {
            Some(same) if *same != names => return Err(DIFFERENT.to_owned()),
            _ => same = Some(names),
        }
    }
    same.ok_or_else(|| DIFFERENT.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container_lifecycle::alone::KeyVersion;

    #[test]
    fn one_that_differs_or_fails_is_enough() {
        let listed = |names: &[&str]| {
            let version = |name: &&str| KeyVersion {
                name: (*name).to_owned(),
                is_marker: false,
            };
            Ok(ListedOfKey::Versions(names.iter().map(version).collect()))
        };
        let failed = || Err(("127.0.0.1:1/sda".to_owned(), "503".to_owned()));
        assert_eq!(
            alike(vec![listed(&["a", "b"]), listed(&["a", "b"])]).unwrap(),
            ["a", "b"]
        );
        assert_eq!(alike(vec![listed(&[]), listed(&[]), listed(&[])]).unwrap(), [""; 0]);
        for answers in [
            vec![listed(&["a", "b"]), listed(&["a"]), listed(&["a", "b"])],
            vec![listed(&["a"]), failed()],
            vec![listed(&["a"]), Ok(ListedOfKey::Shards(vec![]))],
            vec![],
        ] {
            assert!(alike(answers.clone()).is_err(), "{answers:?}");
        }
    }
}
