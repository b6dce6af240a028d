"""A proposed change as a note in plain Markdown, and the change that such a note describes. Pure.

docs/file-formats.md#proposals describes the note. It contains each new text byte for byte, so that
a proposal can be accepted when the agent that made it is long gone.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, Literal, cast, get_args

from simplemem.note.diff import LONG_DIFF, unified_diff
from simplemem.note.header import read_header
from simplemem.note.names import is_path, name_of
from simplemem.note.yaml_writer import render_header

PROPOSAL_TYPE: Final = "change-proposal"
"""The property `type` of a proposal."""

PROPOSING_TOOL: Final = "propose"
"""The tool with which the log records that a proposal was written."""

HIDDEN_REASON: Final = "it is a proposal that nobody has accepted yet"
"""Why search leaves a proposal out."""

Change = Literal["create", "update", "move", "delete"]
Decision = Literal["accept", "decline", ""]

_CHANGES: Final = get_args(Change)
_ID_DIGITS: Final = 8
_BOX: Final = re.compile(r"^[-*+] \[(?P<mark>.)\] (?P<decision>Accept|Decline)[ \t]*$")
_FENCE: Final = re.compile(r"^(?P<fence>~{4,})(?P<form>markdown|base64)(?P<flags>( [a-z-]+)*)$")
_TICKED: Final = "xX"
_BOM: Final = b"\xef\xbb\xbf"
# Dates that simplemem sets itself: a repeated call proposes the same text with another date.
_OWN_DATES: Final = re.compile(rb"^(?:created|modified):.*$", re.MULTILINE)


@dataclass(frozen=True)
class ProposedStep:
    """What one file is to become.

    `base` is the hash of the text that the change was made from; None if there was no file. Of a
    file that is created, it is the hash of the template to which text was added, if any. `data` are
    the new bytes of a file that is created or changed, and None for a move or a deletion.
    """

    change: Change
    path: str
    base: str | None = None
    new_path: str | None = None
    data: bytes | None = None


@dataclass(frozen=True)
class ProposedChange:
    """A change that an agent proposes: its steps, who proposes it, with which tool, and why.

    `session` and `sources` are those of the log. `when` is a time in UTC.
    """

    steps: tuple[ProposedStep, ...]
    who: str
    tool: str
    reason: str
    when: str
    session: str = ""
    sources: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The first digits of a hash, which a repeated call has too, though at another time."""
        digest = sha256(self.who.encode("utf-8", "surrogatepass"))
        for step in self.steps:
            data = _OWN_DATES.sub(b"", step.data or b"")
            parts = (step.change, step.path, step.base or "", step.new_path or "")
            digest.update("\0".join(parts).encode("utf-8", "surrogatepass"))
            digest.update(data)
        return digest.hexdigest()[:_ID_DIGITS]


def is_proposal(properties: Mapping[str, Any]) -> bool:
    """Return whether a note with these properties is a proposal."""
    return properties.get("type") == PROPOSAL_TYPE


# -- writing


def describe_step(step: ProposedStep) -> str:
    """Return what a step does in a few words, such as "update decisions/database"."""
    name = name_of(step.path)
    if step.new_path is not None:
        return f"{step.change} {name} to {name_of(step.new_path)}"
    return f"{step.change} {name}"


def format_proposal(proposal: ProposedChange, bases: Mapping[str, bytes]) -> str:
    """Return the text of the note for a proposal.

    `bases` has the bytes of the files that it changes, by their paths.
    """
    steps = proposal.steps
    properties: dict[str, object] = {
        "type": PROPOSAL_TYPE,
        "target": _one_or_all([step.path for step in steps]),
        "change": _one_or_all([step.change for step in steps]),
        "base": _one_or_all([step.base or "" for step in steps]),
    }
    if any(step.new_path for step in steps):
        properties["new_path"] = _one_or_all([step.new_path or "" for step in steps])
    properties |= {
        "who": proposal.who,
        "tool": proposal.tool,
        "reason": proposal.reason,
        "when": proposal.when,
    }
    if proposal.session:
        properties["session"] = proposal.session
    if proposal.sources:
        properties["sources"] = list(proposal.sources)

    parts = [
        f"{render_header(properties)}\n- [ ] Accept\n- [ ] Decline\n",
        "Tick one of the boxes. A text between two lines of `~` may be edited first.\n",
    ]
    parts += [_format_step(step, bases.get(step.path)) for step in steps]
    return "\n".join(parts)


