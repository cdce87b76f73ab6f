//! Objects that refer to others: copies inside the cluster (`copy/`) and symbolic links (`symlink/`).

pub mod copy;
pub mod symlink;
