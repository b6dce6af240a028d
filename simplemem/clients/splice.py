"""Reads, adds and removes entries of a client's configuration file. Every other byte stays.

The new text is parsed again and must contain the expected entries; otherwise nothing is changed.
The files are JSON with comments, TOML or YAML: each form has a module with `read`, `put` and
`remove`. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from simplemem.clients import json_entries, toml_entries, yaml_entries
from simplemem.errors import Unreadable
from simplemem.note.header import RefusedError

Entry = Mapping[str, Any]
_BOM = "\ufeff"


class _Form(Protocol):
    """A form of configuration files: how to read one, put an entry in, and remove one.

    The modules `json_entries`, `toml_entries` and `yaml_entries` are such forms. They edit texts
    that `read` has accepted.
    """

    def read(self, text: str) -> object:
        """Return the data of a file: a map if it has settings.

        Raises ValueError or RefusedError if it is not valid.
        """

    def put(self, text: str, key: str, name: str, entry: Entry) -> str:
        """Return a valid text with an entry below a key, in place of one of that name."""
        ...

    def remove(self, text: str, key: str, name: str) -> str:
        """Return a valid text without an entry below a key. It must have this entry."""
        ...


_FORMS: Mapping[str, _Form] = {
    "json": json_entries,
    "toml": toml_entries,
    "yaml": yaml_entries,
}


def entries(form: str, text: str, key: str) -> dict[str, Any]:
    """Return the entries below a key of the file, by name; none if the key is missing or null.

    `form` is json, toml or yaml. Raises Unreadable if the file is not valid, or if the value of the
    key is not a map.
    """
    servers = _read(form, text.removeprefix(_BOM)).get(key)
    if servers is None:
        return {}
    if not isinstance(servers, dict):
        raise Unreadable(
            f"{key!r} is not a map of servers",
            hint="Fix the file in an editor first.",
        )
    return servers


def put(form: str, text: str, key: str, name: str, entry: Entry) -> str:
    """Return the text with an entry below a key, which replaces the one of that name.

    The same text if it has this entry already. Raises Unreadable if the file is not valid or cannot
    be edited safely.
    """
    servers = entries(form, text, key)
    if servers.get(name) == entry:
        return text

    bom, plain = _split_bom(text)
    new_text = _FORMS[form].put(plain, key, name, entry)
    _check_result(form, plain, new_text, key, {**servers, name: entry})
    return bom + new_text


def remove_entry(form: str, text: str, key: str, name: str) -> str:
    """Return the text without an entry below a key; the same text if there is none of the name.

    Raises Unreadable if the file is not valid or cannot be edited safely.
    """
    servers = entries(form, text, key)
    if name not in servers:
        return text

    del servers[name]
    bom, plain = _split_bom(text)
    new_text = _FORMS[form].remove(plain, key, name)
    _check_result(form, plain, new_text, key, servers)
    return bom + new_text


def is_put_into(form: str, text: str, key: str, name: str, original: str) -> bool:
    """Return whether `text` is `original` with nothing added but an entry of that name.

    False if `original` has an entry of that name itself. What the entry contains does not count.
    Raises Unreadable if one of them is not valid or cannot be edited safely.
    """
    if name in entries(form, original, key):
        return False

    # Both texts are compared as they are after an entry was added and removed again: adding the
    # first entry also adds what is around it.
    with_entry = put(form, original, key, name, {"command": ""})
    return remove_entry(form, text, key, name) == remove_entry(form, with_entry, key, name)


def _split_bom(text: str) -> tuple[str, str]:
    """Return the byte order mark, or "", and the text after it."""
    plain = text.removeprefix(_BOM)
    bom = text[: len(text) - len(plain)]
    return bom, plain


def _check_result(form: str, old_text: str, new_text: str, key: str, servers: Entry) -> None:
    """Raise Unreadable unless the new text has the data of the old one, with these servers.

    The servers are the map below `key`. A missing map counts as an empty one.
    """
    expected_data = _read(form, old_text)
    expected_data[key] = servers

    unsafe = Unreadable(
        "simplemem cannot safely edit a file of this form",
        hint="Edit the file in an editor.",
    )
    try:
        new_data = _read(form, new_text)
    except Unreadable:
        raise unsafe from None
    new_data[key] = new_data.get(key) or {}
    if new_data != expected_data:
        raise unsafe


def _read(form: str, text: str) -> dict[str, Any]:
    """Return the data of a file, {} for an empty one.

    Raises Unreadable if it is not valid or not a map.
    """
    hint = "Fix the file in an editor first."
    try:
        data = _FORMS[form].read(text)
    except RefusedError as error:
        line = text.count("\n", 0, error.offset) + 1
        message = f"it is not valid {form.upper()}: {error.message} (line {line})"
        raise Unreadable(message, hint=hint) from error
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"it is not valid {form.upper()}: {error}", hint=hint) from error

    if data is None:
        return {}
    if not isinstance(data, dict):
        raise Unreadable(
            "it does not contain settings",
            hint="Check that this is the file of the client.",
        )
    return data
