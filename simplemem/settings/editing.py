"""Change one setting in the text of a settings file. Everything else stays, byte for byte.

No file is written here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from simplemem.errors import Invalid, NotFound
from simplemem.settings.loading import SECRET_NAMES, check_is_setting, check_settings
from simplemem.settings.model import fields
from simplemem.settings.section import ProviderName, split_names

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

_BOM = "\ufeff"
_INTEGER = re.compile(r"[+-]?\d{1,18}")
_NUMBER = re.compile(r"[+-]?\d{1,18}(\.\d{1,18})?")
_BOOLEANS = {"true": True, "false": False}
_BOUNDS = {"ge": "at least", "gt": "more than", "le": "at most"}


def is_secret(key: str) -> bool:
    """Return whether the value of a setting must not be shown. `key` is its dotted name.

    It is then a key, or an address that may contain a password.
    """
    return _name_in_table(key) in SECRET_NAMES


def is_list(key: str) -> bool:
    """Return whether the value of a setting is a list. `key` is its dotted name.

    Raises NotFound for an unknown setting.
    """
    check_is_setting(key)
    kind, _ = _type_of(key)
    return get_origin(kind) is tuple


def with_setting(text: str, key: str, typed: str, file: Path, *, is_of_vault: bool) -> str:
    """Return the text of a settings file with one setting changed or added. Writes no file.

    `key` is the dotted name, `typed` the value as a user types it. `file` is for messages. With
    `is_of_vault`, the file is a vault's own. Raises NotFound if there is no such setting. Raises
    Invalid if the text is not TOML, if the value is not allowed, or if the changed file would
    contain what such a file may not set.
    """
    check_is_setting(key)
    value = _parse_value(key, typed)
    document = _parse_document(text, file)

    _check_value(key, value, typed, file)
    _set_value(document, key, value)
    check_settings(document.unwrap(), file, is_of_vault=is_of_vault)
    return _text_of(document, text)


def without_setting(text: str, key: str, file: Path, *, is_of_vault: bool) -> str:
    """Return the text of a settings file without one setting. Writes no file.

    The arguments are those of `with_setting`. Raises NotFound if there is no such setting, or if
    the text does not contain it. Raises Invalid if the text is not TOML, or if the rest of it is
    not allowed in such a file.
    """
    check_is_setting(key)
    document = _parse_document(text, file)
    table = _table_of(document, key)
    name = _name_in_table(key)
    if name not in table:
        raise NotFound(
            f"{file} does not set {key}",
            hint="`simplemem config list` shows where each setting comes from.",
        )

    del table[name]
    check_settings(document.unwrap(), file, is_of_vault=is_of_vault)
    return _text_of(document, text)


def value_in(text: str, key: str, file: Path) -> Any:
    """Return the value of a setting in the text of a settings file; None if it is not set there.

    The value is not checked. Raises Invalid if the text is not TOML.
    """
    document = _parse_document(text, file)
    table = _table_of(document.unwrap(), key)
    return table.get(_name_in_table(key))


def allowed_values(key: str) -> str:
    """Return in words which values a setting can have.

    `key` is its dotted name. Raises KeyError for an unknown setting.
    """
    kind, bounds = _type_of(key)
    if get_origin(kind) is Literal:
        return ", ".join(get_args(kind))
    for annotation in bounds:
        if isinstance(annotation, ProviderName):
            return ", ".join([*annotation.built_in, *annotation.installed()])
    if kind is bool:
        return "true or false"
    if get_origin(kind) is tuple:
        return "a list, such as a/, b/"
    if is_secret(key):
        return 'a string, { env = "NAME" } or { path = "FILE" }'

    limits = [
        f"{words} {getattr(bound, name):g}"
        for bound in bounds
        for name, words in _BOUNDS.items()
        if hasattr(bound, name)
    ]
    return " ".join([_noun(kind), " and ".join(limits)]).strip()


def _noun(kind: object) -> str:
    """Return what the values of a type are called in words, such as "a whole number"."""
    kinds = get_args(kind) or (kind,)
    if int in kinds:
        return "a whole number"
    if float in kinds:
        return "a number"
    if Path in kinds:
        return "a path"
    return "a string"


def _type_of(key: str) -> tuple[object, Iterable[object]]:
    """Return the type of a setting as pydantic has it, and the bounds of its value.

    Raises KeyError for an unknown setting.
    """
    field = dict(fields())[key]
    return field.annotation, field.metadata


# The document


def _parse_document(text: str, file: Path) -> TOMLDocument:
    """Parse the text of a settings file with tomlkit. Raises Invalid if it is not TOML."""
    import tomlkit
    from tomlkit.exceptions import ParseError

    try:
        return tomlkit.parse(text.removeprefix(_BOM))
    except ParseError as error:
        raise Invalid(
            f"{file} is not valid TOML: {error}", hint="Fix it in an editor first."
        ) from error


def _text_of(document: TOMLDocument, old_text: str) -> str:
    """Return the text of a document, with the byte order mark and line endings of `old_text`."""
    import tomlkit

    text = tomlkit.dumps(document)
    if "\r\n" in old_text:
        text = re.sub(r"(?<!\r)\n", "\r\n", text)
    if old_text.startswith(_BOM):
        text = _BOM + text
    return text


def _name_in_table(key: str) -> str:
    """Return the name of a setting in its table: the last part of the dotted name."""
    return key.rpartition(".")[2]


def _table_of(document: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the table of a document for a dotted name; an empty one if the document has none."""
    table = document
    for name in key.split(".")[:-1]:
        inner = table.get(name)
        if not isinstance(inner, dict):
            return {}
        table = inner
    return table


