"""Decide who may have a note: claims of scopes, and private notes. Pure.

The text of a private note is not sent to remote services.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from simplemem.errors import Invalid, TooLong
from simplemem.note.header import Properties
from simplemem.note.names import compare_key, legal_name
from simplemem.note.note import Note
from simplemem.note.passages import text_hash

# -- private notes

_NOT_PRIVATE: Final = frozenset(("", "false", "no", "off", "0", "null", "none", "~"))
# Frontmatter that was never closed, or begins a line too late, and names the property `private`.
_FAILED_PRIVATE_HEADER: Final = re.compile(
    r"\s*---[ \t]*\r?\n(?:[^\n]*\n){0,40}?[\"']?private[\"']?[ \t]*:", re.IGNORECASE
)


def is_private_by_rule(path: str, rules: Sequence[str]) -> bool:
    """Return whether one of the rules matches a path, in any case of letters.

    A rule is a folder (`journal/`), a note or folder (`plans/will`), or a pattern with `*` or `?`
    for the whole path or a folder of it; both also match slashes. "/" matches every path, "" none.
    """
    path_key = compare_key(path)
    rule_keys = (compare_key(rule.strip().replace("\\", "/")) for rule in rules)
    return any(_matches_rule(path_key, rule_key) for rule_key in rule_keys)


def _matches_rule(path: str, rule: str) -> bool:
    """Return whether a rule matches a path, both as compare keys.

    Its forms are those of `is_private_by_rule`.
    """
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
    """Return whether a pattern matches a path, the path without `.md`, or one of its folders.

    `*` and `?` also match slashes. Brackets in the pattern are ordinary characters.
    """
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
    """Return why a note is private: "rule", "unreadable", "property" or "tag".

    Returns None if it is not. The text of a private note is not sent to remote services. A note
    that cannot be read is private, because it may say so. The property `private` counts unless its
    value is a clear no; so does the tag `private`, and those below it.
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


# -- scopes

SCOPED_FOLDERS: Final = ("atoms", "documents")
DEFAULT_SCOPE: Final = "default"

_FOLDER_OF_TYPE: Final = {"atom": "atoms", "document": "documents"}
_FILES_FOLDER: Final = "files"  # below `documents/<folder>/`: the originals of a scope's documents

_MAX_SCOPE_CHARACTERS: Final = 200
_MAX_QUOTED_CHARACTERS: Final = 60
_MAX_PREFIX_CHARACTERS: Final = 40  # of a part of a scope, before its hash
# Control characters, surrogates, and the separators of lines and paragraphs.
_FORBIDDEN_CATEGORIES: Final = frozenset(("Cc", "Cs", "Zl", "Zp"))
_HASHED_FOLDER: Final = re.compile(r" [0-9a-f]{16}\Z")  # as `_folder_of_part` makes it


@dataclass(frozen=True)
class _Claim:
    """The scope that the frontmatter of a fact or document names."""

    scope: str  # in NFC, with any blanks around it
    folder: str  # the folder of its kind: `atoms` or `documents`

    @property
    def sample_path(self) -> str:
        """Return the path of a note in the folder of the claimed scope."""
        return f"{self.folder}/{folder_of(self.scope.strip())}/note.md"


def check_scope(scope: str) -> str:
    """Return the scope in NFC. Raise Invalid or TooLong if it cannot be one.

    It must have 1 to 200 characters, no spaces around it and no control characters. Does not look
    whether anything belongs to it.
    """
    name = _to_nfc(scope)
    if len(name) > _MAX_SCOPE_CHARACTERS:
        raise TooLong(f"the scope has {len(name)} characters; the limit is {_MAX_SCOPE_CHARACTERS}")

    categories = set(map(unicodedata.category, name))
    has_forbidden = not categories.isdisjoint(_FORBIDDEN_CATEGORIES)
    if not name or name != name.strip() or has_forbidden:
        raise Invalid(
            f"{scope[:40]!r} is not a valid scope",
            hint="Give 1 to 200 characters without spaces around them.",
        )
    return name


def folder_of(scope: str) -> str:
    """Return the folder of a scope, relative to `atoms/` or `documents/`.

    Each part between slashes becomes a legal folder name, with a hash where its letters had to
    change. Two scopes share a folder only if they differ in nothing but letter case.
    """
    return "/".join(_folder_of_part(part) for part in scope.split("/"))


def scope_of(path: str, named: str | None) -> str:
    """Return the scope of a fact or document, by its path and what its frontmatter names.

    `named` is the scope that the frontmatter names, if any. In a scoped folder, the folder decides.
    Its name cannot spell every scope (`a:b` has the folder `a-b <hash>`), so the named scope is
    returned if the folder is that scope's own; any other named scope is ignored. A note elsewhere,
    or directly in `atoms/` or `documents/`, belongs to the scope that it names, else to
    `DEFAULT_SCOPE`. `check_scope_is_own` keeps a writer from naming a scope whose folder is hidden
    from the writer.
    """
    scope = _to_nfc(named or "")
    folder = _scoped_folder(path)
    if not folder:
        return scope or DEFAULT_SCOPE

    if scope and compare_key(folder_of(scope)) == compare_key(folder):
        return scope
    return folder


