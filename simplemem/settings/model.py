"""The settings: each with its type, default, meaning, and whether a vault's own file may set it.

A vault arrives by `git clone`. So its own file may say how the vault is kept and shown, but never
what simplemem reads elsewhere, sends to other machines, or runs.

The arguments of `setting` are the default, the meaning, and what a vault's own file may set
(`VaultPolicy` in section.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from simplemem.settings.section import (
    ProviderName,
    Section,
    declarations,
    pydantic_fields,
    setting,
)

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from simplemem.settings.section import ModelRoute, Names, SecretSource


class SearchSettings(Section):
    """How many hits a search returns, and how it weighs words against meaning.

    docs/internals/ranking.md has the figures that decided the defaults.
    """

    limit: int = setting(5, "number of hits that a search returns", ge=1, le=100)
    lexical_weight: float = setting(
        0.6,
        "weight of words against meaning: 1 ranks by words alone, 0 by meaning alone; "
        "`simplemem eval` compares values",
        ge=0,
        le=1,
    )
    archive: Names = setting(
        ("archive/sessions/",),
        "folders that searches and lists leave out unless a query contains `archive:` or a "
        "filter names the folder",
    )
    snippet_characters: int = setting(
        300, "length of the passage shown with each hit, in characters", ge=40, le=4000
    )


class EmbedSettings(Section):
    """The embedder, which makes the vectors for search by meaning."""

    provider: Annotated[
        str,
        ProviderName("embedders", ("wordllama", "local", "voyage", "openai", "ollama", "none")),
    ] = setting(
        "wordllama",
        "the embedder, which makes the vectors for search by meaning; wordllama needs no "
        "network (docs/services.md)",
        ("wordllama", "none"),
    )
    model: str = setting(
        "", "name of the model, as the service lists it; if empty, the provider's default", "no"
    )
    url: str = setting(
        "",
        "address of the service, such as http://localhost:1234/v1; if empty, the provider's own",
        "no",
    )
    api_key: SecretSource = setting(
        None,
        "key of the service, or the environment variable or file that contains it",
        "no",
        eg={"path": "~/.config/embed.key"},
    )
    dimensions: int | None = setting(
        None,
        "numbers per vector, if the model can shorten its vectors; fewer take less space, but "
        "search finds slightly less",
        "no",
        eg=512,
        ge=8,
        le=16_384,
    )
    batch: int | None = setting(
        None,
        "texts per request; lower it if the service refuses large requests",
        eg=64,
        ge=1,
        le=2048,
    )
    timeout_seconds: float = setting(
        60.0, "time limit of a request, in seconds; raise it for a slow model", gt=0, le=3600
    )
    query_prefix: str | None = setting(
        None,
        "text put before each query; set it for a model whose prefix simplemem does not know",
        "no",
        eg="query: ",
    )
    document_prefix: str | None = setting(
        None,
        "text put before each passage; set it for a model whose prefix simplemem does not know",
        "no",
        eg="passage: ",
    )
    keep_alive: str = setting(
        "",
        "how long Ollama keeps the model in memory after a request, such as 30m; if empty, "
        "Ollama decides",
    )
    private: Names = setting(
        (),
        "folders, notes or patterns whose text is not sent to remote services",
        "adds",
        eg=["journal/", "*.secret"],
    )
    query_seconds: float = setting(
        2.0,
        "seconds that a search waits for the vector of its query; after that it searches by "
        "words alone",
        gt=0,
        le=60,
    )


class HistorySettings(Section):
    """How long earlier versions are kept."""

    keep_days: int = setting(
        30,
        "days for which the earlier texts of notes are kept, so that changes can be undone",
        ge=1,
        le=100_000,
    )
    keep_mb: int = setting(
        100,
        "megabytes that the earlier texts may take; above that, the oldest are deleted even "
        "before keep_days have passed",
        ge=1,
        le=10_000_000,
    )


class GitSettings(Section):
    """What is read from the git repository of a vault, and whether changes are committed to it."""

    history: bool = setting(True, "show the git commits of a note in its history")
    commit: Literal["off", "each"] = setting(
        "off",
        "`each` commits every change to the git repository of the vault, under your name",
        "no",
    )
    folders: Names = setting(
        (),
        "folders outside the working tree that may contain the repository, as with a git worktree",
        "no",
        eg=["~/src/notes/.git"],
    )


class SyncSettings(Section):
    """Whether a server exchanges changes with the remote, as `simplemem sync` does."""

    every: float = setting(
        0.0,
        "interval, in minutes, at which a running server does what `simplemem sync` does; 0 "
        "means never",
        "no",
        eg=10.0,
        ge=0,
        le=100_000,
    )


class BranchSettings(Section):
    """A branch of a git repository as the vault of many servers, instead of a folder."""

    repository: str = setting(
        "",
        "git repository with the vault as a branch: the path of a bare repository, or an "
        "address (docs/branch.md)",
        "no",
        eg="ssh://git@example.org/memory.git",
    )
    name: str = setting("main", "name of this branch", "no", pattern=r"^[\w][\w./-]{0,99}$")


class IndexSettings(Section):
    """What is indexed, where the index is, and how edits are noticed."""

    max_note_mb: float = setting(
        5.0,
        "megabytes above which a note is not indexed, so searches do not find it; `stats` lists "
        "these notes",
        gt=0,
        le=64,
    )
    scan_minutes: float = setting(
        5.0,
        "minutes between two comparisons of all notes with the index, which find edits that "
        "watching missed",
        ge=0.05,
        le=1_000_000,
    )
    engine: SecretSource = setting(
        None,
        "PostgreSQL database for the index, instead of a SQLite file: its address, or the "
        "environment variable or file that contains the address (docs/engine.md)",
        "no",
        eg="postgresql://memory@db/memory",
    )
    replica: SecretSource = setting(
        None,
        "read replica of the index database, for searches: its address, or the variable or file "
        "that contains the address",
        "no",
        eg="postgresql://memory@db2/memory",
    )
    schema_name: str = setting(
        "",
        "PostgreSQL schema that contains the index; if empty, its name is made from the vault's "
        "folder name and path",
        "no",
        pattern="^[a-z_][a-z0-9_]{0,40}$|^$",
    )
    watch: Literal["auto", "poll", "off"] = setting(
        "auto",
        "how a server notices edits: auto asks the operating system, poll compares the files "
        "regularly (for network drives), off waits for the next comparison of all notes",
    )


class WriteSettings(Section):
    """How notes are written, and what happens to a write that adds a password, key or token."""

    durability: Literal["full", "fast"] = setting(
        "full",
        "`full` waits until a write is on the disk; `fast` does not, so a power cut can lose "
        "the last writes",
    )
    secrets: Literal["off", "warn", "refuse"] = setting(
        "warn", "what happens to a write that adds a password, key or token", "narrower"
    )
    confirm: bool = setting(
        False,
        "whether a client that can ask its user does so before an agent deletes a note or rewrites"
        " most of one",
    )
    capture: str = setting(
        "",
        "note that /capture of the web page adds to, such as inbox/Captures; if empty, the daily "
        "note",
        eg="inbox/Captures",
    )
    review: Names = setting(
        (),
        "folders, notes or patterns where a change by an agent becomes a proposal, which a person "
        "accepts or declines (docs/proposals.md)",
        "adds",
        eg=["decisions/"],
    )


class AccessSettings(Section):
    """Which notes agents can see and change. The command line is the user's and ignores these."""

    read_only: Names = setting(
        (),
        "folders, notes or patterns that agents cannot change",
        "adds",
        eg=["Archive/", "Templates/"],
    )
    hidden: Names = setting(
        (), "folders, notes or patterns that agents cannot see or find", "adds", eg=["Private/"]
    )
    only: Names = setting(
        (), "if set, the only folders, notes or patterns that agents can see", "no", eg=["Shared/"]
    )


