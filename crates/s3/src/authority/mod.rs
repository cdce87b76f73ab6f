//! The words in which rights are given beside ACLs.
//!
//! | question | file |
//! |---|---|
//! | which actions does a request take, and of what | `actions.rs` |
//! | what does a bucket policy say | `policy/` |
//!
//! Where they are applied: `operations/admission.rs`.

pub mod actions;
pub mod policy;
