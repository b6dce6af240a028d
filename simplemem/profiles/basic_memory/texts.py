"""The texts that basic-memory's tools answer with.

Headings, field names and key phrases are those of release 0.24.1, because prompts depend on them.
The advice is our own. `project` is the name of the project, and `identifier` the note or directory
as the client named it. A `row` is a note, an observation or a relation as `Project` returns it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from simplemem.profiles.basic_memory.answers import ContextMetadata
from simplemem.profiles.basic_memory.arguments import (
    EditNoteArguments,
    ListDirectoryArguments,
    SearchNotesArguments,
)
from simplemem.tools.tool import Data

NO_TIME_SEARCH: Final = (
    "valid_at, valid_overlaps and time_kind are not supported here: use after_date."
)
NO_CRITERIA: Final = (
    "# No Search Criteria\n\n"
    "Please provide at least one of: `query`, `metadata_filters`, `tags`, `status`, "
    "`note_types`, `entity_types`, `categories`, `after_date`."
)


def no_project(name: str) -> str:
    """Return the error for the name or id of a project that does not exist."""
    return f"Project not found: '{name}'"


# --- write_note


def written_note(row: Data, project: str, verb: str, tags: Sequence[str]) -> str:
    """Return the answer for a note that was written; `verb` is Created or Updated."""
    tag_section = ""
    if tags:
        tag_section = f"\n## Tags\n- {', '.join(tags)}\n"
    return (
        f"# {verb} note\n"
        f"project: {project}\n"
        f"file_path: {row['file_path']}\n"
        f"permalink: {row['permalink']}\n"
        f"checksum: {row['checksum']:.8}\n"
        f"{tag_section}\n"
        f"[Project: '{project}']"
    )


def existing_note(title: str, permalink: str, project: str) -> str:
    """Return the error for a new note whose path is taken, with the ways to change that note."""
    return (
        "# Error: Note already exists\n\n"
        f'**"{title}"** already exists (`{permalink}`).\n\n'
        "`write_note` replaces a note only with overwrite=True. Otherwise:\n"
        f'- `edit_note("{permalink}", operation="append", content="...")` adds to it, '
        "and other operations change parts of it\n"
        f'- `read_note("{permalink}")` shows its text\n\n'
        f"Project: {project}"
    )


def stale_write(title: str, path: str, checksum: str, project: str) -> str:
    """Return the error for a note that changed since the client read it.

    Nothing was written. `path` and `checksum` are those of the note now.
    """
    return (
        "# Error: Note revision conflict\n\n"
        f'**"{title}"** at `{path}` changed since you read it: nothing was written.\n'
        f"Current checksum: `{checksum}`\n\n"
        f'Read it again, and repeat the call with expected_checksum="{checksum}".\n\n'
        f"Project: {project}"
    )


def refused_directory(directory: str) -> str:
    """Return the error for a directory that leads out of the project."""
    return (
        "# Error\n\n"
        f"Directory path '{directory}' is not allowed - paths must stay within project boundaries"
    )


# --- read_note


def refused_identifier(identifier: str) -> str:
    """Return the error for an identifier that leads out of the project."""
    return (
        "# Error\n\n"
        f"Identifier '{identifier}' is not allowed - paths must stay within project boundaries"
    )


def note_metadata(row: Data) -> str:
    """Return the title, addresses, checksum and time of a note, without its text."""
    return (
        "# Note metadata\n"
        f"title: {row['title']}\n"
        f"permalink: {row['permalink']}\n"
        f"file_path: {row['file_path']}\n"
        f"checksum: {row['checksum']}\n"
        f"updated_at: {row['updated_at']}"
    )


def note_lines(
    lines: Sequence[str], first: int, total: int, next_range: tuple[int, int] | None
) -> str:
    """Return lines of a note with their numbers, below a line that says which they are.

    The numbers begin with `first`. The line above also gives `total`, how many lines the note has,
    and `next_range`, the first and the last line of the next call, or EOF if it is None.
    """
    last = first + len(lines) - 1
    following = "EOF"
    if next_range is not None:
        following = f"next: start_line={next_range[0]}, end_line={next_range[1]}"
    numbered = "\n".join(f"{number}: {line}" for number, line in enumerate(lines, first))
    return (
        f"Lines {first}-{last} of {total} (document, including frontmatter); {following}\n"
        f"{numbered}"
    )


def missing_note(
    identifier: str, project: str, related: Sequence[Data], *, index_is_complete: bool
) -> str:
    """Return the answer for a note that does not exist, with the rows of related notes.

    Without related notes and with an incomplete index, it says to try again later.
    """
    related_notes = [
        f"\n## {number}. {row['title']}\n- **Type**: entity\n- **Permalink**: {row['permalink']}\n"
        for number, row in enumerate(related, 1)
    ]
    if related:
        message = "Related notes:\n\n" + "\n".join(related_notes)
    elif index_is_complete:
        message = "No note has this title or permalink, and a search found nothing similar."
    else:
        message = "No note that is indexed so far has this title or permalink. Try again later."
    return (
        f'\n# Note Not Found in {project}: "{identifier}"\n\n'
        f"{message}\n\n"
        f'`search_notes(query="{identifier}", project="{project}")` searches by words and meaning; '
        "`write_note` creates a note.\n"
    )


# --- edit_note


def edited_note(row: Data, project: str, arguments: EditNoteArguments, *, created: bool) -> str:
    """Return the answer for a note that was edited, or that the edit created."""
    heading = "Created" if created else "Edited"
    created_line = "fileCreated: true\n" if created else ""
    return (
        f"# {heading} note ({arguments.operation})\n"
        f"project: {project}\n"
        f"file_path: {row['file_path']}\n"
        f"permalink: {row['permalink']}\n"
        f"checksum: {row['checksum']:.8}\n"
        f"{created_line}operation: {_operation_summary(arguments, created=created)}\n\n"
        f"[Project: '{project}']"
    )


def _operation_summary(arguments: EditNoteArguments, *, created: bool) -> str:
    """Return one line that says what an edit did."""
    lines = arguments.content.count("\n") + 1
    if created:
        return f"Created note with {lines} lines"
    summaries = {
        "append": f"Added {lines} lines to end of note",
        "prepend": f"Added {lines} lines to beginning of note",
        "find_replace": "Find and replace operation completed",
        "replace_section": f"Replaced content under section '{arguments.section}'",
        "insert_before_section": f"Inserted content before section '{arguments.section}'",
        "insert_after_section": f"Inserted content after section '{arguments.section}'",
    }
    return summaries[arguments.operation]


def stale_edit(identifier: str, checksum: str) -> str:
    """Return the error for a note that changed since the client read it.

    Nothing was edited. `checksum` is that of the note now.
    """
    return (
        "# Edit Failed - Note Revision Conflict\n\n"
        f"The note '{identifier}' changed since you read it: nothing was edited.\n"
        f"Current checksum: `{checksum}`\n\n"
        f'Read it again, and repeat the call with expected_checksum="{checksum}".'
    )


def edit_of_deleted_note(identifier: str) -> str:
    """Return the error for a note that the client read, and that no longer exists."""
    return (
        "# Edit Failed - Note Revision Conflict\n\n"
        f"The note '{identifier}' no longer exists: nothing was edited."
    )


def edit_of_missing_note(identifier: str, project: str) -> str:
    """Return the error for a note to edit that does not exist."""
    return (
        "# Edit Failed - Note Not Found\n\n"
        f"The note with identifier '{identifier}' could not be found. "
        "Only `append` and `prepend` create a missing note.\n\n"
        f'Try `search_notes(query="{identifier}", project="{project}")` '
        "for its exact title or permalink."
    )


def text_to_replace_missing(identifier: str, project: str, find_text: str) -> str:
    """Return the error for a note that does not contain the text to replace."""
    return (
        "# Edit Failed - Text Not Found\n\n"
        f"The text '{find_text}' was not found in the note '{identifier}'.\n\n"
        "It must match to the letter, capitals too: "
        f'`read_note(identifier="{identifier}", project="{project}")` shows it.'
    )


def wrong_replacement_count(find_text: str, expected: int, count: int) -> str:
    """Return the error for a text to replace that occurs `count` times, not as expected."""
    return (
        "# Edit Failed - Wrong Replacement Count\n\n"
        f"Expected {expected} occurrences of '{find_text}' but found {count}.\n\n"
        f"Set expected_replacements={count}, or give more of the surrounding text."
    )


def duplicate_section(identifier: str) -> str:
    """Return the error for a note that has several sections with the heading of the call."""
    return (
        "# Edit Failed - Duplicate Section Headers\n\n"
        f"Multiple sections found with the same header in note '{identifier}'.\n\n"
        "Make the headers differ, or use `find_replace` with text that occurs once."
    )


def missing_section(identifier: str, project: str, error: str) -> str:
    """Return the error for a note that has no section of the call; `error` says so."""
    return (
        "# Edit Failed\n\n"
        f"Error editing note '{identifier}': {error}.\n\n"
        f'`read_note(identifier="{identifier}", project="{project}")` shows its headings; '
        "`append` adds a section."
    )


# --- search_notes


def failed_search(query: str, reason: str) -> str:
    """Return the error for a search that is not possible for a `reason`."""
    return f"# Search Failed\n\nError searching for '{query}': {reason}"


def nothing_found(query: str | None, project: str, *, index_is_complete: bool) -> str:
    """Return the answer for a search that found nothing, or nothing in an incomplete index."""
    if not index_is_complete:
        return f"No answer yet for '{query}' in project '{project}': not every note is indexed."
    return (
        f"No results found for '{query}' in project '{project}'. "
        f'Try other words, or see recent_activity(project="{project}").'
    )


def search_page(
    rows: Sequence[Data],
    project: str,
    arguments: SearchNotesArguments,
    ranked_query: str,
    *,
    has_more: bool,
) -> str:
    """Return a page of results, of which there is at least one.

    Each row has a `title`, a `permalink`, an `external_id` and a `score`. `ranked_query` is the
    query in the heading; "" if it has no words to rank by. `has_more` says that there are more
    pages.
    """
    about = f": {ranked_query}" if ranked_query else ""
    scope = "all projects" if arguments.search_all_projects else project
    results = "\n\n".join(
        f"### {row['title']}\n"
        f"- permalink: {row['permalink']}\n"
        f"- external_id: {row['external_id']}\n"
        f"- score: {row['score']:.4f}"
        for row in rows
    )
    plural = "s" if len(rows) > 1 else ""
    more = " | more available" if has_more else ""
    return (
        f"# Search Results{about}\n"
        f"*project: {scope}*\n\n"
        f"{results}\n\n"
        "---\n"
        f"*{len(rows)} result{plural} | page {arguments.page}, "
        f"page_size {arguments.page_size}{more}*"
    )


# --- build_context


def no_context(uri: str, project: str) -> str:
    """Return the answer for an address that no note has."""
    return f"No results found for '{uri}' in project '{project}'."


def context(title: str, results: Sequence[str], metadata: ContextMetadata, project: str) -> str:
    """Return a context below its title. Each of the `results` is a text of `context_result`.

    The counts and the depth in its last line come from the metadata.
    """
    joined = "\n\n---\n\n".join(results)
    return (
        f"# Context: {title}\n\n"
        f"{joined}\n\n"
        "---\n"
        f"*{metadata.primary_count} primary, {metadata.related_count} related "
        f"| depth={metadata.depth} | project: {project}*"
    )


def context_result(
    row: Data, observations: Sequence[Data], related: Sequence[Data], *, compact: bool
) -> str:
    """Return one note of a context, with its observations, its relations and related notes.

    `related` has the rows of the relations and of the notes at their ends. With `compact`, the
    text of the note is left out.
    """
    body = "" if compact else f"\n\n{row['content']}"
    observation_lines = [f"- [{row['category']}] {row['content']}" for row in observations]
    relation_lines = [
        f"- {row['start']}{row['relation_type']} [[{row['to_name']}]]"
        for row in related
        if row["type"] == "relation"
    ]
    note_lines = [
        f"- [[{row['title']}]] ({row['permalink']})" for row in related if row["type"] == "entity"
    ]
    return (
        f"## {row['title']}\n"
        f"permalink: {row['permalink']}{body}"
        + _context_section("Observations", observation_lines)
        + _context_section("Relations", relation_lines)
        + _context_section("Related", note_lines)
    )


def _context_section(heading: str, lines: Sequence[str]) -> str:
    """Return lines below a heading; "" without lines."""
    if not lines:
        return ""
    return f"\n\n### {heading}\n" + "\n".join(lines)


# --- recent_activity


def no_recent_activity(project: str, days: str) -> str:
    """Return the answer for a timeframe in which nothing changed; `days` is its label."""
    return (
        f"## Recent Activity: {project} ({days})\n\n"
        f"No recent activity in '{project}' within {days}.\n"
        'Use a longer timeframe, such as timeframe="30d", '
        "or search for a topic with search_notes."
    )


def recent_activity(rows: Sequence[Data], project: str, days: str, summary: str) -> str:
    """Return the rows that changed recently, in sections for their types.

    `days` is the label of the timeframe, and `summary` the sentence at the end.
    """
    notes = [
        f"  • {row['title']} ({row['folder']}) [id: {row['external_id']}]"
        for row in rows
        if row["type"] == "entity"
    ]
    observations = [
        f"  **{row['category']}:** {row['content']}" for row in rows if row["type"] == "observation"
    ]
    relations = [
        f"  • [[{row['from_title']}]] → {row['relation_type']} → {row['end']}"
        for row in rows
        if row["type"] == "relation"
    ]
    return (
        f"## Recent Activity: {project} ({days})\n\n"
        + _recent_section("📄 Recent Notes & Documents", notes)
        + _recent_section("🔍 Recent Observations", observations)
        + _recent_section("🔗 Recent Connections", relations)
        + f"**Activity Summary:** {summary}"
    )


def _recent_section(heading: str, lines: Sequence[str]) -> str:
    """Return lines below a heading that has their number; "" without lines."""
    if not lines:
        return ""
    return f"**{heading} ({len(lines)}):**\n" + "\n".join(lines) + "\n\n"


# --- list_directory


def empty_directory(arguments: ListDirectoryArguments) -> str:
    """Return the answer for a directory in which nothing was found."""
    return f"No files found in directory '{arguments.dir_name}'{_matching(arguments)}"


def directory_page(
    rows: Sequence[Data], arguments: ListDirectoryArguments, total: int, *, has_more: bool
) -> str:
    """Return a page of a directory: its folders, then its notes.

    `total` is how many folders and notes all pages have. With `has_more`, the last lines say how to
    get the next page.
    """
    folders = [
        f"📁 {row['name']:<30} {row['directory_path']}"
        for row in rows
        if row["type"] == "directory"
    ]
    files = [
        f"📄 {row['name']:<30} {row['file_path']} | {row['title']} | {row['updated_at']:.10} "
        f"| id: {row['external_id']}"
        for row in rows
        if row["type"] == "file"
    ]
    heading = "Files in" if arguments.file_name_glob else "Contents of"
    return (
        f"{heading} '{arguments.dir_name}'{_matching(arguments)} (depth {arguments.depth}):\n"
        f"Page {arguments.page} (page size {arguments.page_size}, {total} total items)\n\n"
        + _directory_section(folders)
        + _directory_section(files)
        + f"Total: {_item_count(len(folders), len(files))}"
        + (_next_page_hint(arguments) if has_more else "")
    )


def _matching(arguments: ListDirectoryArguments) -> str:
    """Return ` matching 'PATTERN'` for a call with a pattern, "" for one without."""
    if not arguments.file_name_glob:
        return ""
    return f" matching '{arguments.file_name_glob}'"


def _directory_section(lines: Sequence[str]) -> str:
    """Return the lines of the folders or the notes of a page; "" without lines."""
    if not lines:
        return ""
    return "\n".join(lines) + "\n\n"


def _item_count(folders: int, files: int) -> str:
    """Return a count such as `3 items (1 directory, 2 files)`."""
    parts: list[str] = []
    if folders:
        parts.append("1 directory" if folders == 1 else f"{folders} directories")
    if files:
        parts.append("1 file" if files == 1 else f"{files} files")

    count = f"{folders + files} items"
    if parts:
        count += f" ({', '.join(parts)})"
    return count


def _next_page_hint(arguments: ListDirectoryArguments) -> str:
    """Return the text that says how to get the next page of a directory."""
    return (
        f"\n\nMore results available. Call list_directory(dir_name='{arguments.dir_name}', "
        f"depth={arguments.depth}, page={arguments.page + 1}, "
        f"page_size={arguments.page_size}) to continue."
    )


# --- move_note


def moved_note(identifier: str, destination: str, permalink: str, project: str) -> str:
    """Return the answer for a note that was moved; `permalink` is the new one."""
    return (
        "✅ Note moved successfully\n\n"
        f"📁 **{identifier}** → **{destination}**\n"
        f"🔗 Permalink: {permalink}\n"
        "📊 Database and search index updated\n\n"
        f"<!-- Project: {project} -->"
    )


def move_of_missing_note(identifier: str) -> str:
    """Return the error for a note to move that does not exist."""
    return (
        "# Move Failed - Note Not Found\n\n"
        f"The note '{identifier}' could not be found for moving. "
        "Give its exact title, permalink or path."
    )


def destination_exists(identifier: str, destination: str | None) -> str:
    """Return the error for a move to a path that is taken."""
    return (
        "# Move Failed - Destination Already Exists\n\n"
        f"Cannot move '{identifier}' to '{destination}' "
        "because a file already exists at that location."
    )


def missing_extension(destination: str | None) -> str:
    """Return the error for a move of a note to a path without an extension."""
    return (
        "# Move Failed - File Extension Required\n\n"
        f"The destination path '{destination}' must include a file extension (e.g., '.md')."
    )


def other_extension(destination: str | None) -> str:
    """Return the error for a move of a note to a path that does not end in `.md`."""
    return (
        "# Move Failed - File Extension Mismatch\n\n"
        f"A note stays a Markdown file: '{destination}' must end in '.md'."
    )


def refused_destination(destination: str | None) -> str:
    """Return the error for a move to a path that leads out of the project."""
    return (
        "# Move Failed - Security Validation Error\n\n"
        f"The destination path '{destination}' is not allowed - "
        "paths must stay within project boundaries."
    )


MISSING_DESTINATION: Final = (
    "# Move Failed - Missing Destination\n\n"
    "Either destination_path or destination_folder must be provided."
)
TWO_DESTINATIONS: Final = (
    "# Move Failed - Invalid Parameters\n\n"
    "Cannot specify both destination_path and destination_folder. Use one or the other."
)
FOLDER_FOR_DIRECTORY: Final = (
    "# Move Failed - Invalid Parameters\n\n"
    "destination_folder is only supported for single-file moves, not directory moves."
)


def same_destination(identifier: str) -> str:
    """Return the error for a move of a note to the path that it has already."""
    return (
        "# Move Failed - Destination Same As Source\n\n"
        f"The note '{identifier}' is already at the requested destination."
    )


def moved_directory(
    source: str, destination: str | None, paths: Sequence[str], project: str
) -> str:
    """Return the answer for a directory that was moved, with the new paths of its files."""
    return (
        "# Directory Moved Successfully\n\n"
        f"**Source:** `{source}`\n"
        f"**Destination:** `{destination}`\n\n"
        "## Summary\n"
        f"- Total files: {len(paths)}\n"
        f"- Successfully moved: {len(paths)}\n"
        "- Failed: 0\n\n"
        "## Moved Files\n" + _file_list(paths) + f"\n\n<!-- Project: {project} -->"
    )


def empty_source_directory(identifier: str, project: str) -> str:
    """Return the error for a directory to move that contains no notes."""
    return (
        "# Directory Move Failed - No Files Found\n\n"
        f"No files found for source directory `{identifier}`.\n"
        "Total files: 0.\n\n"
        f"<!-- Project: {project} -->"
    )


# --- delete_note


def deleted_directory(identifier: str, paths: Sequence[str], project: str) -> str:
    """Return the answer for a directory that was deleted, with the paths of its files."""
    return (
        "# Directory Deleted Successfully\n\n"
        f"**Directory:** `{identifier}`\n\n"
        "## Summary\n"
        f"- Total files: {len(paths)}\n"
        f"- Successfully deleted: {len(paths)}\n"
        "- Failed: 0\n\n"
        "## Deleted Files\n" + _file_list(paths) + f"\n\n<!-- Project: {project} -->"
    )


def empty_deleted_directory(identifier: str, project: str) -> str:
    """Return the error for a directory to delete that contains no notes."""
    return (
        "# Directory Delete Failed - No Files Found\n\n"
        f"No files found for directory `{identifier}`.\n"
        "Total files: 0.\n\n"
        f"<!-- Project: {project} -->"
    )


def _file_list(paths: Sequence[str]) -> str:
    """Return paths as a Markdown list."""
    return "\n".join(f"- `{path}`" for path in paths)
