"""Choose the passage of a hit to quote, measure its score, and decide whether the best hit answers.

docs/internals/ranking.md describes the rules.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from statistics import fmean
from typing import NamedTuple

from simplemem.index.api import NoteDetails, NoteId, TextSpan
from simplemem.note.names import name_of
from simplemem.note.plain_text import Span, blank_spans, without_html_comments, without_unseen
from simplemem.note.words import may_be_english
from simplemem.search import judgement, rank
from simplemem.search.judgement import (
    ANSWERED,
    Coverage,
    Evidence,
    Passages,
    Verdict,
    Weights,
    spans_to_compare,
)
from simplemem.search.needs import Embeddings, NoteReader
from simplemem.search.query import CORRECTED_WEIGHT
from simplemem.search.rank import Ranked, snippet, where_words_stand, words_begun
from simplemem.search.ranking import Ranking

# -- excerpts

_LINK_TARGET = re.compile(r"\]\([^()\n]*\)")


class Quotable(NamedTuple):
    """The text of a note as it may be quoted, in versions: the one that hides most comes first.

    Each version has spaces in place of what it hides, so that offsets are those of the note.
    """

    versions: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Quotable:
        """Return two versions: without comments and badges, and without HTML comments only."""
        return cls((without_unseen(text), without_html_comments(text)))

    @property
    def whole(self) -> str:
        """The whole text without its HTML comments."""
        return self.versions[-1]

    def passage(self, place: TextSpan, words: Sequence[str]) -> str:
        """Return the passage at a place; blank if nothing of it may be quoted.

        Obsidian comments and badges are quoted only if words of the query are visible in the
        passage with them, but not without them.
        """
        versions_with_words = (
            version for version in self.versions if _words_in(version, place, words)
        )
        version = next(versions_with_words, self.versions[0])
        return version[place.start : place.stop]


def quoted_heading(headings: Sequence[str]) -> str:
    """Return a path of headings as one line, without HTML comments."""
    lines = [" ".join(without_html_comments(heading).split()) for heading in headings]
    return " > ".join(lines)


class Excerpt(NamedTuple):
    """A part of a note as one line of text, the headings above it, and its first line's number."""

    text: str
    headings: tuple[str, ...]
    line: int


def choose_excerpt(
    text: str,
    passages: Sequence[TextSpan],
    best: TextSpan | None,
    repeated: Sequence[Span],
    words: Sequence[str],
    limit: int,
) -> Excerpt:
    """Return the part of a note to show, in at most `limit` characters.

    It surrounds `best`, the place that matched the query, unless the words that matched are hidden
    there. `repeated` are the blocks that many notes have; the excerpt does not begin or end with
    them if other text can be shown. A note without anything to quote yields an empty excerpt.
    """
    versions = Quotable.of(text).versions
    visible = versions[0]
    unique = blank_spans(visible, repeated)
    version, place = _place_to_show(
        text,
        (unique, *versions),
        passages,
        best,
        words,
    )

    passage, place = where_words_stand(version, passages, place, words, limit)
    if passage is None or not _has_text(version, passage):
        passage = _first_with_text(version, passages)
        place = None
    if passage is None:
        return Excerpt("", (), 1)

    passage = without_edges(version, passage)
    location = place or passage
    if version is unique:
        # Repeated blocks are removed from the ends of the passage, but stay in its middle: without
        # one of them, a list would lack a step.
        version = visible
    return Excerpt(
        text=snippet(version, passage, place, limit),
        headings=location.headings,
        line=location.line,
    )


def _place_to_show(
    text: str,
    versions: Sequence[str],
    passages: Sequence[TextSpan],
    best: TextSpan | None,
    words: Sequence[str],
) -> tuple[str, TextSpan | None]:
    """Return the version of a note's text to show, and the place in it; None for no special place.

    Of the versions, which hide less and less of `text`, it is the first that shows words of the
    query, if `best` contains any. The place is then the one of `_place_with_words`. Otherwise it is
    the first version with any text, and the place is `best` if that has text in it.
    """
    if best is not None:
        text_of_best = text[best.start : best.stop]
        if words_begun(text_of_best, words):
            for version in versions:
                place = _place_with_words(version, passages, best, words)
                if place is not None:
                    return version, place

    # The note was found by its meaning, or the words are visible nowhere.
    with_text = (version for version in versions if _first_with_text(version, passages) is not None)
    version = next(with_text, versions[-1])
    if best is not None and _has_text(version, best):
        return version, best
    return version, None


