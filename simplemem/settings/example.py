"""The sample settings file."""

from __future__ import annotations

import json

from simplemem.settings.model import SETTINGS

_INTRODUCTION = """\
## Settings of simplemem. Each line shows a default, or an example if the setting has none.
## To change a setting, remove the "# " before it and edit its value.
##
## Your own file is ~/.config/simplemem/config.toml. A vault can have a file too, \
.simplemem/config.toml.
## An option of a command overrides an environment variable (SIMPLEMEM_SEARCH_LIMIT for \
search.limit), which
## overrides the vault's file, which overrides your own. A path may begin with ~.
"""
_POLICY_NOTICES = {
    "no": " Not allowed in a vault's file.",
    "narrower": " A vault's file can only make it stricter.",
    "adds": " The lists of all files are combined.",
}


def example_config() -> str:
    """Return a settings file with every setting commented out: its default or an example."""
    lines = [_INTRODUCTION]
    section = ""
    for key, declaration in SETTINGS.items():
        table, _, name = key.rpartition(".")
        if table != section:
            section = table
            lines += ["", f"[{section}]"]

        meaning = declaration.meaning[:1].upper() + declaration.meaning[1:]
        notice = _POLICY_NOTICES.get(str(declaration.vault), "")
        lines.append(f"## {meaning}.{notice}")
        value = declaration.default
        if declaration.example is not None:
            value = declaration.example
        lines.append(f"# {name} = {_to_toml(value)}")
    return "\n".join(lines) + "\n"


def _to_toml(value: object) -> str:
    """Return a value of a setting as TOML on one line."""
    if isinstance(value, dict):
        items = [f"{key} = {json.dumps(item)}" for key, item in value.items()]
        return "{ " + ", ".join(items) + " }"
    return json.dumps(value)
