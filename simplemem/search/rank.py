"""Rank notes by their signals (words, phrases, meaning and others), and choose what a hit shows.

Pure. Each signal is divided by its own maximum, and the signals are added by their weights. Rank
fusion was measured as an alternative and cost six points of MRR. docs/search.md describes the
ranking.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from simplemem.index.api import (
    BLOCKS_COUNTED,
    BlockMatches,
    Matches,
    NoteId,
    NoteScores,
    PlaceId,
    TextSpan,
)
from simplemem.note.plain_text import plain_text
from simplemem.note.words import is_unspaced, words_key

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Mode = Literal["hybrid", "text", "semantic"]
MODES: tuple[Mode, ...] = ("hybrid", "text", "semantic")

# Within the signal "words": the weight of a note's best block, relative to 1 of the whole note.
_BLOCK_WEIGHT = 0.5

# The share of the signal "phrases" in a score. The ranking is equally good from 0.07 to 0.14.
_PHRASE_WEIGHT = 0.1

# If even the best match by words contains less than this share of the query, words count less
# beside the meaning.
_TRUSTED_SHARE = 0.4

# One place answers a question, so the best notes of a question are ordered by how well one passage
# covers it. Any other query names what a whole note is about, so coverage does not count there.
COVERED_NOTES = 12  # compared notes; with 60 the order is the same
_MAX_BLOCKS_OF_NOTE = 10  # whose passages are compared
COVERED_WEIGHT = 0.4  # relative to 1 of all other signals; equally good from 0.25 to 0.5

# The lead of the best hit is the difference of its score and that of the hit at this rank.
LEAD_RANK = 6
_MAX_LEAD = 0.3

# The weight of a name or alias that is the whole question, relative to 1 of all other signals. The
# ranking is equally good up to 0.6. A name that is a part of the question weighs less. Such names
# add 3 to 17 thousandths to the MRR where people search for notes by descriptions, and nothing
# where names say little.
NAMED_WEIGHT = 0.3

# A part of the question with a smaller share of it does not say what the question is about. The
# ranking is equally good with 0.4.
_MIN_NAMED_SHARE = 0.3

# A part with at least this share of the question's words may count by their number as well as by
# their weights.
_MIN_SHARE_BY_NUMBER = 0.5

_MAX_NAME_WORDS = 8

# Greater than any rank of a title match.
_NO_TITLE_MATCH = 9

_MAX_COMPARED_CHARACTERS = 4_000  # of a passage

_LETTER = re.compile(r"\w")
_WORD_WITHIN_SENTENCE = re.compile(r"(?<!^)(?<![.?!:]\s)\b[^\W\d_]\w*")

# A text contains a form of a word if it contains the word's beginning: the word without this many
# letters at its end, but at least so many letters.
_ENDING_LENGTH = 3
_STEM_LENGTH = 4

# To find where words are close together in a long block, beginnings lack one more letter.
_LONG_ENDING_LENGTH = 4
_MAX_OCCURRENCES = 100

# A snippet may begin within a link or code, so the text this many characters before it is read too.
_READ_BEFORE = 500

_CUT_START = "… "  # before a snippet that does not begin with its passage

_QUESTION_MARKS = ("?", "\uff1f", "\u061f")
_INVERTED_QUESTION_MARK = "\u00bf"

_QUESTION_WORDS = frozenset(
    """what when where who whom whose which why how did do does is are was were can could should
    would will has have had
    wann wo wohin woher wer wen wem wessen welche welcher welches warum wieso weshalb wie
    quand qui que quel quelle quels quelles pourquoi comment combien
    qué cuándo dónde quién quiénes cuál cuáles cómo cuánto cuántos""".split()
)

# The text of a block keeps its full weight if at most a tenth of all notes have it; the number of
# these notes is limited to 3 to 10. With 3 in a vault of 173 notes, texts that a few related notes
# share weighed too little (MRR of first sentences 0.514 for 0.538; with 10 it is 0.533).
_MIN_UNWEIGHTED_NOTES = 3
_MAX_UNWEIGHTED_NOTES = 10
_MAX_COUNTED_NOTES = 100  # a weight does not get smaller with more notes


class Signal(NamedTuple):
    """A ranking signal: its share of the score, and one value per note. A missing value is 0."""

    name: str
    weight: float
    values: Mapping[NoteId, float]

    @property
    def best(self) -> float:
        """The greatest value, by which all values are divided; 1 if there is none."""
        return max(self.values.values(), default=0.0) or 1.0


class Ranked(NamedTuple):
    """A note in the ranking, with its score.

    `place` is its best block by words, 0 if none matched. `has_word` is whether the note contains a
    word of the query.
    """

    note: NoteId
    path: str
    score: float
    place: PlaceId = 0
    has_word: bool = False


def signals_of(answer: Matches, mode: Mode = "hybrid", lexical_weight: float = 0.6) -> list[Signal]:
    """Return the signals words, phrases and meaning of what the index found, in this order.

    Their weights add up to 1. `lexical_weight` is the share of words beside meaning in the mode
    "hybrid"; without similarities, words have all of it. In "text" meaning weighs 0, in "semantic"
    words do. Phrases weigh 0 if no note contains one of the query's pairs.
    """
    own_shares = _own_shares(answer)
    # For notes whose blocks were not compared, the mean is assumed.
    mean_share = 1.0
    if own_shares:
        mean_share = sum(own_shares.values()) / len(own_shares)

    words = _whole_note_scores(answer.notes, own_shares, mean_share)
    best_blocks = _best_blocks(answer)
    for note, score in zip(best_blocks.note_ids, best_blocks.scores, strict=True):
        words[note] += _BLOCK_WEIGHT * score

    phrases = _whole_note_scores(answer.pairs, own_shares, mean_share)
    meaning: Mapping[NoteId, float] = {}
    if answer.similarities is not None:
        meaning = answer.similarities.scores

    hybrid_share = lexical_weight if meaning else 1.0
    word_shares: dict[Mode, float] = {
        "hybrid": hybrid_share,
        "text": 1.0,
        "semantic": 0.0,
    }
    word_share = word_shares[mode]
    # What words and meaning share.
    unphrased_share = 1 - _PHRASE_WEIGHT if phrases else 1.0
    return [
        Signal("words", unphrased_share * word_share, words),
        Signal("phrases", 1 - unphrased_share, phrases),
        Signal("meaning", unphrased_share * (1 - word_share), meaning),
    ]


def _whole_note_scores(
    matches: NoteScores,
    own_shares: Mapping[NoteId, float],
    mean_share: float,
) -> dict[NoteId, float]:
    """Return the scores of whole notes, each multiplied by the note's own share.

    A note that is not in `own_shares` gets `mean_share`. Without any shares, the scores stay.
    """
    if not own_shares:
        return dict(matches)
    return {note: score * own_shares.get(note, mean_share) for note, score in matches.items()}


class _BestBlocks(NamedTuple):
    """The best block of some notes, in the order of their ids."""

    note_ids: list[NoteId]
    places: list[PlaceId]
    scores: list[float]


def _best_blocks(answer: Matches) -> _BestBlocks:
    """Return the best block of each note by its words, with its score.

    The more notes have the text of a block, the lower is its score.
    """
    blocks = answer.blocks
    if blocks is None:
        return _BestBlocks([], [], [])

    import numpy as np

    weights = _text_weights(blocks, answer.note_count)
    scores = blocks.scores * weights

    # By note, then by falling score. Of equal scores, the block that is first by words counts.
    positions = np.arange(len(scores))
    order = np.lexsort((positions, -scores, blocks.note_ids))
    note_ids = blocks.note_ids[order]
    is_first = np.ones(len(order), bool)
    is_first[1:] = note_ids[1:] != note_ids[:-1]

    best = order[is_first]
    return _BestBlocks(
        note_ids=blocks.note_ids[best].tolist(),
        places=blocks.place_ids[best].tolist(),
        scores=scores[best].tolist(),
    )


def best_places(answer: Matches, notes: Collection[NoteId]) -> list[PlaceId]:
    """Return the best blocks of some notes by their words, best first.

    These are at most 10 of each note; none if no block matched.
    """
    blocks = answer.blocks
    if blocks is None:
        return []

    import numpy as np

    is_wanted = np.isin(blocks.note_ids, list(notes))
    counts = Counter[NoteId]()
    places: list[PlaceId] = []
    note_ids = blocks.note_ids[is_wanted].tolist()
    place_ids = blocks.place_ids[is_wanted].tolist()
    for note, place in zip(note_ids, place_ids, strict=True):
        counts[note] += 1
        if counts[note] <= _MAX_BLOCKS_OF_NOTE:
            places.append(place)
    return places


def _text_weights(blocks: BlockMatches, note_count: int) -> NDArray[np.float64]:
    """Return a weight for each block: below 1 if many of `note_count` notes have its text.

    The weight falls with the number of these notes, up to 100 of them.
    """
    import numpy as np

    tenth = min(note_count // 10, _MAX_UNWEIGHTED_NOTES)
    max_unweighted = max(_MIN_UNWEIGHTED_NOTES, tenth)
    counts = np.clip(blocks.text_counts, max_unweighted, _MAX_COUNTED_NOTES)
    weights: NDArray[np.float64] = max_unweighted / counts
    return weights


def _own_shares(answer: Matches) -> dict[NoteId, float]:
    """Return the share of each note's best blocks that is not due to text that many notes have.

    It is empty if no block has such a text.
    """
    blocks = answer.blocks
    if blocks is None:
        return {}

    import numpy as np

    weights = _text_weights(blocks, answer.note_count)
    if bool((weights == 1).all()):
        return {}

    # Sort the blocks by note. Those of one note stay in their order, best first.
    order = np.argsort(blocks.note_ids, kind="stable")
    note_ids = blocks.note_ids[order]
    firsts = np.flatnonzero(np.diff(note_ids, prepend=-1))

    # Only for the best blocks of a note are the notes with the same text counted.
    block_count = len(order)
    counts_of_blocks = np.diff([*firsts, block_count])
    ranks_within_notes = np.arange(block_count) - np.repeat(firsts, counts_of_blocks)
    is_counted = ranks_within_notes < BLOCKS_COUNTED
    scores = np.where(is_counted, blocks.scores[order], 0.0)

    totals = np.add.reduceat(scores, firsts)
    own_scores = np.add.reduceat(scores * weights[order], firsts)
    shares = own_scores / totals
    unique_ids = note_ids[firsts]
    return dict(zip(unique_ids.tolist(), shares.tolist(), strict=True))


def add_signal(
    signals: Sequence[Signal],
    name: str,
    weight: float,
    values: Mapping[NoteId, float],
) -> list[Signal]:
    """Return the signals with one more, whose `weight` is relative to 1 of all others together.

    The weights of the result add up to 1. The signal is left out if all its values are 0.
    """
    if not any(values.values()):
        return list(signals)

    total = 1 + weight
    weighted_signals: list[Signal] = []
    for signal in (*signals, Signal(name, weight, values)):
        share = signal.weight / total
        weighted_signals.append(signal._replace(weight=share))
    return weighted_signals


def names_within(
    all_words: Sequence[str],
    weights: Mapping[str, float],
) -> dict[str, float]:
    """Return the parts of a question that may name a note, each with its share of the question.

    The keys are in the form of `words_key`. `all_words` are all words of the question in order, and
    `weights` are those of the words that rank, without stop words. A part has at most 8 words,
    begins and ends with a word that ranks, and is large enough to say what the question is about.
    There is none if no word has a weight.
    """
    total = sum(weights.values())
    if not total:
        return {}

    places = [place for place, word in enumerate(all_words) if word in weights]
    shares: dict[str, float] = {}
    for first in places:
        for last in places:
            if not first <= last < first + _MAX_NAME_WORDS:
                continue
            part = all_words[first : last + 1]
            share = _share_of_question(part, weights, total)
            if share >= _MIN_NAMED_SHARE:
                key = words_key(" ".join(part))
                other_share = shares.get(key, 0.0)
                shares[key] = max(share, other_share)

    # A part without a letter or digit names no note.
    shares.pop("", None)
    return shares


def _share_of_question(
    part: Sequence[str],
    weights: Mapping[str, float],
    total: float,
) -> float:
    """Return the share of the question that the words of a part have.

    It is the greater of two shares: that of the words' weights, and that of their number, which
    counts only if it is at least a half.
    """
    ranking_words = {word for word in part if word in weights}
    weight_of_part = sum(weights[word] for word in ranking_words)
    share_of_weight = weight_of_part / total
    share_of_number = len(ranking_words) / len(weights)
    if share_of_number < _MIN_SHARE_BY_NUMBER:
        return share_of_weight
    return max(share_of_weight, share_of_number)


def ordered(
    answer: Matches,
    signals: Sequence[Signal],
    max_notes: int | None = None,
) -> list[Ranked]:
    """Return the notes with a score above 0, best first; equal scores in order of paths.

    Notes whose name is the query come first, with the score 1, even if no signal has them. With
    `max_notes`, notes after the first `max_notes` may be left out.
    """
    paths = answer.paths
    title_matches = answer.title_matches
    scores = _total_scores(signals)
    if max_notes is not None and max_notes < len(scores):
        scores = _best_scores(scores, max_notes, title_matches)

    # A note whose name is the query is listed even if it has no signal.
    scores = dict.fromkeys(title_matches, 0.0) | scores

    # Rows sort by title match, by falling score, then by path. Scores that are equal except for
    # rounding errors count as equal.
    rows: list[tuple[int, float, str, NoteId, float]] = []
    for note, score in scores.items():
        if score > 0 or note in title_matches:
            title_rank = title_matches.get(note, _NO_TITLE_MATCH)
            rounded_score = round(score, 6)
            rows.append((title_rank, -rounded_score, paths[note], note, score))
    rows.sort()

    best_blocks = _best_blocks(answer)
    places = dict(zip(best_blocks.note_ids, best_blocks.places, strict=True))

    ranking: list[Ranked] = []
    for _, _, path, note, score in rows:
        shown_score = 1.0 if note in title_matches else score
        ranked = Ranked(
            note=note,
            path=path,
            score=shown_score,
            place=places.get(note, 0),
            has_word=note in answer.notes,
        )
        ranking.append(ranked)
    return ranking


def _total_scores(signals: Sequence[Signal]) -> dict[NoteId, float]:
    """Return for each note the weighted sum of its signals, each divided by its best value."""
    scores: dict[NoteId, float] = {}
    for signal in signals:
        weight = signal.weight / signal.best
        for note, value in signal.values.items():
            score = scores.get(note, 0.0)
            scores[note] = score + weight * value
    return scores


def _best_scores(
    scores: Mapping[NoteId, float],
    max_notes: int,
    title_matches: Collection[NoteId],
) -> dict[NoteId, float]:
    """Return the `max_notes` best scores, and those of title matches.

    There may be more: notes are ordered by rounded scores, so notes that are almost equal to the
    last one stay. `max_notes` must be below the number of scores.
    """
    rising_scores = sorted(scores.values())
    min_score = rising_scores[-max_notes] - 1e-6
    return {
        note: score for note, score in scores.items() if score >= min_score or note in title_matches
    }


def is_question(text: str) -> bool:
    """Return whether a text is a question: by its question mark, or by its first word.

    A question word alone, such as "how", is no question.
    """
    text = text.strip()
    if text.endswith(_QUESTION_MARKS) or text.startswith(_INVERTED_QUESTION_MARK):
        return True

    match = re.match(r"\w+", text)
    if match is None:
        return False
    first_word = match[0]
    if len(text) == len(first_word):
        return False
    return first_word.casefold() in _QUESTION_WORDS


def names_in(question: str) -> set[str]:
    """Return the words of a question that look like names, in small letters.

    These are the words with a capital, without the first word of each sentence. There are none if
    no word within a sentence is all in small letters, as in a title.
    """
    words = _WORD_WITHIN_SENTENCE.findall(question.strip())
    if not any(map(str.islower, words)):
        return set()
    return {word.lower() for word in words if word[0].isupper()}


def weights_of(
    words: Sequence[str],
    note_counts: Sequence[int],
    total: int,
) -> dict[str, float]:
    """Return the weight of each word of a question: the fewer notes contain it, the greater.

    `note_counts` are the numbers of notes that contain each word, of `total` notes. Weights are
    above 0: the square root of the inverse document frequency.
    """
    weights: dict[str, float] = {}
    for word, count in zip(words, note_counts, strict=True):
        notes_without = max(total - count, 0)
        rarity = math.log1p((notes_without + 0.5) / (count + 0.5))
        weights[word] = math.sqrt(rarity)
    return weights


def trust_in_words(weights: Mapping[str, float], matches: Mapping[NoteId, float]) -> float:
    """Return how much the search by words can be trusted, from 0 to 1.

    It is 1 if the best match contains two fifths of the query or more, and less if it contains
    less: then it may contain only words that mean little. `weights` are those of `weights_of`,
    whose squares are about the scores of words that a note contains once. `matches` are the scores
    of whole notes.
    """
    whole = sum(weight**2 for weight in weights.values())
    if not whole or not matches:
        return 1.0
    return min(1.0, max(matches.values()) / whole / _TRUSTED_SHARE)


def share_by_beginnings(
    weights: Mapping[str, float],
    label: str,
    texts: Sequence[str],
) -> float:
    """Return the share of a question's weight that the best text contains, from 0 to 1.

    A text contains a word if a word in it, or in the `label`, begins with the same letters. Only
    its first 4,000 characters count. Without texts, only the label does. `weights` must not be
    empty. Needs no vectors, which `Coverage.share` compares.
    """
    beginnings = [(_beginning(word), weight) for word, weight in weights.items()]
    weights_of_texts: list[float] = []
    for text in texts or ("",):
        compared_text = text[:_MAX_COMPARED_CHARACTERS]
        plain = _plain(f"{label}\n{compared_text}")
        contained_weights = [
            weight for beginning, weight in beginnings if _has_beginning(plain, beginning)
        ]
        weights_of_texts.append(sum(contained_weights))

    total = sum(weights.values())
    return max(weights_of_texts) / total


class _Beginning(NamedTuple):
    """The letters that all forms of a word begin with, and where in a text a word begins so.

    If `after_letter` is True, the letters must follow a letter there. If it is False, they must
    not. If it is None, what is before them does not matter.
    """

    letters: str
    after_letter: bool | None


@lru_cache(maxsize=1_000)
def _beginning(word: str) -> _Beginning:
    r"""Return how the forms of a word begin.

    In scripts without spaces a word may follow a letter. In others a word begins at `\b` of a
    regular expression: between a letter and another character.
    """
    length = max(_STEM_LENGTH, len(word) - _ENDING_LENGTH)
    letters = _plain(word)[:length]
    if is_unspaced(word):
        return _Beginning(letters, None)

    begins_with_letter = _LETTER.match(letters) is not None
    return _Beginning(letters, not begins_with_letter)


def _has_beginning(text: str, beginning: _Beginning) -> bool:
    """Return whether a text in the form of `_plain` contains a word that begins so."""
    letters, after_letter = beginning
    for start in _occurrences(text, letters):
        if after_letter is None:
            return True
        # "" at the start of the text.
        character_before = text[start - 1 : start]
        follows_letter = _LETTER.match(character_before) is not None
        if follows_letter == after_letter:
            return True
    return False


def words_begun(text: str, words: Sequence[str]) -> int:
    """Count those of the words of which a text contains a form, as `_beginning` describes it."""
    plain = _plain(text)
    count = 0
    for word in words:
        if _has_beginning(plain, _beginning(word)):
            count += 1
    return count


def lead_of(ranked: Sequence[Ranked]) -> float:
    """Return the lead of the best hit over the sixth, 0.3 at most.

    Without a sixth hit, the lead is over 0. In such a ranking the best hit leads far, whatever it
    contains, so a lead above 0.3 says nothing. `ranked` must not be empty.
    """
    lead = ranked[0].score
    if len(ranked) >= LEAD_RANK:
        lead -= ranked[LEAD_RANK - 1].score
    return min(lead, _MAX_LEAD)


def passage_around(
    passages: Sequence[TextSpan],
    place: TextSpan | None,
) -> TextSpan | None:
    """Return the passage in which a place starts, or the place itself if it starts in none.

    If `place` is None, return the first passage, or None if there are no passages.
    """
    if place is None:
        return passages[0] if passages else None

    for passage in passages:
        if passage.start <= place.start < passage.stop:
            return passage
    return place


def where_words_stand(
    text: str,
    passages: Sequence[TextSpan],
    place: TextSpan | None,
    words: Sequence[str],
    limit: int,
) -> tuple[TextSpan | None, TextSpan | None]:
    """Return the passage to show, and the place in it where the snippet should start.

    `place` is the block or passage that matched. If it is longer than `limit` characters, the
    returned one starts later, a little before the stretch with most of the words. Without a place,
    the passage is the first one and the place is None; both are None if there are no passages
    either.
    """
    if place is None or place.stop - place.start <= limit:
        return passage_around(passages, place), place

    text_of_place = text[place.start : place.stop]
    offset = _offset_with_most_words(text_of_place, words, limit)
    start = place.start + offset
    lines_before = text.count("\n", place.start, start)
    line = place.line + lines_before
    inner_place = place._replace(start=start, line=line)
    passage = passage_around(passages, inner_place)
    if passage is None or not offset:
        return passage, place

    # The text before the words helps to understand them.
    earlier_start = max(passage.start, start - limit // 4)
    return passage, inner_place._replace(start=earlier_start)


def _offset_with_most_words(text: str, words: Sequence[str], limit: int) -> int:
    """Return the start of the first stretch of a text that contains most of the words.

    It is 0 unless a later stretch contains more words than the beginning of the text. A stretch is
    shorter than `limit`, because a snippet also shows some text before it.
    """
    plain = _plain(text)
    occurrences: set[tuple[int, str]] = set()
    for word in words:
        length = max(_STEM_LENGTH, len(word) - _LONG_ENDING_LENGTH)
        beginning = _plain(word)[:length]
        for start in _occurrences(plain, beginning):
            occurrences.add((start, beginning))
    first_occurrences = sorted(occurrences)[:_MAX_OCCURRENCES]

    # A snippet of the beginning has no text before its stretch, so that one is longer.
    best_offset = 0
    most_words = _count_words_before(limit * 3 // 4, first_occurrences)
    for index, (offset, _) in enumerate(first_occurrences):
        end = offset + limit * 2 // 3
        word_count = _count_words_before(end, first_occurrences[index:])
        if word_count > most_words:
            best_offset = offset
            most_words = word_count
    return best_offset


def _count_words_before(end: int, occurrences: Iterable[tuple[int, str]]) -> int:
    """Count the different words among the occurrences that start before `end`."""
    words: set[str] = set()
    for start, word in occurrences:
        if start < end:
            words.add(word)
    return len(words)


def _occurrences(text: str, part: str) -> Iterator[int]:
    """Yield every offset at which a text contains a part, also where two of them overlap."""
    start = text.find(part)
    while start >= 0:
        yield start
        start = text.find(part, start + 1)


def snippet(text: str, passage: TextSpan, place: TextSpan | None, limit: int) -> str:
    """Return a passage without Markdown on one line of at most `limit` characters.

    If the passage is longer, the line begins near `place`, or at the start of the passage if
    `place` is None. An ellipsis shows where the passage was cut.
    """
    if passage.stop - passage.start <= limit:
        return plain_text(text[passage.start : passage.stop])

    # A place close to the end starts earlier, so that the line is as long as the limit allows.
    start = passage.start
    if place is not None:
        last_start = passage.stop - limit + len(_CUT_START)
        start = max(passage.start, min(place.start, last_start))

    read_start = max(passage.start, start - _READ_BEFORE)
    read_stop = min(passage.stop, start + 3 * limit)
    readable = plain_text(text[read_start:read_stop])

    # Find the start again in the text without Markdown, where offsets differ.
    text_before = plain_text(text[read_start:start])
    last_offset = len(readable) - limit + len(_CUT_START)
    offset = max(0, min(len(text_before), last_offset))
    offset = _end_of_word_around(readable, offset)

    is_cut = offset > 0 or read_start > passage.start
    prefix = _CUT_START if is_cut else ""
    quoted = readable[offset:].strip()
    quoted = _shorten(
        quoted,
        limit=limit - len(prefix),
        min_cut=limit // 2,
    )
    return prefix + quoted


def _end_of_word_around(text: str, offset: int) -> int:
    """Return the end of the word that an offset is within.

    Returns the offset itself if it is within no word, or if the word does not end within 30
    characters, as in a script without spaces.
    """
    if not 0 < offset < len(text):
        return offset
    character = text[offset]
    character_before = text[offset - 1]
    if character.isspace() or character_before.isspace():
        return offset
    word_end = text.find(" ", offset, offset + 30)  # -1 for none
    return max(offset, word_end)


def _shorten(text: str, limit: int, min_cut: int) -> str:
    """Cut a text to `limit` characters, with an ellipsis at the end.

    The cut is between words if there is a space at `min_cut` or later, else within a word. A text
    that is short enough stays as it is.
    """
    if len(text) <= limit:
        return text

    cut = text.rfind(" ", min_cut, limit - 1)
    if cut <= 0:
        cut = limit - 1
    return text[:cut] + "…"


def _plain(text: str) -> str:
    """Return a text in small letters without accents; offsets in it are those in the text."""
    if text.isascii():
        return text.lower()
    return "".join(map(_letter, text))


@lru_cache(maxsize=10_000)
def _letter(character: str) -> str:
    """Return one character as a small letter without its accent."""
    decomposed = unicodedata.normalize("NFD", character)
    if len(decomposed) > 1 and unicodedata.combining(decomposed[1]):
        character = decomposed[0]
    return character.lower()[0]