def _place_with_words(
    version: str,
    passages: Sequence[TextSpan],
    best: TextSpan,
    words: Sequence[str],
) -> TextSpan | None:
    """Return `best` if words of the query are visible there, else the passage with most of them.

    Returns None if the words are visible nowhere.
    """
    if _words_in(version, best, words):
        return best

    most_words = 0
    place = None
    for passage in passages:
        word_count = _words_in(version, passage, words)
        if word_count > most_words:
            most_words = word_count
            place = passage
    return place


def _first_with_text(version: str, passages: Sequence[TextSpan]) -> TextSpan | None:
    """Return the first passage that is not blank in a version of the text; None if all are."""
    for passage in passages:
        if _has_text(version, passage):
            return passage
    return None


def _words_in(version: str, place: TextSpan, words: Sequence[str]) -> int:
    """Count the words of the query that are visible in a place. The addresses of links are not."""
    part = version[place.start : place.stop]
    if "](" in part:
        part = _LINK_TARGET.sub("]", part)
    return words_begun(part, words)


def _has_text(version: str, place: TextSpan) -> bool:
    """Return whether a place is not blank in a version of the text."""
    part = version[place.start : place.stop]
    return bool(part.strip())


def without_edges(version: str, passage: TextSpan) -> TextSpan:
    """Return a passage from its first visible character to its last; as it is if it is blank."""
    part = version[passage.start : passage.stop]
    blank_length = len(part) - len(part.lstrip())
    start = passage.start + blank_length
    stop = passage.start + len(part.rstrip())
    if start >= stop:
        return passage

    line = passage.line + version.count("\n", passage.start, start)
    return passage._replace(start=start, stop=stop, line=line)


# -- quality of hits

# If no hit answers, so many are searched for the words of the question, and so many characters of
# each.
_MAX_SEARCHED_HITS = 5
_MAX_SEARCHED_CHARACTERS = 200_000


def passages_of(
    notes: NoteReader,
    details: NoteDetails,
    text: str | None = None,
) -> Passages:
    """Return the passages of a note to compare with a question.

    `text` is the text of the note if the caller has read it. With None, it is read each time that
    it is needed; it is "" if the note was deleted.
    """
    row = details.row

    def read() -> str:
        if text is not None:
            return text
        return notes.text_of(row.path) or ""

    return Passages(
        key=(row.path, row.sha256),
        spans=spans_to_compare(details),
        read=read,
    )


class _ComparedNote:
    """A note as it is compared with a query: its label (see `_label_of`), and its passages.

    Guards the text that is searched for words; it is read when it is first needed.
    """

    def __init__(self, notes: NoteReader, details: NoteDetails, text: str | None = None) -> None:
        self.label = _label_of(details)
        self.passages = passages_of(notes, details, text)
        self.length = details.passages[-1].stop if details.passages else 0
        self._searched = ""

    def contains_form_of(self, word: str) -> bool:
        """Return whether the label, or the beginning of a long text, contains a form of a word."""
        if not self._searched:
            text = self.passages.read()
            self._searched = f"{self.label} {text[:_MAX_SEARCHED_CHARACTERS]}"
        return rank.words_begun(self._searched, [word]) > 0


class _Cover(NamedTuple):
    """How much of a query a hit covers: the share of its words, and the share of names missing."""

    coverage: float
    missing_names: float

    # If the hit contains only names of the query: the greatest similarity of another word of it.
    similarity_of_others: float | None = None


