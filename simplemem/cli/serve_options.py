"""The options of `serve`, and what a command line with them says."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from simplemem.cli.options import flag, option
from simplemem.profiles.registry import built_in_profiles

_DB = "The file of the index, if not in <vault>/.simplemem."
_DEFAULT_VAULT = "The vault to serve if the current folder is not in a vault."
_KNOWLEDGE_BASE = "Another folder of Markdown files, which two additional tools search and add to."
_PROFILE = f"The profile of tools: {', '.join(built_in_profiles())}."
_SSE = "With --http: also serve the older SSE transport, at /sse."
_ALLOW_HOST = "With HTTP: a host name that requests may use, besides those of a loopback address."
_TRUSTED_PROXY = (
    "With HTTP: the address or network of a proxy on another machine, whose X-Forwarded-For is"
    " trusted."
)
_REST_API_SERVE = "Serve HTTP at 127.0.0.1:8080 as well as MCP over standard input and output."


class LogLevel(StrEnum):
    """How much a server logs: a level, and everything more serious."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class ServeOptions:
    """The values of the options of `serve`, in the order of its help.

    An option that is not passed has its default. For flags that a setting can also set, the default
    is None.
    """

    vaults: Annotated[
        list[str] | None,
        option("--vault", "FOLDER", "The folder of notes. By default the nearest vault is served."),
    ] = None
    default_vault: Annotated[str | None, option("--default-vault", "FOLDER", _DEFAULT_VAULT)] = None
    config: Annotated[
        str | None, option("--config", "FILE", "The settings file of a profile that has its own.")
    ] = None
    knowledge_base: Annotated[str | None, option("--knowledge-base", "FOLDER", _KNOWLEDGE_BASE)] = (
        None
    )
    db: Annotated[str | None, option("--db --dbpath --db-path", "FILE", _DB)] = None
    profiles: Annotated[list[str] | None, option("--profile", "NAME", _PROFILE)] = None
    tools: Annotated[
        list[str] | None,
        option("--tools", "NAMES", "Tool groups to add. A minus before a name removes the group."),
    ] = None
    read_only: Annotated[bool | None, flag("--read-only", "Refuse every write.")] = None
    no_delete: Annotated[bool | None, flag("--no-delete", "Offer no tool that deletes.")] = None
    yes: Annotated[
        bool, flag("--yes -y", "If the vault does not exist, create it without asking.")
    ] = False
    log_level: Annotated[
        LogLevel | None,
        option("--log-level", "|".join(LogLevel), "How much is logged on stderr."),
    ] = None
    http: Annotated[
        str | None,
        option("--http", "[HOST:PORT]", "Serve over HTTP, by default at 127.0.0.1:8080."),
    ] = None
    sse: Annotated[bool | None, flag("--sse", _SSE)] = None
    stateless: Annotated[
        bool, flag("--stateless", "With HTTP: keep no sessions, for use behind a load balancer.")
    ] = False
    allowed_hosts: Annotated[list[str] | None, option("--allow-host", "NAME", _ALLOW_HOST)] = None
    behind_proxy: Annotated[
        bool, flag("--behind-proxy", "With HTTP: a proxy on this machine terminates TLS.")
    ] = False
    trusted_proxies: Annotated[
        list[str] | None, option("--trusted-proxy", "ADDRESS", _TRUSTED_PROXY)
    ] = None
    tls_cert: Annotated[
        Path | None, option("--tls-cert", "FILE", "The certificate, for HTTPS.")
    ] = None
    tls_key: Annotated[Path | None, option("--tls-key", "FILE", "The key of the certificate.")] = (
        None
    )
    rest_api_serve: Annotated[bool | None, flag("--rest-api-serve", _REST_API_SERVE)] = None

    def vaults_by_name(self) -> dict[str, str]:
        """Return the folder of each vault by its name, as in `work=~/notes`.

        The name of a vault that has none is "". If a name is repeated, its last folder counts.
        """
        return dict(map(_split_name, self.vaults or ()))

    def profiles_by_vault(self) -> dict[str, str]:
        """Return the profile of each vault by the vault's name, as in `work=NAME`.

        The name "" stands for all vaults that are not named.
        """
        return dict(map(_split_name, self.profiles or ()))


def _split_name(text: str) -> tuple[str, str]:
    """Return the name of a vault and the value for it. The name is "" if the text has none."""
    name, equals, value = text.partition("=")
    is_name = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    if equals and is_name:
        return name, value
    return "", text
