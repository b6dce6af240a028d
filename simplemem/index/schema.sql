-- The sidecar: a function of the vault and the settings. Delete it and it comes back equal. PostgreSQL's tables are made of
-- these. Raise SCHEMA_VERSION and postgres' SHAPE with every change here: an older index is then rebuilt, never migrated.

-- Facts about the index itself: settings it was made with, whether it is complete, when it was last checked.
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO meta (key, value) VALUES ('rev', '0');

-- Every file a link can mean: notes and attachments. `name_key` is the last segment, without case or Unicode form.
-- `copy_of` is the compared path of the note that this would be a conflict copy of, by its name alone.
CREATE TABLE files (path TEXT PRIMARY KEY, name_key TEXT NOT NULL, copy_of TEXT) WITHOUT ROWID;
CREATE INDEX files_by_name ON files (name_key);
CREATE INDEX files_by_original ON files (copy_of) WHERE copy_of IS NOT NULL;

-- One row a note. `size` to `checked_ns` only tell whether the file may have changed; the hash decides. `hidden` says
-- why it is left out of recall, `problem` why it must not be rewritten, `private` why no text may leave this machine.
-- `rev` is the number of the change that wrote it, which only grows (meta.rev). No id comes twice: another process may
-- still mean the note that had it. `embedded` is 1 when no more vectors are wanted; `refused` is what the embedder said.
CREATE TABLE notes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path TEXT NOT NULL UNIQUE, path_key TEXT NOT NULL, name_key TEXT NOT NULL, title_key TEXT NOT NULL,
    sha256 TEXT NOT NULL, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL,
    checked_ns INTEGER NOT NULL, title TEXT NOT NULL, description TEXT NOT NULL, type TEXT NOT NULL,
    type_key TEXT NOT NULL, created TEXT NOT NULL, modified TEXT NOT NULL, words INTEGER NOT NULL, hidden TEXT,
    problem TEXT, private TEXT, embedded INTEGER NOT NULL, refused TEXT, rev INTEGER NOT NULL
);
CREATE INDEX notes_by_path_key ON notes (path_key);
CREATE INDEX notes_by_name ON notes (name_key);
CREATE INDEX notes_by_title ON notes (title_key);
CREATE INDEX notes_by_modified ON notes (modified);
CREATE INDEX notes_by_rev ON notes (rev);
CREATE INDEX notes_to_embed ON notes (id) WHERE embedded = 0;

CREATE TABLE aliases (
    note_id INTEGER NOT NULL, seq INTEGER NOT NULL, alias TEXT NOT NULL, key TEXT NOT NULL, PRIMARY KEY (note_id, seq)
) WITHOUT ROWID;
CREATE INDEX aliases_by_key ON aliases (key);

-- What a note is called: title, file name and aliases, however they are spelled (words_key in words.py).
CREATE TABLE names (
    note_id INTEGER NOT NULL, seq INTEGER NOT NULL, key TEXT NOT NULL, is_alias INTEGER NOT NULL,
    PRIMARY KEY (note_id, seq)
) WITHOUT ROWID;
CREATE INDEX names_by_key ON names (key);

-- Tags as they are shown, and the (key, value) rows that filters ask for; value '' says that the tag is there.
CREATE TABLE tags (
    note_id INTEGER NOT NULL, seq INTEGER NOT NULL, tag TEXT NOT NULL, source TEXT NOT NULL, PRIMARY KEY (note_id, seq)
) WITHOUT ROWID;
CREATE TABLE tag_pairs (
    key TEXT NOT NULL, value TEXT NOT NULL, note_id INTEGER NOT NULL, PRIMARY KEY (key, value, note_id)
) WITHOUT ROWID;
CREATE INDEX tag_pairs_by_note ON tag_pairs (note_id);

-- The header, a row a property, its value as JSON.
CREATE TABLE properties (
    note_id INTEGER NOT NULL, seq INTEGER NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (note_id, seq)
) WITHOUT ROWID;