class _Measure(NamedTuple):
    """How the hits of a ranking are compared with its query."""

    # What the figures of the evidence weigh.
    weights: Sequence[Weights]

    # The weight of each word of the query.
    words: Mapping[str, float]

    # Those of the words that are names, in small letters.
    names: Collection[str]

    # The factor for coverage: below 1 for a query with corrected words.
    trust: float

    # What compares words by their vectors; None to compare them by their first letters.
    vectors: Coverage | None

    def cover_of(self, note: _ComparedNote) -> _Cover:
        """Return how much of the query a note covers."""
        if self.vectors is None:
            return self._cover_by_letters(note)

        similarities = self.vectors.by_word(self.words, note.label, note.passages)
        of_names: list[float] = []
        of_others: list[float] = []
        for word, similarity in zip(self.words, similarities, strict=True):
            group = of_names if word.lower() in self.names else of_others
            group.append(similarity)

        missing_names = [value for value in of_names if value <= judgement.SAME_WORD]
        similarity_of_others = None
        if len(missing_names) < len(of_names):
            greatest = max(of_others, default=1.0)
            if greatest <= judgement.SAME_WORD:
                similarity_of_others = greatest
        return _Cover(
            coverage=judgement.coverage_of(self.words, similarities) * self.trust,
            missing_names=len(missing_names) / max(len(of_names), 1),
            similarity_of_others=similarity_of_others,
        )

    def _cover_by_letters(self, note: _ComparedNote) -> _Cover:
        texts = note.passages.texts()
        coverage = rank.share_by_beginnings(self.words, note.label, texts)
        missing_names = 0.0
        if self.names:
            weights = dict.fromkeys(self.names, 1.0)
            missing_names = 1 - rank.share_by_beginnings(weights, note.label, texts)
        return _Cover(coverage * self.trust, missing_names)

    def contains_all_words(self, note: _ComparedNote) -> bool:
        """Return whether one passage of a note, with its label, contains all words of the query."""
        weights = dict.fromkeys(self.words, 1.0)
        return rank.share_by_beginnings(weights, note.label, note.passages.texts()) == 1.0


