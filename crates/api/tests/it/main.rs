//! The APIs as their callers see them: a whole server, on both databases.

mod appendix;
