"""A profile: the server that simplemem presents to a client, as its tools, its instructions and its defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from simplemem.tools.wording import words_for_models


@dataclass(frozen=True)
class Profile:
    """One kind of server: the tools that it shows, and what else a client knows it by.

    Attributes:
        name: What `--profile` calls it.
        title: One line about it.
        toolsets: The tool groups that it shows, in their order.
        known_as: The name and version of the graph memory server that it replaces. Such a server has one
            resource, the graph, and no prompts.
        vault: The folder that it works in if the user names none.
        vault_env: The variable that named the folder of the server that it replaces.
        file_env: The variable that named the graph file of that server. The vault lies beside the file,
            and takes it in.
        has_users: Whether each call names the user that it is for. Resources and completion, which name
            none, then show no user's notes.
    """

    name: str
    title: str
    toolsets: tuple[str, ...]
    known_as: tuple[str, str] | None = None
    vault: str = ""
    vault_env: str = ""
    file_env: str = ""
    has_users: bool = False

    @property
    def instructions(self) -> str:
        """How to use it well, told to a model when it connects. The graph memory servers tell nothing."""
        return "" if self.known_as else words_for_models(self.name)

    def folder(self, env: Mapping[str, str]) -> Path | None:
        """The folder it works in when none is named, its own or beside that server's file; None to search for one."""
        if self.vault:
            return Path.cwd() / Path(env.get(self.vault_env) or self.vault).expanduser()
        file = self.graph_file(env)
        return file and (
            file.with_suffix("") if file.suffix else file.with_name(f"{file.name}-notes")
        )

    def graph_file(self, env: Mapping[str, str]) -> Path | None:
        """The file of that server's graph, if its variable names one."""
        named = env.get(self.file_env, "") if self.file_env else ""
        return Path(named).expanduser().absolute() if named else None
