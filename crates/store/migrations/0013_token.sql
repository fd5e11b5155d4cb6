-- Tokens with a name, a scope and a last use; service accounts; password resets; deleted organizations.

-- Tokens that servers of the previous release create during an upgrade have no id: they are valid,
-- but not listed.
ALTER TABLE token ADD COLUMN id TEXT NOT NULL DEFAULT '';
ALTER TABLE token ADD COLUMN kind TEXT NOT NULL DEFAULT 'session';
ALTER TABLE token ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE token ADD COLUMN scope TEXT NOT NULL DEFAULT '{"read_only":false,"kinds":[]}';
-- The actor who created it; empty for logins.
ALTER TABLE token ADD COLUMN created_by TEXT NOT NULL DEFAULT '';
-- Written every minute at most, without an event.
ALTER TABLE token ADD COLUMN last_used_at BIGINT;
-- A valid id: 20 characters of 0-9 and a-v, of which the last has only one bit.
UPDATE token SET id = substr(hash, 1, 19) || '0';
CREATE UNIQUE INDEX token_id ON token (id) WHERE id <> '';

-- A person, or a service account of the organization.
ALTER TABLE "user" ADD COLUMN kind TEXT NOT NULL DEFAULT 'person';

-- A deleted organization keeps its row, so that the history can name it. Its name is free again:
-- `name_key` is then `deleted/ID`.
ALTER TABLE organization ADD COLUMN deleted_at BIGINT;

-- Single-use codes with which a user sets a new password. Only their hashes are stored.
CREATE TABLE password_reset (
    code_hash  TEXT PRIMARY KEY,
    user_id    TEXT NOT NULL REFERENCES "user" (id),
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX password_reset_user ON password_reset (user_id);
CREATE INDEX password_reset_expiry ON password_reset (expires_at);
