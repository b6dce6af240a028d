"""Settings: a flag beats the environment, that beats TOML, that beats the default. A vault arrives by `git clone`, so
its own `config.toml` may say how it is kept, never where to read, what to send or to run: each field has its policy."""

from __future__ import annotations

import json
import os
import shlex
import stat
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Self,
    TypeAlias,
    TypeVar,
    dataclass_transform,
    get_args,
    get_type_hints,
)

from simplemem.errors import Invalid, NotFound, Unavailable
from simplemem.place import (
    ENV_PREFIX,
    contains_home,
    enclosing_vault,
    home_vault,
    is_source_checkout,
    may_use_home_vault,
    named_vault,
    user_config_file,
)

if TYPE_CHECKING:
    from pydantic import BaseModel, SecretStr
    from pydantic.fields import FieldInfo

    _ApiKey: TypeAlias = SecretStr | dict[str, str] | None
    _Names: TypeAlias = tuple[str, ...]

Env = Mapping[str, str] | None  # None: that of this process
Flags = Mapping[str, Any] | None  # by dotted names; a value of None is absent
Sourced = tuple[str, Any, str]  # a setting's dotted name, its value, and where that came from
# Of earlier versions: read, and ignored.
_GONE = frozenset(
    {
        "graph.dialect",
        "embed.cache_mb",
        "embed.download",
        "embed.max_tokens_unasked",
        "rerank.download",
    }
)

FromVault = Literal["yes", "no", "narrower", "adds"] | tuple[str, ...]
"""What a vault's own file may say of a setting: anything; nothing; only what is stricter than its user's word; more of a
list, which all files add to; only these values, which keep its notes on this machine."""


def _setting(
    default: Any, meaning: str, vault: FromVault = "yes", *, eg: Any = None, **more: Any
) -> Any:
    """A field with its policy. `eg` stands in the sample where the default says too little."""
    return _Declared(default, meaning, vault, eg, more)


class _Declared(NamedTuple):
    """A setting as it is declared below. `bounds` are those of a field of Pydantic, which checks values."""

    default: Any
    meaning: str = ""
    vault: FromVault = "yes"
    example: Any = None
    bounds: Mapping[str, Any] = MappingProxyType({})

    @property
    def is_section(self) -> bool:
        """Whether it is a group of settings."""
        return isinstance(self.default, _Section)


def _listed(value: Any) -> tuple[Any, ...]:
    """A list, or one text as an environment variable has it: with commas, or as a list stands in a settings file."""
    if not isinstance(value, str):
        return tuple(value) if isinstance(value, (list, tuple)) else (value,)
    text = value.strip()
    if text.startswith("["):  # read as names, `["a", "b` would keep nothing closed
        import tomllib

        try:
            return tuple(tomllib.loads(f"names = {text}")["names"])
        except tomllib.TOMLDecodeError:
            raise Invalid(
                f"{text} is not a list of names", hint='Write `a/, b/` or `["a/", "b/"]`.'
            ) from None
    return tuple(each.strip() for each in text.split(",") if each.strip())


def _where_a_key_lies(value: Any) -> Any:
    """A table says where the key lies. One with anything else in it may hold the key itself, and tables are shown."""
    if isinstance(value, dict) and set(value) not in ({"env"}, {"path"}):
        raise ValueError("neither env nor path")
    return value


_SectionType = TypeVar("_SectionType", bound="_Section")


