"""PrecisionMemBench: do the right beliefs come back, and no others?

https://github.com/tenurehq/precisionMemBench has 35 beliefs and 77 cases, and 12 cases in sessions
that its two files do not contain. A case passes if all its assertions hold: which beliefs are
relevant to a query (exactly these), which pinned facts and open questions of the scope come with
them, and what the prelude about the user contains. The rules are those of its adapter for other
systems, `src/adapters/baseAdapter.ts`.

Two sets of our tools are measured, over MCP. Nothing was chosen by the result.

- *Default tools*: a belief is a note in the folder of its user and scope, with its aliases, its
  type, the tags `pinned` and `state/current`, and links to the participants of a relation. Pinned
  facts, questions and the prelude are lists by tag and type. If the answer to a search says that
  nothing was found, nothing counts as relevant; otherwise all hits do.
- *supermemento*: a belief is an entity of a container tag per user and scope, its aliases are an
  observation, and `semantic_search` has its default `min_similarity`. The rest is taken from the
  data, as the published adapter does for all systems.
"""

from __future__ import annotations

import io
import itertools
import json
import re
import tarfile
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from bench.conversation import Conversation, failure_in, serve
from bench.retrieval.data import Document, write_notes
from bench.retrieval.loaders import WrongFormat
from bench.retrieval.metrics import mean
from simplemem.note.yaml_writer import render_header

BELIEFS_FILE: Final = "beliefs.seed.json"
CASES_FILE: Final = "retrieval.cases.json"
_DEFAULT_USER: Final = "test-user"
_DEFAULT_MAX_BELIEFS: Final = 20
_UNIVERSAL_SCOPE: Final = "user:universal"
_QUESTION: Final = "open_question"
_RELATION: Final = "relation"


@dataclass(frozen=True)
class Belief:
    """A belief of a user, in one or more scopes."""

    id: str
    user: str
    kind: str
    name: str
    aliases: tuple[str, ...]
    content: str
    reason: str
    scopes: tuple[str, ...]
    is_pinned: bool
    is_current: bool  # neither superseded nor resolved
    participants: tuple[str, ...]  # of a relation: ids of beliefs

    def is_in(self, scopes: Iterable[str]) -> bool:
        """Return whether it belongs to one of some scopes."""
        return not set(self.scopes).isdisjoint(scopes)


@dataclass(frozen=True)
class Case:
    """A query of a user in some scopes, and what must and must not come back."""

    id: str
    category: str
    user: str
    scopes: tuple[str, ...]
    query: str
    max_beliefs: int
    expected: dict[str, dict[str, Any]]  # by the part of the context, as in the file

    @property
    def relevant(self) -> frozenset[str]:
        """Return the ids of the beliefs that are relevant, none of which is pinned."""
        return frozenset(self.expected.get("relevantBeliefs", {}).get("shouldOnlyInclude", ()))


@dataclass(frozen=True)
class PrecisionBenchmark:
    """The beliefs and the cases."""

    beliefs: tuple[Belief, ...]
    cases: tuple[Case, ...]

    def by_id(self) -> dict[str, Belief]:
        """Return the beliefs by their ids."""
        return {belief.id: belief for belief in self.beliefs}


@dataclass(frozen=True)
class Context:
    """What a system returns for a case: ids of beliefs, and the text about the user."""

    prelude: str = ""
    pinned: tuple[str, ...] = ()
    relevant: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()


@dataclass(frozen=True)
class CaseResult:
    """How a case went. Precision and recall are None where the case does not assert them."""

    case: Case
    context: Context
    failures: tuple[str, ...]

    @property
    def precision(self) -> float | None:
        """Return the share of what came back as relevant that is; None if both are empty."""
        found = set(self.context.relevant)
        if not found:
            return 0.0 if self.case.relevant else None
        return len(found & self.case.relevant) / len(found)

    @property
    def recall(self) -> float | None:
        """Return the share of the relevant beliefs that came back; None if there are none."""
        if not self.case.relevant:
            return None
        found = self.case.relevant.intersection(self.context.relevant)
        return len(found) / len(self.case.relevant)


