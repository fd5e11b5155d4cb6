-- Operations on external systems, of clusters and of resources: one table of encrypted state, one of logs.
-- A subject is a cluster or a resource; their ids are disjoint.

-- Renaming locks the tables until the end of the transaction: a server of the previous release that
-- writes to one waits, and then writes through the view below.
ALTER TABLE cluster_secret RENAME TO old_cluster_secret;
ALTER TABLE resource_secret RENAME TO old_resource_secret;
ALTER TABLE resource_log RENAME TO old_resource_log;

CREATE TABLE operation_secret (
    subject_id TEXT NOT NULL,
    name       TEXT NOT NULL,
    sealed     TEXT NOT NULL,
    PRIMARY KEY (subject_id, name)
);
INSERT INTO operation_secret (subject_id, name, sealed) SELECT cluster_id, name, sealed FROM old_cluster_secret;
INSERT INTO operation_secret (subject_id, name, sealed) SELECT resource_id, name, sealed FROM old_resource_secret;

CREATE TABLE operation_log (
    subject_id TEXT NOT NULL,
    number     BIGINT NOT NULL,
    at         BIGINT NOT NULL,
    line       TEXT NOT NULL,
    PRIMARY KEY (subject_id, number)
);
INSERT INTO operation_log (subject_id, number, at, line) SELECT resource_id, number, at, line FROM old_resource_log;

-- Servers of the previous release may still run. They read and write through these views
-- (PostgreSQL writes through simple views; a SQLite file has one server), so that their state is
-- not lost. A later release removes the views.
DROP TABLE old_cluster_secret;
DROP TABLE old_resource_secret;
DROP TABLE old_resource_log;
CREATE VIEW cluster_secret AS SELECT subject_id AS cluster_id, name, sealed FROM operation_secret;
CREATE VIEW resource_secret AS SELECT subject_id AS resource_id, name, sealed FROM operation_secret;
CREATE VIEW resource_log AS SELECT subject_id AS resource_id, number, at, line FROM operation_log;

-- Lease of a cluster's operation: holder, expiry, fencing token; as for resources.
ALTER TABLE cluster ADD COLUMN holder TEXT NOT NULL DEFAULT '';
ALTER TABLE cluster ADD COLUMN held_until BIGINT NOT NULL DEFAULT 0;
ALTER TABLE cluster ADD COLUMN fence BIGINT NOT NULL DEFAULT 0;
-- 1: a user requested the cancellation of the running operation.
ALTER TABLE cluster ADD COLUMN is_cancelled BIGINT NOT NULL DEFAULT 0;