@dataclass_transform(frozen_default=True, kw_only_default=True)
class _Section:
    """A group of settings, frozen: what inherits from it says each with its type, as a dataclass would.

    Pydantic checks values where some are given. To import it, and to have it build its models, was a third of what a
    short command cost, and most people set nothing. Dataclasses of all groups would cost a tenth.
    """

    declared: ClassVar[Mapping[str, _Declared]] = MappingProxyType({})

    def __init_subclass__(cls) -> None:
        said = {name: vars(cls)[name] for name in cls.__annotations__}
        cls.declared = {
            name: value
            if isinstance(value, _Declared)
            else _Declared(value)  # a section within this one
            for name, value in said.items()
        }
        for name, setting in cls.declared.items():
            setattr(cls, name, setting.default)

    def __init__(self, **values: Any) -> None:
        """Make settings of these values. Raises pydantic's ValidationError for one that is wrong or unknown."""
        checked = vars(self.model_validate(values)) if values else {}
        for name, setting in self.declared.items():
            object.__setattr__(self, name, checked.get(name, setting.default))

    @classmethod
    def of_checked(cls, values: Mapping[str, Any]) -> Self:
        """The settings with these values, which are not checked again."""
        made = object.__new__(cls)
        for name, setting in cls.declared.items():
            object.__setattr__(made, name, values.get(name, setting.default))
        return made

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"settings are frozen: {name} cannot be set")

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other) if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(vars(self).values()))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({shown})"

    @classmethod
    def model_validate(cls, values: Mapping[str, Any]) -> Self:
        """The settings that these values make. Raises pydantic's ValidationError."""
        plain = {
            name: value.model_dump() if isinstance(value, _Section) else value
            for name, value in values.items()
        }
        return _from_model(cls, _model_of(cls).model_validate(plain))

    def model_copy(self, *, update: Mapping[str, Any] | None = None) -> Self:
        """The same settings with some replaced, which are not checked."""
        return self.of_checked({**vars(self), **(update or {})})

    def model_dump(self, *, exclude: set[str] | frozenset[str] = frozenset()) -> dict[str, Any]:
        """The settings as maps within maps."""
        return {
            name: value.model_dump() if isinstance(value, _Section) else value
            for name, value in vars(self).items()
            if name not in exclude
        }


class SearchSettings(_Section):
    """How many hits, and how words and vectors are weighed.

    docs/internals/ranking.md has the figures that decided the defaults.
    """

    limit: int = _setting(5, "number of hits that a search returns", ge=1, le=100)
    lexical_weight: float = _setting(
        0.6,
        "weight of words against meaning: 1 ranks by words alone, 0 by meaning alone; `simplemem eval` compares values",
        ge=0,
        le=1,
    )
    archive: _Names = _setting(
        ("archive/sessions/",),
        "folders that searches and lists leave out unless a query contains `archive:` or a filter names the folder",
    )
    snippet_characters: int = _setting(
        300, "length of the passage shown with each hit, in characters", ge=40, le=4000
    )


class EmbedSettings(_Section):
    """What makes vectors. `none` searches by words alone; what is empty, the provider knows best."""

    provider: Literal["wordllama", "voyage", "openai", "ollama", "none"] = _setting(
        "wordllama",
        "the embedder, which makes the vectors for search by meaning; wordllama needs no network (docs/services.md)",
        ("wordllama", "none"),
    )
    model: str = _setting(
        "", "name of the model, as the service lists it; if empty, the provider's default", "no"
    )
    url: str = _setting(
        "",
        "address of the service, such as http://localhost:1234/v1; if empty, the provider's own",
        "no",
    )
    api_key: _ApiKey = _setting(
        None,
        "key of the service, or the environment variable or file that contains it",
        "no",
        eg={"path": "~/.config/embed.key"},
    )
    dimensions: int | None = _setting(
        None,
        "numbers per vector, if the model can shorten its vectors; fewer take less space, but search finds slightly less",
        "no",
        eg=512,
        ge=8,
        le=16_384,
    )
    batch: int | None = _setting(
        None,
        "texts per request; lower it if the service refuses large requests",
        eg=64,
        ge=1,
        le=2048,
    )
    timeout_seconds: float = _setting(
        60.0, "time limit of a request, in seconds; raise it for a slow model", gt=0, le=3600
    )
    query_prefix: str | None = _setting(
        None,
        "text put before each query; set it for a model whose prefix simplemem does not know",
        "no",
        eg="query: ",
    )
    document_prefix: str | None = _setting(
        None,
        "text put before each passage; set it for a model whose prefix simplemem does not know",
        "no",
        eg="passage: ",
    )
    keep_alive: str = _setting(
        "",
        "how long Ollama keeps the model in memory after a request, such as 30m; if empty, Ollama decides",
    )
    private: _Names = _setting(
        (),
        "folders, notes or patterns whose text is not sent to remote services",
        "adds",
        eg=["journal/", "*.secret"],
    )
    query_seconds: float = _setting(
        2.0,
        "seconds that a search waits for the vector of its query; after that it searches by words alone",
        gt=0,
        le=60,
    )


class HistorySettings(_Section):
    """How long earlier versions are kept."""

    keep_days: int = _setting(
        30,
        "days for which the earlier texts of notes are kept, so that changes can be undone",
        ge=1,
        le=100_000,
    )
    keep_mb: int = _setting(
        100,
        "megabytes that the earlier texts may take; above that, the oldest are deleted even before keep_days have passed",
        ge=1,
        le=10_000_000,
    )


