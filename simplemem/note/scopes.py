"""Scopes: whose statements and documents are whose, and the folder in which the notes of each scope lie. Pure.

A scope is the `user_id` or `container_tag` that a caller names. Its notes lie in `atoms/<folder>/` and
`documents/<folder>/`. The folder decides the scope of a note, because folders are what a token is
limited to: frontmatter can be written by anybody who may write the note.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any, Final

from simplemem.errors import Invalid, TooLong
from simplemem.note.names import compare_key, legal_name
from simplemem.note.passages import text_hash

SCOPED_FOLDERS: Final = ("atoms", "documents")
DEFAULT_SCOPE: Final = "default"

_SCOPED_TYPES: Final = ("atom", "document")

_MAX_SCOPE_LENGTH: Final = 200
_FORBIDDEN_CATEGORIES: Final = ("Cc", "Cs", "Zl", "Zp")  # control characters, surrogates, line separators
_HASHED_FOLDER: Final = re.compile(r" [0-9a-f]{16}\Z")


def check_scope(scope: str) -> str:
    """Return the scope in NFC. Raise Invalid or TooLong if it cannot be one."""
    name = unicodedata.normalize("NFC", scope)
    if len(name) > _MAX_SCOPE_LENGTH:
        raise TooLong(f"the scope has {len(name)} characters; {_MAX_SCOPE_LENGTH} are allowed")
    has_forbidden = any(unicodedata.category(character) in _FORBIDDEN_CATEGORIES for character in name)
    if not name or name != name.strip() or has_forbidden:
        raise Invalid(
            f"{scope[:40]!r} is no scope",
            hint="Give 1 to 200 characters without blanks around them.",
        )
    return name


def folder_of(scope: str) -> str:
    """Return the folder of a scope, relative to `atoms/` or `documents/`.

    Two scopes share a folder only if they differ in nothing but letter case.
    """
    return "/".join(_folder_of_part(part) for part in scope.split("/"))


def scope_of(path: str, named: str | None) -> str:
    """Return the scope of a note of statements or documents: the one its folder belongs to.

    A folder cannot spell every scope (`a:b` lies in `a-b <hash>`). So the scope that the frontmatter
    names counts if its folder is the note's own; any other scope in the frontmatter is ignored. Only a
    note that a person moved out of the scoped folders belongs to whatever scope it names.
    """
    scope = unicodedata.normalize("NFC", named or "")
    folder = _scoped_folder(path)
    if not folder:
        return scope or DEFAULT_SCOPE
    if scope and compare_key(folder_of(scope)) == compare_key(folder):
        return scope
    return unicodedata.normalize("NFC", folder)


def check_scope_is_own(
    path: str, before: Mapping[str, Any], after: Mapping[str, Any], hides: Callable[[str], bool]
) -> None:
    """Raise Invalid if a change of frontmatter puts a note into a scope that its writer has no part in.

    `before` and `after` are the properties of the note, and `hides` tells which paths the writer cannot
    see. In a scoped folder, only the scope of that folder may be named. Elsewhere, only a scope may be
    named whose folder the writer sees. What stood there before is let through: the note stays editable.
    """
    named = after.get("scope")
    kind = str(after.get("type") or "").casefold()
    is_unchanged = named == before.get("scope") and after.get("type") == before.get("type")
    if not isinstance(named, str) or kind not in ("", *_SCOPED_TYPES) or is_unchanged:
        return

    own_folder = _scoped_folder(path)
    named_folder = folder_of(unicodedata.normalize("NFC", named))
    if own_folder and named_folder != own_folder:
        raise Invalid(
            f"the frontmatter names the scope {named[:60]!r}, but the note lies in {path.rpartition('/')[0]}",
            hint="Leave `scope` out: the folder decides whose note it is.",
        )
    if not own_folder and kind and hides(f"{SCOPED_FOLDERS[0]}/{named_folder}/note.md"):
        raise Invalid(
            f"the frontmatter names the scope {named[:60]!r}, which is closed to this token or server",
            hint="Leave `scope` out, or name your own.",
        )


def _scoped_folder(path: str) -> str:
    """Return the folder of a note below `atoms/` or `documents/`, or "" elsewhere."""
    top, *folders = path.split("/")[:-1] or [""]
    return "/".join(folders) if top in SCOPED_FOLDERS else ""


def _folder_of_part(part: str) -> str:
    """Return one part of a scope as a folder: its very name, or its beginning and a hash of all of it."""
    name = legal_name(part)
    # `files` holds the originals of a scope's documents.
    if name == part and name != "files" and not _HASHED_FOLDER.search(name):
        return name
    return f"{legal_name(part[:40])} {text_hash(part).hex()[:16]}"
