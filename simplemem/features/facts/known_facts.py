"""The facts that are known when new ones are stated, and which of them these may change. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Self

from simplemem.features.fact import Fact
from simplemem.features.facts.key_notes import stated_at


class KnownFacts:
    """The facts that hold while one call states new ones. Guards them as the call leaves them.

    `may_be_replaced`, `may_be_ended` and `may_be_disputed` are the only filters: they say which of
    these facts a new one may change. Writers enter here what they do to facts.
    """

    def __init__(
        self,
        facts: Iterable[Fact],
        *,
        is_outside: bool = False,
        turn_at: datetime | None = None,
        stated_paths: Iterable[str] = (),
    ) -> None:
        """Take the facts that hold.

        `is_outside` says that the new facts are not in the user's words: they are from a web page.
        `turn_at` is the time of a turn, which may be dated back; None for now. `stated_paths` are
        those of the facts that the same call stated before.
        """
        self.versions: Sequence[Fact] = ()  # all facts with a key, also those that hold no more
        self._facts = {fact.path: fact for fact in facts}
        self._is_outside = is_outside
        self._turn_at = turn_at
        self._stated_paths = set(stated_paths)
        self._replaced_ids = set[str]()

    @classmethod
    def at_turn(cls, facts: Iterable[Fact], at: datetime) -> Self:
        """Take the facts that hold at the time of a turn, without those that were stated later."""
        earlier = [fact for fact in facts if stated_at(fact) <= at]
        return cls(earlier, turn_at=at)

    @property
    def facts(self) -> list[Fact]:
        """The facts that hold."""
        return list(self._facts.values())

    def get(self, path: str) -> Fact | None:
        """Return the fact at a path, None if none holds there."""
        return self._facts.get(path)

    def holds(self, fact: Fact) -> bool:
        """Return whether a fact holds as it is, and was not changed meanwhile."""
        return self._facts.get(fact.path) is fact

    def with_ids(self, ids: Iterable[str]) -> list[Fact]:
        """Return the facts with some ids, each once, in the order of the ids."""
        facts_by_id = {fact.id: fact for fact in self._facts.values()}
        return [facts_by_id[id_] for id_ in dict.fromkeys(ids) if id_ in facts_by_id]

    def unknown_ids(self, ids: Iterable[str]) -> list[str]:
        """Return those of some ids that belong to no fact that holds or that this call replaced."""
        known_ids = {fact.id for fact in self._facts.values()}
        known_ids |= self._replaced_ids
        return [id_ for id_ in ids if id_ not in known_ids]

    def put(self, fact: Fact) -> None:
        """Add a fact, or replace the one at its path."""
        self._facts[fact.path] = fact

    def put_stated(self, fact: Fact) -> None:
        """Add a fact that this call states, so that it disputes none of its own."""
        self.put(fact)
        self.mark_stated([fact.path])

    def mark_stated(self, paths: Iterable[str]) -> None:
        """Take note that this call states the facts at some paths."""
        self._stated_paths.update(paths)

    def remove(self, path: str) -> None:
        """Remove the fact at a path, which holds no more. Do nothing if there is none."""
        self._facts.pop(path, None)

    def remove_replaced(self, fact: Fact) -> None:
        """Remove a fact that a new one replaces, so that it holds no more."""
        self.remove(fact.path)
        self._replaced_ids.add(fact.id)

    def is_protected(self, fact: Fact) -> bool:
        """Return whether the user stated a fact and the new ones are from outside."""
        return self._is_outside and not fact.source

    def may_be_replaced(self, fact: Fact) -> bool:
        """Return whether the note of a fact can be changed, and the new ones may do so."""
        return not fact.problem and not self.is_protected(fact)

    def may_be_ended(self, fact: Fact) -> bool:
        """Return whether a fact may be replaced, and was not stated by the same call."""
        return self.may_be_replaced(fact) and fact.path not in self._stated_paths

    def may_be_disputed(self, fact: Fact) -> bool:
        """Return whether a fact may be ended, and was stated before the new ones.

        A fact of a conversation that was stated at the very time of a turn, or later, is not
        disputed by the turn.
        """
        is_earlier = self._turn_at is None or stated_at(fact) < self._turn_at
        return is_earlier and self.may_be_ended(fact)

    def disputable(self) -> list[Fact]:
        """Return the facts that may be disputed."""
        return [fact for fact in self._facts.values() if self.may_be_disputed(fact)]
