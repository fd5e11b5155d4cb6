-- Credentials of organizations for external systems. The secret is encrypted.
CREATE TABLE credential (
    organization_id TEXT NOT NULL REFERENCES organization (id),
    system          TEXT NOT NULL,
    name            TEXT NOT NULL,
    username        TEXT,
    sealed          TEXT NOT NULL,
    updated_by      TEXT NOT NULL,
    updated_at      BIGINT NOT NULL,
    PRIMARY KEY (organization_id, system, name)
);
