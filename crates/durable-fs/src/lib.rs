//! Stage, sync, publish, sync the directory: file-system steps that cannot be half-called.
