//! What N replies mean: decision tables without I/O.