class GitSettings(_Section):
    """What is read from the git repository of a vault, and whether changes are committed, under the person's name."""

    history: bool = _setting(True, "show the git commits of a note in its history")
    commit: Literal["off", "each"] = _setting(
        "off",
        "`each` commits every change to the git repository of the vault, under your name",
        "no",
    )
    folders: _Names = _setting(
        (),
        "folders outside the working tree that may contain the repository, as with a git worktree",
        "no",
        eg=["~/src/notes/.git"],
    )


class SyncSettings(_Section):
    """Whether a server exchanges changes with the remote of the vault's repository, as `simplemem sync` does."""

    every: float = _setting(
        0.0,
        "interval, in minutes, at which a running server does what `simplemem sync` does; 0 means never",
        "no",
        eg=10.0,
        ge=0,
        le=100_000,
    )


class BranchSettings(_Section):
    """A branch of a git repository as the vault of many servers, in place of the folder (docs/branch.md)."""

    repository: str = _setting(
        "",
        "git repository with the vault as a branch: the path of a bare repository, or an address (docs/branch.md)",
        "no",
        eg="ssh://git@example.org/memory.git",
    )
    name: str = _setting("main", "name of this branch", "no", pattern=r"^[\w][\w./-]{0,99}$")


class IndexSettings(_Section):
    """What is indexed, and how often the whole vault is looked through."""

    max_note_mb: float = _setting(
        5.0,
        "megabytes above which a note is not indexed, so searches do not find it; `stats` lists these notes",
        gt=0,
        le=64,
    )
    scan_minutes: float = _setting(
        5.0,
        "minutes between two comparisons of all notes with the index, which find edits that watching missed",
        ge=0.05,
        le=1_000_000,
    )
    engine: _ApiKey = _setting(
        None,
        "PostgreSQL database for the index, instead of a SQLite file: its address, or the environment variable or file "
        "that contains the address (docs/engine.md)",
        "no",
        eg="postgresql://memory@db/memory",
    )
    replica: _ApiKey = _setting(
        None,
        "read replica of the index database, for searches: its address, or the variable or file that contains the address",
        "no",
        eg="postgresql://memory@db2/memory",
    )
    schema_name: str = _setting(
        "",
        "PostgreSQL schema that contains the index; if empty, its name is made from the vault's folder name and path",
        "no",
        pattern="^[a-z_][a-z0-9_]{0,40}$|^$",
    )
    watch: Literal["auto", "poll", "off"] = _setting(
        "auto",
        "how a server notices edits: auto asks the operating system, poll compares the files regularly "
        "(for network drives), off waits for the next comparison of all notes",
    )


class WriteSettings(_Section):
    """How notes are written, and what becomes of a write that adds what looks like a password, key or token."""

    durability: Literal["full", "fast"] = _setting(
        "full",
        "`full` waits until a write is on the disk; `fast` does not, so a power cut can lose the last writes",
    )
    secrets: Literal["off", "warn", "refuse"] = _setting(
        "warn", "what happens to a write that adds a password, key or token", "narrower"
    )


class AccessSettings(_Section):
    """Rules by folder for whoever is served. The command line is the person's own and goes by none of these."""

    read_only: _Names = _setting(
        (),
        "folders, notes or patterns that agents cannot change",
        "adds",
        eg=["Archive/", "Templates/"],
    )
    hidden: _Names = _setting(
        (), "folders, notes or patterns that agents cannot see or find", "adds", eg=["Private/"]
    )
    only: _Names = _setting(
        (), "if set, the only folders, notes or patterns that agents can see", "no", eg=["Shared/"]
    )


class RerankSettings(_Section):
    """What orders the best notes again: `http` speaks as Cohere's, Jina's or text-embeddings-inference does."""

    provider: Literal["none", "voyage", "http"] = _setting(
        "none", "the reranker, which reorders the best hits (docs/services.md)", ("none",)
    )
    url: str = _setting(
        "", "address of the endpoint, such as http://localhost:8000/v1/rerank", "no"
    )
    model: str = _setting("", "name of the model, as the service lists it", "no")
    api_key: _ApiKey = _setting(
        None,
        "key of the service, or the environment variable or file that contains it",
        "no",
        eg={"env": "COHERE_API_KEY"},
    )
    candidates: int = _setting(
        20,
        "number of best hits that the reranker reorders; more take longer and cost more",
        "no",
        ge=2,
        le=100,
    )
    seconds: float = _setting(
        1.5,
        "seconds that a search waits for the reranker; after that the hits keep their order",
        "no",
        gt=0,
        le=60,
    )


