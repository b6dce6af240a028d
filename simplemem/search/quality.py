"""Choose the passage of a hit to quote, measure its score, and decide whether the best hit answers.

docs/internals/ranking.md describes the rules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from simplemem.index.api import NoteDetails, NoteId, TextSpan
from simplemem.note.names import name_of
from simplemem.note.plain_text import Span, blank_spans, without_html_comments, without_unseen
from simplemem.note.words import may_be_english, without_stop_words
from simplemem.search import judgement, rank
from simplemem.search.judgement import (
    Coverage,
    Evidence,
    Passages,
    share_contained,
    spans_to_compare,
    with_words,
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

# How many characters of the best note are searched for the words of a question.
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

    def __init__(self, notes: NoteReader, details: NoteDetails, text: str | None) -> None:
        self.label = _label_of(details)
        self.passages = passages_of(notes, details, text)
        self._searched = ""

    def contains_form_of(self, word: str) -> bool:
        """Return whether the label, or the beginning of a long text, contains a form of a word."""
        if not self._searched:
            text = self.passages.read()
            self._searched = f"{self.label} {text[:_MAX_SEARCHED_CHARACTERS]}"
        return rank.words_begun(self._searched, [word]) > 0


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
            informative = _informative_weights(ranking, coverage)

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

    def is_only_nearest(
        self,
        ranking: Ranking,
        share: float | None = None,
        text: str | None = None,
    ) -> bool:
        """Return whether the best hit is only the nearest note and does not answer the query.

        `share` and `text` are the score and the text of the best hit; None to compute or read them.
        Returns False where that cannot be judged: without hits or words, after a reranking, if
        something was searched for in place of the query, or if the query is the note's name.
        """
        query = ranking.query
        if not ranking.hits or not query.words:
            return False

        # No minimum is known for the scores of these rankings.
        is_substituted = bool(query.notice) or ranking.reranking is not None
        if is_substituted or ranking.hits[0].note in ranking.matches.title_matches:
            return False
        return self._confidence(ranking, share, text) < 0

    def _confidence(
        self,
        ranking: Ranking,
        share: float | None,
        text: str | None,
    ) -> float:
        """Return the confidence that the best hit answers; below 0 it does not.

        `share` and `text` are as in `is_only_nearest`.
        """
        best = ranking.hits[0]
        similarities = ranking.matches.similarities
        is_similarity_known = similarities is not None and best.note in similarities.scores
        if ranking.mode == "text" or not is_similarity_known:
            if share is None:
                share = self.score(ranking, best, text)
            return _confidence_by_words(ranking, share)

        note = _ComparedNote(self._notes, ranking.details[best.note], text)
        by_meaning = _confidence_by_meaning(ranking)
        coverage = self._embeddings.coverage()
        if coverage is None:
            # It is not known how well another embedder compares words, nor are words of other
            # languages compared, so either words or meaning suffice.
            rarity = _rarity_of_words(ranking)
            share_of_words = _share_of_words(rarity, note) * _trust_in_corrections(ranking)
            if not share_of_words:
                return by_meaning
            by_words = _confidence_by_words(ranking, share_of_words)
            return max(by_meaning, by_words)

        if ranking.mode == "semantic":
            # A search by meaning alone may be answered by meaning alone.
            by_vectors = _confidence_by_vectors(ranking, coverage, note)
            return max(by_meaning, by_vectors)
        if not best.has_word:
            return by_meaning
        return _confidence_by_vectors(ranking, coverage, note)


def _confidence_by_words(ranking: Ranking, share: float) -> float:
    """Return the confidence in the best hit by the share of the query's words that it contains."""
    word_count = len(_informative_words(ranking))
    lead = rank.lead_of(ranking.ranked)
    return judgement.confidence_by_words(word_count, share, lead)


def _confidence_by_meaning(ranking: Ranking) -> float:
    """Return the confidence in the best hit by how much more similar it is than other notes.

    Its similarity must be known.
    """
    best = ranking.hits[0]
    other_similarities = dict(_similarities(ranking))
    similarity = other_similarities.pop(best.note)
    z_score = judgement.z_score(similarity, list(other_similarities.values()))
    return judgement.confidence_by_meaning(z_score)


