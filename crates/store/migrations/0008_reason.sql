-- Reasons: `status_reason` is a JSON document with a code and its fields, and `reason_code` repeats
-- the code for queries. Rows of earlier releases contain only a message, read as the code
-- `Reported`. Servers of the previous release keep writing messages; they show the document of a
-- newer row as it is.
ALTER TABLE cluster ADD COLUMN reason_code TEXT NOT NULL DEFAULT 'Reported';
ALTER TABLE deployment ADD COLUMN reason_code TEXT NOT NULL DEFAULT 'Reported';
ALTER TABLE replica ADD COLUMN reason_code TEXT NOT NULL DEFAULT 'Reported';
ALTER TABLE instance ADD COLUMN reason_code TEXT NOT NULL DEFAULT 'Reported';
ALTER TABLE environment ADD COLUMN reason_code TEXT NOT NULL DEFAULT 'Reported';
ALTER TABLE resource ADD COLUMN reason_code TEXT NOT NULL DEFAULT 'Reported';
