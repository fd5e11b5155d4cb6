-- Why a subject has its status: `status_reason` is a JSON document with a code and its fields, and the code
-- is beside it for queries. Rows of earlier releases have a message alone: it is read as the code `Reported`.
-- Servers of the release before go on writing messages; they show the document of a row of this one.
ALTER TABLE cluster ADD COLUMN reason_code TEXT NOT NULL DEFAULT 'Reported';
ALTER TABLE deployment ADD COLUMN reason_code TEXT NOT NULL DEFAULT 'Reported';
ALTER TABLE replica ADD COLUMN reason_code TEXT NOT NULL DEFAULT 'Reported';
ALTER TABLE instance ADD COLUMN reason_code TEXT NOT NULL DEFAULT 'Reported';
ALTER TABLE environment ADD COLUMN reason_code TEXT NOT NULL DEFAULT 'Reported';
ALTER TABLE resource ADD COLUMN reason_code TEXT NOT NULL DEFAULT 'Reported';
