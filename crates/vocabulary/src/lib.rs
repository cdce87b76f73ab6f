//! The words of object storage: names, hash paths, timestamps, policies, ranges. No I/O, no clock.
