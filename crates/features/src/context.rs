//! What features are made of, besides the options of their own sections.

use identity::TokenCache;
use request_pipeline::{MemoryRoom, SharedCache};
use serde_json::Value;
use settings::{EncryptionSettings, ProxyConf, SettingsError, SwiftConf, VersionedWritesSettings};

use settings::declare::{Options, Scope};
use std::sync::Arc;
use std::time::Duration;
use telemetry::Statsd;
use world::World;

/// What features are made of, besides the options of their own section.
pub struct FeatureContext<'a> {
    /// `proxy-server.conf`.
    pub conf: &'a ProxyConf,
    /// `swift.conf`.
    pub swift: &'a SwiftConf,
    /// Clock, randomness, files, network, tasks.
    pub world: &'a World,
    /// The cache that gateways share, if one is configured.
    pub cache: Option<Arc<dyn SharedCache>>,
    /// For bodies that are read as a whole.
    pub bodies: MemoryRoom,
}

impl FeatureContext<'_> {
    /// Whether containers may have versions of their objects.
    pub(crate) fn keeps_versions(&self) -> Result<bool, SettingsError> {
        let Some(filter) = self.conf.pipeline.filter("versioned_writes") else {
            return Ok(false);
        };
        let settings = VersionedWritesSettings::read(&filter.options)?;
        if settings.allow_object_versioning && !self.conf.pipeline.has("symlink") {
            return Err(filter.options.wrong(
                "allow_object_versioning",
                "symlink in the pipeline behind versioned_writes, which follows the links to versions",
            ));
        }
        Ok(settings.allow_object_versioning)
    }

    /// Whether everything that is stored from behind the last of these filters is encrypted.
    pub(crate) fn encrypts_behind(&self, filters: &[&str]) -> Result<bool, SettingsError> {
        let pipeline = &self.conf.pipeline.filters;
        let last = pipeline
            .iter()
            .rposition(|filter| filters.contains(&filter.egg.as_str()));
        let behind = pipeline.get(last.map_or(0, |last| last + 1)..).unwrap_or_default();
        let Some(filter) = behind.iter().find(|filter| filter.egg == "encryption") else {
            return Ok(false);
        };
        let settings: EncryptionSettings = Options::read(&filter.options)?;
        Ok(!settings.disable_encryption)
    }

    /// Where a filter's metrics go, as its section says.
    pub(crate) fn statsd(&self, options: &Scope, tail: &str) -> Result<Statsd, SettingsError> {
        Ok(Statsd::open(&Options::read(options)?, tail, self.world))
    }

    /// The tokens that gateways share, if a cache is configured.
    pub(crate) fn tokens(&self) -> Option<Arc<dyn TokenCache>> {
        let cache = self.cache.clone()?;
        Some(Arc::new(SharedTokens(cache)))
    }
}

/// Tokens in the shared cache.
struct SharedTokens(Arc<dyn SharedCache>);

#[async_trait::async_trait]
impl TokenCache for SharedTokens {
    async fn get(&self, key: &str) -> Option<Value> {
        self.0.get(key).await
    }

    async fn set(&self, key: &str, value: &Value, ttl: Duration) {
        self.0.set(key, value, ttl).await;
    }
}