# Reading


def load_precision(source: Path) -> PrecisionBenchmark:
    """Read the two files from a folder, or from a `tar.gz` of it.

    Raises:
        WrongFormat: The files are not there.
    """
    beliefs = [_read_belief(item) for item in json.loads(_read(source, BELIEFS_FILE))]
    cases = [_read_case(item) for item in json.loads(_read(source, CASES_FILE))]
    return PrecisionBenchmark(tuple(beliefs), tuple(cases))


def _read(source: Path, name: str) -> bytes:
    if source.is_dir():
        for file in source.rglob(name):
            return file.read_bytes()
        raise WrongFormat(f"{source} contains no {name}")

    with tarfile.open(fileobj=io.BytesIO(source.read_bytes())) as archive:
        for member in archive.getmembers():
            content = archive.extractfile(member)
            if Path(member.name).name == name and content is not None:
                return content.read()
    raise WrongFormat(f"{source} contains no {name}")


def _read_belief(item: dict[str, Any]) -> Belief:
    return Belief(
        id=item["_id"],
        user=item["user_id"],
        kind=item["type"],
        name=item["canonical_name"],
        aliases=tuple(item["aliases"]),
        content=item["content"],
        reason=item["why_it_matters"],
        scopes=tuple(item["scope"]),
        is_pinned=bool(item["pinned"]),
        is_current=not (item["superseded_by"] or item["resolved_at"]),
        participants=tuple(item.get("participants", ())),
    )


def _read_case(item: dict[str, Any]) -> Case:
    return Case(
        id=item["caseId"],
        category=item["category"],
        user=item.get("userId", _DEFAULT_USER),
        scopes=tuple(item["scope"]),
        query=item["query"],
        max_beliefs=item.get("budget", {}).get("maxBeliefs", _DEFAULT_MAX_BELIEFS),
        expected=item["expect"],
    )


# Asking


class Provider(ABC):
    """Our tools over a vault of beliefs. Lists are taken from the data unless overridden."""

    name: str
    profile: str

    def __init__(self, benchmark: PrecisionBenchmark) -> None:
        self.benchmark = benchmark
        self.by_id = benchmark.by_id()

    def write(self, folder: Path) -> None:  # noqa: B027
        """Write the beliefs as notes before the server starts, if they are not created later."""

    def fill(self, server: Conversation) -> None:  # noqa: B027
        """Create the beliefs through tools, if they are not written as notes."""

    @abstractmethod
    def search(self, server: Conversation, case: Case, scope: str, limit: int) -> list[str]:
        """Return the ids of what a search in one scope finds, best first."""

    def pinned(self, server: Conversation, case: Case) -> list[str]:  # noqa: ARG002
        """Return the ids of the pinned facts of the scopes."""
        return [belief.id for belief in self._pinned_of(case) if belief.kind != _QUESTION]

    def questions(self, server: Conversation, case: Case) -> list[str]:  # noqa: ARG002
        """Return the ids of the pinned open questions of the scopes."""
        return [belief.id for belief in self._pinned_of(case) if belief.kind == _QUESTION]

    def prelude(self, server: Conversation, case: Case) -> str:  # noqa: ARG002
        """Return what is always known about the user."""
        universal = replace(case, scopes=(_UNIVERSAL_SCOPE,))
        return "\n".join(belief.content for belief in self._pinned_of(universal))

    def expand(self, server: Conversation, case: Case, relation: str) -> list[str]:  # noqa: ARG002
        """Return the ids of the participants of a relation that are in the scopes."""
        participants = []
        for id_ in self.by_id[relation].participants:
            belief = self.by_id[id_]
            if belief.user == case.user and belief.is_in(case.scopes) and belief.is_current:
                participants.append(id_)
        return participants

    def context(self, server: Conversation, case: Case) -> Context:
        """Return what comes back for a case, by the rules of the published adapter."""
        pinned = self.pinned(server, case)
        relevant: list[str] = []
        if case.query.strip() and case.max_beliefs:
            relevant = self._relevant(server, case, pinned)
        kept_pinned = pinned[: case.max_beliefs]
        places = max(0, case.max_beliefs - len(kept_pinned))
        return Context(
            prelude=self.prelude(server, case),
            pinned=tuple(kept_pinned),
            relevant=tuple(relevant[:places]),
            questions=tuple(self.questions(server, case)),
        )

    def _relevant(self, server: Conversation, case: Case, pinned: list[str]) -> list[str]:
        per_scope = [self.search(server, case, scope, case.max_beliefs) for scope in case.scopes]
        found = [id_ for ids in itertools.zip_longest(*per_scope) for id_ in ids if id_]

        for id_ in list(found):
            if self.by_id[id_].kind == _RELATION:
                found += self.expand(server, case, id_)
        return [id_ for id_ in dict.fromkeys(found) if self._may_be_relevant(id_, pinned)]

    def _may_be_relevant(self, id_: str, pinned: list[str]) -> bool:
        return id_ not in pinned and self.by_id[id_].kind != _QUESTION

    def _pinned_of(self, case: Case) -> list[Belief]:
        return [
            belief
            for belief in self.benchmark.beliefs
            if belief.is_pinned
            and belief.is_current
            and belief.user == case.user
            and belief.is_in(case.scopes)
        ]


