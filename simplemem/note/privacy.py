"""Decide whether a note is private: its text is then not sent to remote services. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final

from simplemem.note.names import compare_key
from simplemem.note.note import Note

_NOT_PRIVATE: Final = frozenset(("", "false", "no", "off", "0", "null", "none", "~"))
# Frontmatter that was never closed, or begins a line too late, and names the property `private`.
_FAILED_PRIVATE_HEADER: Final = re.compile(
    r"\s*---[ \t]*\r?\n(?:[^\n]*\n){0,40}?[\"']?private[\"']?[ \t]*:", re.IGNORECASE
)


def is_private_by_rule(path: str, rules: Sequence[str]) -> bool:
    """Return whether one of the rules matches a path.

    A rule is a folder (`journal/`), a note or folder (`plans/will`), or a pattern for the whole
    path, in which `*` also matches across folders.
    """
    path_key = compare_key(path)
    rule_keys = (compare_key(rule.strip().replace("\\", "/")) for rule in rules)
    return any(_matches_rule(path_key, rule_key) for rule_key in rule_keys)


def _matches_rule(path: str, rule: str) -> bool:
    """Return whether a rule matches a path, both as compare keys."""
    rule = rule.removeprefix("./")
    bare_rule = rule.strip("/")
    if not bare_rule:
        return rule != ""  # "/" is the whole vault
    if "*" in bare_rule or "?" in bare_rule:
        return _matches_pattern(path, bare_rule)

    if path.startswith(f"{bare_rule}/"):
        return True
    names_only_folder = rule.endswith("/")
    return not names_only_folder and path in (bare_rule, f"{bare_rule}.md")


def _matches_pattern(path: str, pattern: str) -> bool:
    """Return whether a pattern matches a path, its name or one of its folders."""
    # As elsewhere, `**/` also stands for no folder at all.
    if pattern.startswith("**/") and _matches_rule(path, pattern.removeprefix("**/")):
        return True

    # Names may contain brackets, so only `*` and `?` are wildcards.
    pattern = pattern.replace("[", "[[]")
    return (
        fnmatchcase(path, pattern)
        or fnmatchcase(path.removesuffix(".md"), pattern)
        or fnmatchcase(path, f"{pattern}/*")
    )


def private_reason(path: str, note: Note, rules: Sequence[str]) -> str | None:
    """Return why a note is private: "rule", "unreadable", "property" or "tag"; None if it is not.

    The text of a private note is not sent to remote services. A note that cannot be read is
    private, because it may say so. The property `private` counts unless its value is a clear no.
    """
    if is_private_by_rule(path, rules):
        return "rule"

    if note.problem is not None:
        return "unreadable"
    if not note.header.properties and _FAILED_PRIVATE_HEADER.match(note.text):
        return "unreadable"

    value = note.header.get("private")
    if value is not None and str(value).strip().casefold() not in _NOT_PRIVATE:
        return "property"

    for tag in note.tags:
        top_level = tag.name.partition("/")[0]
        if top_level.casefold() == "private":
            return "tag"
    return None
