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
"""The properties of a fact that nothing disputes."""


@dataclass
class _ScopeFacts:
    """The facts of one scope, by path."""

    permanent: dict[str, Fact] = field(default_factory=dict)  # current whatever the time is
    ending: dict[str, Fact] = field(default_factory=dict)

    def group_of(self, fact: Fact) -> dict[str, Fact]:
        """Return the group that has a fact, or that it belongs to."""
        if decay.is_permanent(fact):
            return self.permanent
        return self.ending


class FactCollection(NoteCollection[Fact]):
    """The facts of a vault. Guards, beside its items, their groups by scope.

    Callers of its methods do so inside `reading`, or in a draft of `change`.
    """

    def __init__(self, extension: ExtensionAPI) -> None:
        super().__init__(extension, FACT)
        self._scopes: dict[str, _ScopeFacts] = {}

    def add(self, item: Fact) -> None:
        """Add a fact, or replace the one with its path."""
        self.remove(item.path)
        super().add(item)
        scope = self._scopes.setdefault(item.scope, _ScopeFacts())
        scope.group_of(item)[item.path] = item

    def remove(self, path: str) -> None:
        """Remove the fact with a path, if the collection has it."""
        fact = self.items.get(path)
        if fact is not None:
            scope = self._scopes[fact.scope]
            scope.group_of(fact).pop(path)
        super().remove(path)

    def facts(self, scope: str | None, *, expired: bool = False) -> list[Fact]:
        """Return the current facts of a scope, or of all scopes if it is None.

        With `expired`, those that are not current come too.
        """
        groups = list(self._scopes.values())
        if scope is not None:
            groups = [self._scopes.get(scope, _ScopeFacts())]

        time = now()
        facts: list[Fact] = []
        for group in groups:
            ending = list(group.ending.values())
            if not expired:
                ending = [fact for fact in ending if self.is_current(fact, time)]
            facts += ending
        for group in groups:
            facts += group.permanent.values()
        return facts

    def is_current(self, fact: Fact, at: datetime) -> bool:
        """Return whether a fact is current at a time; a derived one only as long as its parents."""
        if not decay.is_current(fact, at):
            return False

        if not fact.derived_from:
            return True

        links = [(link, fact.path) for link in fact.derived_from]
        for path in self.extension.resolve_links(links):
            parent = self.items.get(path or "")
            if parent is not None and parent.status not in CURRENT_STATUSES:
                return False
        return True

    def ended_facts(self) -> list[Fact]:
        """Return the facts of all scopes that are not current and may be changed."""
        time = now()
        return [
            fact
            for fact in self.facts(None, expired=True)
            if not fact.problem and not self.is_current(fact, time)
        ]

    def facts_of_document(self, document_path: str) -> list[Fact]:
        """Return the facts whose notes link to a document as their source, by its path."""
        facts = [fact for fact in self.items.values() if fact.source]
        links = [(fact.source, fact.path) for fact in facts]
        source_paths = self.extension.resolve_links(links)

        facts_of_document: list[Fact] = []
        for fact, source_path in zip(facts, source_paths, strict=True):
            if source_path == document_path:
                facts_of_document.append(fact)
        return facts_of_document

    def disputing_paths(self, facts: Iterable[Fact]) -> dict[str, str]:
        """Return the path of each disputed fact among some, with the path of what disputes it."""
        disputed_facts = [fact for fact in facts if fact.is_disputed and fact.disputed_by]
        links = [(fact.disputed_by, fact.path) for fact in disputed_facts]
        paths = self.extension.resolve_links(links)

        disputing_paths: dict[str, str] = {}
        for fact, path in zip(disputed_facts, paths, strict=True):
            if path is not None:
                disputing_paths[fact.path] = path
        return disputing_paths

    def settle_disputes(self, change_set: ChangeSet, disputing_path: str) -> None:
        """Mark as active again, in a change set, the facts that the fact at a path disputes."""
        for path, cause in self.disputing_paths(self.items.values()).items():
            fact = self.items[path]
            if cause == disputing_path and not fact.problem:
                change_set.set(path, **UNDISPUTED)