-- The log of changes (`history/log.jsonl` is the truth; meta.log says how far it was read). `seq` is the order of the
-- lines, `version` their number, `step` that of the first change of the operation, `lineage` the note it is of, and
-- `author` who made it: 'human', or the name of a program, compared without case.
CREATE TABLE changes (
    seq INTEGER PRIMARY KEY, version INTEGER NOT NULL, step INTEGER NOT NULL, path TEXT NOT NULL, new_path TEXT,
    at TEXT NOT NULL, op TEXT NOT NULL, who TEXT NOT NULL, tool TEXT NOT NULL, reason TEXT NOT NULL,
    before TEXT, after TEXT, trash TEXT, kind TEXT NOT NULL, lineage INTEGER NOT NULL, author TEXT NOT NULL
);
CREATE INDEX changes_by_version ON changes (version);
CREATE INDEX changes_by_path ON changes (path);
CREATE INDEX changes_by_new_path ON changes (new_path) WHERE new_path IS NOT NULL;
CREATE INDEX changes_by_text ON changes (after);

-- A note as the log knows it, whatever its names were: where it lies, or lay when we deleted it (`there` = 0). It no
-- longer `holds` its place when another note has it, which some other program must have made room for.
CREATE TABLE lineages (id INTEGER PRIMARY KEY, path TEXT NOT NULL, there INTEGER NOT NULL, holds INTEGER NOT NULL);
CREATE UNIQUE INDEX lineages_by_path ON lineages (path) WHERE holds = 1;

-- Links as they stand and what they mean now. `key` is what they are looked up by, so that a file that comes, goes or
-- moves touches only the links that could mean it.
CREATE TABLE links (
    note_id INTEGER NOT NULL, seq INTEGER NOT NULL,
    form TEXT NOT NULL, target TEXT NOT NULL, subpath TEXT NOT NULL, display TEXT NOT NULL, line INTEGER NOT NULL,
    key TEXT NOT NULL, path TEXT, ambiguous TEXT NOT NULL, PRIMARY KEY (note_id, seq)
) WITHOUT ROWID;
CREATE INDEX links_by_key ON links (key);
CREATE INDEX links_by_path ON links (path) WHERE path IS NOT NULL;

-- What is searched: passages and blocks. An id holds the note (id >> 20) and the place in it; blocks have bit 19 set
-- (BLOCK in text.py). Offsets are characters of the file's text, lines are 1-based. The text itself stays in the note.
CREATE TABLE places (
    id INTEGER PRIMARY KEY, start INTEGER NOT NULL, stop INTEGER NOT NULL, line INTEGER NOT NULL,
    headings TEXT NOT NULL, hash BLOB
);

-- One vector a passage, and one a block that says more than its passage or a heading (a place without one has no
-- `hash`). int8. Absent until the embedder has come by.
CREATE TABLE vectors (id INTEGER PRIMARY KEY, hash BLOB NOT NULL, vector BLOB NOT NULL);

-- Whose vectors they are, in one row. `dimension` is 0 until the first.
CREATE TABLE vector_space (embedder TEXT NOT NULL, dimension INTEGER NOT NULL, remote INTEGER NOT NULL);

-- The term index (docs/internals/term-index.md): which words occur where in the notes. A segment is never changed; its
-- notes are counted here with their words, and their blocks with theirs. `documents` lists them. The terms of a small
-- segment are `packed` in its row, those of a large one have a row each in `terms`.
CREATE TABLE segments (
    segment_id INTEGER PRIMARY KEY,
    notes INTEGER NOT NULL, words INTEGER NOT NULL, blocks INTEGER NOT NULL, block_words INTEGER NOT NULL,
    documents BLOB NOT NULL, packed BLOB
);

-- A term of a segment: how many notes and blocks hold it, where it occurs, and at which positions.
CREATE TABLE terms (
    segment_id INTEGER NOT NULL, term TEXT NOT NULL, notes INTEGER NOT NULL, blocks INTEGER NOT NULL,
    postings BLOB NOT NULL, positions BLOB NOT NULL, PRIMARY KEY (segment_id, term)
) WITHOUT ROWID;

-- Notes of a segment that were changed or removed since, and what no longer counts.
CREATE TABLE deleted_notes (
    segment_id INTEGER NOT NULL, note_id INTEGER NOT NULL,
    words INTEGER NOT NULL, blocks INTEGER NOT NULL, block_words INTEGER NOT NULL, PRIMARY KEY (segment_id, note_id)
) WITHOUT ROWID;
CREATE INDEX deleted_notes_by_note ON deleted_notes (note_id);
