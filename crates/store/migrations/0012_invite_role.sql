-- The role of users who redeem an invite.

ALTER TABLE invite ADD COLUMN role TEXT NOT NULL DEFAULT 'member';
