//! Every setting of the server: one list, from which the flags, the variables and the keys of the file are
//! made.

use serde::Deserialize;

/// Declares settings, each with its help, its variable and the name of its value. The flag and the key
/// in the file are the field's name.
macro_rules! settings {
    ($($(#[doc = $doc:literal])+ $name:ident: $variable:literal, $value:literal;)*) => {
        /// What was set, wherever. All of it is text until it is checked, so that an error reads the same
        /// wherever the value came from.
        #[derive(Debug, Default, clap::Args, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct Args {
            /// A TOML file with any of these settings, named as here with underscores
            #[arg(long, env = "PADDOCK_CONFIG", value_name = "FILE")]
            #[serde(skip)]
            pub(super) config: Option<String>,
            $($(#[doc = $doc])+
            #[arg(long, env = $variable, value_name = $value, hide_env_values = true)]
            pub(super) $name: Option<String>,)*
        }

        impl Args {
            /// Takes from `file` what is not set here.
            pub(super) fn or(self, file: Args) -> Args {
                Args { config: self.config, $($name: self.$name.or(file.$name)),* }
            }
        }
    };
}

settings! {
    /// Where to listen [default: 127.0.0.1:8001]
    listen: "PADDOCK_LISTEN", "ADDRESS:PORT";
    /// Where to keep the database and other files [default: ./paddock-data]
    data_dir: "PADDOCK_DATA_DIR", "DIR";
    /// `postgres://…`, or `sqlite:FILE` [default: SQLite in the data directory]
    database_url: "PADDOCK_DATABASE_URL", "URL";
    /// When a write to SQLite is called durable: `full` (survives a power cut) or `normal` [default: full]
    sqlite_durability: "PADDOCK_SQLITE_DURABILITY", "LEVEL";
    /// What runs containers: `embedded`, `docker` (or Podman), `auto` for the first that works, or
    /// `simulated` to try Paddock without containers [default: auto]
    runtime: "PADDOCK_RUNTIME", "NAME";
    /// Credentials of registries, in a file as `docker login` writes it
    registry_auth_file: "PADDOCK_REGISTRY_AUTH_FILE", "FILE";
    /// The largest image, packed or unpacked [default: 8Gi]
    max_image_size: "PADDOCK_MAX_IMAGE_SIZE", "SIZE";
    /// Whether containers of the embedded runtime may reach the world [default: true]
    egress: "PADDOCK_EGRESS", "BOOL";
    /// The password of the user `admin`; better given as the variable [default: made up at first start]
    admin_password: "PADDOCK_ADMIN_PASSWORD", "TEXT";
    /// Whether to serve this machine as a cluster [default: true]
    local_agent: "PADDOCK_LOCAL_AGENT", "BOOL";
    /// How many deployments an organization may have [default: 1000]
    max_deployments_per_organization: "PADDOCK_MAX_DEPLOYMENTS_PER_ORGANIZATION", "N";
    /// How many deployments a cluster takes [default: 10000]
    max_deployments_per_cluster: "PADDOCK_MAX_DEPLOYMENTS_PER_CLUSTER", "N";
    /// How many replicas an organization may have yield to its own in an hour [default: 1000]
    preemptions_per_hour: "PADDOCK_PREEMPTIONS_PER_HOUR", "N";
    /// How long an agent may be silent before its cluster is unreachable, in seconds [default: 30]
    agent_silence_secs: "PADDOCK_AGENT_SILENCE_SECS", "SECONDS";
    /// How long after that until what was on the cluster starts elsewhere, in seconds; 0: never
    /// [default: 300]
    agent_grace_secs: "PADDOCK_AGENT_GRACE_SECS", "SECONDS";
    /// The least characters of a password [default: 1]
    password_min_length: "PADDOCK_PASSWORD_MIN_LENGTH", "N";
    /// How long a sign-in lasts, in seconds [default: 86400]
    token_life_secs: "PADDOCK_TOKEN_LIFE_SECS", "SECONDS";
    /// How long a request may take, in seconds [default: 30]
    request_timeout_secs: "PADDOCK_REQUEST_TIMEOUT_SECS", "SECONDS";
    /// How logs are written: `text` or `json` [default: text]
    log_format: "PADDOCK_LOG_FORMAT", "FORMAT";
    /// What is logged: `error`, `warn`, `info`, `debug`, or finer, as in `info,store=debug` [default: info]
    log: "PADDOCK_LOG", "FILTER";
    /// With `--runtime simulated`: how long starts and stops take, in milliseconds [default: 0]
    simulated_delay_ms: "PADDOCK_SIMULATED_DELAY_MS", "MS";
    /// With `--runtime simulated`: images with this text in their path fail
    simulated_fail: "PADDOCK_SIMULATED_FAIL", "TEXT";
    /// With `--runtime simulated`: images with this text in their path run to their end
    simulated_complete: "PADDOCK_SIMULATED_COMPLETE", "TEXT";
    /// A directory with more kinds of services, one YAML file each; read again when they change
    catalog_dir: "PADDOCK_CATALOG_DIR", "DIR";
    /// A YAML file that says who may have how many instances; read again when it changes
    quota_file: "PADDOCK_QUOTA_FILE", "FILE";
    /// A YAML file with the names of users who may not have instances; read again when it changes
    denied_owners_file: "PADDOCK_DENIED_OWNERS_FILE", "FILE";
    /// A YAML file that says which clusters are made and removed by themselves; read again when it changes
    scaling_file: "PADDOCK_SCALING_FILE", "FILE";
    /// The domain under which instances have their names [default: the kind's own]
    domain: "PADDOCK_DOMAIN", "NAME";
    /// The name server that takes updates (RFC 2136)
    dns_server: "PADDOCK_DNS_SERVER", "ADDRESS:PORT";
    /// The zone that is updated
    dns_zone: "PADDOCK_DNS_ZONE", "NAME";
    /// The key that updates are signed with, in a file as `tsig-keygen` writes it
    dns_key_file: "PADDOCK_DNS_KEY_FILE", "FILE";
    /// The hosted zone of AWS Route 53 that is updated instead
    route53_zone: "PADDOCK_ROUTE53_ZONE", "NAME";
    /// Its id, needed only where several zones have this name
    route53_zone_id: "PADDOCK_ROUTE53_ZONE_ID", "ID";
    /// The access key for Route 53
    aws_access_key_id: "AWS_ACCESS_KEY_ID", "TEXT";
    /// Its secret; better given as the variable
    aws_secret_access_key: "AWS_SECRET_ACCESS_KEY", "TEXT";
    /// The token of its session, if it belongs to one; better given as the variable
    aws_session_token: "AWS_SESSION_TOKEN", "TEXT";
    /// Where Route 53 is [default: at AWS]
    route53_endpoint: "PADDOCK_ROUTE53_ENDPOINT", "URL";
    /// The OpenID provider at which each instance gets a client (RFC 7591)
    sso_issuer: "PADDOCK_SSO_ISSUER", "URL";
    /// What registering there needs; better given as the variable
    sso_registration_token: "PADDOCK_SSO_REGISTRATION_TOKEN", "TEXT";
    /// After how many days the client of an instance gets another secret [default: never]
    sso_rotate_days: "PADDOCK_SSO_ROTATE_DAYS", "N";
    /// The Keycloak at which each instance gets a client instead
    keycloak_url: "PADDOCK_KEYCLOAK_URL", "URL";
    /// The realm there
    keycloak_realm: "PADDOCK_KEYCLOAK_REALM", "NAME";
    /// The client there that may manage clients
    keycloak_client_id: "PADDOCK_KEYCLOAK_CLIENT_ID", "NAME";
    /// Its secret; better given as the variable
    keycloak_client_secret: "PADDOCK_KEYCLOAK_CLIENT_SECRET", "TEXT";
    /// The Consul in which environments have their keys and values
    consul_addr: "PADDOCK_CONSUL_ADDR", "URL";
    /// The token for Consul, if it wants one; better given as the variable
    consul_token: "PADDOCK_CONSUL_TOKEN", "TEXT";
    /// The datacenter of keys for which none is named [default: that of the agent]
    consul_datacenter: "PADDOCK_CONSUL_DATACENTER", "NAME";
    /// The Vault in which environments have their secrets and certificates
    vault_addr: "PADDOCK_VAULT_ADDR", "URL";
    /// The token for Vault; better given as the variable
    vault_token: "PADDOCK_VAULT_TOKEN", "TEXT";
    /// The role with which to sign in to Vault instead (AppRole)
    vault_role_id: "PADDOCK_VAULT_ROLE_ID", "ID";
    /// Its secret id; better given as the variable
    vault_secret_id: "PADDOCK_VAULT_SECRET_ID", "TEXT";
    /// Where AppRole is mounted there, below auth [default: approle]
    vault_approle_mount: "PADDOCK_VAULT_APPROLE_MOUNT", "PATH";
    /// The namespace of environments' secrets, where Vault has such [default: none]
    vault_namespace: "PADDOCK_VAULT_NAMESPACE", "PATH";
    /// The key of Vault's transit engine that encrypts what Paddock keeps [default: a key in the data
    /// directory does]
    vault_transit_key: "PADDOCK_VAULT_TRANSIT_KEY", "NAME";
    /// Whose tokens (OIDC JWTs) are taken beside Paddock's own
    oidc_issuer: "PADDOCK_OIDC_ISSUER", "URL";
    /// Whom these tokens must be for [default: anybody]
    oidc_audience: "PADDOCK_OIDC_AUDIENCE", "TEXT";
    /// The Prometheus that knows the metrics of instances [default: Paddock's own series]
    metrics_url: "PADDOCK_METRICS_URL", "URL";
    /// Where agents that Paddock installs reach this server; with --agent-image, clusters can be made
    /// on Kubernetes
    public_url: "PADDOCK_PUBLIC_URL", "URL";
    /// The image that holds the agent which Paddock installs
    agent_image: "PADDOCK_AGENT_IMAGE", "IMAGE";
    /// A directory with Terraform modules that make clusters, one folder each
    terraform_modules: "PADDOCK_TERRAFORM_MODULES", "DIR";
    /// The program that runs modules: Terraform or OpenTofu [default: terraform or tofu, if one of them
    /// is there]
    terraform_program: "PADDOCK_TERRAFORM_PROGRAM", "FILE";
    /// Who may publish templates with modules, which run programs on this machine: `admin` or
    /// `everyone` [default: admin]
    terraform_templates: "PADDOCK_TERRAFORM_TEMPLATES", "WHO";
    /// Where it works; several servers share this directory [default: in the data directory]
    terraform_work: "PADDOCK_TERRAFORM_WORK", "DIR";
    /// Variables of the server's environment that it gets, with commas between them
    terraform_pass: "PADDOCK_TERRAFORM_PASS", "NAMES";
    /// May templates have addresses of private networks be called and looked at: `allow`, or `refuse`
    /// where those who write templates do not run the network [default: allow]
    private_addresses: "PADDOCK_PRIVATE_ADDRESSES", "WHETHER";
    /// How often what was made for environments is looked at, in seconds [default: 600]
    observe_secs: "PADDOCK_OBSERVE_SECS", "SECONDS";
}