def _one_or_all(values: Sequence[str]) -> str | list[str]:
    """Return the only value, or all of them as a list."""
    return values[0] if len(values) == 1 else list(values)


def _format_step(step: ProposedStep, base: bytes | None) -> str:
    """Return the section of a step: the differences for a person, and the new text to write."""
    heading = describe_step(step)
    section = f"## {heading[0].upper()}{heading[1:]}\n"
    if step.data is None:
        return section
    if base is not None:
        diff = unified_diff(base, step.data, ("now", "proposed"), LONG_DIFF)
        fence = _fence_around(diff, "`", 3)
        if diff:
            section += f"\n{fence}diff\n{_with_final_newline(diff)}{fence}\n\nThe new text:\n"
    return f"{section}\n{_encode(step.data)}"


def _encode(data: bytes) -> str:
    """Return the bytes of a file as a block of code: as text if that keeps all of them."""
    block = _encode_as_text(data)
    if block is not None and _decode(block) == data:
        return block
    encoded = base64.encodebytes(data).decode("ascii")
    return f"~~~~base64\n{encoded}~~~~\n"


def _encode_as_text(data: bytes) -> str | None:
    """Return a block with the bytes as text; None if they are not UTF-8."""
    flags = []
    if data.startswith(_BOM):
        flags.append("bom")
        data = data.removeprefix(_BOM)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    if "\r\n" in text:
        flags.append("crlf")
        text = text.replace("\r\n", "\n")
    if not text.endswith("\n"):
        flags.append("no-final-newline")
        text += "\n"
    fence = _fence_around(text, "~", 4)
    info = " ".join(["markdown", *flags])
    return f"{fence}{info}\n{text}{fence}\n"


def _fence_around(text: str, character: str, shortest: int) -> str:
    """Return a fence that is longer than any row of its character in a text."""
    rows = re.findall(f"{re.escape(character)}+", text)
    longest_row = max(map(len, rows), default=0)
    return character * max(shortest, longest_row + 1)


def _with_final_newline(text: str) -> str:
    """Return a text that ends with a line end."""
    return text if text.endswith("\n") else f"{text}\n"


# -- reading


def read_proposal(text: str) -> ProposedChange | None:
    """Return the change that a note proposes; None if it is no proposal, or a damaged one.

    A new text that a person has edited counts as it is now. Never raises.
    """
    header = read_header(text)
    properties = header.properties
    if header.problem is not None or not is_proposal(properties):
        return None

    targets = _texts_of(properties.get("target"))
    changes = _texts_of(properties.get("change"))
    bases = _texts_of(properties.get("base"), len(targets))
    new_paths = _texts_of(properties.get("new_path"), len(targets))
    if not targets or not len(targets) == len(changes) == len(bases) == len(new_paths):
        return None

    blocks = iter(_blocks_in(text[header.body_start :]))
    steps = []
    for target, change, base, new_path in zip(targets, changes, bases, new_paths, strict=True):
        needs_text = change in ("create", "update")
        block = next(blocks, None) if needs_text else None
        data = None if block is None else _decode(block)
        step = _read_step(target, change, base, new_path, data)
        if step is None:
            return None
        steps.append(step)

    return ProposedChange(
        steps=tuple(steps),
        who=_text_of(properties.get("who")),
        tool=_text_of(properties.get("tool")),
        reason=_text_of(properties.get("reason")),
        when=_text_of(properties.get("when")),
        session=_text_of(properties.get("session")),
        sources=tuple(_texts_of(properties.get("sources"))),
    )


