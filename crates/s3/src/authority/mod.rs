//! The words in which rights are given beside ACLs.
//!
//! | question | file |
//! |---|---|
//! | which actions does a request take, and of what | `actions.rs` |
//!
//! Where they are applied: `operations/admission.rs`.

pub mod actions;
