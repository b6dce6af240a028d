"""Change one setting in the text of a settings file. Everything else in it stays, byte for byte. No file is written here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from simplemem.config import check_is_setting, check_settings, fields
from simplemem.errors import Invalid, NotFound

_SECRETS = frozenset({"api_key", "engine", "replica"})
_BOM = "\ufeff"


def is_secret(key: str) -> bool:
    """Whether the value of a setting must not be shown: a key, or an address that may contain a password."""
    return key.rpartition(".")[2] in _SECRETS


def is_list(key: str) -> bool:
    """Whether the value of a setting is a list. Raises NotFound if there is no such setting."""
    check_is_setting(key)
    kind, _ = _type_of(key)
    return get_origin(kind) is tuple


def with_setting(text: str, key: str, typed: str, file: Path, *, is_of_vault: bool) -> str:
    """Return the text of a settings file with one setting changed or added.

    Raises NotFound if there is no such setting, and Invalid if the text is not TOML, if the value is not allowed, or if
    the file is the vault's own and a vault may not set it.
    """
    check_is_setting(key)
    value = _parsed(key, typed)
    document = _document(text, file)

    _check_value(key, value, typed, file)
    _put(document, key, value)
    check_settings(document.unwrap(), file, is_of_vault=is_of_vault)
    return _text_of(document, text)


def without_setting(text: str, key: str, file: Path, *, is_of_vault: bool) -> str:
    """Return the text of a settings file without one setting.

    Raises NotFound if there is no such setting or if the file does not contain it, and Invalid if the text is not TOML
    or if the rest of it is not allowed.
    """
    check_is_setting(key)
    document = _document(text, file)
    table, name = _place_of(document, key)
    if name not in table:
        raise NotFound(
            f"{file} does not set {key}",
            hint="`simplemem config list` shows where each setting comes from.",
        )

    del table[name]
    check_settings(document.unwrap(), file, is_of_vault=is_of_vault)
    return _text_of(document, text)


def value_in(text: str, key: str, file: Path) -> Any:
    """Return the value that the text of a settings file gives a setting; None if it gives none.

    Raises Invalid if the text is not TOML.
    """
    table, name = _place_of(_document(text, file).unwrap(), key)
    return table.get(name)


def _document(text: str, file: Path) -> Any:
    """The text of a settings file as tomlkit has it. Raises Invalid if it is not TOML."""
    import tomlkit
    from tomlkit.exceptions import ParseError

    try:
        return tomlkit.parse(text.removeprefix(_BOM))
    except ParseError as error:
        raise Invalid(
            f"{file} is not valid TOML: {error}", hint="Fix it in an editor first."
        ) from error


def _text_of(document: Any, before: str) -> str:
    """The text of a changed document, with the byte order mark and the line endings of the text before."""
    import tomlkit

    changed = tomlkit.dumps(document)
    if "\r\n" in before:
        changed = re.sub(r"(?<!\r)\n", "\r\n", changed)
    return f"{_BOM}{changed}" if before.startswith(_BOM) else changed


def _place_of(document: Any, key: str) -> tuple[Any, str]:
    """The table that contains a dotted key, and the name in it. The table is empty if there is none."""
    *tables, name = key.split(".")
    table = document
    for each in tables:
        table = table.get(each)
        if not isinstance(table, Mapping):
            return {}, name
    return table, name


def _put(document: Any, key: str, value: Any) -> None:
    """Set a dotted key. A new one is written after the last key of its table, before comments that follow it."""
    import tomlkit
    from tomlkit.items import Table

    *tables, name = key.split(".")
    table = document
    for each in tables:
        if not isinstance(table.get(each), Mapping):
            table[each] = tomlkit.table()
        table = table[each]

    if isinstance(value, dict):
        inline = tomlkit.inline_table()
        inline.update(value)
        value = inline
    is_new = name not in table
    if not (is_new and isinstance(table, Table)):
        table[name] = value
        return
    body = table.value.body
    following = []
    while body and body[-1][0] is None:
        following.append(body.pop())
    table[name] = value
    body.extend(reversed(following))


def _check_value(key: str, value: Any, typed: str, file: Path) -> None:
    """Raise Invalid, with the values that are allowed, if a setting cannot have this value."""
    table: Any = value
    for name in reversed(key.split(".")):
        table = {name: table}
    try:
        check_settings(table, file, is_of_vault=False)
    except Invalid as error:
        shown = "" if is_secret(key) else f" {typed!r}"
        raise Invalid(
            f"{key} cannot have the value{shown}", hint=f"Allowed: {allowed_values(key)}."
        ) from error


def _parsed(key: str, typed: str) -> Any:
    """The value that was typed, with the type that it has in TOML: a text unless the setting is something else."""
    kind, _ = _type_of(key)
    kinds = get_args(kind) or (kind,)
    if typed.startswith(("{", "[")):
        return _parsed_toml(typed)
    if get_origin(kind) is tuple:
        return [each.strip() for each in typed.split(",") if each.strip()]
    if bool in kinds:
        return {"true": True, "false": False}.get(typed.lower(), typed)
    if int in kinds and re.fullmatch(r"[+-]?\d{1,18}", typed):
        return int(typed)
    if float in kinds and re.fullmatch(r"[+-]?\d{1,18}(\.\d{1,18})?", typed):
        return float(typed) if "." in typed else int(typed)
    return typed


def _parsed_toml(typed: str) -> Any:
    import tomllib

    try:
        return tomllib.loads(f"value = {typed}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return typed


def _type_of(key: str) -> tuple[Any, Iterable[Any]]:
    """The type of a setting, and the bounds of its value."""
    field = dict(fields())[key]
    return field.annotation, field.metadata


def allowed_values(key: str) -> str:
    """Which values a setting may have, in words."""
    kind, bounds = _type_of(key)
    if get_origin(kind) is Literal:
        return ", ".join(get_args(kind))
    if kind is bool:
        return "true or false"
    if get_origin(kind) is tuple:
        return "a list, such as a/, b/"
    if is_secret(key):
        return 'a string, { env = "NAME" } or { path = "FILE" }'
    words = {"ge": "at least", "gt": "more than", "le": "at most"}
    limits = [
        f"{words[name]} {getattr(bound, name):g}"
        for bound in bounds
        for name in words
        if hasattr(bound, name)
    ]
    kinds = get_args(kind) or (kind,)
    noun = (
        "a whole number"
        if int in kinds
        else "a number"
        if float in kinds
        else "a path"
        if Path in kinds
        else "a string"
    )
    return " ".join([noun, " and ".join(limits)]).strip()
