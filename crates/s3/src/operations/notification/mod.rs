//! PutBucketNotificationConfiguration and GetBucketNotificationConfiguration.
//!
//! The rules are in the container's system metadata, where the gateway's `bucket_notifications` finds them; what they
//! mean is the crate `notification`'s, their XML in `document.rs`.
//! Always holds: rules that are stored are whole and served, and each names a target that the operator has configured
//! for the account; where no target is configured nothing of this is served.

pub(crate) mod document;

use super::public_access::text_of;
use super::{Done, Operation, not_implemented};
use crate::error::{INTERNAL_ERROR, INVALID_ARGUMENT, INVALID_REQUEST, S3Error};
use crate::payload::collect;
use ::notification::{NotificationRule, NotificationRules, STORED_RULES};
use http::Method;

/// Bytes of a document: a hundred rules with room for names.
const LARGEST_DOCUMENT: u64 = 1 << 20;

/// The targets that the operator has configured for notifications.
pub trait NotificationTargetNames: Send + Sync {
    /// Whether there is any.
    fn is_any(&self) -> bool;
    /// Whether buckets of `account` may send events to the target `name`.
    fn serves(&self, name: &str, account: &str) -> bool;
}

/// Either of the two.
pub(super) async fn run(operation: Operation<'_>) -> Done {
    match operation.request.method {
        Method::GET => get(operation).await,
        Method::PUT => put(operation).await,
        _ => Err(not_implemented("notification")),
    }
}

/// PutBucketNotificationConfiguration.
async fn put(mut operation: Operation<'_>) -> Done {
    let signed = operation.signed_body();
    let body = collect(&mut operation.request, signed.as_deref(), LARGEST_DOCUMENT).await?;
    let mut rules = document::read(&body)?;
    for rule in &mut rules.rules {
        operation.check_target(rule)?;
        if rule.id.is_empty() {
            let mut random = [0; 16];
            operation.service.world.random.fill(&mut random);
            rule.id = vocabulary::hex::encode(random);
        }
    }
    let text = rules
        .to_text()
        .map_err(|error| INVALID_REQUEST.saying(format!("Too long: {error}.")))?;
    operation.store(STORED_RULES, &text, 200).await
}

/// GetBucketNotificationConfiguration.
async fn get(operation: Operation<'_>) -> Done {
    let bucket = operation.metadata_of_bucket().await?;
    let rules = NotificationRules::of_text(text_of(&bucket, STORED_RULES)).map_err(|error| {
        tracing::warn!("bucket {}: {error}", operation.bucket());
        S3Error::from(INTERNAL_ERROR)
    })?;
    Ok(super::document(document::print(&rules)))
}

impl Operation<'_> {
    /// Refuses a target that is not the operator's, or not for this account.
    fn check_target(&self, rule: &NotificationRule) -> Result<(), S3Error> {
        let targets = self.service.notification_targets.as_ref();
        let account = self.account().account;
        let is_served = rule
            .target()
            .is_some_and(|name| targets.is_some_and(|targets| targets.serves(name, &account)));
        match is_served {
            true => Ok(()),
            false => Err(INVALID_ARGUMENT
                .saying(
                    "Unable to validate the following destination configurations: the operator of this cluster has \
                     configured no such target",
                )
                .with("ArgumentName", &rule.arn)
                .with("ArgumentValue", "The destination does not exist")),
        }
    }
}
