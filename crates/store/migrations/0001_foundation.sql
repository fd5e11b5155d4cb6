-- Organizations, users, invites, clusters, deployments; the event log and the work queue.
-- Times are microseconds, amounts thousandths, documents JSON text.

CREATE TABLE organization (
    id          TEXT PRIMARY KEY,
    name        TEXT NOT NULL,
    name_key    TEXT NOT NULL UNIQUE,
    deployments BIGINT NOT NULL DEFAULT 0 CHECK (deployments >= 0),
    generation  BIGINT NOT NULL DEFAULT 1,
    created_at  BIGINT NOT NULL
);

CREATE TABLE "user" (
    id              TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organization (id),
    username        TEXT NOT NULL,
    -- Set to NULL when the user is deleted, so that the name is free again.
    username_key    TEXT UNIQUE,
    display_name    TEXT NOT NULL,
    password_hash   TEXT NOT NULL,
    role            TEXT NOT NULL,
    access          TEXT NOT NULL,
    generation      BIGINT NOT NULL DEFAULT 1,
    created_at      BIGINT NOT NULL,
    deleted_at      BIGINT
);
CREATE INDEX user_organization ON "user" (organization_id, id);

CREATE TABLE token (
    hash       TEXT PRIMARY KEY,
    user_id    TEXT NOT NULL REFERENCES "user" (id),
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX token_user ON token (user_id);
CREATE INDEX token_expiry ON token (expires_at);

CREATE TABLE invite (
    id              TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organization (id),
    code_hash       TEXT NOT NULL UNIQUE,
    created_by      TEXT NOT NULL REFERENCES "user" (id),
    created_at      BIGINT NOT NULL,
    expires_at      BIGINT NOT NULL,
    used_by         TEXT REFERENCES "user" (id),
    used_at         BIGINT,
    times_used      BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX invite_organization ON invite (organization_id, id);

CREATE TABLE invite_use (
    invite_id TEXT NOT NULL REFERENCES invite (id),
    user_id   TEXT NOT NULL REFERENCES "user" (id),
    used_at   BIGINT NOT NULL,
    PRIMARY KEY (invite_id, user_id)
);

CREATE TABLE cluster (
    id              TEXT PRIMARY KEY,
    -- NULL: shared.
    organization_id TEXT REFERENCES organization (id),
    name            TEXT NOT NULL,
    provider        TEXT NOT NULL,
    cloud_provider  TEXT NOT NULL,
    region          TEXT NOT NULL,
    labels          TEXT NOT NULL,
    -- The labels of each node, by name.
    nodes           TEXT NOT NULL,
    status          TEXT NOT NULL,
    status_reason   TEXT NOT NULL,
    -- The last heartbeat of a remote agent. Written every few seconds at most, without an event.
    heard_at        BIGINT,
    agent_version   TEXT,
    agent_runtime   TEXT,
    -- Set exactly while the status is unreachable.
    unreachable_at  BIGINT,
    -- Number of deployments placed on it or pinned to it: checked by deletion and limits.
    deployments     BIGINT NOT NULL DEFAULT 0 CHECK (deployments >= 0),
    generation      BIGINT NOT NULL DEFAULT 1,
    created_by      TEXT NOT NULL,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    deleted_at      BIGINT
);
CREATE INDEX cluster_organization ON cluster (organization_id, id) WHERE deleted_at IS NULL;

-- Tokens that authenticate the agent of a cluster. Only the newest has no expiry.
CREATE TABLE agent_token (
    hash       TEXT PRIMARY KEY,
    cluster_id TEXT NOT NULL REFERENCES cluster (id),
    created_at BIGINT NOT NULL,
    expires_at BIGINT
);
CREATE INDEX agent_token_cluster ON agent_token (cluster_id);
CREATE INDEX agent_token_expiry ON agent_token (expires_at);

CREATE TABLE capacity (
    cluster_id TEXT NOT NULL REFERENCES cluster (id),
    node       TEXT NOT NULL,
    kind       TEXT NOT NULL,
    total      BIGINT NOT NULL,
    used       BIGINT NOT NULL DEFAULT 0,
    -- The manually reserved part of `used`; the rest is held by replicas.
    manual     BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (cluster_id, node, kind),
    CHECK (used <= total),
    CHECK (0 <= manual),
    CHECK (manual <= used)
);

CREATE TABLE deployment (
    id              TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organization (id),
    pinned_to       TEXT REFERENCES cluster (id),
    name            TEXT NOT NULL,
    image           TEXT,
    spec            TEXT NOT NULL,
    priority        BIGINT NOT NULL,
    labels          TEXT NOT NULL,
    -- The number of the next replica: agents must never confuse a new one with an old one.
    next_number     BIGINT NOT NULL,
    -- The following columns summarise the replicas.
    status          TEXT NOT NULL,
    status_reason   TEXT NOT NULL,
    placed_on       TEXT REFERENCES cluster (id),
    node            TEXT,
    endpoints       TEXT NOT NULL,
    started_at      BIGINT,
    generation      BIGINT NOT NULL DEFAULT 1,
    created_by      TEXT NOT NULL,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    deleted_at      BIGINT
);
CREATE INDEX deployment_organization ON deployment (organization_id, id) WHERE deleted_at IS NULL;
CREATE INDEX deployment_pinned ON deployment (pinned_to, id) WHERE deleted_at IS NULL;

CREATE TABLE replica (
    deployment_id TEXT NOT NULL REFERENCES deployment (id),
    number        BIGINT NOT NULL,
    -- Set exactly while it holds that node's capacity.
    cluster_id    TEXT REFERENCES cluster (id),
    node          TEXT,
    status        TEXT NOT NULL,
    status_reason TEXT NOT NULL,
    -- Why the status may be outdated: the cluster is unreachable.
    caveat        TEXT,
    endpoints     TEXT NOT NULL,
    -- Generation of the desired state, and the last one that the agent acknowledged.
    desired       BIGINT NOT NULL DEFAULT 0,
    answered      BIGINT NOT NULL DEFAULT 0,
    placed_at     BIGINT,
    started_at    BIGINT,
    -- The last log lines, once it has ended.
    tail          TEXT NOT NULL DEFAULT '[]',
    PRIMARY KEY (deployment_id, number)
);
CREATE INDEX replica_placed ON replica (cluster_id, deployment_id) WHERE cluster_id IS NOT NULL;
CREATE INDEX replica_doubted ON replica (cluster_id, deployment_id) WHERE caveat IS NOT NULL;
CREATE INDEX replica_waiting ON replica (deployment_id) WHERE status IN ('queued', 'preempted');
CREATE INDEX replica_unanswered ON replica (cluster_id, deployment_id)
    WHERE cluster_id IS NOT NULL AND answered < desired;

-- Evicted replicas that an unreachable cluster may still run. They hold the node's capacity until
-- the agent returns and reports that they have stopped.
CREATE TABLE leftover (
    cluster_id    TEXT NOT NULL REFERENCES cluster (id),
    deployment_id TEXT NOT NULL REFERENCES deployment (id),
    number        BIGINT NOT NULL,
    node          TEXT NOT NULL,
    request       TEXT NOT NULL,
    desired       BIGINT NOT NULL,
    PRIMARY KEY (cluster_id, deployment_id, number)
);

-- Preemptions, as long as they count towards an organization's hourly budget.
CREATE TABLE preemption (
    at              BIGINT NOT NULL,
    organization_id TEXT NOT NULL REFERENCES organization (id),
    deployment_id   TEXT NOT NULL REFERENCES deployment (id),
    victim_id       TEXT NOT NULL REFERENCES deployment (id)
);
CREATE INDEX preemption_at ON preemption (at);

CREATE TABLE event (
    id              {{identity}},
    -- The position in the log that readers see; see the documentation of `store::event`.
    seq             {{event_seq}},
    at              BIGINT NOT NULL,
    organization_id TEXT,
    actor           TEXT NOT NULL,
    kind            TEXT NOT NULL,
    subject         TEXT NOT NULL,
    change          TEXT NOT NULL,
    data            TEXT NOT NULL
);
CREATE UNIQUE INDEX event_seq ON event (seq);
CREATE INDEX event_unnumbered ON event (id) WHERE seq IS NULL;
CREATE INDEX event_organization ON event (organization_id, seq);
CREATE INDEX event_subject ON event (subject, seq);

CREATE TABLE work (
    kind        TEXT NOT NULL,
    key         TEXT NOT NULL,
    lane        BIGINT NOT NULL,
    due_at      BIGINT NOT NULL,
    -- Incremented by every wake-up, so that one during a run is not lost.
    revision    BIGINT NOT NULL DEFAULT 1,
    attempts    BIGINT NOT NULL DEFAULT 0,
    error       TEXT,
    leased_until BIGINT NOT NULL DEFAULT 0,
    -- The later of the two: when it can be claimed.
    ready_at    BIGINT NOT NULL,
    -- Fencing token: incremented by every claim; stale holders are rejected.
    fence       BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (kind, key)
);
CREATE INDEX work_ready ON work (ready_at);
CREATE INDEX work_lane ON work (lane, ready_at);

CREATE TABLE lease (
    name   TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    until  BIGINT NOT NULL,
    fence  BIGINT NOT NULL
);

CREATE TABLE idempotency (
    owner      TEXT NOT NULL,
    key        TEXT NOT NULL,
    request    TEXT NOT NULL,
    status     BIGINT NOT NULL,
    body       TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (owner, key)
);
CREATE INDEX idempotency_age ON idempotency (created_at);
