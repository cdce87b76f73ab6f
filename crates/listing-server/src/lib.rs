//! The account and container servers' verbs: one server, two schemas.