class LlmSettings(_Section):
    """A language model, for what rules leave open in conversations and statements: asked only where a person says so."""

    provider: Literal["none", "openai", "ollama"] = _setting(
        "none",
        "the language model for conversations and facts; openai means any service with OpenAI's protocol "
        "(docs/services.md)",
        ("none",),
    )
    url: str = _setting("", "address of the service, such as http://localhost:1234/v1", "no")
    model: str = _setting("", "name of the model, as the service lists it", "no")
    api_key: _ApiKey = _setting(
        None,
        "key of the service, or the environment variable or file that contains it",
        "no",
        eg={"env": "OPENAI_API_KEY"},
    )
    timeout_seconds: float = _setting(
        30.0, "time limit of a request, in seconds", "no", gt=0, le=3600
    )
    max_calls_per_hour: int = _setting(
        120,
        "calls that a process may make per hour, which limits the cost; 0 allows none",
        "no",
        ge=0,
        le=100_000,
    )
    route: bool = _setting(
        False,
        "ask the model which topic a message belongs to if two topics score nearly the same",
        "no",
    )
    route_seconds: float = _setting(
        3.0,
        "seconds that a message waits for the model to name its topic; after that the rules decide",
        "no",
        gt=0,
        le=60,
    )


class DocumentSettings(_Section):
    """What may be fetched from the network to be kept as a document, and a folder of documents beside the vault."""

    allow_private: bool = _setting(
        False, "also fetch documents from addresses of this machine and its local network", "no"
    )
    knowledge_base: Path | None = _setting(
        None,
        "folder of Markdown files, in the vault or elsewhere, that two additional tools search and add to",
        "no",
        eg="~/handbook",
    )


class HttpSettings(_Section):
    """Where a server over the network is, and who may reach it beside the tokens of `simplemem token`: an authorization
    server's users."""

    url: str = _setting(
        "",
        "address of the web page, to which the profile `chatgpt` links notes; if empty, it links them to Obsidian",
        "no",
        eg="https://memory.example.org",
    )
    oauth_issuer: str = _setting(
        "",
        "address of the OAuth authorization server whose tokens are accepted (docs/network.md)",
        "no",
        eg="https://login.example.org",
    )
    oauth_audience: str = _setting(
        "",
        "audience that these tokens must have: the address of this server",
        "no",
        eg="https://memory.example.org/mcp",
    )
    oauth_keys: str = _setting(
        "",
        "address of the authorization server's public keys",
        "no",
        eg="https://login.example.org/jwks.json",
    )
    oauth_user_claim: str = _setting(
        "",
        "claim whose value is the only user_id that a token may access; if empty, tokens may access all users",
        "no",
        eg="email",
    )


class VoyageSettings(_Section):
    """What a file of the original simplemem may say, where `embed` and `rerank` name nothing."""

    api_key: _ApiKey = _setting(
        None,
        "key of Voyage, used if the provider is voyage and its own api_key is not set",
        "no",
        eg={"path": "~/.config/voyage.key"},
    )
    model: str = _setting(
        "voyage-3.5",
        "model for vectors, used if embed.provider is voyage and embed.model is empty",
        "no",
    )
    rerank_model: str = _setting(
        "rerank-lite-1",
        "reranker, used if rerank.provider is voyage and rerank.model is empty",
        "no",
    )


