-- The tables of an index, for every engine. An index is a function of the vault and the settings: deleted,
-- it comes back equal. The words in braces are column types and the like, which `Dialect` has for each
-- engine. Raise SCHEMA_VERSION (sqlite/engine.py) and SCHEMA (postgres/database.py) with every change: an
-- older index is then rebuilt, never migrated.

-- Facts about the index itself: settings it was made with, whether it is complete, when it was last checked.
CREATE TABLE meta (key {text} PRIMARY KEY, value {text} NOT NULL){by_key};
INSERT INTO meta (key, value) VALUES ('rev', '0');

-- Every file a link can mean: notes and attachments. `name_key` is the last segment, without case or Unicode form.
-- `copy_of` is the compared path of the note that this would be a conflict copy of, by its name alone.
CREATE TABLE files (path {text} PRIMARY KEY, name_key {text} NOT NULL, copy_of {text}){by_key};
CREATE INDEX files_by_name ON files (name_key);
CREATE INDEX files_by_original ON files (copy_of) WHERE copy_of IS NOT NULL;

-- One row a note. `size` to `checked_ns` only tell whether the file may have changed; the hash decides. `hidden` says
-- why it is left out of recall, `problem` why it must not be rewritten, `private` why no text may leave this machine.
-- `rev` is the number of the change that wrote it, which only grows (meta.rev). No id comes twice: another process may
-- still mean the note that had it. `embedded` is 1 when no more vectors are wanted; `refused` is what the embedder said.
CREATE TABLE notes (
    id {numbered_key},
    path {text} NOT NULL UNIQUE, path_key {text} NOT NULL, name_key {text} NOT NULL, title_key {text} NOT NULL,
    sha256 {text} NOT NULL, size {integer} NOT NULL, mtime_ns {integer} NOT NULL, ctime_ns {integer} NOT NULL,
    checked_ns {integer} NOT NULL, title {text} NOT NULL, description {text} NOT NULL, type {text} NOT NULL,
    type_key {text} NOT NULL, created {text} NOT NULL, modified {text} NOT NULL, words {integer} NOT NULL, hidden {text},
    problem {text}, private {text}, embedded {integer} NOT NULL, refused {text}, rev {integer} NOT NULL
);
CREATE INDEX notes_by_path_key ON notes (path_key);
CREATE INDEX notes_by_name ON notes (name_key);
CREATE INDEX notes_by_title ON notes {long_text}(title_key);
CREATE INDEX notes_by_modified ON notes (modified);
CREATE INDEX notes_by_rev ON notes (rev);
CREATE INDEX notes_to_embed ON notes (id) WHERE embedded = 0;

CREATE TABLE aliases (
    note_id {integer} NOT NULL, seq {integer} NOT NULL, alias {text} NOT NULL, key {text} NOT NULL, PRIMARY KEY (note_id, seq)
){by_key};
CREATE INDEX aliases_by_key ON aliases {long_text}(key);

-- What a note is called: title, file name and aliases, however they are spelled (words_key in words.py).
CREATE TABLE names (
    note_id {integer} NOT NULL, seq {integer} NOT NULL, key {text} NOT NULL, is_alias {integer} NOT NULL,
    PRIMARY KEY (note_id, seq)
){by_key};
CREATE INDEX names_by_key ON names {long_text}(key);

-- Tags as they are shown, and the (key, value) rows that filters ask for; value '' says that the tag is there.
CREATE TABLE tags (
    note_id {integer} NOT NULL, seq {integer} NOT NULL, tag {text} NOT NULL, source {text} NOT NULL, PRIMARY KEY (note_id, seq)
){by_key};
CREATE TABLE tag_pairs (
    key {text} NOT NULL, value {text} NOT NULL, note_id {integer} NOT NULL, PRIMARY KEY (key, value, note_id)
){by_key};
CREATE INDEX tag_pairs_by_note ON tag_pairs (note_id);

-- The header, a row a property, its value as JSON.
CREATE TABLE properties (
    note_id {integer} NOT NULL, seq {integer} NOT NULL, key {text} NOT NULL, value {text} NOT NULL, PRIMARY KEY (note_id, seq)
){by_key};

