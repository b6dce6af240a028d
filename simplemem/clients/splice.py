"""Entries of a client's configuration file: read, put in and removed. Every other byte of the file stays.

The result is read again and must say what was wanted, or nothing is changed. The files are JSON with comments,
TOML or YAML; each form has a module with `read`, `put` and `remove`. Pure.
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
    """A form of configuration files: how to read one, put an entry in, and remove one."""

    def read(self, text: str) -> object: ...

    def put(self, text: str, key: str, name: str, entry: Entry) -> str: ...

    def remove(self, text: str, key: str, name: str) -> str: ...


_FORMS: Mapping[str, _Form] = {
    "json": json_entries,
    "toml": toml_entries,
    "yaml": yaml_entries,
}


def entries(form: str, text: str, key: str) -> dict[str, Any]:
    """Return the entries below a key of the file; none if the key is missing.

    Raises Unreadable if the file is not valid, or if the value of the key is not a map.
    """
    servers = _read(form, text.removeprefix(_BOM)).get(key)
    if servers is None:
        return {}
    if not isinstance(servers, dict):
        raise Unreadable(
            f"{key!r} is not a map of servers", hint="Fix the file in an editor first."
        )
    return servers


def put(form: str, text: str, key: str, name: str, entry: Entry) -> str:
    """Return the text with an entry, which replaces the one of that name.

    Raises Unreadable if the file is not valid or cannot be edited safely.
    """
    servers = entries(form, text, key)
    if servers.get(name) == entry:
        return text

    bom, plain = _split_bom(text)
    new_text = _FORMS[form].put(plain, key, name, entry)
    _check_result(form, plain, new_text, key, {**servers, name: entry})
    return bom + new_text


def remove_entry(form: str, text: str, key: str, name: str) -> str:
    """Return the text without the entry of that name; the same text if there is none.

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


def is_put_into(form: str, text: str, key: str, name: str, was: str) -> bool:
    """Return whether `text` is `was` with nothing added but an entry of that name."""
    if name in entries(form, was, key):
        return False
    with_entry = put(form, was, key, name, {"command": ""})
    return remove_entry(form, text, key, name) == remove_entry(form, with_entry, key, name)


def _split_bom(text: str) -> tuple[str, str]:
    """Return the byte order mark, or "", and the text after it."""
    plain = text.removeprefix(_BOM)
    bom = text[: len(text) - len(plain)]
    return bom, plain


def _check_result(form: str, old_text: str, new_text: str, key: str, servers: Entry) -> None:
    """Raise Unreadable unless the new text says what the old one says, with these servers."""
    try:
        new_data = _read(form, new_text)
    except Unreadable:
        new_data = None

    if new_data is not None:
        new_data[key] = new_data.get(key) or {}
        if new_data == {**_read(form, old_text), key: servers}:
            return
    raise Unreadable(
        "simplemem cannot safely edit a file of this form", hint="Edit the file in an editor."
    )


def _read(form: str, text: str) -> dict[str, Any]:
    """Return the data of a file. Raises Unreadable if it is not valid or not a map."""
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
            "it does not contain settings", hint="Check that this is the file of the client."
        )
    return data
