//! Swift's features in front of the core verbs, one file each, in one visible order.
