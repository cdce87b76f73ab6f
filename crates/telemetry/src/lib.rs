//! Logs, transaction ids and the access-log line.