class RerankSettings(Section):
    """The reranker. `http` is an endpoint like Cohere's, Jina's or text-embeddings-inference's."""

    provider: Annotated[str, ProviderName("rerankers", ("none", "voyage", "http"))] = setting(
        "none", "the reranker, which reorders the best hits (docs/services.md)", ("none",)
    )
    url: str = setting("", "address of the endpoint, such as http://localhost:8000/v1/rerank", "no")
    model: str = setting("", "name of the model, as the service lists it", "no")
    api_key: SecretSource = setting(
        None,
        "key of the service, or the environment variable or file that contains it",
        "no",
        eg={"env": "COHERE_API_KEY"},
    )
    candidates: int = setting(
        20,
        "number of best hits that the reranker reorders; more take longer and cost more",
        "no",
        ge=2,
        le=100,
    )
    seconds: float = setting(
        1.5,
        "seconds that a search waits for the reranker; after that the hits keep their order",
        "no",
        gt=0,
        le=60,
    )


class LlmSettings(Section):
    """A language model for conversations and facts, used only where the user asks for it."""

    provider: Literal["none", "openai", "ollama", "anthropic"] = setting(
        "none",
        "the language model for conversations and facts; openai and anthropic mean any service "
        "with that protocol (docs/services.md)",
        ("none",),
    )
    url: str = setting("", "address of the service, such as http://localhost:1234/v1", "no")
    model: str = setting("", "name of the model, as the service lists it", "no")
    api_key: SecretSource = setting(
        None,
        "key of the service, or the environment variable or file that contains it",
        "no",
        eg={"env": "OPENAI_API_KEY"},
    )
    timeout_seconds: float = setting(
        30.0, "time limit of a request, in seconds", "no", gt=0, le=3600
    )
    max_calls_per_hour: int = setting(
        120,
        "calls that a process may make per hour, which limits the cost; 0 allows none",
        "no",
        ge=0,
        le=100_000,
    )
    route: ModelRoute = setting(
        "close",
        "ask the model, while a message is stored, what it states and which topic it belongs to: "
        "with close it chooses the topic unless the rules are certain, with always of each "
        "message, and off asks nothing",
        "no",
    )
    route_seconds: float = setting(
        10.0,
        "seconds that storing a message waits for the model; after that the rules decide",
        "no",
        gt=0,
        le=60,
    )


