//! How fast planning is.
fn main() {}
