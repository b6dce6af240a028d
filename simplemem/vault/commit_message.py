"""What a commit of ours says: what was done, and as trailers who asked for it, with which tool, and why.

What is told comes from agents and from names of notes: it is cut, and nothing in it can pass for a line of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from simplemem.note.names import name_of
from simplemem.vault.log import Version

_MOST_LISTED = 30
_LONGEST_LINE = 300


def message(versions: Sequence[Version]) -> str:
    """What was done, and as trailers who asked, by which tool, and why."""
    did = list(dict.fromkeys(_did(version) for version in versions))
    paragraphs = [subject(versions)]
    if len(did) > 1:
        more = [f"- and {len(did) - _MOST_LISTED} more"] if len(did) > _MOST_LISTED else []
        paragraphs.append("\n".join([*(f"- {_line(each)}" for each in did[:_MOST_LISTED]), *more]))
    trailers = [
        *_trailers("Actor", (v.who for v in versions)),
        *_trailers("Tool", (v.tool for v in versions)),
        *_trailers("Reason", (v.reason for v in versions)),
        *_trailers("Version", (v.group for v in versions)),
    ]
    return "\n\n".join([*paragraphs, "\n".join(trailers)]) + "\n"


def subject(versions: Sequence[Version]) -> str:
    did = {_did(version) for version in versions}
    notes = {version.new_path or version.path for version in versions}
    return f"simplemem: {_line(did.pop(), 100) if len(did) == 1 else f'{len(notes)} notes changed'}"


def _did(version: Version) -> str:
    if version.new_path and version.new_path != version.path:
        return f"{version.op} {name_of(version.path)} to {name_of(version.new_path)}"
    return f"{version.op} {name_of(version.path)}"


def _trailers(key: str, values: Iterable[str]) -> list[str]:
    shown = [line for line in dict.fromkeys(_line(value) for value in values) if line]
    return [f"Simplemem-{key}: {line}" for line in shown[:_MOST_LISTED]]


def _line(text: str, most: int = _LONGEST_LINE) -> str:
    """One line of printable text: what could hold two lines could hold a trailer of somebody else's."""
    words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return words if len(words) <= most else words[: most - 1] + "…"
