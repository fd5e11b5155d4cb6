-- Instances of managed services, the quota ledger, grants, denied owners, service accounts.

CREATE TABLE instance (
    id               TEXT PRIMARY KEY,
    kind             TEXT NOT NULL,
    organization_id  TEXT NOT NULL REFERENCES organization (id),
    owner            TEXT NOT NULL,
    name             TEXT NOT NULL,
    cloud_provider   TEXT NOT NULL,
    region           TEXT NOT NULL,
    multi_az         BIGINT NOT NULL,
    instance_type    TEXT NOT NULL,
    size             TEXT NOT NULL,
    reauthentication BIGINT NOT NULL,
    status           TEXT NOT NULL,
    status_reason    TEXT NOT NULL,
    status_since     BIGINT NOT NULL,
    -- The requested cluster.
    pinned_to        TEXT REFERENCES cluster (id),
    -- The cluster that it is placed on.
    cluster_id       TEXT REFERENCES cluster (id),
    -- The deployment that reserves its capacity, and runs it where Paddock's own agent is.
    deployment_id    TEXT REFERENCES deployment (id),
    host             TEXT,
    expires_at       BIGINT,
    detail           TEXT NOT NULL,
    -- The encrypted SSO client.
    sealed           TEXT,
    generation       BIGINT NOT NULL DEFAULT 1,
    created_at       BIGINT NOT NULL,
    updated_at       BIGINT NOT NULL,
    deleted_at       BIGINT
);
-- Unique names, enforced across servers.
CREATE UNIQUE INDEX instance_name ON instance (kind, organization_id, name) WHERE deleted_at IS NULL;
CREATE INDEX instance_organization ON instance (organization_id, id) WHERE deleted_at IS NULL;
CREATE INDEX instance_owner ON instance (owner, id) WHERE deleted_at IS NULL;
CREATE INDEX instance_cluster ON instance (cluster_id, id) WHERE deleted_at IS NULL;
CREATE INDEX instance_restless ON instance (id)
    WHERE deleted_at IS NULL AND status NOT IN ('ready', 'failed', 'suspended');

-- The quota ledger: usage of quota, trials and regions.
CREATE TABLE account (
    kind    TEXT NOT NULL,
    holder  TEXT NOT NULL,
    account TEXT NOT NULL,
    used    BIGINT NOT NULL CHECK (used >= 0),
    PRIMARY KEY (kind, holder, account)
);

-- Quota grants made through the API.
CREATE TABLE quota (
    id            TEXT PRIMARY KEY,
    -- organization/ID or user/NAME
    holder        TEXT NOT NULL,
    -- NULL: every kind with the type.
    kind          TEXT,
    instance_type TEXT NOT NULL,
    billing_model TEXT NOT NULL,
    -- NULL: unlimited.
    most          BIGINT,
    expires_at    BIGINT,
    created_by    TEXT NOT NULL,
    created_at    BIGINT NOT NULL
);
CREATE INDEX quota_holder ON quota (holder);

-- Users who may not have instances.
CREATE TABLE denied_owner (
    owner      TEXT PRIMARY KEY,
    reason     TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

-- Service accounts of an organization.
CREATE TABLE service_account (
    id              TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organization (id),
    owner           TEXT NOT NULL,
    name            TEXT NOT NULL,
    description     TEXT NOT NULL,
    client_id       TEXT NOT NULL UNIQUE,
    secret_hash     TEXT NOT NULL,
    created_at      BIGINT NOT NULL
);
CREATE INDEX service_account_organization ON service_account (organization_id, id);

-- The instance that a deployment belongs to; such deployments are hidden from users.
ALTER TABLE deployment ADD COLUMN instance_id TEXT REFERENCES instance (id);
-- The ids of an organization and a user at the external identity provider.
ALTER TABLE organization ADD COLUMN foreign_id TEXT;
CREATE UNIQUE INDEX organization_foreign ON organization (foreign_id);
ALTER TABLE "user" ADD COLUMN foreign_id TEXT;
CREATE UNIQUE INDEX user_foreign ON "user" (foreign_id);
-- The external id of a cluster, and the state of its third-party agent.
ALTER TABLE cluster ADD COLUMN foreign_id TEXT;
CREATE UNIQUE INDEX cluster_foreign ON cluster (foreign_id) WHERE deleted_at IS NULL;
ALTER TABLE cluster ADD COLUMN hosting TEXT NOT NULL DEFAULT '{}';