def _set_value(document: TOMLDocument, key: str, value: object) -> None:
    """Set a dotted key in a document. A new key is written after the last key of its table.

    Missing tables are added; one replaces a value that is in its place. Comments after that last
    key stay below the new key: they usually belong to the next table.
    """
    import tomlkit
    from tomlkit.items import Table

    *table_names, name = key.split(".")
    table: Any = document
    for table_name in table_names:
        if not isinstance(table.get(table_name), Mapping):
            table[table_name] = tomlkit.table()
        table = table[table_name]

    if isinstance(value, dict):
        inline_table = tomlkit.inline_table()
        inline_table.update(value)
        value = inline_table
    is_new = name not in table
    if not is_new or not isinstance(table, Table):
        table[name] = value
        return

    # An item of the body without a key is a comment or a blank line.
    body = table.value.body
    comments = []
    while body and body[-1][0] is None:
        comments.append(body.pop())
    table[name] = value
    body.extend(reversed(comments))


# The value


def _check_value(key: str, value: object, typed: str, file: Path) -> None:
    """Raise Invalid, with the values that are allowed, if a setting cannot have this value.

    `typed` is quoted in the message, unless the setting is a secret.
    """
    try:
        check_settings(_nested(key, value), file, is_of_vault=False)
    except Invalid as error:
        shown_value = "" if is_secret(key) else f" {typed!r}"
        raise Invalid(
            f"{key} cannot have the value{shown_value}", hint=f"Allowed: {allowed_values(key)}."
        ) from error


def _nested(key: str, value: object) -> dict[str, Any]:
    """Return nested tables in which only the dotted key is set."""
    *table_names, name = key.split(".")
    table: dict[str, Any] = {name: value}
    for table_name in reversed(table_names):
        table = {table_name: table}
    return table


def _parse_value(key: str, typed: str) -> object:
    """Return the value that a user typed for a setting, with the type that it has in TOML.

    Text that is no value of the setting's type is returned as it is; the value is not checked here.
    """
    kind, _ = _type_of(key)
    kinds = get_args(kind) or (kind,)
    if typed.startswith(("{", "[")):
        return _parse_toml_value(typed)
    if get_origin(kind) is tuple:
        return split_names(typed)
    if bool in kinds:
        return _BOOLEANS.get(typed.lower(), typed)

    is_integer = _INTEGER.fullmatch(typed) is not None
    if is_integer and (int in kinds or float in kinds):
        return int(typed)
    if float in kinds and _NUMBER.fullmatch(typed):
        return float(typed)
    return typed


def _parse_toml_value(typed: str) -> object:
    """Return a table or list that a user typed as TOML; the text itself if it is not TOML."""
    import tomllib

    try:
        return tomllib.loads(f"value = {typed}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return typed
