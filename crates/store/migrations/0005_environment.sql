-- Templates, environments, their resources, and the logs of their operations.

CREATE TABLE template (
    id              TEXT PRIMARY KEY,
    -- NULL: shared.
    organization_id TEXT REFERENCES organization (id),
    name            TEXT NOT NULL,
    version         TEXT NOT NULL,
    description     TEXT NOT NULL,
    tags            TEXT NOT NULL,
    git_commit      TEXT,
    -- The content, and the hash of the content and files.
    body            TEXT NOT NULL,
    -- The source text as published.
    source          TEXT NOT NULL,
    hash            TEXT NOT NULL,
    -- Hash of the files alone; empty without files.
    files_print     TEXT NOT NULL DEFAULT '',
    deprecated_at   BIGINT,
    deprecated_why  TEXT,
    created_by      TEXT NOT NULL,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    deleted_at      BIGINT
);
CREATE UNIQUE INDEX template_version ON template (organization_id, name, version)
    WHERE deleted_at IS NULL AND organization_id IS NOT NULL;
CREATE UNIQUE INDEX template_shared_version ON template (name, version)
    WHERE deleted_at IS NULL AND organization_id IS NULL;

-- Files of a template: modules.
CREATE TABLE template_file (
    template_id TEXT NOT NULL REFERENCES template (id),
    path        TEXT NOT NULL,
    -- Base64.
    content     TEXT NOT NULL,
    size_bytes  BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (template_id, path)
);

CREATE TABLE environment (
    id              TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organization (id),
    name            TEXT NOT NULL,
    description     TEXT NOT NULL,
    tags            TEXT NOT NULL,
    templates       TEXT NOT NULL,
    parameters      TEXT NOT NULL,
    on_drift        TEXT NOT NULL,
    status          TEXT NOT NULL,
    status_reason   TEXT NOT NULL,
    status_since    BIGINT NOT NULL,
    progress        BIGINT NOT NULL,
    entry_points    TEXT NOT NULL,
    is_cancelled    BIGINT NOT NULL DEFAULT 0,
    destroy_at      BIGINT,
    reminders       BIGINT NOT NULL DEFAULT 0,
    created_by      TEXT NOT NULL,
    generation      BIGINT NOT NULL DEFAULT 1,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    destroyed_at    BIGINT
);
CREATE UNIQUE INDEX environment_name ON environment (organization_id, name) WHERE destroyed_at IS NULL;
CREATE INDEX environment_organization ON environment (organization_id, id);
CREATE INDEX environment_restless ON environment (id)
    WHERE status IN ('deploying', 'validating', 'destroying');

-- Template versions in use by an environment: they can't be deleted.
CREATE TABLE environment_template (
    environment_id TEXT NOT NULL REFERENCES environment (id),
    template_id    TEXT NOT NULL REFERENCES template (id),
    PRIMARY KEY (environment_id, template_id)
);
CREATE INDEX environment_template_of ON environment_template (template_id, environment_id);

CREATE TABLE resource (
    id              TEXT PRIMARY KEY,
    environment_id  TEXT NOT NULL REFERENCES environment (id),
    organization_id TEXT NOT NULL REFERENCES organization (id),
    name            TEXT NOT NULL,
    executor        TEXT NOT NULL,
    -- The desired state, with expressions.
    node            TEXT NOT NULL,
    act             TEXT NOT NULL,
    status          TEXT NOT NULL,
    status_reason   TEXT NOT NULL,
    status_since    BIGINT NOT NULL,
    progress        BIGINT NOT NULL DEFAULT 0,
    -- The last applied state: its fingerprint, and the executor's configuration.
    print           TEXT,
    applied         TEXT NOT NULL DEFAULT 'null',
    outputs         TEXT NOT NULL DEFAULT '{}',
    -- The object that was created for it.
    link_kind       TEXT,
    link_id         TEXT,
    -- The existing object to adopt.
    adopt           TEXT,
    drift           TEXT NOT NULL DEFAULT '[]',
    unexpected      TEXT NOT NULL DEFAULT '[]',
    observed_at     BIGINT,
    attempts        BIGINT NOT NULL DEFAULT 0,
    -- Lease: the server that operates on it, its expiry, and the fencing token.
    holder          TEXT NOT NULL DEFAULT '',
    held_until      BIGINT NOT NULL DEFAULT 0,
    fence           BIGINT NOT NULL DEFAULT 0,
    generation      BIGINT NOT NULL DEFAULT 1,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    deleted_at      BIGINT
);
CREATE UNIQUE INDEX resource_name ON resource (environment_id, name) WHERE deleted_at IS NULL;
CREATE INDEX resource_organization ON resource (organization_id, id) WHERE deleted_at IS NULL;
CREATE INDEX resource_restless ON resource (id)
    WHERE deleted_at IS NULL AND status IN ('planning', 'applying', 'destroying');
CREATE INDEX resource_link ON resource (link_kind, link_id) WHERE link_id IS NOT NULL AND deleted_at IS NULL;

-- Encrypted state of executors.
CREATE TABLE resource_secret (
    resource_id TEXT NOT NULL REFERENCES resource (id),
    name        TEXT NOT NULL,
    sealed      TEXT NOT NULL,
    PRIMARY KEY (resource_id, name)
);

-- Logs of operations on a resource.
CREATE TABLE resource_log (
    resource_id TEXT NOT NULL REFERENCES resource (id),
    number      BIGINT NOT NULL,
    at          BIGINT NOT NULL,
    line        TEXT NOT NULL,
    PRIMARY KEY (resource_id, number)
);
