-- Fleets that grow and shrink by themselves: what each pool remembers, and which clusters it made.

CREATE TABLE pool (
    name       TEXT PRIMARY KEY,
    -- Grows with every change: who decided from an older one is too late.
    generation BIGINT NOT NULL DEFAULT 1,
    -- How many clusters it has ever made: their names count on.
    made       BIGINT NOT NULL DEFAULT 0,
    grown_at   BIGINT,
    shrunk_at  BIGINT,
    -- Why it wants to grow, and since when.
    wish       TEXT,
    wish_since BIGINT,
    -- Since when each of its clusters is empty, by id.
    idle       TEXT NOT NULL DEFAULT '{}',
    -- What was last decided, why, and since when it is decided so.
    decision   TEXT NOT NULL DEFAULT 'stay',
    reason     TEXT NOT NULL DEFAULT '',
    decided_at BIGINT NOT NULL,
    look_again BIGINT
);

-- Which pool made it.
ALTER TABLE cluster ADD COLUMN pool TEXT;
CREATE INDEX cluster_pool ON cluster (pool, id) WHERE pool IS NOT NULL AND deleted_at IS NULL;
-- For which type of instance it holds room before anybody asks; then it is none of users' own.
ALTER TABLE deployment ADD COLUMN reserved TEXT;
CREATE INDEX deployment_reserved ON deployment (pinned_to, id) WHERE reserved IS NOT NULL AND deleted_at IS NULL;
