//! How many requests of each account are under way, where an operator limits that.
//!
//! A request carries its [`AccountPlace`] among its extensions. What authorises the request takes the place for an
//! account then, so that requests of strangers count for no account, however slowly they send.
//! Always holds: an account without requests takes no room; without a limit nothing is counted; a request counts once,
//! for the first account that it was authorised for, until its answer has been sent.

use crate::busy::busy;
use crate::call::Response;
use crate::refusals::{ServerRefusal, ServerRefusals};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// Counts by account.
#[derive(Debug)]
pub(crate) struct AccountShares {
    /// 0 for any number.
    most: usize,
    taken: Mutex<HashMap<String, usize>>,
    refusals: ServerRefusals,
}

/// Where a request counts for an account; clones are of the same request, which counts as long as one of them lives.
#[derive(Debug, Clone)]
pub struct AccountPlace(Arc<Place>);

#[derive(Debug)]
struct Place {
    shares: Arc<AccountShares>,
    account: Mutex<Option<String>>,
}

impl AccountShares {
    pub(crate) fn new(most: usize, refusals: ServerRefusals) -> Arc<Self> {
        Arc::new(Self {
            most,
            taken: Mutex::default(),
            refusals,
        })
    }

    /// For a new request, which counts for no account yet; `None` without a limit.
    pub(crate) fn place(self: &Arc<Self>) -> Option<AccountPlace> {
        let place = || Place {
            shares: self.clone(),
            account: Mutex::default(),
        };
        (self.most > 0).then(|| AccountPlace(Arc::new(place())))
    }
}

impl AccountPlace {
    /// Counts the request for this account, if it counts for none yet; `Err` is the answer when the account has as many
    /// as it may.
    pub fn take(&self, account: &str) -> Result<(), Response> {
        let Place { shares, account: own } = &*self.0;
        let mut own = own.lock();
        if own.is_some() {
            return Ok(());
        }
        let mut taken = shares.taken.lock();
        let count = taken.get(account).copied().unwrap_or_default();
        if count >= shares.most {
            shares.refusals.add(ServerRefusal::Account);
            return Err(busy());
        }
        taken.insert(account.to_owned(), count + 1);
        *own = Some(account.to_owned());
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(account) = self.account.get_mut() else { return };
        let mut taken = self.shares.taken.lock();
        if let Some(count) = taken.get_mut(account) {
            *count -= 1;
            if *count == 0 {
                taken.remove(account);
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]
mod tests {
    use super::*;

    #[test]
    fn each_account_has_its_share() {
        let shares = AccountShares::new(2, ServerRefusals::default());
        let place = || shares.place().unwrap();
        let (first, second, third) = (place(), place(), place());
        assert!(first.take("a").is_ok() && second.take("a").is_ok());
        // Each counts once, whatever else it asks for.
        assert!(first.take("a").is_ok() && first.take("b").is_ok());
        let refusal = third.take("a").unwrap_err();
        assert_eq!(
            (refusal.status().as_u16(), refusal.headers()["retry-after"].as_bytes()),
            (503, &b"5"[..])
        );
        assert_eq!(shares.refusals.count(ServerRefusal::Account), 1);
        let part = first.clone();
        drop(first);
        assert!(third.take("a").is_err());
        drop(part);
        assert!(third.take("a").is_ok());
        drop((second, third));
        assert!(shares.taken.lock().is_empty());
        assert!(AccountShares::new(0, ServerRefusals::default()).place().is_none());
    }
}
