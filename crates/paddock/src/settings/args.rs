//! The list of server settings, from which flags, environment variables and file keys are derived.

use serde::Deserialize;

/// Declares settings, each with its help, environment variable and value name. The field name is
/// also the flag and the key in the file.
macro_rules! settings {
    ($($(#[doc = $doc:literal])+ $name:ident: $variable:literal, $value:literal;)*) => {
        /// Unvalidated settings. All values are strings until validation, so that errors are the
        /// same for every source.
        #[derive(Debug, Default, clap::Args, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct Args {
            /// TOML file with any of these settings; keys use underscores
            #[arg(long, env = "PADDOCK_CONFIG", value_name = "FILE")]
            #[serde(skip)]
            pub(super) config: Option<String>,
            $($(#[doc = $doc])+
            #[arg(long, env = $variable, value_name = $value, hide_env_values = true)]
            pub(super) $name: Option<String>,)*
        }

        impl Args {
            /// Fills unset values from `file`.
            pub(super) fn or(self, file: Args) -> Args {
                Args { config: self.config, $($name: self.$name.or(file.$name)),* }
            }
        }
    };
}

settings! {
    /// Address to listen on [default: 127.0.0.1:8001]
    listen: "PADDOCK_LISTEN", "ADDRESS:PORT";
    /// Directory for the database and other files [default: ./paddock-data]
    data_dir: "PADDOCK_DATA_DIR", "DIR";
    /// Database: `postgres://…` or `sqlite:FILE` [default: SQLite in the data directory]
    database_url: "PADDOCK_DATABASE_URL", "URL";
    /// SQLite durability: `full` (survives power loss) or `normal` [default: full]
    sqlite_durability: "PADDOCK_SQLITE_DURABILITY", "LEVEL";
    /// Container runtime: `embedded`, `docker` (or Podman), `auto` (first that works) or
    /// `simulated` (no containers) [default: auto]
    runtime: "PADDOCK_RUNTIME", "NAME";
    /// Registry credentials, in the format of Docker's config.json
    registry_auth_file: "PADDOCK_REGISTRY_AUTH_FILE", "FILE";
    /// Repositories that every organization may pull with these credentials, such as
    /// `registry.local:5000/base/*`; for no others they are used
    registry_repositories: "PADDOCK_REGISTRY_REPOSITORIES", "REPOSITORY,…";
    /// Other hosts to which registries may refer, for tokens and redirects
    registry_realm: "PADDOCK_REGISTRY_REALM", "HOST,…";
    /// Maximum image size, compressed or uncompressed [default: 8Gi]
    max_image_size: "PADDOCK_MAX_IMAGE_SIZE", "SIZE";
    /// Allow connections from containers of the embedded runtime to public addresses
    /// [default: true]
    egress: "PADDOCK_EGRESS", "BOOL";
    /// Private networks that containers of the embedded runtime may reach
    egress_allow: "PADDOCK_EGRESS_ALLOW", "CIDR,…";
    /// User namespaces of containers of the embedded runtime: `auto` or `off` (root of a container is
    /// root of this machine) [default: auto]
    userns: "PADDOCK_USERNS", "MODE";
    /// Password of the user `admin`; prefer the environment variable [default: generated at first
    /// start]
    admin_password: "PADDOCK_ADMIN_PASSWORD", "TEXT";
    /// Start although `seal.key` lacks keys of stored secrets, which stay unreadable
    /// [default: false]
    accept_lost_keys: "PADDOCK_ACCEPT_LOST_KEYS", "BOOL";
    /// Offer this machine as a cluster [default: true]
    local_agent: "PADDOCK_LOCAL_AGENT", "BOOL";
    /// How much of this machine's capacity containers may request in total: 1.5 is half as much
    /// again as it has [default: 1.0]
    machine_overcommit: "PADDOCK_MACHINE_OVERCOMMIT", "FACTOR";
    /// Maximum deployments per organization; the default quota of deployments [default: 1000]
    max_deployments_per_organization: "PADDOCK_MAX_DEPLOYMENTS_PER_ORGANIZATION", "N";
    /// Quotas of organizations that have none of their own, such as `cpu=8,ram=16Gi,clusters=10`;
    /// `none` disables one [default: no quotas of resource types, high ones of objects]
    default_quota: "PADDOCK_DEFAULT_QUOTA", "KIND=LIMIT,…";
    /// Maximum deployments per cluster [default: 10000]
    max_deployments_per_cluster: "PADDOCK_MAX_DEPLOYMENTS_PER_CLUSTER", "N";
    /// Maximum priority of deployments, unless the administrator sets another for an organization
    /// [default: 100]
    max_priority: "PADDOCK_MAX_PRIORITY", "N";
    /// Maximum replicas an organization may preempt per hour [default: 1000]
    preemptions_per_hour: "PADDOCK_PREEMPTIONS_PER_HOUR", "N";
    /// Seconds without a heartbeat after which a cluster is unreachable [default: 30]
    agent_silence_secs: "PADDOCK_AGENT_SILENCE_SECS", "SECONDS";
    /// Seconds after which replicas on an unreachable cluster are rescheduled; 0 disables it
    /// [default: 300]
    agent_grace_secs: "PADDOCK_AGENT_GRACE_SECS", "SECONDS";
    /// Minimum password length [default: 1]
    password_min_length: "PADDOCK_PASSWORD_MIN_LENGTH", "N";
    /// Lifetime of a login in seconds [default: 86400]
    token_life_secs: "PADDOCK_TOKEN_LIFE_SECS", "SECONDS";
    /// Maximum lifetime of tokens created by `paddock token create`, in seconds [default: 31536000]
    token_max_life_secs: "PADDOCK_TOKEN_MAX_LIFE_SECS", "SECONDS";
    /// Request timeout in seconds [default: 30]
    request_timeout_secs: "PADDOCK_REQUEST_TIMEOUT_SECS", "SECONDS";
    /// Who may create organizations and join them: `open` (everyone), `invite` (users with an
    /// invite) or `closed` (nobody) [default: open if --listen is a loopback address, otherwise
    /// invite]
    sign_up: "PADDOCK_SIGN_UP", "POLICY";
    /// Allow members to invite users; owners always may [default: false]
    member_invites: "PADDOCK_MEMBER_INVITES", "BOOL";
    /// Maximum lifetime of an invite in seconds [default: 2592000]
    invite_max_life_secs: "PADDOCK_INVITE_MAX_LIFE_SECS", "SECONDS";
    /// Additional hosts under which the server may be called, comma-separated: names, `*.PARENT` or
    /// `*`; the listen address, localhost and the host of --public-url are always allowed
    allowed_host: "PADDOCK_ALLOWED_HOST", "HOSTS";
    /// Proxies whose X-Forwarded-For or Forwarded header is trusted, comma-separated
    trusted_proxy: "PADDOCK_TRUSTED_PROXY", "NETWORKS";
    /// Maximum open connections, bounded by the limit of open files [default: 10000]
    max_connections: "PADDOCK_MAX_CONNECTIONS", "N";
    /// Maximum open connections of one address; 0 disables it [default: 1000]
    max_connections_per_address: "PADDOCK_MAX_CONNECTIONS_PER_ADDRESS", "N";
    /// Requests per second of one user; 0 disables it [default: 500]
    user_requests_per_sec: "PADDOCK_USER_REQUESTS_PER_SEC", "N";
    /// Requests per second of one organization; 0 disables it [default: 2000]
    organization_requests_per_sec: "PADDOCK_ORGANIZATION_REQUESTS_PER_SEC", "N";
    /// Requests per second of one address; 0 disables it [default: 1000]
    address_requests_per_sec: "PADDOCK_ADDRESS_REQUESTS_PER_SEC", "N";
    /// Maximum open streams of events and logs of one user; 0 disables it [default: 100]
    max_streams_per_user: "PADDOCK_MAX_STREAMS_PER_USER", "N";
    /// Maximum open streams of one organization; 0 disables it [default: 500]
    max_streams_per_organization: "PADDOCK_MAX_STREAMS_PER_ORGANIZATION", "N";
    /// Maximum open streams of one address; 0 disables it [default: 500]
    max_streams_per_address: "PADDOCK_MAX_STREAMS_PER_ADDRESS", "N";
    /// Seconds after which a stream ends; clients resume it [default: 3600]
    max_stream_secs: "PADDOCK_MAX_STREAM_SECS", "SECONDS";
    /// Apply the limits per address and of requests to clients on this machine [default: false]
    limit_loopback: "PADDOCK_LIMIT_LOOPBACK", "BOOL";
    /// Log format: `text` or `json` [default: text]
    log_format: "PADDOCK_LOG_FORMAT", "FORMAT";
    /// Log filter: `error`, `warn`, `info`, `debug`, or per module, as in `info,store=debug`
    /// [default: info]
    log: "PADDOCK_LOG", "FILTER";
    /// With `--runtime simulated`: start and stop delay in milliseconds [default: 0]
    simulated_delay_ms: "PADDOCK_SIMULATED_DELAY_MS", "MS";
    /// With `--runtime simulated`: images whose path contains this text fail
    simulated_fail: "PADDOCK_SIMULATED_FAIL", "TEXT";
    /// With `--runtime simulated`: images whose path contains this text run to completion
    simulated_complete: "PADDOCK_SIMULATED_COMPLETE", "TEXT";
    /// Directory of additional service kinds, one YAML file each; reloaded on change
    catalog_dir: "PADDOCK_CATALOG_DIR", "DIR";
    /// YAML file of instance quotas; reloaded on change
    quota_file: "PADDOCK_QUOTA_FILE", "FILE";
    /// YAML file of users who may not own instances; reloaded on change
    denied_owners_file: "PADDOCK_DENIED_OWNERS_FILE", "FILE";
    /// YAML file of autoscaled cluster pools; reloaded on change
    scaling_file: "PADDOCK_SCALING_FILE", "FILE";
    /// DNS domain of instances [default: defined by the kind]
    domain: "PADDOCK_DOMAIN", "NAME";
    /// DNS server that accepts dynamic updates (RFC 2136)
    dns_server: "PADDOCK_DNS_SERVER", "ADDRESS:PORT";
    /// DNS zone to update
    dns_zone: "PADDOCK_DNS_ZONE", "NAME";
    /// TSIG key for updates, in the format of `tsig-keygen`
    dns_key_file: "PADDOCK_DNS_KEY_FILE", "FILE";
    /// AWS Route 53 hosted zone to update, instead of --dns-server
    route53_zone: "PADDOCK_ROUTE53_ZONE", "NAME";
    /// Route 53 zone id, if several zones have the same name
    route53_zone_id: "PADDOCK_ROUTE53_ZONE_ID", "ID";
    /// AWS access key id for Route 53
    aws_access_key_id: "AWS_ACCESS_KEY_ID", "TEXT";
    /// AWS secret access key; prefer the environment variable
    aws_secret_access_key: "AWS_SECRET_ACCESS_KEY", "TEXT";
    /// AWS session token, for temporary credentials; prefer the environment variable
    aws_session_token: "AWS_SESSION_TOKEN", "TEXT";
    /// Route 53 endpoint [default: AWS]
    route53_endpoint: "PADDOCK_ROUTE53_ENDPOINT", "URL";
    /// OpenID provider at which an SSO client is registered per instance (RFC 7591)
    sso_issuer: "PADDOCK_SSO_ISSUER", "URL";
    /// Initial access token for client registration; prefer the environment variable
    sso_registration_token: "PADDOCK_SSO_REGISTRATION_TOKEN", "TEXT";
    /// Days after which SSO client secrets are rotated [default: never]
    sso_rotate_days: "PADDOCK_SSO_ROTATE_DAYS", "N";
    /// Keycloak server at which an SSO client is created per instance, instead of --sso-issuer
    keycloak_url: "PADDOCK_KEYCLOAK_URL", "URL";
    /// Keycloak realm
    keycloak_realm: "PADDOCK_KEYCLOAK_REALM", "NAME";
    /// Keycloak client that may manage clients
    keycloak_client_id: "PADDOCK_KEYCLOAK_CLIENT_ID", "NAME";
    /// Secret of the Keycloak client; prefer the environment variable
    keycloak_client_secret: "PADDOCK_KEYCLOAK_CLIENT_SECRET", "TEXT";
    /// Consul server for key-value pairs of environments
    consul_addr: "PADDOCK_CONSUL_ADDR", "URL";
    /// Consul token, if required; prefer the environment variable
    consul_token: "PADDOCK_CONSUL_TOKEN", "TEXT";
    /// Default Consul datacenter [default: that of the Consul agent]
    consul_datacenter: "PADDOCK_CONSUL_DATACENTER", "NAME";
    /// Prefix of Consul keys per organization, with `{organization}` for its id; empty for none
    /// [default: {organization}/]
    consul_prefix: "PADDOCK_CONSUL_PREFIX", "TEMPLATE";
    /// Vault server for secrets and certificates of environments
    vault_addr: "PADDOCK_VAULT_ADDR", "URL";
    /// Vault token; prefer the environment variable
    vault_token: "PADDOCK_VAULT_TOKEN", "TEXT";
    /// Vault AppRole role id, instead of a token
    vault_role_id: "PADDOCK_VAULT_ROLE_ID", "ID";
    /// Vault AppRole secret id; prefer the environment variable
    vault_secret_id: "PADDOCK_VAULT_SECRET_ID", "TEXT";
    /// Mount path of the AppRole auth method, below auth [default: approle]
    vault_approle_mount: "PADDOCK_VAULT_APPROLE_MOUNT", "PATH";
    /// Prefix of Vault paths per organization, with `{organization}` for its id; empty for none
    /// [default: {organization}/]
    vault_prefix: "PADDOCK_VAULT_PREFIX", "TEMPLATE";
    /// Who may adopt existing objects of external systems: `owners` (of the organization),
    /// `admin` or `off` [default: admin]
    adopt: "PADDOCK_ADOPT", "WHO";
    /// Vault namespace of environment secrets [default: none]
    vault_namespace: "PADDOCK_VAULT_NAMESPACE", "PATH";
    /// Key of Vault's transit engine that encrypts stored secrets [default: a key in the data
    /// directory]
    vault_transit_key: "PADDOCK_VAULT_TRANSIT_KEY", "NAME";
    /// OIDC issuer whose tokens (JWTs) are accepted in addition to Paddock's own
    oidc_issuer: "PADDOCK_OIDC_ISSUER", "URL";
    /// Required token audience (`aud`) [default: any]
    oidc_audience: "PADDOCK_OIDC_AUDIENCE", "TEXT";
    /// Prometheus server with metrics of instances [default: Paddock's own metrics]
    metrics_url: "PADDOCK_METRICS_URL", "URL";
    /// URL of this server, for clients behind a proxy and for agents that Paddock installs; with
    /// --agent-image, enables clusters on Kubernetes
    public_url: "PADDOCK_PUBLIC_URL", "URL";
    /// Image of agents that Paddock installs
    agent_image: "PADDOCK_AGENT_IMAGE", "IMAGE";
    /// Directory of Terraform modules that create clusters, one subdirectory each
    terraform_modules: "PADDOCK_TERRAFORM_MODULES", "DIR";
    /// Terraform or OpenTofu binary [default: terraform or tofu in PATH]
    terraform_program: "PADDOCK_TERRAFORM_PROGRAM", "FILE";
    /// Who may publish templates with Terraform modules, which run programs on this machine:
    /// `admin` or `everyone` [default: admin]
    terraform_templates: "PADDOCK_TERRAFORM_TEMPLATES", "PUBLISHERS";
    /// Terraform working directory, shared by all servers [default: in the data directory]
    terraform_work: "PADDOCK_TERRAFORM_WORK", "DIR";
    /// Environment variables passed to Terraform, comma-separated
    terraform_pass: "PADDOCK_TERRAFORM_PASS", "NAMES";
    /// Whether the server connects to loopback and private addresses that users name (calls and
    /// health checks of templates, kubeconfigs, registries): `refuse` or `allow` [default: refuse]
    private_addresses: "PADDOCK_PRIVATE_ADDRESSES", "POLICY";
    /// Addresses and networks to which the server connects nevertheless
    allow_address: "PADDOCK_ALLOW_ADDRESS", "CIDR,…";
    /// Interval of drift detection in environments, in seconds [default: 600]
    observe_secs: "PADDOCK_OBSERVE_SECS", "SECONDS";
}
