//! starvation
