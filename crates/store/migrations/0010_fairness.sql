-- What the administrator allows an organization: the highest priority (the server's setting if
-- null), and its weight in fair shares of shared clusters and machines.
ALTER TABLE organization ADD COLUMN max_priority BIGINT;
ALTER TABLE organization ADD COLUMN weight BIGINT NOT NULL DEFAULT 1;

-- The capacity of a machine that runs containers of several clusters, in thousandths. `size` is
-- what it may give, `total` the larger of `size` and `used`: a machine that became smaller takes
-- nothing new until enough has ended.
CREATE TABLE machine (
    name  TEXT NOT NULL,
    kind  TEXT NOT NULL,
    size  BIGINT NOT NULL,
    total BIGINT NOT NULL,
    used  BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (name, kind),
    CHECK (used >= 0 AND used <= total)
);

-- The machine whose capacity a replica, or what is left of one, holds beside its node's.
ALTER TABLE replica ADD COLUMN machine TEXT;
ALTER TABLE leftover ADD COLUMN machine TEXT;
