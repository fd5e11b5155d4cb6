//! End-to-end tests of the binary: real processes and sockets.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

mod agent;
mod client;
mod client_account;
mod client_admin;
mod client_cluster;
mod client_deploy;
mod client_deployment;
mod client_env;
mod client_faults;
mod client_help;
mod client_logs;
mod client_search;
mod client_service;
mod client_template;
mod demo;
mod examples;
mod fake;
mod fleet;
mod fleet_catalog;
mod fleet_external;
mod fleet_real;
mod fleet_sdk;
mod house;
mod images;
mod kubernetes;
mod messages;
mod process;
mod real;
mod server;
mod server_connections;
mod server_crash;
mod server_files;
mod server_keys;
mod server_limits;
mod server_secrets;
mod server_settings;
mod server_stop;
mod snapshot;
mod storm;
mod terraform;
mod threat_model;
mod transcript;
mod web_shop;