class Settings(_Section):
    """Everything that can be set, with its default."""

    vault: Path | None = _setting(
        None,
        "the vault to use if neither `--vault` nor SIMPLEMEM_VAULT names one",
        "no",
        eg="~/notes",
    )
    db: Path | None = _setting(
        None,
        "file of the index, if not .simplemem/index.db; set it if the vault is in a synced folder",
        "no",
        eg="~/.cache/simplemem/notes.db",
    )
    read_only: bool = _setting(False, "refuse every write, by agents and by commands", "narrower")
    no_delete: bool = _setting(False, "agents cannot delete notes (docs/trust.md)", "narrower")
    log_level: Literal["debug", "info", "warning", "error"] = _setting(
        "warning",
        "lowest level of the messages that a server writes to stderr; info adds a line per HTTP request",
    )
    max_memory_length: int | None = _setting(
        None,
        "longest memory in the profile `simplemem`, in characters of text; 0 means no limit, unset means 2500",
        eg=2500,
    )
    search: SearchSettings = SearchSettings()
    embed: EmbedSettings = EmbedSettings()
    history: HistorySettings = HistorySettings()
    git: GitSettings = GitSettings()
    sync: SyncSettings = SyncSettings()
    branch: BranchSettings = BranchSettings()
    index: IndexSettings = IndexSettings()
    write: WriteSettings = WriteSettings()
    access: AccessSettings = AccessSettings()
    rerank: RerankSettings = RerankSettings()
    llm: LlmSettings = LlmSettings()
    documents: DocumentSettings = DocumentSettings()
    http: HttpSettings = HttpSettings()
    voyage_ai: VoyageSettings = VoyageSettings()

    @property
    def max_note_bytes(self) -> int:
        return int(self.index.max_note_mb * 1024 * 1024)

    def for_a_person(self) -> Settings:
        """Without the rules that hold for whoever is served."""
        return self.model_copy(update={"access": AccessSettings(), "no_delete": False})


def fields(section: type[_Section] = Settings) -> Iterator[tuple[str, FieldInfo]]:
    """Every setting by its dotted name, with its type and bounds as Pydantic has them."""
    for name, field in _model_of(section).model_fields.items():
        if section.declared[name].is_section:
            for inner, inner_field in fields(type(field.default)):
                yield f"{name}.{inner}", inner_field
        else:
            yield name, field


def _by_dotted_name(section: type[_Section], above: str = "") -> Iterator[tuple[str, _Declared]]:
    for name, setting in section.declared.items():
        if setting.is_section:
            yield from _by_dotted_name(type(setting.default), f"{above}{name}.")
        else:
            yield f"{above}{name}", setting


_MODELS: dict[str, type[BaseModel]] = {}


def _model_of(section: type[_Section]) -> type[BaseModel]:
    """The model of Pydantic that checks the values of a section, and of the sections within it. Made once."""
    if section.__name__ not in _MODELS:
        _MODELS[section.__name__] = _new_model(section)
    return _MODELS[section.__name__]


def _new_model(section: type[_Section]) -> type[BaseModel]:
    from pydantic import ConfigDict, Field, create_model

    hints = _types_of(section)
    declared: dict[str, Any] = {}
    for name, setting in section.declared.items():
        if setting.is_section:
            declared[name] = (_model_of(type(setting.default)), setting.default)
        else:
            extra: dict[str, Any] = {"vault": setting.vault, "example": setting.example}
            field = Field(
                setting.default,
                description=setting.meaning,
                json_schema_extra=extra,
                **setting.bounds,
            )
            declared[name] = (hints[name], field)
    return create_model(section.__name__, __config__=ConfigDict(extra="forbid"), **declared)


def _types_of(section: type[_Section]) -> dict[str, Any]:
    """The types of the settings of a section, with what is done to a value before it is checked."""
    from pydantic import BeforeValidator, SecretStr

    named = {
        "_ApiKey": Annotated[SecretStr | dict[str, str] | None, BeforeValidator(_where_a_key_lies)],
        "_Names": Annotated[tuple[str, ...], BeforeValidator(_listed)],
    }
    return get_type_hints(section, localns=named, include_extras=True)


def _from_model(section: type[_SectionType], checked: Any) -> _SectionType:
    """The section that checked values make. What was not given is the default, which is a section already."""
    values: dict[str, Any] = {}
    for name, setting in section.declared.items():
        value = getattr(checked, name)
        if setting.is_section and not isinstance(value, _Section):
            value = _from_model(type(setting.default), value)
        values[name] = value
    return section.of_checked(values)


_FIELDS = dict(_by_dotted_name(Settings))


_POLICY_MARKS = {
    "no": " Not allowed in a vault's file.",
    "narrower": " A vault's file can only make it stricter.",
    "adds": " The lists of all files are combined.",
}


