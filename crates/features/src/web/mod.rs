//! What browsers need: containers as web sites, cross-domain policies, quoted entity tags.
//!
//! | question | file |
//! |---|---|
//! | containers as web sites | `staticweb/` |
//! | `/crossdomain.xml` | `crossdomain.rs` |
//! | entity tags in quotes | `etag_quoter.rs` |

pub mod crossdomain;
pub mod etag_quoter;
pub mod staticweb;