-- The log of changes (`history/log.jsonl` is the truth; meta.log says how far it was read). `seq` is the order of the
-- lines, `version` their number, `step` that of the first change of the operation, `lineage` the note it is of, and
-- `author` who made it: 'human', or the name of a program, compared without case. `sources` are names as JSON, '' for
-- none.
CREATE TABLE changes (
    seq {integer} PRIMARY KEY, version {integer} NOT NULL, step {integer} NOT NULL, path {text} NOT NULL, new_path {text},
    at {text} NOT NULL, op {text} NOT NULL, who {text} NOT NULL, tool {text} NOT NULL, reason {text} NOT NULL,
    before {text}, after {text}, trash {text}, kind {text} NOT NULL,
    session {text} NOT NULL, sources {text} NOT NULL, lineage {integer} NOT NULL, author {text} NOT NULL
);
CREATE INDEX changes_by_version ON changes (version);
CREATE INDEX changes_by_path ON changes (path);
CREATE INDEX changes_by_new_path ON changes (new_path) WHERE new_path IS NOT NULL;
CREATE INDEX changes_by_text ON changes (after);

-- A note as the log knows it, whatever its names were: where it lies, or lay when we deleted it (`there` = 0). It no
-- longer `holds` its place when another note has it, which some other program must have made room for.
CREATE TABLE lineages (id {integer} PRIMARY KEY, path {text} NOT NULL, there {integer} NOT NULL, holds {integer} NOT NULL);
CREATE UNIQUE INDEX lineages_by_path ON lineages (path) WHERE holds = 1;

-- Links as they stand and what they mean now. `key` is what they are looked up by, so that a file that comes, goes or
-- moves touches only the links that could mean it.
CREATE TABLE links (
    note_id {integer} NOT NULL, seq {integer} NOT NULL,
    form {text} NOT NULL, target {text} NOT NULL, subpath {text} NOT NULL, display {text} NOT NULL, line {integer} NOT NULL,
    key {text} NOT NULL, path {text}, ambiguous {text} NOT NULL, PRIMARY KEY (note_id, seq)
){by_key};
CREATE INDEX links_by_key ON links {long_text}(key);
CREATE INDEX links_by_path ON links (path) WHERE path IS NOT NULL;

-- What is searched: passages and blocks. An id holds the note (id >> 20) and the place in it; blocks have bit 19 set
-- (BLOCK in text.py). Offsets are characters of the file's text, lines are 1-based. The text itself stays in the note.
CREATE TABLE places (
    id {integer} PRIMARY KEY, start {integer} NOT NULL, stop {integer} NOT NULL, line {integer} NOT NULL,
    headings {text} NOT NULL, hash {bytes}
);

-- Whose vectors the index has, in one row. `dimension` is 0 until the first. The table `vectors` (id, vector)
-- is made with the first vector, in the engine's own type: one vector per passage, and one per block that
-- says more than its passage or a heading. A place without a vector has no `hash`.
CREATE TABLE vector_space (embedder {text} NOT NULL, dimension {integer} NOT NULL, remote {integer} NOT NULL);

-- The term index (docs/internals/term-index.md): which words occur where in the notes. A segment is never changed; its
-- notes are counted here with their words, and their blocks with theirs. `documents` lists them. The terms of a small
-- segment are `packed` in its row, those of a large one have a row each in `terms`.
CREATE TABLE segments (
    segment_id {integer} PRIMARY KEY,
    notes {integer} NOT NULL, words {integer} NOT NULL, blocks {integer} NOT NULL, block_words {integer} NOT NULL,
    documents {bytes} NOT NULL, packed {bytes}
);

-- A term of a segment: how many notes and blocks hold it, where it occurs, and at which positions.
CREATE TABLE terms (
    segment_id {integer} NOT NULL, term {text} NOT NULL, notes {integer} NOT NULL, blocks {integer} NOT NULL,
    postings {bytes} NOT NULL, positions {bytes} NOT NULL, PRIMARY KEY (segment_id, term)
){by_key};

-- Notes of a segment that were changed or removed since, and what no longer counts.
CREATE TABLE deleted_notes (
    segment_id {integer} NOT NULL, note_id {integer} NOT NULL,
    words {integer} NOT NULL, blocks {integer} NOT NULL, block_words {integer} NOT NULL, PRIMARY KEY (segment_id, note_id)
){by_key};

-- The segment that has the words of a note, and what counts of it there, so that a note is removed without reading
-- the segment.
CREATE TABLE indexed_notes (
    note_id {integer} PRIMARY KEY, segment_id {integer} NOT NULL,
    words {integer} NOT NULL, blocks {integer} NOT NULL, block_words {integer} NOT NULL
);
