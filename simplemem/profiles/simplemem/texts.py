"""The Markdown answers of the original simplemem. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from simplemem.models import LOOSELY_RELATED, NO_WORD_FOUND
from simplemem.note.note import map_entries
from simplemem.tools.render import brief, index_line, line, missing_terms, name_of, nothing_found

if TYPE_CHECKING:
    from simplemem.models import Backlink, Found, Hit, LinkOut, Memory, Page

_MAX_LINKS = 200  # of a memory that are shown
# These properties have lines of their own, or are not shown.
_OWN_LINES = {"title", "description", "tags", "created", "modified", "links"}
_NOT_PLAIN = re.compile(
    r"(?ms)^```.*?(?:^```|\Z)|<[^<>\n]*+>|\]\([^()\n]*+\)|^[#>*+ -]++|[*_`\[\]]++"
)


def plain_length(text: str) -> int:
    """Return about how many characters a reader sees of a Markdown text.

    Code blocks, HTML, targets of links and marks of Markdown do not count.
    """
    return len(_NOT_PLAIN.sub("", text).strip())


def describe_written(name: str, verb: str, warnings: Sequence[str], max_length: int) -> str:
    """Return the answer for a memory that was written, with each warning on a line.

    `verb` is created or updated. A warning is cut to `max_length` characters.
    """
    lines = [f"Memory '{name_of(name)}' was {verb}."]
    for warning in warnings:
        warning_line = line(warning, max_length)
        lines.append(warning_line)
    return "\n".join(lines)


def describe_tag_change(
    name: str, requested_value: object, old_value: object, new_value: object
) -> str:
    """Return a line that says what became of a tag.

    The requested value is None to remove the tag. The old and the new value are None if the note
    did not have the tag, or does not have it now.
    """
    if requested_value is not None:
        if old_value is None or old_value == new_value:
            effect = f"set to {format_value(new_value)}"
        else:
            effect = f"changed from {format_value(old_value)} to {format_value(new_value)}"
    elif new_value is not None:
        effect = "still there, in the text"
    elif old_value is not None:
        effect = f"removed (was {format_value(old_value)})"
    else:
        effect = "already absent"
    return f"- {line(name)}: {effect}"


def render_memory(memory: Memory) -> str:
    """Return a memory: its whole text, its metadata and its first 200 links."""
    text = memory.text.removesuffix("\n")
    lines = [f"{text}\n", "---", ""]
    lines += _metadata_lines(memory, 1000)
    if memory.links:
        lines += ["", "**Links:**"]
    links = memory.links[:_MAX_LINKS]
    lines += [_link_line(link) for link in links]
    return "\n".join(lines) + "\n"


def _link_line(link: LinkOut) -> str:
    """Return a list item for a link: its text, target and form, and whether it is unresolved."""
    text = ""
    if link.display:
        text = f"{line(link.display)}: "
    form = "(markdown)" if link.kind == "markdown" else "(wiki)"
    state = "" if link.resolved else ", unresolved"
    return f"- {text}{line(link.target)} {form}{state}"


def render_page(page: Page, memories: Sequence[Memory], max_length: int) -> str:
    """Return a page of the list of memories, with their metadata and how to get the next page.

    `memories` are those of the page, read whole. A memory is marked if its plain text is longer
    than `max_length` characters; 0 for no limit.
    """
    lines = [f"# Memories ({page.total})\n"]
    for memory in memories:
        lines += _listed_memory(memory, max_length)

    state = index_line(page.index)
    if state:
        lines.append(state)
    text = "\n".join(lines)
    if page.next_cursor:
        text += f'\nMore: list_memories(cursor="{page.next_cursor}")\n'
    return text


def _listed_memory(memory: Memory, max_length: int) -> list[str]:
    """Return the lines of a memory in a list: its metadata, its length and its other properties.

    The length is marked if it is over `max_length` characters; 0 for no limit.
    """
    length = plain_length(memory.content)
    length_line = f"**Length:** {length}"
    if 0 < max_length < length:
        length_line += f" (over the limit of {max_length})"

    name = name_of(memory.name)
    lines = [f"## {name}"]
    lines += _metadata_lines(memory, 400, length_line)
    for key, value in memory.frontmatter.items():
        if key.lower() in _OWN_LINES:
            continue
        formatted = format_value(value)
        lines.append(f"{line(key)}: {formatted}")
    lines.append("")
    return lines


def _metadata_lines(memory: Memory, max_description: int, *after_title: str) -> list[str]:
    """Return lines with the metadata of a memory; `after_title` are lines below the title.

    The description is cut to `max_description` characters.
    """
    created = (memory.created or "")[:19].replace("T", " ")
    modified = memory.modified[:19].replace("T", " ")
    description = line(memory.description, max_description)
    tags = format_tags(_own_tags(memory))
    return [
        f"**Title:** {line(memory.title)}",
        *after_title,
        f"**Description:** {description}",
        f"**Tags:** {tags}",
        f"**Created:** {created}",
        f"**Modified:** {modified}",
    ]


def describe_search(query: str, tags: Mapping[str, Any] | None, *, require_all: bool) -> str:
    """Return what a search looked for, such as `for "x" with any of the tags y`.

    It is "" without a query and tags.
    """
    parts = []
    if query.strip():
        query_line = line(query, 200)
        parts.append(f'for "{query_line}"')
    if tags:
        values = {name: value or True for name, value in tags.items()}
        quantity = "all of" if require_all else "any of"
        parts.append(f"with {quantity} the tags {format_tags(values)}")
    return " ".join(parts)


def render_hits(found: Found, searched: str, memories: Mapping[str, Memory]) -> str:
    """Return the hits of a search, or that there are none, and what makes them incomplete.

    `searched` is what the search looked for (`describe_search`). `memories` are the memories of the
    hits, by name.
    """
    missing = missing_terms(found.absent)
    index_state = index_line(found.index, found.degraded)
    state = f"{missing} {index_state}".strip()
    if found.notice.startswith(LOOSELY_RELATED):
        state = f"{found.notice} {state}".strip()
    if not found.hits:
        nothing = f"No memories were found {searched}."
        if not found.index.is_ready:
            nothing = nothing_found(f" {searched}", found.index)
        return f"{nothing} {state}".strip() + "\n"

    lines = [f"# {_search_heading(found.notice)} {searched}", ""]
    for number, hit in enumerate(found.hits, start=1):
        memory = memories[hit.name]
        own_tags = _own_tags(memory)
        lines += _entry(
            number,
            hit,
            f"**Where:** {_place_of(hit)}\n**Similarity:** {hit.score:.3f}",
            description=hit.description,
            tags=format_tags(own_tags),
        )
    if state:
        lines += [state, ""]
    return "\n".join(lines)


def _place_of(hit: Hit) -> str:
    """Return where in its memory a hit is: `HEADING › HEADING (line 3)`, or only the line."""
    if not hit.heading:
        return f"line {hit.line}"
    heading = line(hit.heading).replace(" > ", " › ")
    return f"{heading} (line {hit.line})"


def _search_heading(notice: str) -> str:
    """Return the heading of hits: that memories were found, or that these are only the nearest.

    `notice` is the search's sentence on why the hits may not answer the query, or "".
    """
    if notice == NO_WORD_FOUND:
        return notice.removesuffix(".")
    if notice.startswith(LOOSELY_RELATED):
        return "Only loosely related memories found"
    if notice:
        return "No memories were found; nearest memories"
    return "Memories found"


def describe_subject(name: str, query: str | None) -> str:
    """Return what memories are related to: `"a"`, or `"a" and "x"` with a query."""
    text = f'"{line(name)}"'
    if query:
        text += f' and "{line(query, 200)}"'
    return text


def render_related(
    backlinks: Sequence[Backlink], subject: str, descriptions: Mapping[str, str], state: str
) -> str:
    """Return the memories that are related to a subject.

    `subject` is what they are related to (`describe_subject`). `descriptions` are those of all
    backlinks, by name. `state` is what makes the answer incomplete, or "".
    """
    lines = [f"# Related memories for {subject}", ""]
    if not backlinks:
        lines = [f"No memories are related to {subject}.", ""]
    for number, backlink in enumerate(backlinks, start=1):
        link_type = "explicit" if backlink.kind == "link" else "semantic"
        details = f"**Link Type:** {link_type} | **Relevance:** {backlink.score:.3f}"
        if backlink.also:
            line_numbers = ", ".join(str(mention.line) for mention in backlink.also)
            details += f"\n**Also in lines:** {line(line_numbers)}"
        lines += _entry(
            number,
            backlink,
            details,
            description=descriptions[backlink.name],
            tags="",
        )
    return "\n".join(lines) + state


def _entry(
    number: int, item: Hit | Backlink, details: str, description: str, tags: str
) -> list[str]:
    """Return the lines of one of several memories, with its number.

    `details` are one or more lines in Markdown. A `description` and `tags` that are "" are left
    out.
    """
    name = name_of(item.name)
    lines = [f"## {number}. {name}"]
    if item.title and item.title != item.name:
        title = brief(item.title, 30)
        lines.append(f"**Title:** {title}")
    if item.snippet:
        snippet = line(item.snippet, 300)
        lines.append(f"**Snippet:** {snippet}")
    lines.append(details)
    if description:
        short_description = brief(description, 60)
        lines.append(f"**Description:** {short_description}")
    if tags:
        lines.append(f"**Tags:** {tags}")
    return [*lines, "---", ""]


def format_value(value: object) -> str:
    """Return a value on one line: a text as it is, anything else as JSON. It may be cut."""
    if isinstance(value, str):
        return line(value, 400)
    return line(json.dumps(value, ensure_ascii=False, default=str), 400)


def format_tags(tags: Mapping[str, Any]) -> str:
    """Return tags with their values: `todo, status: done`. A tag with the value True has none.

    Names and values are each put on one line, and long ones are cut.
    """
    parts = []
    for name, value in tags.items():
        part = line(name)
        if value is not True:
            part += f": {format_value(value)}"
        parts.append(part)
    return ", ".join(parts)


def _own_tags(memory: Memory) -> dict[str, Any]:
    """Return the tags of a memory by name: the entries of its map of tags, and True for others.

    The others are tags in a list or in the text.
    """
    entries = memory.frontmatter.get("tags")
    if not isinstance(entries, Mapping):
        entries = {}
    tags = dict(entries)
    names_in_map = {name for _, name, _ in map_entries(entries)}
    for tag in memory.tags:
        if tag not in names_in_map:
            tags[tag] = True
    return tags