def example_config() -> str:
    """A settings file with every setting in it, each commented out: its default, or an example where there is none."""
    lines = [
        "## Settings of simplemem. Each line shows a default, or an example if the setting has none.",
        '## To change a setting, remove the "# " before it and edit its value.',
        "##",
        "## Your own file is ~/.config/simplemem/config.toml. A vault can have a file too, .simplemem/config.toml.",
        "## An option of a command overrides an environment variable (SIMPLEMEM_SEARCH_LIMIT for search.limit), which",
        "## overrides the vault's file, which overrides your own. A path may begin with ~.",
        "",
    ]
    section = ""
    for key, field in _FIELDS.items():
        table, _, name = key.rpartition(".")
        if table != section:
            section = table
            lines += ["", f"[{section}]"]
        meaning = field.meaning[:1].upper() + field.meaning[1:]
        mark = _POLICY_MARKS.get(str(field.vault), "")
        lines.append(f"## {meaning}.{mark}")
        lines.append(
            f"# {name} = {_toml(field.default if field.example is None else field.example)}"
        )
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {json.dumps(each)}" for key, each in value.items()) + " }"
    return json.dumps(list(value) if isinstance(value, tuple) else value)


def load_settings(flags: Flags = None, *, vault: Path | None = None, env: Env = None) -> Settings:
    """The settings in force for a vault."""
    return _validated(*_merged(flags, vault, env))


def settings_with_sources(
    flags: Flags = None, *, vault: Path | None = None, env: Env = None
) -> list[Sourced]:
    """Every setting in force for a vault."""
    values, sources = _merged(flags, vault, env)
    shown = attrgetter(*_FIELDS)(_validated(values, sources))
    return [
        (key, value, sources.get(key, "default")) for key, value in zip(_FIELDS, shown, strict=True)
    ]


def _merged(flags: Flags, vault: Path | None, env: Env) -> tuple[dict[str, Any], dict[str, str]]:
    """Dotted values by precedence, lowest first, and the source of each."""
    env = os.environ if env is None else env
    values, sources = dict[str, Any](), dict[str, str]()

    def take(settings: Mapping[str, Any], source: str) -> None:
        for key, value in settings.items():
            if (
                key in values and _FIELDS[key].vault == "adds"
            ):  # what one place closes, no other gives away
                values[key] = [*_listed(values[key]), *_listed(value)]
                sources[key] = f"{sources[key]}, {source}"
            else:
                values[key], sources[key] = value, source

    user_file = user_config_path(env)
    take(_from_file(user_file), str(user_file))
    if vault is not None:
        vault_file = vault / ".simplemem" / "config.toml"
        # A link could lead out of the vault.
        linked = vault_file.is_symlink() or vault_file.parent.is_symlink()
        take({} if linked else _from_vault(vault_file, user_file, values), str(vault_file))
    for key in _FIELDS:
        name = _variable_of(key)
        if env.get(name, "") != "":
            take({key: env[name]}, f"${name}")
    take({key: value for key, value in (flags or {}).items() if value is not None}, "flag")
    return values, sources


def _from_vault(vault_file: Path, user_file: Path, mine: Mapping[str, Any]) -> dict[str, Any]:
    """What a vault says of itself, as far as it may."""
    return _allowed_from_vault(_from_file(vault_file), vault_file, user_file, mine)


def _allowed_from_vault(
    settings: dict[str, Any], vault_file: Path, user_file: Path, mine: Mapping[str, Any]
) -> dict[str, Any]:
    """The settings that count, of those in a vault's own file. Raises Invalid for one that a vault may not set."""
    for key, value in settings.items():
        policy = _FIELDS[key].vault
        if policy == "no" or (isinstance(policy, tuple) and value not in policy):
            shown = "" if policy == "no" else f" = {value!r}"
            hint = f"Set it in {user_file}, in the environment or as a flag."
            raise Invalid(
                f"{vault_file} sets {key}{shown}, which a vault may not set",
                hint=hint if policy == "no" else f"{hint} A vault may set {' or '.join(policy)}.",
            )
        if policy == "narrower":
            order = _allowed_values(key) or (False, True)  # from wide to narrow
            for each in (said := (value, mine.get(key, _FIELDS[key].default))):
                if type(each) is not type(order[0]) or each not in order:
                    allowed = " or ".join(str(one).lower() for one in order)
                    raise Invalid(
                        f"the setting {key} = {each!r} ({vault_file}) is not valid: it must be {allowed}"
                    )
            settings[key] = max(said, key=order.index)
    return settings


def _allowed_values(key: str) -> tuple[Any, ...]:
    """The only values that a setting may have, in their order; none where it is no such setting."""
    above, _, name = key.rpartition(".")
    section = type(getattr(Settings(), above)) if above else Settings
    return get_args(_types_of(section)[name])


