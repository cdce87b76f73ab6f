//! Python pickles as data: a byte-exact protocol 2 writer and a reader that refuses anything but data.
