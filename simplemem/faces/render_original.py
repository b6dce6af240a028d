"""The Markdown that the original simplemem answered with, for agents and programs that read it. Nothing
but text is made here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from simplemem.faces.plain_text import plain_length
from simplemem.faces.render import brief, index_line, line, name_of

if TYPE_CHECKING:
    from simplemem.memory import Backlink, Found, Hit, Memory

_LISTED = 32_000
"""Characters of a list: about eight thousand tokens."""
_KNOWN = frozenset({"title", "description", "tags", "created", "modified", "links"})


def _value(value: Any) -> str:
    """A value as YAML writes it on a line, which is as JSON does."""
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return line(shown, 400)


def tags(found: Mapping[str, Any]) -> str:
    """`todo, status: done`: a tag that is only there stands alone."""
    return ", ".join(line(key) if value is True else f"{line(key)}: {_value(value)}" for key, value in found.items())


def _when(moment: str | None) -> str:
    return (moment or "")[:19].replace("T", " ")


def memory(found: Memory) -> str:
    """The file as it is, a rule, its metadata, and every link."""
    said = [
        found.text if found.text.endswith("\n") else found.text + "\n",
        "---",
        "",
        f"**Title:** {line(found.title)}",
        f"**Description:** {line(found.description, 1000)}",
        f"**Tags:** {tags(found.tag_map)}",
        f"**Created:** {_when(found.created)}",
        f"**Modified:** {_when(found.modified)}",
    ]
    if found.links:
        said += ["", "**Links:**"]
        for link in found.links[:200]:
            kind = "markdown" if link.kind == "markdown" else "wiki"
            text = f"{line(link.display)}: " if link.display else ""
            said.append(f"- {text}{line(link.target)} ({kind})" + ("" if link.resolved else ", not there yet"))
    return "\n".join(said) + "\n"


def memories(found: Sequence[Memory], total: int, most: int) -> str:
    """What there is to know about each memory but its text."""
    if not found:
        return "There are no memories.\n"
    said = [f"# Memories ({total})\n"]
    size = 0
    for number, each in enumerate(found):
        length = plain_length(each.content)
        over = f" (over the limit of {most})" if 0 < most < length else ""
        parts = [
            f"## {name_of(each.name)}",
            f"**Title:** {line(each.title)}",
            f"**Length:** {length}{over}",
            f"**Description:** {line(each.description, 400)}",
            f"**Tags:** {tags(each.tag_map)}",
            f"**Created:** {_when(each.created)}",
            f"**Modified:** {_when(each.modified)}",
        ]
        parts += [
            f"{line(key)}: {_value(value)}" for key, value in each.frontmatter.items() if key.casefold() not in _KNOWN
        ]
        text = "\n".join(parts) + "\n"
        size += len(text)
        if size > _LISTED and number:
            said.append(f"({len(found) - number} more of this page; ask for fewer at a time.)\n")
            break
        said.append(text)
    return "\n".join(said)


def found(result: Found, wanted: Mapping[str, str], require_all: bool) -> str:
    """The hits of a search."""
    asked = f'for "{line(result.query, 200)}"' if result.query.strip() else ""
    if wanted:
        tagged = ", ".join(f"{line(key)}: {line(value)}" if value else line(key) for key, value in wanted.items())
        asked += f"{' ' if asked else ''}with {'all of' if require_all else 'any of'} the tags {tagged}"
    note = index_line(result.index, result.degraded)
    if not result.hits:
        return f"No memories were found {asked}. {note}".strip() + "\n"
    said = [f"# Memories found {asked}", ""]
    for number, hit in enumerate(result.hits, 1):
        said += [*_hit(number, hit), "---", ""]
    return "\n".join(said + ([note, ""] if note else []))


def _hit(number: int, hit: Hit) -> list[str]:
    where = f"{line(hit.heading).replace(' > ', ' › ')} (line {hit.line})" if hit.heading else f"line {hit.line}"
    pairs = {tag.split("/", 1)[0]: tag.split("/", 1)[1] if "/" in tag else True for tag in hit.tags}
    rows = [
        f"**Title:** {brief(hit.title, 30)}" if hit.title and hit.title != hit.name else "",
        f"**Snippet:** {line(hit.snippet, 300)}" if hit.snippet else "",
        f"**Where:** {where}",
        f"**Similarity:** {hit.score:.3f}",
        f"**Description:** {brief(hit.description, 60)}" if hit.description else "",
        f"**Tags:** {tags(pairs)}" if pairs else "",
    ]
    return [f"## {number}. {name_of(hit.name)}", *(row for row in rows if row)]


def backlinks(name: str, query: str | None, items: Sequence[Backlink], about: Mapping[str, str]) -> str:
    """What leads to a memory; `about` has the description of each."""
    asked = f'"{line(name)}"' + (f' and "{line(query, 200)}"' if query else "")
    if not items:
        return f"No memories are related to {asked}.\n"
    said = [f"# Related memories for {asked}", ""]
    for number, item in enumerate(items, 1):
        kind = "explicit" if item.kind == "link" else "semantic"
        rows = [
            f"## {number}. {name_of(item.name)}",
            f"**Title:** {brief(item.title, 30)}" if item.title and item.title != item.name else "",
            f"**Snippet:** {line(item.snippet, 300)}" if item.snippet else "",
            f"**Link Type:** {kind} | **Relevance:** {item.score:.3f}",
            f"**Description:** {brief(about.get(item.name, ''), 60)}" if about.get(item.name) else "",
        ]
        said += [*(row for row in rows if row), "---", ""]
    return "\n".join(said)


def tag_changes(name: str, asked: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """What became of each tag that was named."""
    had = {key.casefold(): value for key, value in before.items()}
    has = {key.casefold(): value for key, value in after.items()}
    said = [f"Tags of memory '{line(name)}':"]
    for key, value in asked.items():
        old, new = had.get(key.casefold()), has.get(key.casefold())
        label = line(key)
        if value is None:
            said.append(f"- {label}: removed (was {_value(old)})" if old is not None else f"- {label}: already absent")
        elif old is None or old == new:
            said.append(f"- {label}: set to {_value(new)}")
        else:
            said.append(f"- {label}: changed from {_value(old)} to {_value(new)}")
    return "\n".join(said) + "\n"
