//! Account and container databases: Swift's SQLite files behind one broker.
