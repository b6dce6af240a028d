"""Whether a note is private: its text then never leaves this machine, whoever makes vectors or ranks. Pure.

A person says so with the property `private: true`, the tag `private` (or one below it), or with a folder or pattern in
the setting `embed.private`. Where a header cannot be read nobody knows what it says, so its note is kept private too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal

from simplemem.note.names import compare_key
from simplemem.note.note import Note

Reason = Literal["rule", "property", "tag", "unreadable"]

_NOT_PRIVATE = frozenset(("", "false", "no", "off", "0", "null", "none", "~"))
_MEANT_AS_HEADER = re.compile(r"\s*---[ \t]*\r?\n(?:[^\n]*\n){0,40}?[\"']?private[\"']?[ \t]*:", re.IGNORECASE)


def private_reason(path: str, note: Note, rules: Sequence[str]) -> Reason | None:
    """Why a note is private, None when it is not. In doubt it is."""
    if private_by_rule(path, rules):
        return "rule"
    if note.problem is not None or (not note.header.properties and _MEANT_AS_HEADER.match(note.text)):
        return "unreadable"
    if _says_so(note.header.get("private")):
        return "property"
    if any(_is_private_tag(tag.name) for tag in note.tags):
        return "tag"
    return None


def private_by_rule(path: str, rules: Sequence[str]) -> bool:
    """Whether a rule keeps this path private: a folder (`journal/`), a note (`plans/will`), or a pattern with `*` and `?`
    of the whole path, where `*` crosses folders. Case and the way an accent is written do not count."""
    return any(_matches(compare_key(path), compare_key(rule.strip().replace("\\", "/"))) for rule in rules)


def _matches(path: str, rule: str) -> bool:
    rule = rule.removeprefix("./")
    bare = rule.strip("/")
    if not bare:
        return rule != ""  # "/" is the whole vault
    if any(sign in bare for sign in "*?"):
        if bare.startswith("**/") and _matches(path, bare.removeprefix("**/")):
            return True  # as elsewhere, it may stand for no folder at all
        bare = bare.replace("[", "[[]")  # brackets stand in names: only `*` and `?` mean more than themselves
        return fnmatchcase(path, bare) or fnmatchcase(path.removesuffix(".md"), bare) or fnmatchcase(path, f"{bare}/*")
    return path.startswith(f"{bare}/") or (not rule.endswith("/") and path in (bare, f"{bare}.md"))


def _says_so(value: Any) -> bool:
    """Anything but a clear no."""
    return value is not None and str(value).strip().casefold() not in _NOT_PRIVATE


def _is_private_tag(name: str) -> bool:
    name = name.casefold()
    return name == "private" or name.startswith("private/")
