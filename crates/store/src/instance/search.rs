//! Searching instances by an expression, in the order that was asked for.