class HitQuality:
    """Measures how well the hits of a ranking answer. Guards no state."""

    def __init__(self, notes: NoteReader, embeddings: Embeddings) -> None:
        self._notes = notes
        self._embeddings = embeddings

    def score(
        self,
        ranking: Ranking,
        hit: Ranked,
        text: str | None = None,
    ) -> float:
        """Return how good a hit is by itself, from 0 to 1.

        This is the share of the query that it covers, and does not depend on the other hits. If
        there are no word vectors, it is the similarity to the query where that is greater. After a
        reranking, for a query without words, and for a note whose name is the query, it is the
        score that the hit has already. `text` is the text of the note; None to read it.
        """
        query = ranking.query
        if ranking.reranking or not query.words:
            return hit.score
        trust = _trust_in_corrections(ranking)
        if hit.note in ranking.matches.title_matches:
            return hit.score * trust

        note = _ComparedNote(self._notes, ranking.details[hit.note], text)
        weights = _rarity_of_words(ranking)
        coverage = None if ranking.mode == "text" else self._embeddings.coverage()

        share = 0.0
        if coverage is None or _ranks_by_words(ranking):
            share = _share_of_words(weights, note) * trust
        if coverage is None:
            similarity = _similarities(ranking).get(hit.note, 0.0)
            return max(share, similarity)
        # A note without any of the words was found by its meaning.
        return share or coverage.share(weights, note.label, note.passages) * trust

    def shares_of_passages(
        self,
        ranking: Ranking,
        details: NoteDetails,
        text: str,
    ) -> list[float]:
        """Return how much of the query each passage of a note covers, with the headings above it.

        It is the share of the words that the passage contains, from 0 to 1. With word vectors, the
        share that similar words cover is added. Of a long note, passages without a word of the
        query are not compared: their share is 0. `text` is the text of the note.
        """
        weights = _rarity_of_words(ranking)
        compared = frozenset(spans_to_compare(details))
        informative: Mapping[str, float] = {}
        coverage = self._coverage_for(ranking)
        if coverage is not None:
            informative = _informative_weights(weights, coverage)

        row = details.row
        shares = []
        for passage in details.passages:
            span = (passage.start, passage.stop)
            share = 0.0
            if weights and span in compared:
                label = " ".join(passage.headings)
                part = text[passage.start : passage.stop]
                share = rank.share_by_beginnings(weights, label, [part])
                if coverage is not None:
                    compared_passage = Passages((row.path, row.sha256), [span], lambda: text)
                    share += coverage.share(informative, label, compared_passage)
            shares.append(share)
        return shares

    def _coverage_for(self, ranking: Ranking) -> Coverage | None:
        """Return what compares the words of a query with those of passages.

        Returns None if there are no word vectors, in the mode "text", and if the query shows
        another language: single words of other languages are not compared.
        """
        if ranking.mode == "text" or not may_be_english(ranking.query.text):
            return None
        return self._embeddings.coverage()

    def judge(self, ranking: Ranking, text: str | None = None) -> Verdict:
        """Return whether the hits answer the query, and what they lack if not.

        `text` is the text of the best hit; None to read it. The hits count as an answer where that
        cannot be judged: without hits or words, after a reranking, if something was searched for in
        place of the query, or if the query is the note's name.
        """
        query = ranking.query
        if not ranking.hits or not query.words:
            return ANSWERED

        # No minimum is known for the scores of these rankings.
        is_substituted = bool(query.notice) or ranking.reranking is not None
        if is_substituted or ranking.hits[0].note in ranking.matches.title_matches:
            return ANSWERED

        measure = self._measure_for(ranking)
        if self._is_answered(ranking, measure, text):
            return ANSWERED
        return self._unanswered(ranking, measure)

    def _is_answered(self, ranking: Ranking, measure: _Measure, text: str | None) -> bool:
        """Return whether one of the best hits answers the query. `text` is as in `judge`."""
        notes = self._compared(ranking, judgement.JUDGED_HITS, text)
        if self._is_evidence_enough(ranking, measure, notes):
            return True
        return any(map(measure.contains_all_words, notes))

    def _is_evidence_enough(
        self,
        ranking: Ranking,
        measure: _Measure,
        notes: Sequence[_ComparedNote],
    ) -> bool:
        """Return whether the evidence of the best hits, which are `notes`, is enough.

        The hits after the first one are compared only if it is not enough by itself.
        """
        if self._may_suffice_by_meaning(ranking):
            if judgement.is_clear_by_meaning(_z_score(ranking)):
                return True
            if ranking.mode == "hybrid" and not ranking.hits[0].has_word:
                return False

        cover = measure.cover_of(notes[0])
        weights = measure.weights
        if cover.similarity_of_others is not None:
            if judgement.is_about_names_only(cover.similarity_of_others):
                return False
            weights = weights[1:]
        evidence = _evidence_of(ranking, notes, cover)
        if judgement.confidence(evidence, weights) >= 0:
            return True

        coverages = [measure.cover_of(note).coverage for note in notes[1:]]
        best_coverage = max([cover.coverage, *coverages])
        evidence = replace(evidence, coverage=best_coverage)
        return judgement.confidence(evidence, weights) >= 0

    def _may_suffice_by_meaning(self, ranking: Ranking) -> bool:
        """Return whether a hit may answer because its meaning is much nearer than that of others.

        Words are compared in place of the meaning if the best hit has a word of the query, unless
        the search was by meaning alone, or by another embedder than the bundled one.
        """
        if not _is_similarity_known(ranking):
            return False
        has_other_embedder = self._embeddings.coverage() is None
        return not ranking.hits[0].has_word or has_other_embedder

    def _unanswered(self, ranking: Ranking, measure: _Measure) -> Verdict:
        """Return the verdict on hits that do not answer, with the words that none of them has."""
        notes = self._compared(ranking, _MAX_SEARCHED_HITS)
        missing = [
            word for word in measure.words if not any(note.contains_form_of(word) for note in notes)
        ]
        return judgement.unanswered(measure.words, ranking.query.absent, missing)

    def _compared(
        self,
        ranking: Ranking,
        count: int,
        text: str | None = None,
    ) -> list[_ComparedNote]:
        """Return the best `count` hits for comparisons. `text` is that of the first one, if known.

        The text of a note is read if it is needed.
        """
        texts = [text, *repeat(None, count - 1)]
        return [
            _ComparedNote(self._notes, ranking.details[hit.note], text_of_hit)
            for hit, text_of_hit in zip(ranking.hits, texts, strict=False)
        ]

    def _measure_for(self, ranking: Ranking) -> _Measure:
        """Return how to compare the hits of a ranking with its query, by words and by meaning."""
        rarity = _rarity_of_words(ranking)
        names = rank.names_in(ranking.query.text)
        names.intersection_update(word.lower() for word in rarity)

        trust = _trust_in_corrections(ranking)
        if not _is_similarity_known(ranking):
            return _Measure(judgement.WORD_WEIGHTS, rarity, names, trust, None)
        vectors = self._embeddings.coverage()
        if vectors is None:
            # It is not known how well another embedder compares single words.
            return _Measure(judgement.WORD_WEIGHTS, rarity, names, trust, None)
        if not may_be_english(ranking.query.text):
            return _Measure(judgement.FOREIGN_WEIGHTS, rarity, names, trust, None)
        words = _informative_weights(rarity, vectors)
        return _Measure(judgement.ENGLISH_WEIGHTS, words, names, trust, vectors)


