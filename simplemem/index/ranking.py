"""Ranking by words, for every engine alike: which legs are asked for what. How a leg is walked is the engine's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from simplemem.index.connection import Ids, Leg
from simplemem.index.door import AnyOf, Question, Term

TITLE_WEIGHT, BODY_WEIGHT = 10.0, 1.0  # docs/search.md
K1, B, LEAST_IDF = 1.2, 0.75, 1e-6  # FTS5's
FEW_NOTES = 2_000  # among which every word is looked for


class Ranking(ABC):
    """The words of one state of the index, counted and ranked by BM25. The legs are `note` and `block`."""

    def __init__(self, notes: int) -> None:
        self.notes = notes  # how many there are

    @abstractmethod
    def count(self, db: Any, name: str, term: Term) -> int:
        """How many rows of a leg hold a term."""

    @abstractmethod
    def rows(self, db: Any, name: str) -> int:
        """How many rows a leg has."""

    @abstractmethod
    def leg(self, db: Any, name: str, terms: Sequence[Term], limit: int, ids: Ids) -> Leg:
        """The best rows that hold any of some terms, among `ids`."""

    @abstractmethod
    def vocabulary(self, db: Any, asked: Sequence[AnyOf]) -> list[int]:
        """How many notes hold one of the words, for each of some groups of them."""

    @abstractmethod
    def holding(self, db: Any, groups: Sequence[AnyOf], some: Sequence[int]) -> list[tuple[int, set[int]]]:
        """For each group of words how many notes hold one of them, and which of `some` do."""

    def rank(self, db: Any, question: Question, ids: Ids) -> tuple[Leg, Leg, Leg]:
        """The best notes by their words, and of the best of these the best blocks and those with words side by side."""
        if not question.terms:
            return [], [], []
        asked = question.terms
        terms = self._telling(db, "note", asked)
        notes = self.leg(db, "note", terms, question.notes, ids)
        if len(notes) < question.notes and len(terms) < len(asked):  # then notes that hold no other word are found too
            terms, notes = asked, self.leg(db, "note", asked, question.notes, ids)
        last = question.closer  # and those that score as the last: the order in which notes came says nothing
        while 0 < last < len(notes) and round(notes[last].score, 9) == round(notes[question.closer - 1].score, 9):
            last += 1
        closer = [match.note for match in notes[:last]]
        others = asked if terms is asked or not closer else self._telling(db, "block", asked)
        blocks = self.leg(db, "block", others, question.blocks, closer)
        common = {word for term in asked if term not in terms for word in term.words}
        pairs = [pair for pair in question.pairs if common.isdisjoint(pair.words)]
        return notes, blocks, self.leg(db, "note", pairs, question.notes, closer) if pairs else []

    def _telling(self, db: Any, name: str, terms: Sequence[Term]) -> Sequence[Term]:
        """The terms without those of half of the notes or a quarter of the blocks: BM25 gives these little."""
        if self.notes <= FEW_NOTES:
            return terms
        most = self.notes // 2 if name == "note" else self.rows(db, name) // 4
        telling = [term for term in terms if self.count(db, name, term) <= most]
        return telling if 0 < len(telling) < len(terms) else terms
