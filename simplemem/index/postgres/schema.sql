-- What PostgreSQL has beside the tables of ../schema.sql, which database.py puts into its words: the words of notes.

CREATE FUNCTION instr(TEXT, TEXT) RETURNS INTEGER LANGUAGE sql IMMUTABLE AS 'SELECT strpos($1, $2)';
CREATE INDEX notes_by_text ON notes (sha256);

-- What a note holds word for word, each word between two spaces, so that words side by side are found as a text; a line
-- of `blocks` is a block, its place first. `held` says how many words and blocks that is.
CREATE TABLE note_words (note_id BIGINT PRIMARY KEY, title TEXT NOT NULL, body TEXT NOT NULL, blocks TEXT NOT NULL);
CREATE TABLE held (note_id BIGINT PRIMARY KEY, segment BIGINT NOT NULL, words BIGINT NOT NULL, blocks BIGINT NOT NULL,
                   block_words BIGINT NOT NULL);
CREATE INDEX held_by_segment ON held (segment);

-- Which notes hold a word and how often, packed (words.py), one row a word and segment, and the places of the word in
-- them. A segment is what one transaction wrote, or several merged into one. Of notes that changed or went since, `gone`
-- tells; they are no longer among the `notes` and `blocks` that hold the word.
CREATE SEQUENCE segment_numbers;
CREATE TABLE segments (segment BIGINT PRIMARY KEY, notes BIGINT NOT NULL);
CREATE TABLE postings (
    word TEXT COLLATE "C", segment BIGINT, notes INTEGER NOT NULL, blocks INTEGER NOT NULL, data BYTEA NOT NULL,
    places BYTEA NOT NULL, PRIMARY KEY (word, segment)
);
CREATE INDEX postings_by_segment ON postings (segment);
CREATE TABLE gone (segment BIGINT, note_id BIGINT, PRIMARY KEY (segment, note_id));

-- How many rows and words there are, for notes and for blocks: with them BM25 is counted.
CREATE TABLE totals (notes BIGINT NOT NULL, words BIGINT NOT NULL, blocks BIGINT NOT NULL, block_words BIGINT NOT NULL);
INSERT INTO totals VALUES (0, 0, 0, 0);