class DefaultTools(Provider):
    """`search_memories` and `list_memories`, with folders for scopes, and tags."""

    name = "default tools"
    profile = "default"

    def write(self, folder: Path) -> None:
        for belief in self.benchmark.beliefs:
            for scope in belief.scopes:
                note = Document(_title(belief.name), self._note_text(belief))
                write_notes([note], folder / _folder_of(belief.user, scope))

    def search(self, server: Conversation, case: Case, scope: str, limit: int) -> list[str]:
        data = _use(
            server,
            "search_memories",
            query=case.query,
            prefix=_folder_of(case.user, scope),
            tags={"state": "current"},
            limit=limit,
        )
        if data.get("only_nearest"):
            return []
        return self._ids(data["hits"])

    def pinned(self, server: Conversation, case: Case) -> list[str]:
        hits = self._list_pinned(server, case.user, case.scopes)
        return self._ids(hit for hit in hits if hit["type"] != _QUESTION)

    def questions(self, server: Conversation, case: Case) -> list[str]:
        hits = self._list_pinned(server, case.user, case.scopes)
        return self._ids(hit for hit in hits if hit["type"] == _QUESTION)

    def prelude(self, server: Conversation, case: Case) -> str:
        names = [hit["name"] for hit in self._list_pinned(server, case.user, [_UNIVERSAL_SCOPE])]
        return "\n".join(_use(server, "read_memory", name=name)["content"] for name in names)

    def expand(self, server: Conversation, case: Case, relation: str) -> list[str]:
        found = []
        for scope in case.scopes:
            data = _use(
                server,
                "search_memories",
                query="",
                prefix=_folder_of(case.user, scope),
                tags={"state": "current"},
                linked_by=_title(self.by_id[relation].name),
            )
            found += self._ids(data["hits"])
        return found

    def _note_text(self, belief: Belief) -> str:
        tags = []
        if belief.is_pinned:
            tags.append("pinned")
        if belief.is_current:
            tags.append("state/current")
        header = render_header({"type": belief.kind, "aliases": list(belief.aliases), "tags": tags})
        links = [f"[[{_title(self.by_id[id_].name)}]]" for id_ in belief.participants]
        paragraphs = [belief.content, belief.reason, ", ".join(links)]
        return header + "\n\n".join(filter(None, paragraphs)) + "\n"

    def _list_pinned(
        self, server: Conversation, user: str, scopes: Iterable[str]
    ) -> list[dict[str, Any]]:
        hits = []
        for scope in scopes:
            data = _use(
                server,
                "list_memories",
                prefix=_folder_of(user, scope),
                tags={"pinned": "", "state": "current"},
                require_all=True,
                limit=100,
            )
            hits += data["items"]
        return hits

    def _ids(self, hits: Iterable[dict[str, Any]]) -> list[str]:
        id_of = {}
        for belief in self.benchmark.beliefs:
            for scope in belief.scopes:
                name = f"{_folder_of(belief.user, scope)}{_title(belief.name)}"
                id_of[name] = belief.id
        return [id_of[hit["name"]] for hit in hits]


