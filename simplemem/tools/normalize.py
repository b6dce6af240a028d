"""Argument names: what models write instead, parts passed by themselves, and messages about errors.

A tool declares which parts it puts together (`tool(…, gather=gather_edits)`). An argument
declares its other names (`aliases("limit", "topK")`). The adapter of a tool declares which names
the tool accepts besides: those in `SYNONYMS`, if it declares none of its own.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic import ValidationError

from simplemem.errors import Invalid
from simplemem.note.tag_requests import parse_tag_request
from simplemem.tools.arguments import NEW_TEXT_NAMES, OLD_TEXT_NAMES, from_json, read_tags
from simplemem.tools.schema import Fields, names_of

Passed = dict[str, Any]
Gather = Callable[[Passed], Passed]
"""Puts parts of one argument together that were passed by themselves. It may raise Invalid."""

Synonyms = Mapping[str, frozenset[str]]
"""Argument -> what models write in its place, in lower case and without `_` and `-`."""

SYNONYMS: Final[Synonyms] = {
    "query": frozenset({"q", "text", "question", "search", "searchquery", "keywords"}),
    "tags": frozenset({"tag", "labels"}),
    "prefix": frozenset({"folder", "path", "directory"}),
    "limit": frozenset({"topk", "k", "n", "maxresults", "count"}),
    "name": frozenset(
        {
            "path",
            "id",
            "memoryid",
            "title",
            "identifier",
            "note",
            "memory",
            "memoryname",
            "filename",
            "file",
        }
    ),
    "new_name": frozenset({"destination", "newpath", "newtitle", "target", "to"}),
    "content": frozenset({"text", "body", "markdown"}),
    "append": frozenset({"text", "body", "markdown"}),
    "metadata": frozenset({"frontmatter", "properties"}),
    "if_sha256": frozenset({"sha256", "hash"}),
    "since": frozenset({"after", "from"}),
    "until": frozenset({"before", "to"}),
}

_PROPERTIES: Final = ("title", "description", "type", "tags", "aliases")
_EDIT_PARTS: Final = dict.fromkeys(OLD_TEXT_NAMES, "old") | dict.fromkeys(NEW_TEXT_NAMES, "new")
_MAX_KEY_LENGTH: Final = 40

# A part of the type of an error of pydantic, and its message. The first part that matches counts.
_MESSAGES: Final = {
    "missing": "is missing",
    "extra": "is unknown",
    "greater": "must be at least {ge}",
    "less": "must be at most {le}",
    "too_short": "must not be empty",
    "too_long": "is longer than {max_length}",
    "pattern": "must be a sha256, or at least its first 12 digits",
    "literal": "must be {expected}",
    "value": "{error}",
    "string": "must be a string",
    "bool": "must be true or false",
    "int": "must be an integer",
    "float": "must be a number",
    "list": "must be a list",
    "dict": "must be an object",
    "model": "must be an object",
}


def normalize_arguments(
    fields: Fields,
    arguments: Mapping[str, Any],
    gather: Gather | None = None,
    synonyms: Synonyms = SYNONYMS,
) -> Passed:
    """Return arguments under the names that a tool lists, without those that are null.

    `fields` are the arguments of the tool; without any, {} is returned. `synonyms` has, by the name
    of an argument, what models write in its place. `gather` gets the arguments before they are
    renamed. Raises Invalid if a name is unknown or ambiguous, or if an argument is passed twice
    with different values; `gather` may raise it too.
    """
    if not fields:
        return {}  # A tool without arguments accepts any: some clients cannot send none.

    names = _ArgumentNames(fields, synonyms)
    passed = {key: value for key, value in arguments.items() if value is not None}
    if "tag" in passed and "tag" not in names.listed:
        passed["tag"] = _single_tag(passed["tag"])
    if gather is not None:
        passed = gather(passed)

    normalized: Passed = {}
    for key, value in passed.items():
        name = names.resolve(key)
        if normalized.setdefault(name, value) != value:
            message = f"{name!r} is given twice, once as {key[:_MAX_KEY_LENGTH]!r}"
            raise Invalid(message, hint="Pass it once.")
    return normalized


class _ArgumentNames:
    """The names that the arguments of one tool are listed under, and the others that they have."""

    def __init__(self, fields: Fields, synonyms: Synonyms) -> None:
        """Take the names from the arguments of a tool, `fields`."""
        self._synonyms = synonyms
        self._listed_of: dict[str, str] = {}
        for field, (hint, _) in fields.items():
            names = names_of(field, hint)
            for name in names:
                self._listed_of[_bare(name)] = names[0]
        self.listed = list(dict.fromkeys(self._listed_of.values()))

    def resolve(self, key: str) -> str:
        """Return the listed name of an argument, by any name that a client passed.

        Raises Invalid, with the names that may be meant, if it is unknown or has several meanings.
        """
        bare_key = _bare(key)
        if bare_key in self._listed_of:
            return self._listed_of[bare_key]

        candidates = [
            name for name in self.listed if bare_key in self._synonyms.get(name, frozenset())
        ]
        if len(candidates) == 1:
            return candidates[0]

        suggestions = candidates or self._similar(bare_key)
        if key in _PROPERTIES and "metadata" in self.listed:
            suggestions = [f'metadata={{"{key}": …}}']
        hint = f"The arguments are {', '.join(self.listed)}."
        if suggestions:
            hint = f"Did you mean {' or '.join(dict.fromkeys(suggestions))}? {hint}"
        raise Invalid(f"no argument {key[:_MAX_KEY_LENGTH]!r}", hint=hint)

    def _similar(self, bare_key: str) -> list[str]:
        """Return the listed names of at most three arguments that are spelt nearly like a name.

        `bare_key` is the name as `_bare` returns it. Returns [] if none is.
        """
        matches = difflib.get_close_matches(bare_key, self._listed_of)
        return [self._listed_of[match] for match in matches]


def gather_metadata(passed: Passed) -> Passed:
    """Return arguments with properties moved into `metadata`.

    If no other argument names the note, the title does, and stays where it is. The arguments are
    returned unchanged if `metadata` is no object. Raises Invalid if a property is passed twice with
    different values.
    """
    metadata = from_json(passed.get("metadata") or {})
    if not isinstance(metadata, Mapping):
        return passed  # validation refuses it

    gathered = dict(passed)
    if "tag" in gathered and "tags" not in gathered:
        gathered["tags"] = gathered.pop("tag")

    properties = {}
    for key in _movable_properties(passed):
        if key in gathered:
            properties[key] = gathered.pop(key)
    for key, value in properties.items():
        if metadata.get(key, value) != value:
            raise Invalid(f"{key!r} is given twice, once in metadata", hint="Pass it once.")

    if properties:
        gathered["metadata"] = {**metadata, **properties}
    return gathered


def _movable_properties(passed: Passed) -> list[str]:
    """Return the properties that belong into `metadata`: all but a title that names the note."""
    names = SYNONYMS["name"] | {"name"}
    other_keys = [key for key in passed if key != "title"]
    has_name = any(_bare(key) in names for key in other_keys)
    return [key for key in _PROPERTIES if has_name or key != "title"]


def gather_edits(passed: Passed) -> Passed:
    """Return arguments in which an old and a new text, passed by themselves, are one of `edits`.

    They are put after the edits that were passed. Without such a text, the arguments are returned
    unchanged.
    """
    edit = {}
    gathered = {}
    for key, value in passed.items():
        if key in _EDIT_PARTS:
            edit[_EDIT_PARTS[key]] = value
        else:
            gathered[key] = value
    if not edit:
        return passed

    edits = from_json(gathered.get("edits", []))
    if not isinstance(edits, list):
        edits = [edits]
    gathered["edits"] = [*edits, edit]
    return gathered


def gather_tag_changes(passed: Passed) -> Passed:
    """Return arguments in which tags to `add` and to `remove` are one map, `tags`.

    They are passed beside `tags` or within. A tag to remove has the value None. Without them, the
    arguments are returned unchanged. Raises Invalid for tags that cannot be read.
    """
    tags = read_tags(passed.get("tags"))
    is_nested = isinstance(tags, Mapping) and bool(tags) and tags.keys() <= {"add", "remove"}
    source = tags if is_nested else passed

    changes = {}
    for key in ("add", "remove"):
        if source.get(key):
            changes[key] = parse_tag_request(read_tags(source[key]))
    if not changes:
        return passed

    requested: dict[str, Any] = {}
    if not is_nested:
        requested.update(parse_tag_request(tags))
    requested.update(changes.get("add", {}))
    for key, value in changes.get("remove", {}).items():
        tag = key if value is True else f"{key}/{value}"
        requested[tag] = None

    gathered = {key: value for key, value in passed.items() if key not in changes}
    gathered["tags"] = requested
    return gathered


def describe_errors(error: ValidationError) -> dict[tuple[str, str], None]:
    """Return the place and the message of each error, as the keys of a dict, in their order.

    Each pair occurs once. The place is the name of the argument, with dots before parts of it. A
    message never contains the value of the argument: it may be a note.
    """
    described: dict[tuple[str, str], None] = {}
    for details in error.errors(include_url=False, include_input=False):
        place = ".".join(str(part) for part in details["loc"])
        described[place, _message_of(details["type"], details.get("ctx", {}))] = None
    return described


def _message_of(error_type: str, context: Mapping[str, Any]) -> str:
    """Return the message for an error of pydantic; "is invalid" for an unknown type.

    `context` is what pydantic says about the error, such as the bound that a number exceeds.
    """
    for part, message in _MESSAGES.items():
        if part in error_type:
            return message.format(**context)
    return "is invalid"


def _single_tag(tag: object) -> object:
    """Return one tag as a list, so that its spaces do not separate tags.

    A text with a comma, which separates tags, is returned as it is, and so is a value that is no
    text.
    """
    text = from_json(tag)
    if isinstance(text, str) and "," not in text:
        return [text]
    return tag


def _bare(name: str) -> str:
    """Return a name without `_` and `-`, and in lower case, because models vary these."""
    return name.replace("_", "").replace("-", "").casefold()
