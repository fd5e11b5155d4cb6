-- Autoscaled pools: their persisted state, and their clusters.

CREATE TABLE pool (
    name       TEXT PRIMARY KEY,
    -- Incremented by every change: decisions from an older generation are rejected.
    generation BIGINT NOT NULL DEFAULT 1,
    -- Number of clusters ever created: the next cluster's number.
    made       BIGINT NOT NULL DEFAULT 0,
    grown_at   BIGINT,
    shrunk_at  BIGINT,
    -- The pending scaling action, and since when.
    wish       TEXT,
    wish_since BIGINT,
    -- Since when each of its clusters is empty, by id.
    idle       TEXT NOT NULL DEFAULT '{}',
    -- The last decision, its reason, and since when it stands.
    decision   TEXT NOT NULL DEFAULT 'stay',
    reason     TEXT NOT NULL DEFAULT '',
    decided_at BIGINT NOT NULL,
    look_again BIGINT
);

-- The pool that created the cluster.
ALTER TABLE cluster ADD COLUMN pool TEXT;
CREATE INDEX cluster_pool ON cluster (pool, id) WHERE pool IS NOT NULL AND deleted_at IS NULL;
-- The instance type that a deployment reserves capacity for; hidden from users.
ALTER TABLE deployment ADD COLUMN reserved TEXT;
CREATE INDEX deployment_reserved ON deployment (pinned_to, id) WHERE reserved IS NOT NULL AND deleted_at IS NULL;
