-- One vault's index: the tables of ../schema.sql in PostgreSQL's words, then those of words. Text is compared byte by
-- byte, as SQLite does. The schema that they lie in is made by database.py, and is first on the search path.

CREATE DOMAIN said AS TEXT COLLATE "C";
CREATE FUNCTION instr(said, said) RETURNS INTEGER LANGUAGE sql IMMUTABLE AS 'SELECT strpos($1, $2)';

CREATE TABLE meta (key said PRIMARY KEY, value said NOT NULL);
CREATE TABLE files (path said PRIMARY KEY, name_key said NOT NULL, copy_of said);
CREATE INDEX files_by_name ON files (name_key);
CREATE INDEX files_by_original ON files (copy_of) WHERE copy_of IS NOT NULL;
CREATE TABLE notes (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    path said NOT NULL UNIQUE, path_key said NOT NULL, name_key said NOT NULL, title_key said NOT NULL,
    sha256 said NOT NULL, size BIGINT NOT NULL, mtime_ns BIGINT NOT NULL, ctime_ns BIGINT NOT NULL,
    checked_ns BIGINT NOT NULL, title said NOT NULL, description said NOT NULL, type said NOT NULL,
    type_key said NOT NULL, created said NOT NULL, modified said NOT NULL, words INTEGER NOT NULL, hidden said,
    problem said, private said, embedded INTEGER NOT NULL, refused said, rev BIGINT NOT NULL
);
CREATE INDEX notes_by_path_key ON notes (path_key);
CREATE INDEX notes_by_name ON notes (name_key);
CREATE INDEX notes_by_title ON notes USING hash (title_key);
CREATE INDEX notes_by_modified ON notes (modified);
CREATE INDEX notes_by_rev ON notes (rev);
CREATE INDEX notes_to_embed ON notes (id) WHERE embedded = 0;
CREATE INDEX notes_by_text ON notes (sha256);
CREATE TABLE aliases (note_id BIGINT, seq INTEGER, alias said NOT NULL, key said NOT NULL, PRIMARY KEY (note_id, seq));
CREATE INDEX aliases_by_key ON aliases USING hash (key);
CREATE TABLE tags (note_id BIGINT, seq INTEGER, tag said NOT NULL, source said NOT NULL, PRIMARY KEY (note_id, seq));
CREATE TABLE tag_pairs (key said, value said, note_id BIGINT, PRIMARY KEY (note_id, key, value));
CREATE INDEX tag_pairs_by_key ON tag_pairs USING hash (key);
CREATE TABLE properties (
    note_id BIGINT, seq INTEGER, key said NOT NULL, value said NOT NULL, PRIMARY KEY (note_id, seq)
);
CREATE TABLE changes (
    seq BIGINT PRIMARY KEY, version BIGINT NOT NULL, step BIGINT NOT NULL, path said NOT NULL, new_path said,
    at said NOT NULL, op said NOT NULL, who said NOT NULL, tool said NOT NULL, reason said NOT NULL,
    before said, after said, trash said, kind said NOT NULL, lineage BIGINT NOT NULL, author said NOT NULL
);
CREATE INDEX changes_by_version ON changes (version);
CREATE INDEX changes_by_path ON changes (path);
CREATE INDEX changes_by_new_path ON changes (new_path) WHERE new_path IS NOT NULL;
CREATE INDEX changes_by_text ON changes (after);
CREATE TABLE lineages (id BIGINT PRIMARY KEY, path said NOT NULL, there INTEGER NOT NULL, holds INTEGER NOT NULL);
CREATE UNIQUE INDEX lineages_by_path ON lineages (path) WHERE holds = 1;
CREATE TABLE links (
    note_id BIGINT, seq INTEGER, form said NOT NULL, target said NOT NULL, subpath said NOT NULL,
    display said NOT NULL, line INTEGER NOT NULL, key said NOT NULL, path said, ambiguous said NOT NULL,
    PRIMARY KEY (note_id, seq)
);
CREATE INDEX links_by_key ON links USING hash (key);
CREATE INDEX links_by_path ON links (path) WHERE path IS NOT NULL;
CREATE TABLE places (
    id BIGINT PRIMARY KEY, start INTEGER NOT NULL, stop INTEGER NOT NULL, line INTEGER NOT NULL,
    headings said NOT NULL, hash BYTEA
);
CREATE TABLE vectors (id BIGINT PRIMARY KEY, hash BYTEA NOT NULL, vector BYTEA NOT NULL);
CREATE TABLE vector_space (embedder said NOT NULL, dimension INTEGER NOT NULL, remote INTEGER NOT NULL);

-- What a note holds word for word, each word between two spaces, so that words side by side are found as a text; a line
-- of `blocks` is a block, its place first. `held` says how many words and blocks that is.
CREATE TABLE note_words (note_id BIGINT PRIMARY KEY, title said NOT NULL, body said NOT NULL, blocks said NOT NULL);
CREATE TABLE held (
    note_id BIGINT PRIMARY KEY, segment BIGINT NOT NULL, words BIGINT NOT NULL, blocks BIGINT NOT NULL,
    block_words BIGINT NOT NULL
);
CREATE INDEX held_by_segment ON held (segment);

-- Which notes hold a word and how often, packed (words.py), one row a word and segment. A segment is what one
-- transaction wrote, or several merged into one. Of notes that changed or went since, `gone` tells.
CREATE SEQUENCE segments;
CREATE TABLE postings (word said, segment BIGINT, data BYTEA NOT NULL, PRIMARY KEY (word, segment));
CREATE INDEX postings_by_segment ON postings (segment);
CREATE TABLE gone (segment BIGINT, note_id BIGINT, PRIMARY KEY (segment, note_id));

-- How many rows and words there are, for notes and for blocks: with them BM25 is counted.
CREATE TABLE totals (notes BIGINT NOT NULL, words BIGINT NOT NULL, blocks BIGINT NOT NULL, block_words BIGINT NOT NULL);
INSERT INTO totals VALUES (0, 0, 0, 0);