class DocumentSettings(Section):
    """What may be fetched as a document, and a folder of documents beside the vault."""

    allow_private: bool = setting(
        False, "also fetch documents from addresses of this machine and its local network", "no"
    )
    knowledge_base: Path | None = setting(
        None,
        "folder of Markdown files, in the vault or elsewhere, that two additional tools search "
        "and add to",
        "no",
        eg="~/handbook",
    )


class HttpSettings(Section):
    """The address of a network server, and an OAuth server whose users may access it.

    Tokens of `simplemem token` are accepted too.
    """

    url: str = setting(
        "",
        "address of the web page, for profiles that link to notes; if empty, they link to Obsidian",
        "no",
        eg="https://memory.example.org",
    )
    oauth_issuer: str = setting(
        "",
        "address of the OAuth authorization server whose tokens are accepted (docs/network.md)",
        "no",
        eg="https://login.example.org",
    )
    oauth_audience: str = setting(
        "",
        "audience that these tokens must have: the address of this server",
        "no",
        eg="https://memory.example.org/mcp",
    )
    oauth_keys: str = setting(
        "",
        "address of the authorization server's public keys",
        "no",
        eg="https://login.example.org/jwks.json",
    )
    oauth_user_claim: str = setting(
        "",
        "claim whose value is the only user that a token may access; if empty, tokens may "
        "access all users",
        "no",
        eg="email",
    )


class VoyageSettings(Section):
    """Settings of the original simplemem, used where `embed` and `rerank` leave one empty."""

    api_key: SecretSource = setting(
        None,
        "key of Voyage, used if the provider is voyage and its own api_key is not set",
        "no",
        eg={"path": "~/.config/voyage.key"},
    )
    model: str = setting(
        "voyage-3.5",
        "model for vectors, used if embed.provider is voyage and embed.model is empty",
        "no",
    )
    rerank_model: str = setting(
        "rerank-lite-1",
        "reranker, used if rerank.provider is voyage and rerank.model is empty",
        "no",
    )


class Settings(Section):
    """Everything that can be set."""

    vault: Path | None = setting(
        None,
        "the vault to use if neither `--vault` nor SIMPLEMEM_VAULT names one",
        "no",
        eg="~/notes",
    )
    db: Path | None = setting(
        None,
        "file of the index, if not .simplemem/index.db; set it if the vault is in a synced folder",
        "no",
        eg="~/.cache/simplemem/notes.db",
    )
    read_only: bool = setting(False, "refuse every write, by agents and by commands", "narrower")
    no_delete: bool = setting(False, "agents cannot delete notes (docs/trust.md)", "narrower")
    log_level: Literal["debug", "info", "warning", "error"] = setting(
        "warning",
        "lowest level of the messages that a server writes to stderr; info adds a line per HTTP "
        "request",
    )
    max_memory_length: int | None = setting(
        None,
        "longest memory in characters of text, for profiles that limit it; 0 means no limit, "
        "unset means 2500",
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
        """The size in bytes above which a note is not indexed."""
        return int(self.index.max_note_mb * 1024 * 1024)

    def for_a_person(self) -> Settings:
        """Return a copy without the settings that restrict only agents.

        They are `access`, `no_delete` and `write.review`. `read_only` stays, because it restricts
        people too.
        """
        write = self.write.model_copy(update={"review": ()})
        return self.model_copy(
            update={"access": AccessSettings(), "no_delete": False, "write": write}
        )


SETTINGS = dict(declarations(Settings))
"""All settings by their dotted names, in the order of the declarations."""


def fields() -> Iterator[tuple[str, FieldInfo]]:
    """Yield all settings by their dotted names, with pydantic's types and bounds.

    Imports pydantic and builds its models, which is slow.
    """
    return pydantic_fields(Settings)
