-- What the provider of a cluster is told.
ALTER TABLE cluster ADD COLUMN settings TEXT NOT NULL DEFAULT '"none"';
-- Since when its status is what it is: what deadlines are counted from.
ALTER TABLE cluster ADD COLUMN status_since BIGINT NOT NULL DEFAULT 0;
UPDATE cluster SET status_since = updated_at;
-- Set while it takes nothing new and what is on it moves elsewhere.
ALTER TABLE cluster ADD COLUMN draining_at BIGINT;
-- 1: it goes even if what was made for it can't be taken away.
ALTER TABLE cluster ADD COLUMN is_forced BIGINT NOT NULL DEFAULT 0;

-- What a cluster's provider is told, or has us keep, that must not be seen; encrypted for the purpose
-- cluster/ID/NAME. It goes with the cluster.
CREATE TABLE cluster_secret (
    cluster_id TEXT NOT NULL REFERENCES cluster (id),
    name       TEXT NOT NULL,
    sealed     TEXT NOT NULL,
    PRIMARY KEY (cluster_id, name)
);
