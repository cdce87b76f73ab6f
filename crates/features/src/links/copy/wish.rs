//! What a client wants copied where: the headers of `COPY` and of `PUT` with `X-Copy-From`.
//!
//! Always holds: what comes out is the PUT of the destination, without the headers that asked for a copy.

use super::without_body;
use http::Method;
use request_pipeline::{ClientRequest, Response, reply};
use std::sync::Arc;
use vocabulary::EntityPath;
use vocabulary::names::unquote;

/// A copy that a client asks for.
pub(super) struct CopyOrder {
    /// The PUT of the destination.
    pub(super) request: ClientRequest,
    /// What to copy.
    pub(super) source: Arc<EntityPath>,
}

impl CopyOrder {
    /// `entity` is what the request names. `Err` is the answer to what makes no sense.
    pub(super) async fn read(request: ClientRequest, entity: &Arc<EntityPath>) -> Result<Self, Box<Response>> {
        let mut wish = match request.method {
            Method::PUT => Self::of_put(request, entity).await?,
            _ => Self::of_copy(request, entity)?,
        };
        for name in [
            "x-copy-from",
            "x-copy-from-account",
            "destination",
            "destination-account",
        ] {
            wish.request.headers.remove(name);
        }
        Ok(wish)
    }

    async fn of_put(mut request: ClientRequest, entity: &EntityPath) -> Result<Self, Box<Response>> {
        if has_body(&mut request).await {
            return Err(Box::new(reply::plain(400, "Copy requests require a zero byte body")));
        }
        let account = match request
            .header("x-copy-from-account")
            .filter(|account| !account.is_empty())
        {
            Some(account) => account_name(account)?,
            None => entity.account.clone(),
        };
        let source = object_name(&request, "x-copy-from", "X-Copy-From", &account)?;
        Ok(Self {
            request,
            source: Arc::new(source),
        })
    }

    fn of_copy(mut request: ClientRequest, entity: &Arc<EntityPath>) -> Result<Self, Box<Response>> {
        if request
            .headers
            .get("destination")
            .is_none_or(|destination| destination.is_empty())
        {
            return Err(Box::new(reply::html(412, "Destination header required".into())));
        }
        let mut source = entity.clone();
        let account = match request.header("destination-account") {
            Some(account) => account_name(account)?,
            None => {
                // A client that names both accounts means the source's by this one.
                if let Some(account) = request
                    .header("x-copy-from-account")
                    .filter(|account| !account.is_empty())
                {
                    let account = account_name(account)?;
                    source = Arc::new(EntityPath {
                        account,
                        ..EntityPath::clone(entity)
                    });
                }
                entity.account.clone()
            }
        };
        let destination = object_name(&request, "destination", "Destination", &account)?;
        request.method = Method::PUT;
        request.aim_at(destination);
        without_body(&mut request);
        Ok(Self { request, source })
    }
}

/// Whether there are bytes in the body, whatever its headers say.
async fn has_body(request: &mut ClientRequest) -> bool {
    match request.body.length() {
        Some(length) => length > 0,
        None => request.body.next().await.is_some(),
    }
}

fn account_name(header: &str) -> Result<String, Box<Response>> {
    let refuse = |text: &str| Err(Box::new(reply::html(412, text.into())));
    match unquote(header) {
        Ok(name) if name.is_empty() => refuse("Account name cannot be empty"),
        Ok(name) if name.contains('/') => refuse("Account name cannot contain slashes"),
        Ok(name) if !name.contains('\0') => Ok(name),
        _ => refuse("Invalid UTF8 or contains NULL"),
    }
}

/// `/container/object`, with or without its first slash.
fn object_name(
    request: &ClientRequest,
    header: &'static str,
    shown: &str,
    account: &str,
) -> Result<EntityPath, Box<Response>> {
    let text = request.header(header).unwrap_or_default();
    let Some(path) = unquote(text).ok().filter(|path| !path.contains('\0')) else {
        return Err(Box::new(reply::html(412, "Invalid UTF8 or contains NULL".into())));
    };
    match path.strip_prefix('/').unwrap_or(&path).split_once('/') {
        Some((container, object)) if !container.is_empty() && !object.is_empty() => Ok(EntityPath::account(account)
            .with_container(container)
            .with_object(object)),
        _ => {
            let text = format!("{shown} header must be of the form <container name>/<object name>");
            Err(Box::new(reply::page(412, text)))
        }
    }
}
