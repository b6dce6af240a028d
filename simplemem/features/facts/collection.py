"""All facts of a vault, grouped by scope, and the disputes between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from simplemem.features.collection import ChangeSet, NoteCollection
from simplemem.features.fact import CURRENT_STATUSES, Fact
from simplemem.features.facts import decay
from simplemem.features.facts.fact import FACT
from simplemem.note.dates import now
from simplemem.store import ExtensionAPI

UNDISPUTED: Final[Mapping[str, Any]] = {
    "status": "active",
    "disputed": None,
    "disputed_by": None,
}
"""Arguments for `ChangeSet.set`: the properties that a fact has if nothing disputes it."""


@dataclass
class _ScopeFacts:
    """The facts of one scope in two groups, each by path."""

    # Facts that are current at any time, so that a search need not look at their times.
    permanent: dict[str, Fact] = field(default_factory=dict)
    ending: dict[str, Fact] = field(default_factory=dict)  # all others, also those that ended

    def group_of(self, fact: Fact) -> dict[str, Fact]:
        """Return the group that a fact belongs to."""
        if decay.is_permanent(fact):
            return self.permanent
        return self.ending


class FactCollection(NoteCollection[Fact]):
    """The facts of a vault. Guards, beside its items, their groups by scope.

    Its methods are called inside `reading`, or in a draft function of `change`.
    """

    def __init__(self, extension: ExtensionAPI) -> None:
        """Make an empty collection of a store; `reading` and `change` read the notes."""
        super().__init__(extension, FACT)
        self._scopes: dict[str, _ScopeFacts] = {}

    def add(self, item: Fact) -> None:
        """Add a fact, or replace the one with its path."""
        self.remove(item.path)
        super().add(item)
        scope_facts = self._scopes.setdefault(item.scope, _ScopeFacts())
        group = scope_facts.group_of(item)
        group[item.path] = item

    def remove(self, path: str) -> None:
        """Remove the fact with a path, if the collection has it."""
        fact = self.items.get(path)
        if fact is not None:
            scope_facts = self._scopes[fact.scope]
            group = scope_facts.group_of(fact)
            del group[path]
        super().remove(path)

    def facts(self, scope: str | None, *, expired: bool = False) -> list[Fact]:
        """Return the current facts of a scope, or of all scopes if it is None.

        With `expired`, those that are not current are returned too. Facts that may end come first.
        The list is empty for a scope without facts.
        """
        if scope is None:
            scopes = list(self._scopes.values())
        else:
            scope_facts = self._scopes.get(scope, _ScopeFacts())
            scopes = [scope_facts]

        time = now()
        facts: list[Fact] = []
        for scope_facts in scopes:
            ending = scope_facts.ending.values()
            facts += [fact for fact in ending if expired or self.is_current(fact, time)]
        for scope_facts in scopes:
            facts.extend(scope_facts.permanent.values())
        return facts

    def is_current(self, fact: Fact, at: datetime) -> bool:
        """Return whether a fact is current at a time.

        A derived fact is not current if a fact from which it was derived was superseded or
        forgotten, or has ended. A parent whose note does not exist does not count.
        """
        if not decay.is_current(fact, at):
            return False
        if not fact.derived_from:
            return True

        links = [(link, fact.path) for link in fact.derived_from]
        for path in self.extension.resolve_links(links):
            if path not in self.items:
                continue
            if decay.status_at(self.items[path], at) not in CURRENT_STATUSES:
                return False
        return True

    def ended_facts(self) -> list[Fact]:
        """Return the facts of all scopes that are not current now, and whose notes may change."""
        time = now()
        all_facts = self.facts(None, expired=True)
        changeable_facts = [fact for fact in all_facts if not fact.problem]
        return [fact for fact in changeable_facts if not self.is_current(fact, time)]

    def facts_of_document(self, document_path: str) -> list[Fact]:
        """Return the facts whose notes link to the document at a path as their source.

        They are of any scope and status.
        """
        facts_with_source: list[Fact] = []
        links: list[tuple[str, str]] = []
        for fact in self.items.values():
            if fact.source:
                facts_with_source.append(fact)
                links.append((fact.source, fact.path))
        source_paths = self.extension.resolve_links(links)

        facts_of_document: list[Fact] = []
        for fact, source_path in zip(facts_with_source, source_paths, strict=True):
            if source_path == document_path:
                facts_of_document.append(fact)
        return facts_of_document

    def disputing_paths(self, facts: Iterable[Fact]) -> dict[str, str]:
        """Return, by the path of each disputed fact among `facts`, the path of what disputes it.

        Facts that do not name what disputes them, or name a note that does not exist, are absent.
        """
        disputed_facts: list[Fact] = []
        links: list[tuple[str, str]] = []
        for fact in facts:
            if fact.is_disputed and fact.disputed_by:
                disputed_facts.append(fact)
                links.append((fact.disputed_by, fact.path))
        paths = self.extension.resolve_links(links)

        disputing_paths: dict[str, str] = {}
        for fact, path in zip(disputed_facts, paths, strict=True):
            if path is not None:
                disputing_paths[fact.path] = path
        return disputing_paths

    def settle_disputes(self, change_set: ChangeSet, disputing_path: str) -> None:
        """Mark as active again, in a change set, the facts that the fact at a path disputes.

        Facts whose notes cannot be changed stay. Raise Conflict or Unreadable as `ChangeSet.set`
        does.
        """
        for path, cause in self.disputing_paths(self.items.values()).items():
            fact = self.items[path]
            if cause == disputing_path and not fact.problem:
                change_set.set(path, **UNDISPUTED)
