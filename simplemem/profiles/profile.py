"""A profile: the server that simplemem presents to a client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simplemem.profiles.references import resolve


@dataclass(frozen=True)
class Profile:
    """One kind of server: the tools that it shows, and what else a client knows it by.

    Text of the form "module:attribute" refers to an object that is imported when it is needed:
    listing the profiles imports no tools.

    Attributes:
        name: What `--profile` calls it.
        title: One line about it.
        default_groups: The tool groups that it shows, in their order. They may be of other
            profiles.
        tool_groups: The tool groups that it contributes, by name: "module:attribute" of a sequence
            of tools. `--tools` adds such a group to any profile.
        setting_groups: Tool groups that a setting adds to every profile, by the setting's dotted
            name. Only those of the built-in profiles count.
        examples: Command lines that `simplemem serve --help` shows. Only those of the built-in
            profiles are shown.
        order: Its place in lists of profiles; those with the same number are sorted by name.
        instructions_file: How to use the tools well, for models: a paragraph per block of lines.
            None if a client gets no instructions.
        known_as: The name and version of the graph memory server that it replaces. Such a server
            has one resource, the graph, and no prompts.
        vault: The folder that it works in if the user names none.
        vault_env: The variable that named the folder of the server that it replaces.
        file_env: The variable that named the graph file of that server. The vault lies beside the
            file, and takes it in.
        settings_env: Variables of that server by the setting that they set, if nothing else sets
            it.
        settings_reader: "module:function" that reads the settings file of that server. It is called
            with the working folder, the environment and the file of `--config` or None, and returns
            settings by dotted name.
        unread_variables: Variables of that server that simplemem ignores, with the reason or with
            what to set instead.
        has_users: Whether each call names the user that it is for. Resources and completion, which
            name none, then show no user's notes.
        port: The port over HTTP if none is given.
        health: Fields of that server's answer to `GET /health`.
        routes: "module:attribute" of that server's routes over HTTP: a mapping from "METHOD /path"
            to a `CompatibilityRoute`. Those of the built-in profiles are served with every profile.
    """

    name: str
    title: str
    default_groups: tuple[str, ...]
    tool_groups: Mapping[str, str] = field(default_factory=dict)
    setting_groups: Mapping[str, str] = field(default_factory=dict)
    examples: tuple[str, ...] = ()
    order: int = 1000
    instructions_file: Path | None = None
    known_as: tuple[str, str] | None = None
    vault: str = ""
    vault_env: str = ""
    file_env: str = ""
    settings_env: Mapping[str, str] = field(default_factory=dict)
    settings_reader: str = ""
    unread_variables: Mapping[str, str] = field(default_factory=dict)
    has_users: bool = False
    port: int = 8080
    health: Mapping[str, str] = field(default_factory=dict)
    routes: str = ""

    @property
    def instructions(self) -> str:
        """The text of `instructions_file`, one line per paragraph; "" if there is none."""
        if self.instructions_file is None:
            return ""

        from simplemem.tools.wording import read_for_models

        return read_for_models(self.instructions_file)

    def folder(self, env: Mapping[str, str]) -> Path | None:
        """Return the folder to serve if the user names none.

        Returns None if the nearest vault is to be served. The folder need not exist.
        """
        if self.vault:
            named = Path(env.get(self.vault_env) or self.vault)
            return Path.cwd() / named.expanduser()

        file = self.graph_file(env)
        if file is None:
            return None
        if file.suffix:
            return file.with_suffix("")
        return file.with_name(f"{file.name}-notes")

    def graph_file(self, env: Mapping[str, str]) -> Path | None:
        """Return the graph file that the variable `file_env` names; None if it names none."""
        if not self.file_env:
            return None
        named = env.get(self.file_env, "")
        return Path(named).expanduser().absolute() if named else None

    def read_settings_file(
        self, folder: Path, env: Mapping[str, str], named: Path | None
    ) -> dict[str, Any]:
        """Return settings of the replaced server's own file, by dotted name.

        `folder` is the working folder, and `named` the file of `--config`, or None. Returns no
        settings if the profile has no such file. Raises Invalid if a file cannot be read or a
        setting in it is wrong.
        """
        if not self.settings_reader:
            return {}
        settings: dict[str, Any] = resolve(self.settings_reader)(folder, env, named)
        return settings