class Supermemento(Provider):
    """`create_entities` and `semantic_search` with a container tag per user and scope."""

    name = "supermemento"
    profile = "supermemento"

    def fill(self, server: Conversation) -> None:
        for belief in self.benchmark.beliefs:
            observations = [belief.content, belief.reason]
            if belief.aliases:
                observations.append(f"Also called {', '.join(belief.aliases)}.")
            entity = {
                "name": belief.name,
                "entityType": belief.kind,
                "observations": observations,
            }
            for scope in belief.scopes:
                tag = _container_tag(belief.user, scope)
                _use(server, "create_entities", entities=[entity], container_tag=tag)

    def search(self, server: Conversation, case: Case, scope: str, limit: int) -> list[str]:
        tag = _container_tag(case.user, scope)
        data = _use(server, "semantic_search", query=case.query, container_tag=tag, limit=limit)
        id_of = {}
        for belief in self.benchmark.beliefs:
            if belief.user == case.user and belief.is_in([scope]):
                id_of[belief.name] = belief.id
        return [id_of[entity["name"]] for entity in data["entities"]]


PROVIDERS: Final[tuple[Callable[[PrecisionBenchmark], Provider], ...]] = (
    DefaultTools,
    Supermemento,
)


def _use(server: Conversation, tool: str, **arguments: Any) -> dict[str, Any]:
    """Return the data of a tool's answer.

    Raises:
        RuntimeError: The tool failed.
    """
    result = server.use(tool, **arguments)
    failure = failure_in(result)
    if failure:
        raise RuntimeError(f"{tool}: {failure}")
    return dict(result["structuredContent"])


def _title(name: str) -> str:
    return name.replace("_", " ")


def _folder_of(user: str, scope: str) -> str:
    return f"{user}/{scope.replace(':', '-')}/"


def _container_tag(user: str, scope: str) -> str:
    return re.sub(r"[^\w-]", "-", f"{user}-{scope}")


# Judging


def judge(case: Case, context: Context) -> CaseResult:
    """Return how a case went: each assertion that does not hold is a failure."""
    relevant = set(context.relevant)
    pinned = set(context.pinned)
    anything = relevant | pinned
    failures: list[str] = []

    expected = case.expected.get("relevantBeliefs", {})
    failures += _missing(expected.get("mustInclude", ()), anything, "belief")
    failures += _forbidden(expected.get("mustExclude", ()), anything, "belief")
    if "shouldOnlyInclude" in expected:
        failures += _missing(expected["shouldOnlyInclude"], relevant, "relevant belief")
        others = relevant.difference(expected["shouldOnlyInclude"])
        failures += [f"irrelevant belief {id_}" for id_ in sorted(others)]

    expected = case.expected.get("pinnedFacts", {})
    failures += _missing(expected.get("mustInclude", ()), pinned, "pinned fact")
    failures += _forbidden(expected.get("mustExclude", ()), pinned, "pinned fact")

    expected = case.expected.get("openQuestions", {})
    failures += _missing(expected.get("mustInclude", ()), context.questions, "question")
    failures += _forbidden(expected.get("mustExclude", ()), context.questions, "question")

    failures += _failures_of_prelude(case.expected.get("personaPrelude", {}), context.prelude)
    return CaseResult(case, context, tuple(failures))


def _missing(ids: Iterable[str], found: Iterable[str], thing: str) -> list[str]:
    return [f"missing {thing} {id_}" for id_ in ids if id_ not in found]


