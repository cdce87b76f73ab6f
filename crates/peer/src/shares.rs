//! How many requests of each account are under way, where an operator limits that.
//!
//! Always holds: an account without requests takes no room; without a limit nothing is counted.
//! Deliberately absent: who asks. Requests of other APIs than Swift's own (`/v1/ACCOUNT`) are not counted.

use parking_lot::Mutex;
use percent_encoding::percent_decode_str;
use std::collections::HashMap;
use std::sync::Arc;

/// Counts by account.
#[derive(Debug)]
pub(crate) struct AccountShares {
    /// 0 for any number.
    most: usize,
    taken: Mutex<HashMap<String, usize>>,
}

/// A request that counts as long as this lives.
#[derive(Debug)]
pub(crate) struct AccountShare {
    shares: Arc<AccountShares>,
    account: String,
}

impl AccountShares {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            taken: Mutex::default(),
        })
    }

    /// For a request with this path; `Err` when its account has as many as it may.
    pub(crate) fn take(self: &Arc<Self>, path: &str) -> Result<Option<AccountShare>, ()> {
        let Some(account) = (self.most > 0).then(|| account_of(path)).flatten() else {
            return Ok(None);
        };
        let mut taken = self.taken.lock();
        let count = taken.entry(account.clone()).or_default();
        if *count >= self.most {
            return Err(());
        }
        *count += 1;
        Ok(Some(AccountShare {
            shares: self.clone(),
            account,
        }))
    }
}

impl Drop for AccountShare {
    fn drop(&mut self) {
        let mut taken = self.shares.taken.lock();
        if let Some(count) = taken.get_mut(&self.account) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.account);
            }
        }
    }
}

fn account_of(path: &str) -> Option<String> {
    let mut parts = path.strip_prefix('/')?.splitn(3, '/');
    let version = parts.next()?;
    let account = parts.next().filter(|account| !account.is_empty())?;
    matches!(version, "v1" | "v1.0").then(|| percent_decode_str(account).decode_utf8_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_account_has_its_share() {
        let shares = AccountShares::new(2);
        let (first, second) = (shares.take("/v1/a/c/o").unwrap(), shares.take("/v1.0/%61").unwrap());
        assert!(first.is_some() && second.is_some());
        assert!(shares.take("/v1/a?format=json").is_ok() && shares.take("/v1/a/c").is_err());
        assert!(shares.take("/v1/b").is_ok());
        for other in ["/", "/healthcheck", "/bucket/key", "/v1/", "*"] {
            assert!(shares.take(other).unwrap().is_none(), "{other}");
        }
        drop(first);
        assert!(shares.take("/v1/a").is_ok());
        drop(second);
        assert!(shares.taken.lock().is_empty());
        assert!(AccountShares::new(0).take("/v1/a").unwrap().is_none());
    }
}