def check_scope_is_own(
    path: str,
    old: Properties,
    new: Properties,
    hides: Callable[[str], bool],
) -> None:
    """Raise Invalid if a change of frontmatter names a scope that is not the writer's.

    `old` and `new` are the properties of the note before and after the change. `hides` returns
    whether a path is hidden from the writer. In a scoped folder, only the scope of that folder may
    be named, in exactly its spelling. Elsewhere, only a scope may be named whose folder the writer
    sees. A scope that the note already names is accepted, so that the note stays editable.
    """
    claim = _read_claim(path, new)
    if claim is None or claim == _read_claim(path, old):
        return

    folder = _scoped_folder(path)
    if not folder:
        _check_visible(claim, hides)
    elif folder_of(claim.scope) != folder:
        note_folder = path.rpartition("/")[0]
        raise Invalid(
            f"the frontmatter names the scope {_quote(claim.scope)}, "
            f"but the note is in {note_folder}",
            hint="Leave `scope` out: the folder determines the scope.",
        )


def check_move_keeps_scope(
    old_path: str,
    new_path: str,
    properties: Properties,
    hides: Callable[[str], bool],
) -> None:
    """Raise Invalid if a move puts a note into a scope whose folder is hidden from the writer.

    `properties` are those of the note; `hides` returns whether a path is hidden from the writer. A
    move that leaves the note in its scope is accepted. So is one into a folder that decides the
    scope, whatever the frontmatter names.
    """
    claim = _read_claim(new_path, properties)
    if claim is None:
        return

    named = claim.scope.strip()
    old_claim = _read_claim(old_path, properties)
    is_in_named_scope = scope_of(new_path, named) == named
    was_in_named_scope = old_claim == claim and scope_of(old_path, named) == named
    if is_in_named_scope and not was_in_named_scope:
        _check_visible(claim, hides)


def _check_visible(claim: _Claim, hides: Callable[[str], bool]) -> None:
    """Raise Invalid if the folder of a claimed scope is hidden.

    A blank scope is the default one, and is always accepted.
    """
    if claim.scope.strip() and hides(claim.sample_path):
        raise Invalid(
            f"the frontmatter names the scope {_quote(claim.scope)}, "
            "which is hidden from this token or server",
            hint="Leave `scope` out, or name your own.",
        )


def _read_claim(path: str, properties: Properties) -> _Claim | None:
    """Return the scope that a fact or document names; None if it names none.

    The property `type` says whether the note is a fact or a document; without it, the top folder
    does. Returns None for any other note.
    """
    scope = _plain_text(properties.get("scope"))
    note_type = _plain_text(properties.get("type")).strip().casefold()
    if note_type:
        folder = _FOLDER_OF_TYPE.get(note_type, "")
    else:
        folder = path.partition("/")[0]

    if not scope or folder not in SCOPED_FOLDERS:
        return None
    return _Claim(_to_nfc(scope), folder)


def _plain_text(value: object) -> str:
    """Return a property as `str()` gives it, not stripped; "" for None, a list or a map."""
    if value is None or isinstance(value, (Mapping, list)):
        return ""
    return str(value)


def _scoped_folder(path: str) -> str:
    """Return in NFC the folder of a note below `atoms/` or `documents/`, without that folder.

    Returns "" for a note elsewhere, or directly in `atoms/` or `documents/`.
    """
    folder = path.rpartition("/")[0]
    top_folder, _, scoped_folder = folder.partition("/")
    if top_folder not in SCOPED_FOLDERS:
        return ""
    return _to_nfc(scoped_folder)


def _folder_of_part(part: str) -> str:
    """Return one part of a scope as a folder: the part itself, or its beginning and a hash.

    The hash keeps parts apart whose legal names are the same, and those that look like a folder
    that this module makes: `files`, or one with a hash.
    """
    name = legal_name(part)
    is_files_folder = compare_key(name) == _FILES_FOLDER
    is_hashed_folder = _HASHED_FOLDER.search(name) is not None
    if name == part and not is_files_folder and not is_hashed_folder:
        return name

    prefix = legal_name(part[:_MAX_PREFIX_CHARACTERS])
    digest = text_hash(part).hex()
    return f"{prefix} {digest[:16]}"


def _to_nfc(text: str) -> str:
    """Return a text in the normal form NFC of Unicode."""
    return unicodedata.normalize("NFC", text)


def _quote(scope: str) -> str:
    """Return a scope for a message: quoted, and cut if it is long."""
    return repr(scope[:_MAX_QUOTED_CHARACTERS])