def check_settings(
    table: Mapping[str, Any], file: Path, *, is_of_vault: bool, env: Env = None
) -> None:
    """Raise Invalid if the settings in a file would not be accepted, with the policy for a vault's own file."""
    settings = dict(_flat(table, file))
    if is_of_vault:
        user_file = user_config_path(os.environ if env is None else env)
        settings = _allowed_from_vault(settings, file, user_file, _from_file(user_file))
    _validated(settings, dict.fromkeys(settings, str(file)))


def check_is_setting(key: str) -> None:
    """Raise NotFound, with similar names, if there is no setting of this name."""
    if key not in _FIELDS:
        near = get_close_matches(key, _FIELDS, 1, 0.5)
        hint = f"Did you mean {near[0]}?" if near else "`simplemem config list` lists all settings."
        raise NotFound(f"there is no setting called {key!r}", hint=hint)


# Variables read outside the settings. Extend this when you read a new one.
_OTHER_VARIABLES = frozenset(
    ENV_PREFIX + name for name in ("VAULT", "PROFILE", "TOOLS", "TOKEN", "TOKEN_FILE", "NOW")
)


def unknown_variables(env: Mapping[str, str]) -> list[str]:
    """Return one warning per variable that simplemem does not read and whose name is like one that it reads.

    Other names are left alone: Kubernetes sets `SIMPLEMEM_PORT` and more for a service called simplemem.
    """
    known = {_variable_of(key) for key in _FIELDS} | _OTHER_VARIABLES
    unknown = {name for name in env if name.startswith(ENV_PREFIX)} - known
    if not unknown:
        return []

    own_settings = _from_file(user_config_path(env)).values()
    unknown -= {value["env"] for value in own_settings if _names_variable(value)}
    warnings = []
    for name in sorted(unknown):
        similar = get_close_matches(name.upper(), known, 1, 0.85)
        if similar:
            warnings.append(f"the variable {name} has no effect; did you mean {similar[0]}?")
    return warnings


def _names_variable(value: Any) -> bool:
    """Return whether a setting is `{ env = NAME }`."""
    return isinstance(value, dict) and "env" in value


def _variable_of(key: str) -> str:
    """The environment variable that sets a setting."""
    return ENV_PREFIX + key.replace(".", "_").upper()


def user_config_path(env: Mapping[str, str]) -> Path:
    """The user's own settings: `$XDG_CONFIG_HOME/simplemem/config.toml`, by default below `~/.config`."""
    return Path(user_config_file(env))


def _from_file(path: Path) -> dict[str, Any]:
    try:
        return dict(_flat(read_toml(path), path))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise Unavailable(f"the settings file {path} cannot be read: {error.strerror}") from error


_FIX_TOML = "Fix the file in an editor."


