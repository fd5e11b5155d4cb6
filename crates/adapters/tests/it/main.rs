//! All integration tests of the foreign systems, in one binary.
