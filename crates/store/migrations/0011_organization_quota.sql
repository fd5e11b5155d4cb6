-- Quotas of organizations, and the usage of those that are counted by rows. Amounts in thousandths.

CREATE TABLE organization_quota (
    organization_id TEXT NOT NULL REFERENCES organization (id),
    -- A subject, or resource/TYPE.
    kind            TEXT NOT NULL,
    used            BIGINT NOT NULL DEFAULT 0 CHECK (used >= 0),
    -- NULL: the default of the platform. May be less than what is used: nothing is stopped.
    quota           BIGINT CHECK (quota >= 0),
    PRIMARY KEY (organization_id, kind)
);
