-- What PostgreSQL has beside the tables of ../schema.sql.

CREATE FUNCTION instr(TEXT, TEXT) RETURNS INTEGER LANGUAGE sql IMMUTABLE AS 'SELECT strpos($1, $2)';
CREATE INDEX notes_by_text ON notes (sha256);
