//! The real file system.

/// The disks of this machine.
pub struct RealFiles;
impl crate::files::FileSystem for RealFiles {}