def _read_step(
    path: str, change: str, base: str, new_path: str, data: bytes | None
) -> ProposedStep | None:
    """Return a step; None if it is not complete, or if one of its paths is malformed."""
    if change not in _CHANGES:
        return None
    needs_text = change in ("create", "update")
    if needs_text != (data is not None) or (change == "move") != bool(new_path):
        return None
    if not is_path(path) or (new_path and not is_path(new_path)):
        return None
    return ProposedStep(cast("Change", change), path, base or None, new_path or None, data)


def _texts_of(value: object, count: int = 0) -> list[str]:
    """Return the texts of a property, which is one or a list; `count` empty ones if it is absent.

    Values that Obsidian has turned into numbers become texts again.
    """
    if value is None:
        return [""] * count
    if isinstance(value, list):
        return [_text_of(item) for item in value]
    return [_text_of(value)]


def _text_of(value: object) -> str:
    """Return a value of a property as text; "" if there is none."""
    return "" if value is None else str(value)


def _blocks_in(body: str) -> list[str]:
    """Return the blocks of code with new texts, each with its fences."""
    blocks = []
    lines: list[str] = []
    fence = ""
    for line in body.split("\n"):
        if fence:
            lines.append(line)
            if line.rstrip("\r") == fence:
                blocks.append("\n".join(lines))
                fence = ""
            continue
        match = _FENCE.match(line.rstrip("\r"))
        if match is not None:
            fence = match["fence"]
            lines = [line]
    return blocks


def _decode(block: str) -> bytes | None:
    """Return the bytes of a file that a block of code contains; None if it is damaged."""
    first_line, _, rest = block.partition("\n")
    match = _FENCE.match(first_line.rstrip("\r"))
    if match is None:
        return None
    text = rest.rstrip("\r\n")
    text = text.removesuffix(match["fence"])

    if match["form"] == "base64":
        try:
            return base64.b64decode("".join(text.split()), validate=True)
        except (binascii.Error, ValueError):
            return None

    flags = match["flags"].split()
    if "no-final-newline" in flags:
        text = text.removesuffix("\n")
    if "crlf" in flags:
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    data = text.encode("utf-8", "surrogatepass")
    return _BOM + data if "bom" in flags else data


# -- the decision


def decision_in(text: str) -> Decision:
    """Return which box of a proposal is ticked; "" if none is, or both are."""
    ticked = {match["decision"].lower() for match in _boxes_in(text) if match["mark"] in _TICKED}
    return cast("Decision", ticked.pop()) if len(ticked) == 1 else ""


def _boxes_in(text: str) -> list[re.Match[str]]:
    """Return the boxes above the first heading."""
    body = text[read_header(text).body_start :]
    matches = []
    for line in body.split("\n"):
        if line.startswith("#"):
            break
        match = _BOX.match(line.rstrip("\r"))
        if match is not None:
            matches.append(match)
    return matches


def with_conflict(text: str, message: str) -> str:
    """Return the text of a proposal with empty boxes and a callout that says why it is open.

    A callout of an earlier conflict is replaced.
    """
    start = read_header(text).body_start
    before_heading, heading, sections = text[start:].partition("\n## ")
    lines = []
    for line in before_heading.split("\n"):
        if line.startswith(("> [!warning]", "> ")):
            continue
        if _BOX.match(line.rstrip("\r")):
            lines.append(f"{line[:3]} {line[4:]}")
        else:
            lines.append(line)
    body = "\n".join(lines).rstrip("\n")
    quoted = message.replace("\n", "\n> ")
    return f"{text[:start]}{body}\n\n> [!warning] Not accepted\n> {quoted}\n{heading}{sections}"
