"""Entries in a TOML file, found with tomlkit: an entry is a table and the tables below it.

A new entry is added at the end of the file. The tables of an entry may stand in several places.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from simplemem.clients.lines import end_last_line, line_end_of
from simplemem.note.text_edits import Edit, apply_edits

if TYPE_CHECKING:
    from tomlkit.container import Container
    from tomlkit.items import Item, Table

# Begins and ends a table of the entry in the rendered document. TOML forbids the character NUL.
# tomlkit adds a line end before a table if the text before it has none, so the mark ends with one.
_MARK: Final = "\0\n"


def read(text: str) -> dict[str, Any]:
    """Return the data of a TOML text. Raises ValueError if it is not valid TOML."""
    return tomllib.loads(text)


def put(text: str, key: str, name: str, entry: Mapping[str, Any]) -> str:
    """Return the text with the entry in place of the tables of that name, or at the end.

    The text must be valid TOML. If it has the entry in a form that is not a table of its own, the
    new table is added all the same, and the result is not valid.
    """
    line_end = line_end_of(text)
    new_table = _render_entry(key, name, entry)
    new_table = new_table.replace("\n", line_end)
    spans = _table_spans(text, key, name)
    if not spans:
        text = end_last_line(text)
        if text:
            text += line_end
        return text + new_table

    start, end = spans[0]
    replacement = (start, end, new_table)
    edits: list[Edit] = [replacement]
    edits += [(*span, "") for span in spans[1:]]
    return apply_edits(text, edits)


def remove(text: str, key: str, name: str) -> str:
    """Return the text without the tables of an entry and without one empty line before each.

    The text must be valid TOML. It stays as it is if no table of the entry is found.
    """
    line_end = line_end_of(text)
    empty_line = 2 * line_end
    edits: list[Edit] = []
    for start, end in _table_spans(text, key, name):
        if text.endswith(empty_line, 0, start):
            start -= len(line_end)
        removal = (start, end, "")
        edits.append(removal)
    return apply_edits(text, edits)


def _render_entry(key: str, name: str, entry: Mapping[str, Any]) -> str:
    """Return the entry as a table with its header, `[key.name]`, and lines that end with \\n."""
    import tomlkit

    servers = {name: entry}
    return tomlkit.dumps({key: servers})


def _table_spans(text: str, key: str, name: str) -> list[tuple[int, int]]:
    """Return the spans of the tables of an entry, in the order of the text.

    A table reaches from its header to its last value: comments and empty lines after that usually
    belong to the next table. There are no spans if tomlkit cannot read the text, as it refuses some
    orders of tables that TOML allows.
    """
    import tomlkit
    from tomlkit.exceptions import ParseError

    try:
        document = tomlkit.parse(text)
    except ParseError:
        return []

    for table in _tables_of_entry(document, key, name):
        _mark(table)
    table_texts = tomlkit.dumps(document).split(_MARK)[1::2]

    # tomlkit writes tables with a common prefix next to each other if only an array of tables is
    # between them. The other bytes are therefore taken from the text, not from the document.
    spans: list[tuple[int, int]] = []
    for table_text in table_texts:
        span = _find_lines(text, table_text, spans)
        if span is not None:
            spans.append(span)
    return sorted(spans)


def _find_lines(text: str, lines: str, used_spans: list[tuple[int, int]]) -> tuple[int, int] | None:
    """Return the first span of these whole lines that is not used yet; None if there is none.

    A span is the offsets of a beginning and an end in `text`. `used_spans` are not returned again.
    """
    start = text.find(lines)
    while start >= 0:
        end = start + len(lines)
        span = (start, end)
        is_line_start = start == 0 or text[start - 1] == "\n"
        is_line_end = lines.endswith("\n") or text[end : end + 1] in ("", "\r", "\n")
        if is_line_start and is_line_end and span not in used_spans:
            return span
        next_start = start + 1
        start = text.find(lines, next_start)
    return None


def _tables_of_entry(document: Container, key: str, name: str) -> Iterator[Table]:
    """Yield the tables of an entry that have a header, in no particular order."""
    for servers in _tables_named(document, key):
        for table in _tables_named(servers.value, name):
            yield from _with_tables_below(table)


def _tables_named(container: Container, name: str) -> Iterator[Table]:
    """Yield the tables of that name; several if other tables are between the parts of one."""
    for key, item in container.body:
        if key is not None and key.key == name:
            yield from _header_tables(key.is_dotted(), item)


def _with_tables_below(table: Table) -> Iterator[Table]:
    """Yield a table, if it has a header of its own, and all tables below it."""
    if not table.is_super_table():
        yield table
    for key, item in table.value.body:
        if key is not None:
            for below in _header_tables(key.is_dotted(), item):
                yield from _with_tables_below(below)


def _header_tables(is_dotted: bool, item: Item) -> Iterator[Table]:
    """Yield the tables of an item that have headers; none for a value or a dotted key."""
    from tomlkit.items import AoT, Table

    if isinstance(item, AoT):
        yield from item.body
    elif isinstance(item, Table) and not is_dotted:
        yield item


def _mark(table: Table) -> None:
    """Change a table: add a mark before its header and one after its last value."""
    from tomlkit.items import Whitespace

    table.trivia.indent = _MARK + table.trivia.indent
    body = table.value.body
    end = 0
    for position, (key, item) in enumerate(body):
        if key is None:
            continue
        if any(_header_tables(key.is_dotted(), item)):
            break
        end = position + 1
    body.insert(end, (None, Whitespace(_MARK)))
