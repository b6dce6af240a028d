"""What the renderer knows about a note and its vault besides the text of the note.

The process that renders has no access to the vault. The server therefore finds out where links lead
and which texts are embedded (`simplemem.web.note_context`), and sends it along as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple, Self

MAX_EMBED_DEPTH: Final = 3  # of embeds within embeds; deeper ones are links
MAX_EMBEDS: Final = 50  # in one page, so that embeds within embeds do not multiply


class Authorship(NamedTuple):
    """Who last changed some consecutive lines: from `line` to that of the next `Authorship`.

    `kind` is "human", "agent" or "unknown". `when` is a time in UTC; "" if it is not known.
    """

    line: int
    kind: str
    who: str
    when: str


@dataclass(frozen=True, slots=True)
class NoteContext:
    """Where the links of a note lead, and what it embeds.

    Attributes:
        path: The path of the note; "" if it is not known.
        first_line: The line of the file at which the rendered text begins.
        links: The path of the file that a link means, or None if there is no such file. The keys
            are the path of the note that has the link, and then the target of the link. A link that
            is absent here leads to the note that has its target as name.
        texts: The text of each embedded note, section or block, by `embed_key`.
        can_create: Whether the reader may create the note that an unresolved link names.
        authorship: Who changed the lines of the note, in their order; () to leave it out.
    """

    path: str = ""
    first_line: int = 1
    links: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    can_create: bool = False
    authorship: Sequence[Authorship] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the fields as JSON values, from which `from_json` makes an equal context."""
        return asdict(self) | {"authorship": [list(lines) for lines in self.authorship]}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Return the context that `as_json` returned as JSON values."""
        authorship = tuple(Authorship(*lines) for lines in values["authorship"])
        return cls(**{**values, "authorship": authorship})


def embed_key(path: str, subpath: str) -> str:
    """Return the key of an embedded text. `subpath` is `#Heading`, `#^block` or "".

    A path may contain `#`, so the two are separated by a character that no path contains.
    """
    return f"{path}\0{subpath.strip()}"