def _evidence_of(
    ranking: Ranking,
    notes: Sequence[_ComparedNote],
    cover: _Cover,
) -> Evidence:
    """Return the evidence that the best hits, which are `notes`, answer the query.

    Its words are those of the first hit, whose cover is `cover`.
    """
    similarity = 0.0
    if ranking.mode != "text":
        similarities = _similarities(ranking)
        best_hits = ranking.hits[: len(notes)]
        similarity = max(similarities.get(hit.note, 0.0) for hit in best_hits)
    return Evidence(
        coverage=cover.coverage,
        missing_names=cover.missing_names,
        word_count=len(ranking.query.words),
        text_length=fmean(note.length for note in notes),
        lead=rank.lead_of(ranking.ranked),
        similarity=similarity,
    )


def _z_score(ranking: Ranking) -> float:
    """Return by how many spreads the best hit is more similar to the query than other notes."""
    best = ranking.hits[0]
    other_similarities = dict(_similarities(ranking))
    similarity = other_similarities.pop(best.note, 0.0)
    return judgement.z_score(similarity, list(other_similarities.values()))


def _trust_in_corrections(ranking: Ranking) -> float:
    """Return the factor for the coverage of a query with corrected words; 1 without any.

    A hit that contains all words of the query covers a corrected word only in part.
    """
    query = ranking.query
    if not query.corrections:
        return 1.0
    weights = _rarity_of_words(ranking)
    corrected = sum(weights[word] for word in set(query.corrections.values()))
    missing_share = (1 - CORRECTED_WEIGHT) * corrected / sum(weights.values())
    return 1 - missing_share


def _share_of_words(weights: Mapping[str, float], note: _ComparedNote) -> float:
    """Return the weighted share of the query's words that a note contains in any form."""
    return rank.share_by_beginnings(weights, note.label, note.passages.texts())


def _label_of(details: NoteDetails) -> str:
    """Return all that a note is called: its name, title, description and tags."""
    row = details.row
    name = name_of(row.path)
    return " ".join((name, row.title, row.description, *details.tags))


def _ranks_by_words(ranking: Ranking) -> bool:
    """Return whether hits are scored by the words that they contain.

    They are in the mode "text", and in "hybrid" for a query that is no question: it names what
    whole notes are about.
    """
    if ranking.mode == "text":
        return True
    return ranking.mode == "hybrid" and not rank.is_question(ranking.query.text)


def _rarity_of_words(ranking: Ranking) -> dict[str, float]:
    """Return the weight of each word of the query by its rarity in the vault."""
    query = ranking.query
    return rank.weights_of(query.words, query.note_counts, ranking.status.notes)


def _informative_weights(rarity: Mapping[str, float], vectors: Coverage) -> dict[str, float]:
    """Return the weight of each word of a query by its rarity and information."""
    words = [word.lower() for word in rarity]
    lengths = vectors.vectors.word_lengths(words)
    return judgement.informative_weights(rarity, lengths.tolist())


def _is_similarity_known(ranking: Ranking) -> bool:
    """Return whether the similarity of the best hit to the query is known."""
    return ranking.mode != "text" and ranking.hits[0].note in _similarities(ranking)


def _similarities(ranking: Ranking) -> Mapping[NoteId, float]:
    """Return the cosine similarity of notes to the query; not all notes need have one.

    The ranking must be one by signals, of a query with words.
    """
    _words, _phrases, meaning = ranking.signals[:3]  # in the order of `rank.signals_of`
    return meaning.values
