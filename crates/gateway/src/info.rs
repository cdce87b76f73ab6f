//! What is known of accounts and containers, as features and verbs ask for it: in this process first, in memcached
//! second, from their servers last. The caches: `info_cache.rs`.

use crate::backend::{Question, header, own_context, target};
use crate::candidates::Candidates;
use crate::info_cache::{CacheMoment, KnownInfo, keep_for, key};
use crate::nodes::Node;
use crate::shared::Shared;
use crate::{info_json, read};
use futures_util::future::join;
use http::HeaderMap;
use peer::message::header_names::{X_POLICY_INDEX, X_SHARDING_STATE};
use peer::message::{Message, ReadAccount, ReadContainer};
use request_pipeline::{AccountInfo, ContainerInfo, EntityLocation, InfoSource, PolicyUse};
use std::sync::Arc;
use vocabulary::metadata::Entity;
use vocabulary::{EntityPath, Policies, Policy, PolicyIndex, Timestamp};

#[async_trait::async_trait]
impl InfoSource for Shared {
    async fn account(&self, account: &str) -> Arc<AccountInfo> {
        let key = key(account, None);
        if let Some(KnownInfo::Account(info)) = self.cache.local(&key) {
            self.cache.found("account", "infocache.hit");
            return info;
        }
        Box::pin(self.learn_account(key, account)).await
    }

    fn location(&self, entity: &EntityPath, policy: PolicyIndex) -> EntityLocation {
        let account = &entity.account;
        let route = match (&entity.container, &entity.object) {
            (None, _) => Some(self.rings.account_route(account)),
            (Some(container), None) => Some(self.rings.container_route(account, container)),
            (Some(container), Some(object)) => self.rings.object_route(policy, account, container, object),
        };
        let Some(route) = route else {
            return EntityLocation::default();
        };
        let place = |node: &Node| (node.ip.to_string(), node.port, node.device.to_string());
        EntityLocation {
            partition: route.partition,
            places: route.primaries.iter().map(place).collect(),
        }
    }

    fn write_time(&self) -> Option<Timestamp> {
        Some(self.write_clock.next())
    }

    async fn container(&self, account: &str, container: &str) -> Arc<ContainerInfo> {
        let key = key(account, Some(container));
        if let Some(KnownInfo::Container(info)) = self.cache.local(&key) {
            self.cache.found("container", "infocache.hit");
            return info;
        }
        Box::pin(self.learn_container(key, account, container)).await
    }
}

impl Shared {
    /// What memcached or a server says, where this process does not know.
    async fn learn_account(&self, key: String, account: &str) -> Arc<AccountInfo> {
        let since = self.cache.moment().0;
        if let Some(info) = self
            .cache
            .shared(&key)
            .await
            .and_then(|value| info_json::account_from(&value))
        {
            let info = Arc::new(info);
            self.cache.found("account", "cache.hit");
            self.cache.keep_local(key, KnownInfo::Account(info.clone()), since);
            return info;
        }
        let (status, headers) = self.ask_about(EntityPath::account(account)).await;
        self.cache.missed("account", status);
        let info = Arc::new(account_info(status, &headers, &self.rings.policies));
        if let Some(keep) = keep_for(status, self.cache.accounts_for) {
            self.cache
                .keep_shared(&key, info_json::account_to(&info), keep, since)
                .await;
            self.cache.keep_local(key, KnownInfo::Account(info.clone()), since);
        }
        info
    }

    /// The same of a container.
    async fn learn_container(&self, key: String, account: &str, container: &str) -> Arc<ContainerInfo> {
        let since = self.cache.moment().0;
        if let Some(info) = self
            .cache
            .shared(&key)
            .await
            .and_then(|value| info_json::container_from(&value))
        {
            let info = Arc::new(info);
            self.cache.found("container", "cache.hit");
            self.cache.keep_local(key, KnownInfo::Container(info.clone()), since);
            return info;
        }
        let path = EntityPath::account(account).with_container(container);
        let (above, (status, headers)) = join(self.account(account), self.ask_about(path)).await;
        let seems_gone = above.is_gone() && !self.is_swifts_own(account);
        if seems_gone && (200..300).contains(&status) && self.is_gone(account).await {
            // What is written there would go with the rest of the account, which waits for the reaper.
            self.cache.missed("container", 404);
            let mut there = container_info(status, &headers);
            // Not what opens it to others.
            there.sysmeta.retain(|name, _| name.starts_with("versions-"));
            return Arc::new(ContainerInfo {
                status: 404,
                policy: there.policy,
                sysmeta: there.sysmeta,
                is_of_gone_account: true,
                ..ContainerInfo::default()
            });
        }
        self.cache.missed("container", status);
        let info = Arc::new(container_info(status, &headers));
        if let Some(keep) = keep_for(status, self.cache.containers_for) {
            self.cache
                .keep_shared(&key, info_json::container_to(&info, &headers), keep, since)
                .await;
            self.cache.keep_local(key, KnownInfo::Container(info.clone()), since);
        }
        info
    }

    /// Whether it is an account of Swift's own, which may have containers before it is there itself.
    pub(crate) fn is_swifts_own(&self, account: &str) -> bool {
        account.starts_with(&self.options.auto_create_account_prefix)
    }

