//! For features that answer by themselves: whether the client may know.
//!
//! The core authorises what reaches it; what a feature answers in its place must be authorised here first.

use request_pipeline::{ClientRequest, InfoSource, Response};

/// Asks the authorizer of `request`, if there is one; `acl` is the container's for this verb. `Err` is the answer.
pub async fn check(request: &ClientRequest, info: &dyn InfoSource, acl: Option<String>) -> Result<(), Response> {
    if request.authorizer.is_none() {
        return Ok(());
    }
    let mut asked = request.without_body();
    asked.acl = acl;
    asked.authorise(info).await
}

/// Asks whether the client may write to the object that `request` names. `Err` is the answer.
pub async fn check_write(request: &ClientRequest, info: &dyn InfoSource) -> Result<(), Response> {
    let mut acl = None;
    if let Some(entity) = &request.entity
        && let Some(container) = &entity.container
        && request.authorizer.is_some()
    {
        acl = info.container(&entity.account, container).await.write_acl.clone();
    }
    check(request, info, acl).await
}

/// `refusal` for those who may write to the object that `request` names; the answer to all others otherwise.
pub async fn refuse_write(request: &ClientRequest, info: &dyn InfoSource, refusal: Response) -> Response {
    check_write(request, info).await.err().unwrap_or(refusal)
}
