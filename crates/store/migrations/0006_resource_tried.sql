-- The executor's last attempted configuration, whether or not it was applied.
ALTER TABLE resource ADD COLUMN tried TEXT NOT NULL DEFAULT 'null';

-- An object belongs to at most one resource.
DROP INDEX resource_link;
CREATE UNIQUE INDEX resource_link ON resource (link_kind, link_id) WHERE link_id IS NOT NULL AND deleted_at IS NULL;
