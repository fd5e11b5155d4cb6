-- What the executor was last told to make, whether or not that came to its end.
ALTER TABLE resource ADD COLUMN tried TEXT NOT NULL DEFAULT 'null';

-- What was made for a resource is no other one's.
DROP INDEX resource_link;
CREATE UNIQUE INDEX resource_link ON resource (link_kind, link_id) WHERE link_id IS NOT NULL AND deleted_at IS NULL;
