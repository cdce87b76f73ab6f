//! The object server's verbs on one node.
