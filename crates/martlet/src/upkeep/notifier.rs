//! From `container-server.conf` and `notification-targets.conf` to container-notifier.

use super::through_gateway::{INTERNAL_CLIENT, check_share};
use super::{UpCluster, UpkeepContext, load, preset, run_as_client};
use crate::cli::Upkeep;
use crate::failure::CommandFailure;
use crate::proxy;
use ::upkeep::{ContainerNotifier, Daemon, NotifierOptions, Webhook, Webhooks};
use features::access::authtoken::tls;
use features::notification::{QUEUE_ACCOUNT, WatchedTargets};
use peer::{HttpClient, HttpService, Url};
use settings::notification_targets::NotificationTargetSettings;
use settings::{AuthTokenSettings, ContainerNotifierSettings, ProxyConf, UpkeepConf};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const CONTAINER_NOTIFIER: &str = "container-notifier";
/// Within one process a look costs little, and its user waits for the event.
const UP_INTERVAL: Duration = Duration::from_secs(1);

/// `martlet container-notifier`.
pub fn container_notifier(upkeep: &Upkeep) -> Result<(), CommandFailure> {
    let conf = UpkeepConf::<ContainerNotifierSettings>::load(&upkeep.conf, CONTAINER_NOTIFIER)?;
    run_as_client(CONTAINER_NOTIFIER, conf.beginning(), upkeep.passes(), |context| {
        let described = ProxyConf::load_internal_with_versions(&conf.settings.internal_client_conf_path)?;
        context.container_notifier(&conf, context.internal_gateway_of(&described)?)
    })
}

/// Within a cluster in one process.
pub(super) fn for_up(context: &UpkeepContext<'_>, inner: &UpCluster<'_>) -> Result<Daemon, CommandFailure> {
    let described = ProxyConf::load_internal_with_versions(&inner.etc.join(INTERNAL_CLIENT))?;
    let gateway = proxy::build_beside(inner.gateway, context.world, &described, inner.swift)?;
    let mut conf = load::<ContainerNotifierSettings>(inner.etc, "container-server.conf", CONTAINER_NOTIFIER)?;
    preset(&mut conf, "interval", |own| own.interval = UP_INTERVAL);
    context.container_notifier(&conf, gateway)
}

impl UpkeepContext<'_> {
    fn container_notifier(
        &self,
        conf: &UpkeepConf<ContainerNotifierSettings>,
        gateway: Arc<dyn HttpService>,
    ) -> Result<Daemon, CommandFailure> {
        let settings = &conf.settings;
        check_share(settings.process, settings.processes)?;
        let options = NotifierOptions {
            account: format!("{}{QUEUE_ACCOUNT}", self.swift.auto_create_account_prefix),
            concurrency: settings.concurrency.0,
            request_timeout: settings.request_timeout,
            max_backoff: settings.max_backoff,
            max_age: settings.max_age,
            max_refusals: settings.max_refusals,
            patience: settings.intent_patience,
            grace: settings.intent_grace,
            processes: settings.processes,
            process: settings.process,
        };
        let trusted = AuthTokenSettings {
            cafile: settings.cafile.clone(),
            ..AuthTokenSettings::default()
        };
        let tls = tls::connector(&trusted, &*self.world.files, &conf.scope)?;
        let http = HttpClient::with_tls(self.world.clone(), tls);
        let client = self.internal_client(gateway, "Martlet Container Notifier", settings.request_tries);
        let hooks = self.webhooks(&conf.common.swift_dir);
        let job = ContainerNotifier::new(self.world.clone(), client, http, hooks, options);
        Ok(self.daemon(conf, job, 0.0, settings.interval))
    }

    fn webhooks(&self, swift_dir: &Path) -> Webhooks {
        let targets = WatchedTargets::new(swift_dir, self.world.clone());
        Arc::new(move || {
            let known = targets.now();
            let hooks = known.targets.iter().filter_map(|(name, target)| {
                let hook = webhook(target);
                if hook.is_none() {
                    tracing::error!("{CONTAINER_NOTIFIER}: the url of target {name} is no address");
                }
                Some((name.clone(), Arc::new(hook?)))
            });
            hooks.collect::<BTreeMap<_, _>>()
        })
    }
}

fn webhook(target: &NotificationTargetSettings) -> Option<Webhook> {
    let uri: http::Uri = target.url.trim().parse().ok()?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    Some(Webhook {
        url: Url::parse(&target.url)?.with_path(path.to_owned()),
        secret: Some(target.secret.0.clone()).filter(|secret| !secret.is_empty()),
        accounts: target.accounts.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use settings::declare::{Options, Scope};

    #[test]
    fn addresses_keep_their_path_and_query() {
        let of = |url: &str| {
            let settings = NotificationTargetSettings {
                url: url.into(),
                ..NotificationTargetSettings::read(&Scope::empty()).unwrap()
            };
            webhook(&settings).map(|hook| format!("{}{}", hook.url.authority(), hook.url.path()))
        };
        for (url, expected) in [
            ("http://h/a/?token=x", Some("h:80/a/?token=x")),
            ("https://h:8443", Some("h:8443/")),
            ("http://[::1]:81/s3/", Some("[::1]:81/s3/")),
            ("http://h o", None),
        ] {
            assert_eq!(of(url).as_deref(), expected, "{url}");
        }
    }
}
