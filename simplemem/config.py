"""Settings: a flag beats the environment, the environment beats TOML, TOML beats the default.

The vault's own `config.toml` may say how the vault is kept, never where to read or what to run: a vault arrives by
`git clone`. Nothing here touches a note.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError, field_validator

from simplemem.errors import Invalid, Unavailable

ENV_PREFIX = "SIMPLEMEM_"
_NOT_FROM_A_VAULT = frozenset(
    {
        "vault",
        "db",
        "embed.model",
        "embed.url",
        "embed.api_key",
        "embed.max_tokens_unasked",
        "embed.dimensions",  # these three make an embedder another one, whose vectors are paid for anew
        "embed.query_prefix",
        "embed.document_prefix",
        "voyage_ai.api_key",
        "voyage_ai.model",
        "git.commit",  # it writes outside the vault's notes, under the person's name
    }
)
# What one place keeps private or closed, no other gives away.
_ADDS_UP = frozenset({"embed.private", "access.read_only", "access.hidden"})
_ONLY_NARROWED: dict[str, tuple[Any, ...]] = {  # by a vault; each from wide to narrow
    "read_only": (False, True),
    "no_delete": (False, True),
    "write.secrets": ("off", "warn", "refuse"),
}
_PROVIDERS_FROM_A_VAULT = ("wordllama", "none")  # a vault cannot have its notes sent anywhere


def listed(value: Any) -> tuple[Any, ...]:
    """A list, or one text as an environment variable has it: with commas, or as a list stands in a settings file."""
    if isinstance(value, str):
        if (found := _list_in(value.strip())) is not None:
            return found
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def _list_in(text: str) -> tuple[str, ...] | None:
    """The list that a text is, None when it is none. `["a", "b` is refused: read as names it would keep nothing closed."""
    try:
        found = tomllib.loads(f"names = {text}")["names"] if text.startswith("[") else None
    except tomllib.TOMLDecodeError:
        if re.match(r"\[\s*[\"']", text):
            raise Invalid(f"{text} is no list of names", hint='Write `a/, b/` or `["a/", "b/"]`.') from None
        return None  # a name may begin with a bracket
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        return None
    return tuple(each.strip() for each in found if each.strip())


def _where_a_key_lies(value: Any) -> Any:
    """A table says where the key lies. One with anything else in it may hold the key itself, and tables are shown."""
    if isinstance(value, dict) and set(value) not in ({"env"}, {"path"}):
        raise ValueError("neither env nor path")
    return value


_ApiKey = Annotated[SecretStr | dict[str, str] | None, BeforeValidator(_where_a_key_lies)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SearchSettings(_Section):
    """How many hits, and how words and vectors are weighed (retrieval.md §2)."""

    limit: int = Field(default=5, ge=1, le=100)
    lexical_weight: float = Field(default=0.6, ge=0, le=1)
    snippet_characters: int = Field(default=300, ge=40, le=4000)


class EmbedSettings(_Section):
    """What makes vectors. `none` searches by words alone; what is empty, the provider knows best."""

    provider: Literal["wordllama", "voyage", "openai", "ollama", "none"] = "wordllama"
    model: str = ""
    url: str = ""
    api_key: _ApiKey = None
    dimensions: int | None = Field(default=None, ge=8, le=16_384)
    batch: int | None = Field(default=None, ge=1, le=2048)
    timeout_seconds: float = Field(default=60.0, gt=0, le=3600)
    query_prefix: str | None = None
    document_prefix: str | None = None
    cache_mb: int = Field(default=512, ge=0)
    keep_alive: str = ""
    private: tuple[str, ...] = ()
    query_seconds: float = Field(default=2.0, gt=0, le=60)
    max_tokens_unasked: int = Field(default=100_000, ge=0)

    @field_validator("private", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        return listed(value)


class HistorySettings(_Section):
    """How long earlier versions are kept."""

    keep_days: int = Field(default=30, ge=1)
    keep_mb: int = Field(default=100, ge=1)


class GitSettings(_Section):
    """What is read from the git repository a vault lies in, and whether our changes are committed to it."""

    history: bool = True
    commit: Literal["off", "each", "batch"] = "off"
    quiet_seconds: float = Field(default=30.0, ge=0.1, le=3600)


class IndexSettings(_Section):
    """What is indexed, and how often the whole vault is looked through."""

    max_note_mb: float = Field(default=5.0, gt=0, le=64)
    scan_minutes: float = Field(default=5.0, ge=0.05)
    watch: Literal["auto", "poll", "off"] = "auto"


class WriteSettings(_Section):
    """`full` waits for the disk; `fast` does not, and a power cut may then lose the last writes. `secrets` is what
    becomes of a write that adds what looks like a password or key."""

    durability: Literal["full", "fast"] = "full"
    secrets: Literal["off", "warn", "refuse"] = "warn"


class AccessSettings(_Section):
    """Rules by folder for whoever is served: `hidden` is not there for them, `read_only` is not changed by them. The
    command line is the person's own and goes by none of these."""

    read_only: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()

    @field_validator("read_only", "hidden", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        return listed(value)


class GraphSettings(_Section):
    """Which version of the graph memory server its profiles speak as, where two differ (memento.md §1)."""

    dialect: Literal["published", "main"] = "published"


class RerankSettings(_Section):
    """What orders the best notes of a search again. `none` leaves the order that words and meaning give."""

    provider: Literal["none", "voyage", "http"] = "none"
    url: str = ""
    model: str = ""
    api_key: _ApiKey = None
    candidates: int = Field(default=20, ge=2, le=100)
    seconds: float = Field(default=1.5, gt=0, le=60)


class VoyageSettings(_Section):
    """What a file of the original simplemem may say (capabilities.md SM-17): Voyage's key and models, where `embed` and
    `rerank` name none."""

    api_key: _ApiKey = None
    model: str = "voyage-3.5"
    rerank_model: str = "rerank-lite-1"


class Settings(_Section):
    """Everything that can be set, with its default."""

    vault: Path | None = None
    db: Path | None = None
    read_only: bool = False
    no_delete: bool = False
    log_level: Literal["debug", "info", "warning", "error"] = "warning"
    max_memory_length: int | None = None  # characters of plain text; None is what the profile says, 0 is no limit
    search: SearchSettings = SearchSettings()
    embed: EmbedSettings = EmbedSettings()
    history: HistorySettings = HistorySettings()
    git: GitSettings = GitSettings()
    index: IndexSettings = IndexSettings()
    write: WriteSettings = WriteSettings()
    access: AccessSettings = AccessSettings()
    graph: GraphSettings = GraphSettings()
    rerank: RerankSettings = RerankSettings()
    voyage_ai: VoyageSettings = VoyageSettings()

    @property
    def max_note_bytes(self) -> int:
        return int(self.index.max_note_mb * 1024 * 1024)

    def for_a_person(self) -> Settings:
        """Without the rules that hold for whoever is served."""
        return self.model_copy(update={"access": AccessSettings(), "no_delete": False})


def known_keys(model: type[BaseModel] = Settings, above: str = "") -> Iterator[str]:
    """Every setting by its dotted name."""
    for name, info in model.model_fields.items():
        kind = info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from known_keys(kind, f"{above}{name}.")
        else:
            yield f"{above}{name}"


def load_settings(
    flags: Mapping[str, Any] | None = None, *, vault: Path | None = None, env: Mapping[str, str] | None = None
) -> Settings:
    """The settings in force for a vault. `flags` are dotted names; values of None are absent."""
    return _validated(*_merged(flags or {}, vault, os.environ if env is None else env))


def settings_with_sources(
    flags: Mapping[str, Any] | None = None, *, vault: Path | None = None, env: Mapping[str, str] | None = None
) -> list[tuple[str, Any, str]]:
    """Every setting as (dotted name, value, where it came from)."""
    values, sources = _merged(flags or {}, vault, os.environ if env is None else env)
    settings = _validated(values, sources)
    rows = []
    for key in known_keys():
        value: Any = settings
        for part in key.split("."):
            value = getattr(value, part)
        rows.append((key, value, sources.get(key, "default")))
    return rows


def _merged(
    flags: Mapping[str, Any], vault: Path | None, env: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Dotted values by precedence, lowest first, and the source of each."""
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}

    def take(found: Mapping[str, Any], source: str) -> None:
        for key, value in found.items():
            if key in _ADDS_UP and key in values:
                values[key] = [*listed(values[key]), *listed(value)]
                sources[key] = f"{sources[key]}, {source}"
            else:
                values[key] = value
                sources[key] = source

    user_file = user_config_path(env)
    take(_from_file(user_file), str(user_file))
    if vault is not None:
        vault_file = vault / ".simplemem" / "config.toml"
        found = _from_file(vault_file) if not _leads_elsewhere(vault_file) else {}
        forbidden = sorted(_NOT_FROM_A_VAULT & found.keys())
        if forbidden:
            raise Invalid(
                f"{vault_file} sets {', '.join(forbidden)}, which a vault may not say of itself",
                hint=f"Set it in {user_file}, in the environment or as a flag.",
            )
        if found.get("embed.provider", "none") not in _PROVIDERS_FROM_A_VAULT:
            raise Invalid(
                f"{vault_file} sets embed.provider = {found['embed.provider']!r}, which a vault may not say of itself",
                hint=f"Set it in {user_file}, in the environment or as a flag: it may send notes to another machine.",
            )
        reranking = {key for key in found if key.startswith("rerank.") or key == "voyage_ai.rerank_model"}
        if found.get("rerank.provider") == "none":
            reranking.discard("rerank.provider")
        if reranking:
            raise Invalid(
                f"{vault_file} sets {', '.join(sorted(reranking))}, which a vault may not say of itself",
                hint=f"Set it in {user_file}, in the environment or as a flag: it may send notes to another machine. "
                "A vault may switch a reranker off (rerank.provider = none).",
            )
        take({key: _narrower(key, value, values, vault_file) for key, value in found.items()}, str(vault_file))
    for key in known_keys():
        name = ENV_PREFIX + key.replace(".", "_").upper()
        if env.get(name, "") != "":
            take({key: env[name]}, f"${name}")
    take({key: value for key, value in flags.items() if value is not None}, "flag")
    return values, sources


def _leads_elsewhere(vault_file: Path) -> bool:
    """Whether a vault's own settings are a link, which could lead out of it."""
    return vault_file.is_symlink() or vault_file.parent.is_symlink()


def _narrower(key: str, said: Any, values: Mapping[str, Any], vault_file: Path) -> Any:
    """What a vault says of itself, where that is stricter than what its user says."""
    order = _ONLY_NARROWED.get(key)
    if order is None:
        return said
    now = values.get(key, order[0] if key != "write.secrets" else "warn")
    for value in (said, now):
        if type(value) is not type(order[0]) or value not in order:
            allowed = " or ".join(str(each).lower() for each in order)
            raise Invalid(f"the setting {key} = {value!r} ({vault_file}) is not valid: it must be {allowed}")
    return max(said, now, key=order.index)


def user_config_path(env: Mapping[str, str]) -> Path:
    """The user's own settings: `$XDG_CONFIG_HOME/simplemem/config.toml`, by default below `~/.config`."""
    base = env.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base).expanduser() / "simplemem" / "config.toml"


def _from_file(path: Path) -> dict[str, Any]:
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise Unavailable(f"the settings {path} cannot be read: {error.strerror}") from error
    try:
        table = tomllib.loads(data.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Invalid(f"{path} is not valid TOML: {error}") from error
    return dict(_flat(table, path))


def _flat(table: Mapping[str, Any], path: Path, above: str = "") -> Iterator[tuple[str, Any]]:
    known = set(known_keys())
    for name, value in table.items():
        key = above + name
        if key in known:
            yield key, value
        elif isinstance(value, dict) and any(k.startswith(key + ".") for k in known):
            yield from _flat(value, path, key + ".")
        else:
            near = get_close_matches(key, known, 1, 0.5) or get_close_matches(name, known, 1, 0.5)
            raise Invalid(
                f"{path} sets {key}, which is no setting",
                hint=f"Did you mean {near[0]}?" if near else "`simplemem config` lists them all.",
            )


def _validated(values: Mapping[str, Any], sources: Mapping[str, str]) -> Settings:
    tree: dict[str, Any] = {}
    for key, value in values.items():
        *parents, leaf = key.split(".")
        branch = tree
        for parent in parents:
            branch = branch.setdefault(parent, {})
        branch[leaf] = value
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        if "api_key" in first["loc"]:  # what is wrong with a key is said without showing it
            key = key[: key.index("api_key") + len("api_key")]
            raise Invalid(
                f"the setting {key} ({sources.get(key, '')}) must be a text, {{ env = NAME }} or {{ path = FILE }}"
            ) from None
        where = sources.get(key, "")
        raise Invalid(f"the setting {key} = {first['input']!r} ({where}) is not valid: {first['msg']}") from error


def find_vault(
    flag: str | Path | None = None,
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    home: Path | None = None,
) -> Path:
    """Which vault is meant (DESIGN §8): the flag, the environment, the setting, the nearest folder upward with a
    `.simplemem`, `./.memories`, else `~/simplemem`. The path need not exist yet."""
    env = os.environ if env is None else env
    here, home = cwd or Path.cwd(), home or Path.home()
    if flag:
        return _absolute(flag, here)
    if env.get(f"{ENV_PREFIX}VAULT"):
        return _absolute(env[f"{ENV_PREFIX}VAULT"], here)
    configured = _from_file(user_config_path(env)).get("vault")
    if configured:
        return _absolute(str(configured), here)
    for folder in (here, *here.parents):
        if (folder / ".simplemem").is_dir():
            return folder
    if (here / ".memories").is_dir():
        return here / ".memories"
    return home / "simplemem"


def _absolute(path: str | Path, here: Path) -> Path:
    return Path(os.path.normpath(here / Path(path).expanduser()))


EXAMPLE_CONFIG = """\
# Settings of simplemem. Every line is the default, or an example where there is none; take away its "# " to set it.
# They are read from <vault>/.simplemem/config.toml and ~/.config/simplemem/config.toml, and each has a name in the
# environment: search.limit is SIMPLEMEM_SEARCH_LIMIT. A flag beats the environment, the environment beats these files.

# vault = "~/notes"            # the vault to use when no other is named (not in a vault's own file)
# db = "~/.cache/simplemem/notes.db"   # another place for the index (not in a vault's own file)
# read_only = false            # refuse every write
# no_delete = false            # whoever is served may not delete: see docs/trust.md
# log_level = "warning"        # how much a server says on stderr
# max_memory_length = 2500     # characters of plain text in a memory, for the profile `simplemem` alone; 0 is no limit

[search]
# limit = 5                    # hits a search returns
# lexical_weight = 0.6         # words against meaning: 1 is words alone, 0 is meaning alone
# snippet_characters = 300     # length of the passage shown with a hit

[embed]
# provider = "wordllama"       # what makes vectors: wordllama (offline, in the package), openai (any service that
#                              # speaks its language), ollama, voyage, or none for words alone. A vault's own
#                              # file may say wordllama or none, and nothing of model, url and api_key: see
#                              # docs/embedders.md
# model = ""                   # the model, by the name the service has for it
# url = ""                     # where the service is, for example http://localhost:1234/v1
# api_key = { path = "~/.config/embed.key" }   # the key, or where it lies: { env = "NAME" }, { path = "FILE" }
# dimensions = 512             # fewer numbers a vector than the model has of itself, if it can
# batch = 64                   # texts in one request
# timeout_seconds = 60.0       # for one request
# query_prefix = "query: "     # what goes before a question and...
# document_prefix = "passage: "   # ...before a passage; known models have theirs
# cache_mb = 512               # megabytes of vectors that are kept beside the index, so that none is paid for twice
# keep_alive = ""              # how long ollama keeps the model loaded, for example 30m
# private = ["journal/", "*.secret"]   # folders, notes and patterns whose text never leaves this machine
#                              # (what all files say adds up; so are notes with `private: true` or the tag `private`)
# query_seconds = 2.0          # a search waits no longer for its vector; then it goes by words only
# max_tokens_unasked = 100000  # tokens that may be sent without asking; more waits for `simplemem index`
#                              # (not in a vault's own file)

[history]
# keep_days = 30               # days that the text of an earlier version is sure to be kept...
# keep_mb = 100                # ...as long as all of them take no more megabytes than this

[git]
# history = true               # in a git repository, what git knows of a note is told beside our own history
# commit = "off"               # commit what simplemem changes: off, each change by itself, or a batch once it is quiet
#                              # (not in a vault's own file): see docs/git.md
# quiet_seconds = 30.0         # how long a batch waits for another change

[index]
# max_note_mb = 5.0            # megabytes; a larger note is listed by `stats`, not searched
# scan_minutes = 5.0           # how often a server looks through the whole vault, besides watching it
# watch = "auto"               # how a server hears of changes; poll is for network drives

[write]
# durability = "full"          # full waits for the disk; fast does not, and a power cut may lose the last writes
# secrets = "warn"             # a write that adds what looks like a password, key or token: off, warn or refuse

[access]
# For whoever is served; the command line goes by none of it. What all files say adds up. See docs/trust.md
# read_only = ["Archive/", "Templates/"]   # folders, notes and patterns that are not changed
# hidden = ["Private/"]        # folders, notes and patterns that are not there: not found, not listed, not counted

[graph]
# dialect = "published"        # for the profiles server-memory and memento: as the published versions of the graph
#                              # memory server behave, or as its coming one does (main): see docs/graph.md

[rerank]
# provider = "none"            # what orders the best notes of a search again: voyage, http (an endpoint that speaks as
#                              # Cohere's, Jina's or text-embeddings-inference does), or none. A vault's own file
#                              # may say none and nothing else here: see docs/rerankers.md
# url = ""                     # where the endpoint is, for example http://localhost:8000/v1/rerank
# model = ""                   # the model, by the name the service has for it
# api_key = { env = "COHERE_API_KEY" }   # the key, or where it lies: { env = "NAME" }, { path = "FILE" }
# candidates = 20              # so many of the best notes are ordered again
# seconds = 1.5                # a search waits no longer for it

[voyage_ai]
# What a file of the original simplemem may say: Voyage's key and models, where [embed] or [rerank] asks for voyage and
# names none.
# api_key = { path = "~/.config/voyage.key" }   # the key, or where it lies
# model = "voyage-3.5"         # the model for vectors
# rerank_model = "rerank-lite-1"   # the model for ranking
"""