    /// Whether an account is gone by its servers: another gateway may have made it a moment ago.
    async fn is_gone(&self, account: &str) -> bool {
        let since = self.cache.moment();
        let (status, headers) = self.ask_about(EntityPath::account(account)).await;
        self.note_account(account, status, &headers, since).await;
        account_info(status, &headers, &self.rings.policies).is_gone()
    }

    /// Takes note of what an account's server has answered to a question that was asked after `since`.
    pub(crate) async fn note_account(&self, account: &str, status: u16, headers: &HeaderMap, since: CacheMoment) {
        let Some(keep) = keep_for(status, self.cache.accounts_for) else {
            return;
        };
        let (key, info) = (key(account, None), account_info(status, headers, &self.rings.policies));
        if matches!(self.cache.local(&key), Some(KnownInfo::Account(known)) if *known == info) {
            return;
        }
        let value = info_json::account_to(&info);
        self.cache.keep_shared(&key, value, keep, since.0).await;
        self.cache.keep_local(key, KnownInfo::Account(Arc::new(info)), since.0);
    }

    /// The same of a container's server.
    pub(crate) async fn note_container(
        &self,
        (account, container): (&str, &str),
        status: u16,
        headers: &HeaderMap,
        since: CacheMoment,
    ) {
        let Some(keep) = keep_for(status, self.cache.containers_for) else {
            return;
        };
        let (key, info) = (key(account, Some(container)), container_info(status, headers));
        if matches!(self.cache.local(&key), Some(KnownInfo::Container(known)) if *known == info) {
            return;
        }
        let value = info_json::container_to(&info, headers);
        self.cache.keep_shared(&key, value, keep, since.0).await;
        self.cache
            .keep_local(key, KnownInfo::Container(Arc::new(info)), since.0);
    }

    async fn ask_about(&self, path: EntityPath) -> (u16, HeaderMap) {
        let route = match &path.container {
            None => self.rings.account_route(&path.account),
            Some(container) => self.rings.container_route(&path.account, container),
        };
        let (target, timestamp) = (target(Arc::new(path)), self.world.clock.now().into());
        let message: Message = match &target.path.container {
            None => Message::ReadAccount(ReadAccount {
                head_only: true,
                timestamp,
                ..ReadAccount::new(target)
            }),
            Some(_) => Message::ReadContainer(ReadContainer {
                head_only: true,
                timestamp,
                ..ReadContainer::new(target)
            }),
        };
        let question = Question::new(own_context("info"), message);
        let mut candidates = Candidates::new(self, route);
        match read::find(self, &mut candidates, &question, false).await {
            Ok(source) => (
                source.response.status().as_u16(),
                source.response.into_parts().0.headers,
            ),
            Err(refusal) => (refusal.status().as_u16(), refusal.into_parts().0.headers),
        }
    }
}

fn number(headers: &HeaderMap, name: &str) -> u64 {
    header(headers, name).and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn with_prefix(headers: &HeaderMap, prefix: &str) -> std::collections::BTreeMap<String, String> {
    let own = |name: &str| {
        name.strip_prefix(prefix)
            .filter(|rest| !rest.is_empty())
            .map(str::to_owned)
    };
    headers
        .iter()
        .filter_map(|(name, value)| {
            Some((
                own(name.as_str())?,
                String::from_utf8_lossy(value.as_bytes()).into_owned(),
            ))
        })
        .collect()
}

/// What an account server's HEAD says.
pub(crate) fn account_info(status: u16, headers: &HeaderMap, policies: &Policies) -> AccountInfo {
    let of_policy = |policy: &Policy| {
        let prefix = format!("x-account-storage-policy-{}", policy.name.to_lowercase());
        let count = |what: &str| number(headers, &format!("{prefix}-{what}"));
        let of_policy = PolicyUse {
            container_count: count("container-count"),
            object_count: count("object-count"),
            bytes_used: count("bytes-used"),
        };
        (policy.index, of_policy)
    };
    AccountInfo {
        status: if status == 404 && headers.contains_key("x-account-status") {
            410
        } else {
            status
        },
        object_count: number(headers, "x-account-object-count"),
        container_count: number(headers, "x-account-container-count"),
        bytes_used: number(headers, "x-account-bytes-used"),
        policies: policies.iter().map(of_policy).collect(),
        meta: with_prefix(headers, Entity::Account.user_prefix()),
        sysmeta: with_prefix(headers, Entity::Account.system_prefix()),
    }
}

/// What a container server's HEAD says.
pub(crate) fn container_info(status: u16, headers: &HeaderMap) -> ContainerInfo {
    let text = |name: &str| header(headers, name).map(str::to_owned);
    ContainerInfo {
        status,
        is_of_gone_account: false,
        read_acl: text("x-container-read"),
        write_acl: text("x-container-write"),
        policy: PolicyIndex(u32::try_from(number(headers, X_POLICY_INDEX.as_str())).unwrap_or(0)),
        object_count: number(headers, "x-container-object-count"),
        bytes_used: number(headers, "x-container-bytes-used"),
        sync_to: text("x-container-sync-to"),
        sync_key: text("x-container-sync-key"),
        versions: text("x-versions-location"),
        sharding_state: text(X_SHARDING_STATE.as_str()),
        meta: with_prefix(headers, Entity::Container.user_prefix()),
        sysmeta: with_prefix(headers, Entity::Container.system_prefix()),
    }
}