def _forbidden(ids: Iterable[str], found: Iterable[str], thing: str) -> list[str]:
    return [f"forbidden {thing} {id_}" for id_ in ids if id_ in found]


def _failures_of_prelude(expected: dict[str, Any], prelude: str) -> list[str]:
    failures = []
    if expected.get("nonEmpty") and not prelude:
        failures.append("no prelude")
    if expected.get("isNull") and prelude:
        failures.append("a prelude for an unknown user")
    missing = [text for text in expected.get("contains", ()) if text not in prelude]
    forbidden = [text for text in expected.get("mustNotContain", ()) if text in prelude]
    failures += [f"prelude without {text!r}" for text in missing]
    failures += [f"prelude with {text!r}" for text in forbidden]
    return failures


# Reporting


@dataclass(frozen=True)
class PrecisionReport:
    """The results of all cases, by the name of the provider."""

    results: dict[str, list[CaseResult]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the figures and each case as JSON values."""
        providers = []
        for name, results in self.results.items():
            cases = [_case_dict(result) for result in results]
            providers.append({"tools": name, **_summary(results), "cases": cases})
        return {"benchmark": "precisionmembench", "providers": providers}

    def as_table(self) -> str:
        """Return a Markdown table of the figures, and one of the passes per category."""
        lines = [
            "| tools | passed | of them with relevant beliefs | precision | recall |",
            "|---|---|---|---|---|",
        ]
        for name, results in self.results.items():
            summary = _summary(results)
            lines.append(
                f"| {name} | {summary['passed']}/{summary['cases']} "
                f"| {summary['active_passed']}/{summary['active']} "
                f"| {summary['precision']:.2f} | {summary['recall']:.2f} |"
            )
        lines += ["", f"| category | {' | '.join(self.results)} |"]
        lines.append("|---" * (len(self.results) + 1) + "|")
        for category in self._categories():
            cells = [_passed_of(results, category) for results in self.results.values()]
            lines.append(f"| {category} | {' | '.join(cells)} |")
        return "\n".join(lines)

    def _categories(self) -> list[str]:
        first = next(iter(self.results.values()))
        return list(dict.fromkeys(result.case.category for result in first))


def run_precision(
    benchmark: PrecisionBenchmark, progress: Callable[[str, int, int], None]
) -> PrecisionReport:
    """Run all cases with each set of tools, each on a server and a vault of its own."""
    report = PrecisionReport()
    for make_provider in PROVIDERS:
        provider = make_provider(benchmark)
        results = report.results.setdefault(provider.name, [])
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            provider.write(Path(folder))
            command = serve(Path(folder), "--profile", provider.profile)
            with Conversation(command, quiet=True) as server:
                provider.fill(server)
                for case in benchmark.cases:
                    results.append(judge(case, provider.context(server, case)))
                    progress(provider.name, len(results), len(benchmark.cases))
    return report


def _summary(results: Sequence[CaseResult]) -> dict[str, Any]:
    """Return the figures of one provider. Active cases are those with relevant beliefs."""
    active = [result for result in results if result.case.relevant]
    return {
        "cases": len(results),
        "passed": sum(not result.failures for result in results),
        "active": len(active),
        "active_passed": sum(not result.failures for result in active),
        "precision": mean(r.precision for r in results if r.precision is not None),
        "recall": mean(r.recall for r in results if r.recall is not None),
    }


def _passed_of(results: Sequence[CaseResult], category: str) -> str:
    of_category = [result for result in results if result.case.category == category]
    passed = sum(not result.failures for result in of_category)
    return f"{passed}/{len(of_category)}"


def _case_dict(result: CaseResult) -> dict[str, Any]:
    return {
        "id": result.case.id,
        "category": result.case.category,
        "passed": not result.failures,
        "failures": list(result.failures),
        "relevant": list(result.context.relevant),
        "precision": result.precision,
        "recall": result.recall,
    }