def _confidence_by_vectors(
    ranking: Ranking,
    coverage: Coverage,
    note: _ComparedNote,
) -> float:
    """Return the confidence in the best hit by the bundled word vectors. `note` is this hit.

    Comparing the vectors of all words of the question and the note takes most of the time. The
    words that the note contains are certainly covered. So if the hit answers by them alone, nothing
    more is compared, and the confidence is lower than it would be, but not below 0.
    """
    weights = _informative_weights(ranking, coverage)
    informative = _informative_words(ranking)
    # The text of the hit is needed in any case; searching it saves a query of the index.
    matched = {word for word in informative if note.contains_form_of(word)}
    missing = [word for word in informative if word not in matched]
    names = rank.names_in(ranking.query.text)
    is_partial_match = bool(missing) and bool(matched)
    contains_only_names = is_partial_match and matched <= names

    passages = note.passages.texts()
    trust = _trust_in_corrections(ranking)
    certain_evidence = Evidence(
        word_count=len(informative),
        similarity=_similarity_by_words(ranking, coverage, note.label, passages),
        coverage=share_contained(weights, note.label, passages) * trust,
        lead=rank.lead_of(ranking.ranked),
        missing_similarity=None,
    )
    min_confidence = judgement.confidence(certain_evidence)
    if min_confidence >= 0 and not contains_only_names:
        return min_confidence

    similarities, passage_number = coverage.by_word(weights, note.label, note.passages)
    missing_similarity: float | None = None
    if contains_only_names:
        by_word = dict(zip(weights, similarities, strict=True))
        passage = _passage_at(note.passages, passage_number)
        # The sum of two similarities: of the best single word, and of all of them together.
        missing_similarity = max(by_word[word] for word in missing)
        missing_similarity += _similarity_of_texts(
            coverage,
            " ".join(missing),
            f"{note.label} {passage}",
        )

    evidence = replace(
        certain_evidence,
        coverage=judgement.coverage_of(weights, similarities) * trust,
        missing_similarity=missing_similarity,
    )
    return judgement.confidence(evidence)


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


def _similarity_by_words(
    ranking: Ranking, coverage: Coverage, label: str, passages: Sequence[str]
) -> float:
    """Return the greatest cosine of the query and a passage of a note by the vectors of words.

    The vectors of the index are of all languages; the numbers of `judgement` are for English ones.
    """
    query = without_stop_words(ranking.query.text)
    labelled = [f"{label} {passage}" for passage in passages]
    vectors = coverage.vectors.unit_vectors([query, *labelled])
    cosines = vectors[1:] @ vectors[0]
    return float(cosines.max(initial=0.0))


def _similarity_of_texts(coverage: Coverage, text: str, other: str) -> float:
    """Return the cosine of two texts by the bundled word vectors."""
    vectors = coverage.vectors.unit_vectors([text, other])
    return float(vectors[0] @ vectors[1])


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


def _informative_weights(ranking: Ranking, coverage: Coverage) -> dict[str, float]:
    """Return the weight of each word of the query by rarity and information, for its coverage."""
    rarity = _rarity_of_words(ranking)
    words = [word.lower() for word in rarity]
    lengths = coverage.vectors.word_lengths(words)
    return judgement.informative_weights(rarity, lengths.tolist())


def _informative_words(ranking: Ranking) -> list[str]:
    """Return the words of the query that `judgement.is_informative` accepts."""
    return [word for word in ranking.query.words if judgement.is_informative(word)]


def _passage_at(passages: Passages, number: int) -> str:
    """Return a passage by its number in `Coverage`; "" if there is none.

    The note may have changed since `Coverage` read its words: then it may have fewer passages.
    """
    texts = with_words(passages.texts())
    if 0 <= number < len(texts):
        return texts[number]
    return ""


def _similarities(ranking: Ranking) -> Mapping[NoteId, float]:
    """Return the cosine similarity of notes to the query; not all notes need have one.

    The ranking must be one by signals, of a query with words.
    """
    _words, _phrases, meaning = ranking.signals[:3]  # in the order of `rank.signals_of`
    return meaning.values
