-- One vault's index: the tables of ../schema.sql in PostgreSQL's words, then those of words. Text is compared byte by
-- byte, as SQLite does: STRING stands for TEXT COLLATE "C", which database.py puts in its place.

CREATE FUNCTION instr(TEXT, TEXT) RETURNS INTEGER LANGUAGE sql IMMUTABLE AS 'SELECT strpos($1, $2)';

CREATE TABLE meta (key STRING PRIMARY KEY, value STRING NOT NULL);
CREATE TABLE files (path STRING PRIMARY KEY, name_key STRING NOT NULL, copy_of STRING);
CREATE INDEX files_by_name ON files (name_key);
CREATE INDEX files_by_original ON files (copy_of) WHERE copy_of IS NOT NULL;
CREATE TABLE notes (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    path STRING NOT NULL UNIQUE, path_key STRING NOT NULL, name_key STRING NOT NULL, title_key STRING NOT NULL,
    sha256 STRING NOT NULL, size BIGINT NOT NULL, mtime_ns BIGINT NOT NULL, ctime_ns BIGINT NOT NULL,
    checked_ns BIGINT NOT NULL, title STRING NOT NULL, description STRING NOT NULL, type STRING NOT NULL,
    type_key STRING NOT NULL, created STRING NOT NULL, modified STRING NOT NULL, words INTEGER NOT NULL, hidden STRING,
    problem STRING, private STRING, embedded INTEGER NOT NULL, refused STRING, rev BIGINT NOT NULL
);
CREATE INDEX notes_by_path_key ON notes (path_key);
CREATE INDEX notes_by_name ON notes (name_key);
CREATE INDEX notes_by_title ON notes USING hash (title_key);
CREATE INDEX notes_by_modified ON notes (modified);
CREATE INDEX notes_by_rev ON notes (rev);
CREATE INDEX notes_to_embed ON notes (id) WHERE embedded = 0;
CREATE INDEX notes_by_text ON notes (sha256);
CREATE TABLE aliases (
    note_id BIGINT, seq INTEGER, alias STRING NOT NULL, key STRING NOT NULL, PRIMARY KEY (note_id, seq)
);
CREATE INDEX aliases_by_key ON aliases USING hash (key);
CREATE TABLE tags (note_id BIGINT, seq INTEGER, tag STRING NOT NULL, source STRING NOT NULL, PRIMARY KEY (note_id, seq));
CREATE TABLE tag_pairs (key STRING, value STRING, note_id BIGINT, PRIMARY KEY (note_id, key, value));
CREATE INDEX tag_pairs_by_key ON tag_pairs USING hash (key);
CREATE TABLE properties (
    note_id BIGINT, seq INTEGER, key STRING NOT NULL, value STRING NOT NULL, PRIMARY KEY (note_id, seq)
);
CREATE TABLE changes (
    seq BIGINT PRIMARY KEY, version BIGINT NOT NULL, step BIGINT NOT NULL, path STRING NOT NULL, new_path STRING,
    at STRING NOT NULL, op STRING NOT NULL, who STRING NOT NULL, tool STRING NOT NULL, reason STRING NOT NULL,
    before STRING, after STRING, trash STRING, kind STRING NOT NULL, lineage BIGINT NOT NULL, author STRING NOT NULL
);
CREATE INDEX changes_by_version ON changes (version);
CREATE INDEX changes_by_path ON changes (path);
CREATE INDEX changes_by_new_path ON changes (new_path) WHERE new_path IS NOT NULL;
CREATE INDEX changes_by_text ON changes (after);
CREATE TABLE lineages (id BIGINT PRIMARY KEY, path STRING NOT NULL, there INTEGER NOT NULL, holds INTEGER NOT NULL);
CREATE UNIQUE INDEX lineages_by_path ON lineages (path) WHERE holds = 1;
CREATE TABLE links (
    note_id BIGINT, seq INTEGER, form STRING NOT NULL, target STRING NOT NULL, subpath STRING NOT NULL,
    display STRING NOT NULL, line INTEGER NOT NULL, key STRING NOT NULL, path STRING, ambiguous STRING NOT NULL,
    PRIMARY KEY (note_id, seq)
);
CREATE INDEX links_by_key ON links USING hash (key);
CREATE INDEX links_by_path ON links (path) WHERE path IS NOT NULL;
CREATE TABLE places (
    id BIGINT PRIMARY KEY, start INTEGER NOT NULL, stop INTEGER NOT NULL, line INTEGER NOT NULL,
    headings STRING NOT NULL, hash BYTEA
);
CREATE TABLE vectors (id BIGINT PRIMARY KEY, hash BYTEA NOT NULL, vector BYTEA NOT NULL);
CREATE TABLE vector_space (embedder STRING NOT NULL, dimension INTEGER NOT NULL, remote INTEGER NOT NULL);

-- What a note holds word for word, each word between two spaces, so that words side by side are found as a text; a line
-- of `blocks` is a block, its place first. `held` says how many words and blocks that is.
CREATE TABLE note_words (
    note_id BIGINT PRIMARY KEY, title STRING NOT NULL, body STRING NOT NULL, blocks STRING NOT NULL
);
CREATE TABLE held (
    note_id BIGINT PRIMARY KEY, segment BIGINT NOT NULL, words BIGINT NOT NULL, blocks BIGINT NOT NULL,
    block_words BIGINT NOT NULL
);
CREATE INDEX held_by_segment ON held (segment);

-- Which notes hold a word and how often, packed (words.py), one row a word and segment, and the places of the word in
-- them. A segment is what one transaction wrote, or several merged into one. Of notes that changed or went since, `gone`
-- tells; they are no longer among the `notes` and `blocks` that hold the word.
CREATE SEQUENCE segment_numbers;
CREATE TABLE segments (segment BIGINT PRIMARY KEY, notes BIGINT NOT NULL);
CREATE TABLE postings (
    word STRING, segment BIGINT, notes INTEGER NOT NULL, blocks INTEGER NOT NULL, data BYTEA NOT NULL,
    places BYTEA NOT NULL, PRIMARY KEY (word, segment)
);
CREATE INDEX postings_by_segment ON postings (segment);
CREATE TABLE gone (segment BIGINT, note_id BIGINT, PRIMARY KEY (segment, note_id));

-- How many rows and words there are, for notes and for blocks: with them BM25 is counted.
CREATE TABLE totals (notes BIGINT NOT NULL, words BIGINT NOT NULL, blocks BIGINT NOT NULL, block_words BIGINT NOT NULL);
INSERT INTO totals VALUES (0, 0, 0, 0);
