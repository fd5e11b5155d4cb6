//! Settings of containers and image registries, for `paddock agent`.

use super::Args;

/// Settings of the container runtime that server and agent share.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ContainerArgs {
    /// Container runtime: `embedded`, `docker` (or Podman), `auto` (first of these that works),
    /// `kubernetes` or `simulated` (no containers) [default: auto]
    #[arg(long, env = "PADDOCK_RUNTIME", value_name = "NAME")]
    pub(crate) runtime: Option<String>,
    /// Registry credentials, in the format of Docker's config.json
    #[arg(long, env = "PADDOCK_REGISTRY_AUTH_FILE", value_name = "FILE")]
    registry_auth_file: Option<String>,
    /// Repositories that every organization may pull with these credentials, such as
    /// `registry.local:5000/base/*`; for no others they are used
    #[arg(long, env = "PADDOCK_REGISTRY_REPOSITORIES", value_name = "REPOSITORY,…")]
    registry_repositories: Option<String>,
    /// Other hosts to which registries may refer, for tokens and redirects
    #[arg(long, env = "PADDOCK_REGISTRY_REALM", value_name = "HOST,…")]
    registry_realm: Option<String>,
    /// Maximum image size, compressed or uncompressed [default: 8Gi]
    #[arg(long, env = "PADDOCK_MAX_IMAGE_SIZE", value_name = "SIZE")]
    max_image_size: Option<String>,
    /// Allow connections from containers of the embedded runtime to public addresses
    /// [default: true]
    #[arg(long, env = "PADDOCK_EGRESS", value_name = "BOOL")]
    egress: Option<String>,
    /// Private networks that containers of the embedded runtime may reach
    #[arg(long, env = "PADDOCK_EGRESS_ALLOW", value_name = "CIDR,…")]
    egress_allow: Option<String>,
    /// User namespaces of containers of the embedded runtime: `auto` or `off` (root of a container is
    /// root of this machine) [default: auto]
    #[arg(long, env = "PADDOCK_USERNS", value_name = "MODE")]
    userns: Option<String>,
    /// Whether images are pulled from registries at loopback and private addresses: `refuse` or
    /// `allow` [default: refuse]
    #[arg(long, env = "PADDOCK_PRIVATE_ADDRESSES", value_name = "POLICY")]
    private_addresses: Option<String>,
    /// Addresses and networks of registries from which images are pulled nevertheless
    #[arg(long, env = "PADDOCK_ALLOW_ADDRESS", value_name = "CIDR,…")]
    allow_address: Option<String>,
}

impl From<ContainerArgs> for Args {
    fn from(args: ContainerArgs) -> Self {
        Self {
            runtime: args.runtime,
            registry_auth_file: args.registry_auth_file,
            registry_repositories: args.registry_repositories,
            registry_realm: args.registry_realm,
            max_image_size: args.max_image_size,
            egress: args.egress,
            egress_allow: args.egress_allow,
            userns: args.userns,
            private_addresses: args.private_addresses,
            allow_address: args.allow_address,
            ..Self::default()
        }
    }
}
