-- The keys with which stored secrets may be encrypted, by their id, with which every ciphertext
-- begins: `v1:KEY` (a key file) or `vault:vN` (a version of a transit key). The newest encrypts.
-- Empty until a server of this release has started.
CREATE TABLE encryption_key (
    id         TEXT PRIMARY KEY,
    created_at BIGINT NOT NULL
);