def read_toml(path: Path) -> dict[str, Any]:
    """What a TOML file says."""
    data = read_bounded(path, 64_000)
    import tomllib  # most vaults have no such file

    try:
        table = tomllib.loads(data.decode("utf-8-sig"))
        repr(table)  # so can errors say it
        return table
    except RecursionError:
        raise Invalid(
            f"{path} is not valid TOML: it is nested too deeply", hint=_FIX_TOML
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise Invalid(f"{path} is not valid TOML: {error}", hint=_FIX_TOML) from error
    except ValueError as error:  # what Python says of its limits would tell nobody what to do
        why = "it is not UTF-8, or contains a number that is too long"
        raise Invalid(f"{path} is not valid TOML: {why}", hint=_FIX_TOML) from error


def read_bounded(path: Path, most: int) -> bytes:
    """A regular file of so many bytes at most: a pipe in its place would keep us waiting, a huge one fill the memory."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise Invalid(
                f"{path} is not a regular file",
                hint="Replace it with a regular file, or remove it.",
            )
        if len(data := file.read(most + 1)) > most:
            raise Invalid(
                f"{path} is larger than {most:,} bytes",
                hint="Replace it with a smaller file, or remove it.",
            )
        return data


def _flat(table: Mapping[str, Any], path: Path, above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        key = above + name
        if key in _FIELDS:
            yield key, value
        elif isinstance(value, dict) and any(
            known.startswith(f"{key}.") for known in (*_FIELDS, *_GONE)
        ):
            yield from _flat(value, path, f"{key}.")
        elif key not in _GONE:
            near = get_close_matches(key, _FIELDS, 1, 0.5) or get_close_matches(
                name, _FIELDS, 1, 0.5
            )
            hint = (
                f"Did you mean {near[0]}?"
                if near
                else "`simplemem config list --example` lists all settings."
            )
            raise Invalid(f"{path} sets {key}, which is not a setting", hint=hint)


def _validated(values: Mapping[str, Any], sources: Mapping[str, str]) -> Settings:
    if values.keys() <= {"vault"}:  # a folder, and no more to check than that it is text
        named = values.get("vault")
        if named is None or isinstance(named, (str, Path)):
            return Settings(vault=None if named is None else Path(named))
    from pydantic import ValidationError

    tree: dict[str, Any] = {}
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        (tree.setdefault(section, {}) if section else tree)[name] = value
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"][:2]))
        where = sources.get(key, "")
        if {"api_key", "engine", "replica"} & {
            *first["loc"]
        }:  # what is wrong with a key is said without showing it
            kinds = 'a string, { env = "NAME" } or { path = "FILE" }'
            raise Invalid(f"the setting {key} ({where}) must be {kinds}") from None
        raise Invalid(
            f"the setting {key} = {first['input']!r} ({where}) is not valid: {first['msg']}"
        ) from error


def find_vault(
    flag: str | Path | None = None,
    *,
    env: Env = None,
    cwd: Path | None = None,
    default: str | Path | None = None,
) -> Path:
    """Return the vault that is meant, in the order of `simplemem config --help`. The path need not exist yet.

    With `default`, that vault takes the place of `~/simplemem`. Without it, raises NotFound if the current folder is
    among notes that are in no vault, or if `~/simplemem` is a checkout of this program. Raises Invalid if `flag` is
    the empty text, which an unset variable of a script leaves.
    """
    env = os.environ if env is None else env
    here = os.fspath(cwd or Path.cwd())
    home = str(Path.home())

    named = _vault_named(flag, env)
    if named:
        return Path(named_vault(named, here))
    enclosing = enclosing_vault(here)
    if enclosing is not None:
        return Path(enclosing)
    if default is not None:
        return Path(named_vault(os.fspath(default), here))
    if not may_use_home_vault(here, home):
        raise _no_vault_around(here)
    return Path(home_vault(home))


def find_existing_vault(flag: str | Path | None = None) -> Path:
    """Return the vault that is meant. Raises NotFound if it does not exist."""
    vault = find_vault(flag)
    if vault.is_dir():
        return vault
    if not _vault_named(flag, os.environ):
        raise _no_vault_around(os.getcwd())
    if vault.exists():
        raise NotFound(
            f"{vault} is a file",
            hint="A vault is a folder. Name the folder that contains the file.",
        )
    near = similar_folder(vault)
    suggestion = f"Did you mean {near}? " if near else ""
    raise NotFound(
        f"no vault at {vault}",
        hint=f"{suggestion}`simplemem init {shlex.quote(str(vault))}` creates it.",
    )


def similar_folder(missing: Path) -> Path | None:
    """Return the folder beside a folder that does not exist whose name is nearest to its name; None if none is near."""
    try:
        names = [
            each.name
            for each in missing.parent.iterdir()
            if each.is_dir() and not each.name.startswith(".")
        ]
    except OSError:
        return None

    by_key = {name.casefold(): name for name in sorted(names)}
    near = get_close_matches(missing.name.casefold(), by_key, 1, 0.75)
    return missing.parent / by_key[near[0]] if near else None


def _vault_named(flag: str | Path | None, env: Mapping[str, str]) -> str | None:
    if flag == "":
        raise Invalid(
            "the path of the vault is empty", hint="Name a folder, or leave the vault out."
        )
    named = flag or env.get(f"{ENV_PREFIX}VAULT") or _from_file(user_config_path(env)).get("vault")
    return os.fspath(named) if named else None


def _no_vault_around(here: str) -> NotFound:
    home = str(Path.home())
    default = home_vault(home)
    message = f"no vault in {here} or in a folder above it"
    makes_vault = "`simplemem init .` makes this folder a vault"
    if contains_home(here, home):
        makes_vault = "`simplemem init FOLDER` makes a folder of notes a vault"
    hint = f"{makes_vault}. To use another vault, pass `--vault FOLDER`."
    if is_source_checkout(default):
        hint += f" {default} contains the source code of simplemem, so it is not used."
    return NotFound(message, hint=hint)
