"""Makes the HTML of the web page from the files in `templates/`.

Jinja2 escapes every value that a template puts in. The only HTML that a template takes unescaped is
what `simplemem.web.rendering` makes of a note.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from simplemem.web.highlights import mark_words
from simplemem.web.markdown.addresses import (
    canvas_url,
    edit_url,
    file_url,
    link_of,
    media_type_of,
    page_url,
)
from simplemem.web.static_files import static_url

if TYPE_CHECKING:
    from jinja2 import Environment

_MAX_DIFF_LINES: Final = 400
_MAX_DIFF_LINE_CHARACTERS: Final = 2000
_DIFF_LINE_KINDS: Final = {"+": "add", "-": "del"}  # by the first character
# The names of what decides about the rank of a hit. Those with "" are not shown.
_SIGNAL_LABELS: Final = {
    "rank": "",
    "rank_score": "Rank score, before scores are made to fall",
    "words": "Words of the query, compared with the best note",
    "phrases": "Adjacent words of the query",
    "meaning": "Similar meaning",
    "covered": "Share of the question that one passage covers",
    "named": "Share of the query that is the note's name",
    "dated": "Fit of the note's day to the time in the query",
    "matched": "Words that the note contains",
    "missing": "Words that it does not contain",
}
_MINUTE_LENGTH: Final = len("2026-11-28T09:30")


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of a diff, with the CSS class by which it is coloured: add, del or same."""

    kind: str
    text: str


def render_template(template: str, /, **values: Any) -> str:
    """Return the HTML that a template makes of some values.

    `template` is the name of a file in `templates/`. Raises jinja2's UndefinedError if the template
    uses a value that is missing.
    """
    return _environment().get_template(template).render(values)


def compile_templates() -> None:
    """Compile all templates, which otherwise happens when each is first used."""
    environment = _environment()
    for name in environment.list_templates():
        environment.get_template(name)


@cache
def _environment() -> Environment:
    """Return the environment of the templates, in which every value is escaped.

    It is made once per process.
    """
    # Imported for the first page, because the import would slow down the start of every server.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        autoescape=True,
        auto_reload=False,
        loader=PackageLoader("simplemem.web"),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters.update(
        last_part=_last_part,
        minute=_format_minute,
        seconds=_format_seconds,
        signal=_format_signal,
        signal_label=_label_of_signal,
    )
    environment.globals.update(
        canvas_url=canvas_url,
        diff_lines=_split_diff,
        edit_url=edit_url,
        graph_url=_graph_url,
        history_url=_history_url,
        image_url=_image_url,
        mark_words=mark_words,
        note_url=link_of,
        page_url=page_url,
        review_url=_review_url,
        static_url=static_url,
        tag_url=_tag_url,
    )
    return environment


def _history_url(prefix: str, name: str) -> str:
    """Return the path of the history of a note."""
    return page_url(prefix, "history", name)


def _review_url(prefix: str, version: str, query_string: str) -> str:
    """Return the path of the page of a change, with the filter of the inbox it is opened from."""
    path = f"{prefix}/review/{version}"
    return f"{path}?{query_string}" if query_string else path


def _graph_url(prefix: str, name: str) -> str:
    """Return the path of the graph around a note."""
    return f"{prefix}/graph?note={quote(name, errors='surrogateescape')}&depth=2"


def _image_url(prefix: str, path: str) -> str:
    """Return the path of an image of the vault, or "" for a file that is no image."""
    if media_type_of(path) is None:
        return ""
    return file_url(prefix, path)


def _tag_url(prefix: str, tag: str) -> str:
    """Return the path of the notes with a tag."""
    return f"{prefix}/tags/{quote(tag)}"


def _last_part(name: str) -> str:
    """Return the name of a note without its folder."""
    return name.rpartition("/")[2]


def _format_minute(timestamp: str | None) -> str:
    """Return the date and the minute of an ISO timestamp, or "" if there is none."""
    if timestamp is None:
        return ""
    return timestamp[:_MINUTE_LENGTH].replace("T", " ")


def _format_seconds(seconds: int | None) -> str:
    """Return a time in seconds since 1970 as a date and a minute in UTC, or "never" for None."""
    if seconds is None:
        return "never"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


def _label_of_signal(signal: str) -> str:
    """Return what the page calls a value that explains the rank of a hit.

    Returns "" for a value that is not shown. A name that is not known has spaces for underscores.
    """
    return _SIGNAL_LABELS.get(signal, signal.replace("_", " "))


def _format_signal(value: object) -> str:
    """Return a value that explains the rank of a hit as text: a number, a text or several texts.

    A number has three digits. Several texts have commas between them; an empty list is "none".
    """
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, float):
        return f"{value:.3g}"
    return str(value)


def _split_diff(diff: str | None) -> list[DiffLine]:
    """Return the first 400 lines of a diff, each cut to 2000 characters; [] if there is none.

    A whole note may be one line, and a page shows many diffs.
    """
    if diff is None:
        return []

    diff_lines = []
    for line in diff.splitlines()[:_MAX_DIFF_LINES]:
        kind = _DIFF_LINE_KINDS.get(line[:1], "same")
        diff_lines.append(DiffLine(kind, line[:_MAX_DIFF_LINE_CHARACTERS]))
    return diff_lines
