//! Where things belong: ring files, lookups, handoffs and the ring builder. Pure.
