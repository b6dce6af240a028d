"""Starts the server that the options of `serve` and the environment describe."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from simplemem.cli import serve_choice
from simplemem.errors import Invalid, NotFound, SimplememError, Unavailable

if TYPE_CHECKING:
    from simplemem.cli.serve_options import ServeOptions
    from simplemem.profiles.profile import Profile
    from simplemem.server.executor import StoreExecutor
    from simplemem.settings.model import Settings
    from simplemem.store import EnhancedStore
    from simplemem.tools.tool import Tool
    from simplemem.web.address import Address
    from simplemem.web.standard_streams import StandardStreams
    from simplemem.web.vault_view import MountedVault


def start_server(options: ServeOptions) -> int:
    """Serve until the client or the user ends the server. Returns the exit code.

    Reports on stderr why a server cannot start; the exit code is then 1.
    """
    try:
        _warn_of_unknown_variables()
        if serve_choice.is_http_only(options):
            return _serve_http(options)
        if serve_choice.is_http_beside_streams(options):
            return _serve_http_beside_streams(options)
        return _serve_streams(options)
    except SimplememError as error:
        from simplemem.cli.output import plain

        text = f"simplemem: {error.message}"
        if error.hint:
            text += f"\n{error.hint}"
        print(plain(text), file=sys.stderr)
        return 1


def _warn(message: str) -> None:
    """Print a message on stderr, at once."""
    print(f"simplemem: {message}", file=sys.stderr, flush=True)


def _warn_of_unknown_variables() -> None:
    """Warn on stderr: a misspelt `SIMPLEMEM_READ_ONLY` would let agents write."""
    from simplemem.settings.loading import unknown_variables

    for warning in unknown_variables(os.environ):
        _warn(warning)


@dataclass(frozen=True)
class _PlannedVault:
    """A vault that can be served: where it is, with which settings, and as which profile."""

    options: ServeOptions
    root: Path
    profile: Profile
    tools: tuple[Tool, ...]
    settings: Settings

    def read_settings(self) -> Settings:
        """Return the settings as they are now. Raises Invalid if one of them is wrong."""
        return serve_choice.choose_settings(self.options, self.profile, self.root)

    def open_store(self, settings: Settings) -> EnhancedStore:
        """Open the store, and create the vault if it does not exist and may be written.

        A profile's graph file and the knowledge base are read at once. Says on stderr if a vault is
        created. Raises NotFound if there is no vault and none can be created, Invalid for a wrong
        setting, and Unavailable if the index cannot be opened.
        """
        from simplemem.store import open_store

        if not self.root.exists() and not settings.read_only:
            _warn(f"creating the vault {self.root}")
        store = open_store(self.root, settings=settings, read_only=settings.read_only)
        if self.profile.file_env:
            from simplemem.server.serve import import_legacy_file

            import_legacy_file(self.profile, store, os.environ)
        if settings.documents.knowledge_base:
            from simplemem.features.documents.knowledge_base import knowledge_base_of

            knowledge_base_of(store)
        return store


def _plan_vault(options: ServeOptions, vault_name: str, *, has_client: bool) -> _PlannedVault:
    """Return the vault of this name as it is to be served.

    Warns on stderr of what has no effect. With `has_client`, an MCP client may have started the
    server, and a vault that does not exist is created at the first call. At a terminal, the user
    may be asked whether to create it. Raises Invalid or NotFound if the vault cannot be served, and
    Unavailable if the package of its profile cannot be loaded.
    """
    from simplemem.note.dates import now

    now()  # raises if the clock of the tests is no time, before anything is opened
    profile = serve_choice.choose_profile(options, vault_name)
    tools = _choose_tools(options, profile)
    root = serve_choice.choose_folder(options, profile, vault_name)
    if root.exists() and not root.is_dir():
        hint = "A vault is a folder. Name the folder that contains the file."
        raise Invalid(f"{root} is a file, not a folder", hint=hint)

    settings = serve_choice.choose_settings(options, profile, root)
    if not root.exists():
        _check_new_vault(
            root, is_read_only=settings.read_only, is_confirmed=options.yes, has_client=has_client
        )
    if settings.documents.knowledge_base:
        tools = _tools_with_knowledge_base(
            options, profile, settings.documents.knowledge_base, root
        )
    if settings.no_delete:
        tools = tuple(tool for tool in tools if not tool.deletes)

    _warn_of_unused_key(settings)
    _warn_of_unread_variables(profile)
    return _PlannedVault(options, root, profile, tools, settings)


def _choose_tools(options: ServeOptions, profile: Profile) -> tuple[Tool, ...]:
    """Return the tools of a profile with the tool groups that the options add or remove.

    Raises Invalid if there is no such group, two groups have a tool of one name, or no tool is
    left.
    """
    from simplemem.profiles.registry import choose_tools

    return choose_tools(profile, serve_choice.tool_group_changes(options))


def _tools_with_knowledge_base(
    options: ServeOptions, profile: Profile, folder: Path, root: Path
) -> tuple[Tool, ...]:
    """Return the tools of a profile and those for a knowledge base.

    `folder` is that of the knowledge base, and `root` that of the vault. Raises Invalid if the
    folder cannot be a knowledge base of this vault, and for a wrong choice of tool groups.
    """
    from simplemem.features.documents.knowledge_base import locate_folder
    from simplemem.profiles.registry import choose_tools, groups_of_setting

    locate_folder(folder, root)
    groups = groups_of_setting("documents.knowledge_base")
    return choose_tools(profile, ",".join([serve_choice.tool_group_changes(options), *groups]))


def _warn_of_unused_key(settings: Settings) -> None:
    """Warn on stderr of a key for Voyage that no setting uses."""
    providers = (settings.embed.provider, settings.rerank.provider)
    if settings.voyage_ai.api_key and "voyage" not in providers:
        _warn(
            "voyage_ai.api_key is not used: to send notes to Voyage, set embed.provider"
            " (SIMPLEMEM_EMBED_PROVIDER) or rerank.provider to voyage"
        )


def _warn_of_unread_variables(profile: Profile) -> None:
    """Warn on stderr of variables of the replaced server that simplemem does not read."""
    for variable, reason in profile.unread_variables.items():
        if os.environ.get(variable):
            _warn(f"{variable} is ignored: {reason}")


def _check_new_vault(
    root: Path, *, is_read_only: bool, is_confirmed: bool, has_client: bool
) -> None:
    """Raise NotFound if the server must not create a vault that does not exist.

    At a terminal, the user is asked, and the vault is created, unless `is_confirmed`. A client that
    starts the server (`has_client`) has no terminal and must not fail: its first call creates the
    vault. A service must not serve an empty vault because of a typo.
    """
    from shlex import quote

    init = f"`simplemem init {quote(str(root))}` creates it"
    if is_read_only:
        raise NotFound(f"no vault at {root}", hint=f"{init}; a read-only server cannot create it.")
    if is_confirmed:
        return

    has_terminal = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))
    if has_terminal:
        _confirm_new_vault(root)
    elif not has_client:
        raise NotFound(f"no vault at {root}", hint=f"{init}, and so does `--yes`.")


def _confirm_new_vault(root: Path) -> None:
    """Ask the user whether to create a vault, and create it.

    Raises NotFound if the answer is no.
    """
    print(f"There is no vault at {root}. Create it? [y/N]: ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline().strip().lower()
    if answer not in ("y", "yes"):
        raise NotFound(
            f"no vault at {root}",
            hint="Pass another folder with `--vault`, or create this one with `--yes`.",
        )
    (root / ".simplemem").mkdir(parents=True)


# ------------------------------------------------------------------ over standard input and output


def _serve_streams(options: ServeOptions, streams: tuple[int, int] | None = None) -> int:
    """Serve one vault over standard input and output, and return the exit code.

    Returns when the client ends. `streams` are the descriptors of standard input and output, if
    they are taken already. Raises Invalid for options that need HTTP, and Invalid, NotFound or
    Unavailable if the vault cannot be served.
    """
    from simplemem.server.executor import StoreExecutor
    from simplemem.server.serve import serve_stdio, take_standard_streams

    _refuse_several_vaults(options)
    _refuse_options_of_http(options)
    vault = _plan_vault(options, "", has_client=True)

    if streams is None and sys.stdin is not None and sys.stdin.isatty():
        print(
            f"simplemem serves {vault.root} and waits for an MCP client;"
            " `simplemem connect CLIENT` configures one. Ctrl-C stops it.",
            file=sys.stderr,
            flush=True,
        )
    if streams is None:
        streams = take_standard_streams()
    executor = StoreExecutor(partial(vault.open_store, vault.settings), _answer_commands)
    return serve_stdio(
        vault.profile, vault.tools, vault.root, executor, streams, vault.settings.log_level
    )


def _refuse_several_vaults(options: ServeOptions) -> None:
    """Raise Invalid if a vault has a name: only over HTTP are there several."""
    if options.vaults_by_name().keys() - {""}:
        raise Invalid("several vaults can be served only over HTTP", hint="Add --http.")


def _refuse_options_of_http(options: ServeOptions) -> None:
    """Raise Invalid if there is an option that has no meaning without HTTP."""
    needs_http = (
        options.allowed_hosts,
        options.behind_proxy,
        options.trusted_proxies,
        options.stateless,
        options.tls_cert,
        options.tls_key,
    )
    if any(needs_http):
        raise Invalid(
            "--allow-host, --behind-proxy, --trusted-proxy, --stateless, --tls-cert and --tls-key"
            " need HTTP",
            hint="Add --http.",
        )


def _answer_commands(executor: StoreExecutor) -> Callable[[], None]:
    """Let commands of other processes use the store of a server.

    Returns a function that ends this.
    """
    # Imported here: the server has answered its first client by now.
    from simplemem.cli.served import answer_commands

    return answer_commands(executor)


# ------------------------------------------------------------------ over HTTP


def _serve_http_beside_streams(options: ServeOptions) -> int:
    """Serve HTTP, and MCP over standard streams if a client is at their other end.

    A second client starts a second server: if the address is taken, it is served over standard
    streams alone, which a warning on stderr says. Returns the exit code. Raises Invalid for options
    that contradict each other, and Invalid, NotFound or Unavailable if a vault cannot be served.
    """
    from simplemem.server.serve import take_standard_streams
    from simplemem.web.standard_streams import StandardStreams, has_client

    if not has_client():
        return _serve_http(options)

    _refuse_several_vaults(options)
    streams = StandardStreams(*take_standard_streams())
    try:
        return _serve_http(options, streams)
    except Unavailable as error:
        _warn(f"{error.message}; MCP is served over standard streams only")
    return _serve_streams(options, streams)


def _serve_http(options: ServeOptions, streams: StandardStreams | None = None) -> int:
    """Serve the vaults over HTTP until a signal ends the server. Returns the exit code.

    With `streams`, MCP is served over standard input and output, too. Raises Invalid for options
    that contradict each other, Unavailable if the address is taken, and Invalid, NotFound or
    Unavailable if a vault cannot be served.
    """
    from simplemem.web.serve import serve_http

    gc.enable()  # `serve_main` disabled it for the short start of a server over standard streams
    vaults = _vaults_for_http(options, has_client=streams is not None)
    return serve_http(
        vaults,
        _choose_address(options, vaults[0].profile),
        sse=serve_choice.is_sse_wanted(options),
        stateless=options.stateless,
        log_level=vaults[0].settings.log_level,
        streams=streams,
    )


def _vaults_for_http(options: ServeOptions, *, has_client: bool) -> list[MountedVault]:
    """Return the vaults to serve, at least one.

    `has_client` is as for `_plan_vault`. Raises Invalid for options that contradict each other, and
    Invalid, NotFound or Unavailable if a vault cannot be served.
    """
    from simplemem.web.vault_view import MountedVault

    names = list(options.vaults_by_name())
    unknown_names = options.profiles_by_vault().keys() - {*names, ""}
    if unknown_names:
        hint = "Name a vault with `--vault NAME=FOLDER`."
        raise Invalid(f"no vault called {min(unknown_names)!r}", hint=hint)
    if "" in names and len(names) > 1:
        hint = "Use `--vault work=~/work --vault home=~/notes`."
        raise Invalid("to serve several vaults, each needs a name", hint=hint)

    vaults: list[MountedVault] = []
    for name in names or [""]:
        vault = _plan_vault(options, name, has_client=has_client)
        vaults.append(
            MountedVault(
                name,
                vault.root,
                vault.profile,
                vault.tools,
                vault.settings,
                vault.open_store,
                vault.read_settings,
                _answer_commands,
            )
        )
    if len(vaults) > 1:
        _refuse_index_path(vaults)
    return vaults


def _refuse_index_path(vaults: Sequence[MountedVault]) -> None:
    """Raise Invalid if the settings of several vaults name the file of the index."""
    if not any(vault.settings.db for vault in vaults):
        return

    variables = {vault.profile.settings_env.get("db", "SIMPLEMEM_DB") for vault in vaults}
    places = ["--db", "the setting db", *sorted({"SIMPLEMEM_DB", *variables}, reverse=True)]
    hint = f"Remove {', '.join(places[:-1])} and {places[-1]}."
    raise Invalid("the path of the index cannot be set for several vaults", hint=hint)


def _choose_address(options: ServeOptions, profile: Profile) -> Address:
    """Return where the server listens: what `--http` names, else the profile's port.

    Variables may name another port. Raises Invalid for text that is no address.
    """
    from simplemem.profiles.variables import PORT_VARIABLE
    from simplemem.web.address import Address, parse_address

    port_text = os.environ.get(PORT_VARIABLE) or profile.port
    _, default_port = parse_address(f":{port_text}", 0)
    host, port = parse_address(options.http or "", default_port)
    return Address(
        host,
        port,
        tuple(options.allowed_hosts or ()),
        options.tls_cert,
        options.tls_key,
        behind_proxy=options.behind_proxy or bool(options.trusted_proxies),
        trusted_proxies=tuple(options.trusted_proxies or ()),
    )
