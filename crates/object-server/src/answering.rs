//! An answer under way. Each verb's future has memory of its own: otherwise each read would move and keep what the
//! largest of the verbs needs.

use peer::Response;
use storage_shell::Refusal;
use world::BoxFuture;

/// What a verb returns once it has begun.
pub(crate) type Answering<'a> = BoxFuture<'a, Result<Response, Refusal>>;
