//! One object on one disk: the engine trait, Swift's files engine and a memory engine.
