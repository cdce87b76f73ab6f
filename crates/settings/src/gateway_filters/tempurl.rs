//! The options of `tempurl` and `formpost`: signed addresses and signed forms.

use crate::declare::options;
use crate::kinds::{Digests, HeaderPatterns, WordList};

options! {
    /// `[filter:tempurl]`.
    pub struct TempUrlSettings {
        /// The methods that an address may be signed for.
        methods: WordList = "GET HEAD PUT POST DELETE",
        /// Headers taken off requests; a name may end in * and then stands for all that begin so.
        incoming_remove_headers: HeaderPatterns = "x-timestamp x-open-expired",
        /// Exceptions from incoming_remove_headers.
        incoming_allow_headers: HeaderPatterns = "",
        /// Headers taken off answers.
        outgoing_remove_headers: HeaderPatterns = "x-object-meta-*",
        /// Exceptions from outgoing_remove_headers.
        outgoing_allow_headers: HeaderPatterns = "x-object-meta-public-*",
        /// The digests that signatures may be made with; sha1 is deprecated.
        allowed_digests: Digests = "sha1 sha256 sha512",
    }
}

options! {
    /// `[filter:formpost]`.
    pub struct FormPostSettings {
        /// The digests that signatures may be made with; sha1 is deprecated.
        allowed_digests: Digests = "sha1 sha256 sha512",
    }
}
