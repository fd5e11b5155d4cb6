-- Settings of the cluster's provider.
ALTER TABLE cluster ADD COLUMN settings TEXT NOT NULL DEFAULT '"none"';
-- Since when the status holds: the base of deadlines.
ALTER TABLE cluster ADD COLUMN status_since BIGINT NOT NULL DEFAULT 0;
UPDATE cluster SET status_since = updated_at;
-- Set while the cluster is being drained.
ALTER TABLE cluster ADD COLUMN draining_at BIGINT;
-- 1: deleted even if the provider can't destroy its objects.
ALTER TABLE cluster ADD COLUMN is_forced BIGINT NOT NULL DEFAULT 0;

-- Secrets of a cluster's provider, encrypted for the context cluster/ID/NAME.
CREATE TABLE cluster_secret (
    cluster_id TEXT NOT NULL REFERENCES cluster (id),
    name       TEXT NOT NULL,
    sealed     TEXT NOT NULL,
    PRIMARY KEY (cluster_id, name)
);
