//! The seams to the outside: clock, randomness, network, file system and task spawning.
