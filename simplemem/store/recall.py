"""What the store finds: searches, lists, and what leads to a memory. Reads the index and the notes, writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

from simplemem.errors import Invalid, SimplememError, Unavailable
from simplemem.index.door import (
    SORTS,
    Matches,
    Narrow,
    NoteId,
    Question,
    Row,
    Shown,
    Standing,
    StoredLink,
)
from simplemem.index.text import instant
from simplemem.models import Backlink, Filter, Found, Hit, Listed, Mention, Page
from simplemem.note.dates import local
from simplemem.note.formatting import well_formed
from simplemem.note.names import compare_key, name_of
from simplemem.note.plain_text import plain_text
from simplemem.search import judgement, rank
from simplemem.search.excerpt import Quotable, choose_excerpt, quoted_heading
from simplemem.search.judgement import Evidence
from simplemem.search.query import (
    DATED_NOTES,
    DATED_WEIGHT,
    Query,
    days_in,
    is_of,
    read_query,
    read_when,
    with_forms,
)
from simplemem.search.rank import Coverage, Mode, Ranked, Signal
from simplemem.store.core import Core

MAX_LIMIT = 200
ANYONE = "any"  # an author that everybody is: asked for to have them named
_MOST_NARROWING = 100  # tags and properties of a filter: SQLite takes no more than some hundreds
_MAX_CHECKED_TEXT = (
    200_000  # characters of the best note that are looked through for the words of a question
)
_SEMANTIC_FLOOR = 0.35  # of cosine; below it neighbours are chance


class Ranking(NamedTuple):
    """The best notes with what is shown of them, and the first of all. `mode` is what it came to without a vector."""

    query: Query
    narrow: Narrow  # the filter
    standing: Standing  # how far the index was
    mode: Mode
    best: Sequence[Ranked]
    shown: Mapping[NoteId, Shown]
    first: Sequence[Ranked]
    signals: Sequence[Signal]
    question: Question
    degraded: str
    answer: Matches = Matches((), None, (), None, {})  # that it is made of
    reranked: Mapping[NoteId, Mapping[str, Any]] = {}
    reranker: Mapping[str, Any] = {}  # its name, and whether it is remote

    @property
    def every(self) -> Sequence[Ranked]:
        """The whole ranking, made for whoever asks."""
        return rank.ordered(self.answer, self.signals) if self.signals else self.first

    @property
    def degraded_by(self) -> str:
        """What lessened it, in sentences."""
        phrases = ""
        if self.narrow.phrases and not self.question.narrow.phrases:
            said = " and ".join(f'"{phrase}"' for phrase in self.narrow.phrases)
            phrases = f"No note contains {said} word for word{'; the hits match its words' if self.best else ''}."
        return " ".join(filter(None, (self.query.instead, phrases, self.degraded)))


def search(
    core: Core,
    query: str,
    *,
    filter: Filter | None = None,
    limit: int | None = None,
    mode: str = "hybrid",
    explain: bool = False,
    why: str = "",
    rerank: bool = True,
    authors: bool = False,
    own_scores: bool = False,
) -> Found:
    """Memories that answer a question, best first; without words, the newest. `explain` gives the numbers behind it,
    `why` says where one memory is or why not, `authors` who changed each last; with `rerank` a reranker may order.
    Scores fall from hit to hit; with `own_scores` each is what the hit has by itself, for a caller that filters by it."""
    limit = within(
        limit if limit is not None else core.settings.search.limit, 1, MAX_LIMIT, "limit"
    )
    if mode not in rank.MODES:
        raise Invalid(
            f"no search mode called {mode!r}", hint=f"The modes are {', '.join(rank.MODES)}."
        )
    core.prepare(vectors=mode != "text")
    behind = core.state_if_behind()
    ranking = ranked(core, query, filter, limit, mode, rerank=rerank)
    first = ranking.best[0] if ranking.best else None
    text = (
        text_of(core, ranking.shown[first.note].row.path) if first else None
    )  # for its hit and for how sure it is
    hits = [
        hit
        for each in ranking.best
        if (hit := _hit(core, ranking, each, text if each is first else None))
    ]
    if (
        authors
        or ranking.narrow.author
        or ANYONE in (ranking.query.author, filter.author if filter else "")
    ):
        for k, hit in enumerate(hits):
            by = core.changes.last_author(hit.sha256)
            hits[k] = replace(hit, authors=(by.name or by.kind,), written=instant(by.when))
    told = of_note = None
    if explain or why:
        from simplemem.store.explain import Explained

        explained = Explained(core, ranking, limit)
        if explain:
            told, hits = explained.search(), explained.hits(hits)
        of_note = explained.note(why, hits) if why else None
    nearest = only_nearest(core, ranking, hits[0].score if hits else None, text)
    if not own_scores:
        hits = with_falling_scores(hits)
    state = core.state_of_answer(behind, ranking.standing)
    # What is missing from the index may hold what was not found.
    nearest = nearest and state.is_ready
    absent = () if state.missing_notes else ranking.query.absent
    notice = judgement.notice_of(nearest, ranking.query.words, absent)
    return Found(
        query, mode, tuple(hits), state, told, ranking.degraded_by, of_note, absent, nearest, notice
    )


def with_falling_scores(hits: Sequence[Hit]) -> list[Hit]:
    """The hits as they are shown: none has a higher score than the one above it."""
    scores = judgement.falling_scores(hit.score for hit in hits)
    return [replace(hit, score=score) for hit, score in zip(hits, scores, strict=True)]


def ranked(
    core: Core,
    text: str,
    filter: Filter | Narrow | None,
    limit: int,
    mode: Mode = "hybrid",
    *,
    rerank: bool = True,
) -> Ranking:
    """The ranking as it is answered from: of notes as they are now, by the reranker where there is one."""
    query, standing = with_forms(read_query(text), core.index.vocabulary)
    narrowed = filter if isinstance(filter, Narrow) else narrow(core, filter or Filter(), query)
    reranking = core.reranking() if rerank else None
    reach = limit if reranking is None else max(limit, core.settings.rerank.candidates)
    standings = iter([standing])

    def once() -> Ranking:
        return _ranked(
            core, query, narrowed, next(standings, None) or core.index.standing(), reach, mode
        )

    ranking = core.fresh(once, lambda found: [found.shown[each.note].row for each in found.best])
    if not ranking.best and not narrowed.only:
        from simplemem.store.explain import unmet  # most questions are answered without

        ranking = ranking._replace(degraded=f"{ranking.degraded} {unmet(core, narrowed)}".strip())
    return ranking if reranking is None else reranking.reordered(ranking, limit)


def _ranked(
    core: Core, query: Query, narrow: Narrow, standing: Standing, limit: int, mode: Mode
) -> Ranking:
    if query.asks_nothing():
        said = "The query contains no words to search for."
        return Ranking(
            query, narrow, standing, "text", (), {}, (), (), Question(narrow=narrow), said
        )
    if not query.words:
        question = Question(narrow=narrow)
        rows = core.index.page(question.narrow, "modified", limit).rows
        shown = core.index.shown({row.id: 0 for row in rows}, question, repeated=True)
        newest = [Ranked(row.id, row.path, 1.0) for row in rows if row.id in shown]
        return Ranking(query, narrow, standing, "text", newest, shown, newest, (), question, "")
    vector, less = (
        (None, "") if mode == "text" else core.embedding.embed_query(query.text, standing)
    )
    if vector is None and mode == "semantic" and not less:
        less = (
            "Searched by words only: the setting embed.provider is none, so there are no vectors."
        )
    mode = "text" if vector is None else mode
    question = Question(
        vector=vector, narrow=narrow, title=query.text.strip(" \"'“”„«»"), names=query.names()
    )
    weights = rank.weights_of(query.words, query.holders, standing.notes)
    question = replace(question, inner_names=rank.names_within(query.spoken, weights))
    if mode != "semantic":
        question = replace(question, terms=query.terms(), pairs=query.side_by_side())
    answer = core.index.ask(question)
    if vector is not None and answer.near is None:  # another embedder has begun in this moment
        return _ranked(core, query, narrow, core.index.standing(), limit, mode)
    if narrow.phrases and not answer.passed:
        question = replace(
            question, narrow=replace(narrow, phrases=())
        )  # quotation marks shall not hide every answer
        answer = core.index.ask(question)
    signals = rank.signals_of(answer, mode, core.settings.search.lexical_weight)
    if answer.named:
        most = max(answer.named.values())
        signals = rank.beside(signals, "named", rank.NAMED_WEIGHT * most, answer.named)
    days = days_in(query.text, local())
    coverage = (
        core.embedding.coverage() if mode == "hybrid" and rank.is_question(query.text) else None
    )
    reach = max(limit, rank.COVERED_NOTES if coverage else 0, DATED_NOTES if days else 0)
    first = rank.ordered(answer, signals, max(reach, rank.COMPARED))
    shown = core.index.shown(
        {found.note: found.place for found in first[:reach]}, question, repeated=True
    )
    there = [found for found in first[:reach] if found.note in shown]
    if coverage:
        notes = [found.note for found in there[: rank.COVERED_NOTES]]
        names = rank.names_in(query.text).intersection(query.words)
        covered = coverage.of(
            query.words, dict(_covering(core, shown[note]) for note in notes), names
        )
        signals = rank.beside(
            signals, "covered", rank.COVERED_WEIGHT, dict(zip(notes, covered, strict=True))
        )
    if days:
        dated = [found.note for found in there[:DATED_NOTES] if is_of(shown[found.note].row, days)]
        signals = rank.beside(signals, "dated", DATED_WEIGHT, dict.fromkeys(dated, 1.0))
    if coverage or days:
        first = rank.ordered(answer, signals, max(reach, rank.COMPARED))
        there = [found for found in first if found.note in shown]
    return Ranking(
        query, narrow, standing, mode, there[:limit], shown, first, signals, question, less, answer
    )


def _covering(
    core: Core, note: Shown, known: str | None = None
) -> tuple[Hashable, Callable[[], list[str]]]:
    """The passages of a note, of a long one those around its best block: what tells them apart, and how to read them."""
    passages, first = note.passages, 0
    if len(passages) > rank.COVERED_PASSAGES and note.best is not None:
        before = sum(passage.start <= note.best.start for passage in passages)
        first = max(0, before - rank.COVERED_PASSAGES // 2)

    def texts() -> list[str]:
        text = (text_of(core, note.row.path) or "") if known is None else known
        return [
            text[passage.start : passage.stop]
            for passage in passages[first : first + rank.COVERED_PASSAGES]
        ]

    return (note.row.path, note.row.sha256, first), texts


def _called(note: Shown) -> str:
    return " ".join((name_of(note.row.path), note.row.title, note.row.description, *note.tags))


def quality(core: Core, ranking: Ranking, found: Ranked, text: str | None = None) -> float:
    """How good a hit is in itself: the share of the question that it holds, or what the reranker says."""
    if ranking.reranker or not ranking.query.words or found.note in ranking.answer.titled:
        return found.score
    note, query = ranking.shown[found.note], ranking.query
    weights = rank.weights_of(query.words, query.holders, ranking.standing.notes)
    called, (key, texts) = _called(note), _covering(core, note, text)
    by_words = ranking.mode == "text" or (
        ranking.mode == "hybrid" and not rank.is_question(query.text)
    )
    coverage = core.embedding.coverage() if ranking.mode != "text" else None
    held = rank.share_held(weights, called, texts()) if by_words or coverage is None else 0.0
    if coverage is not None and not held:
        return coverage.share(weights, called, key, texts)
    return max(held, ranking.signals[2].values.get(found.note, 0.0) if coverage is None else 0.0)


def only_nearest(
    core: Core, ranking: Ranking, share: float | None = None, text: str | None = None
) -> bool:
    """Return whether the best hit does not answer, so that nothing was found.

    `share` and `text` are the quality and the text of the best hit, where they are known.
    """
    query = ranking.query
    best = ranking.best[:1]
    if not best or not query.words:
        return False
    if query.instead or ranking.reranker or best[0].note in ranking.answer.titled:
        return False  # of these scales no floor is known
    return confidence(core, ranking, share, text) < 0


def confidence(
    core: Core, ranking: Ranking, share: float | None = None, text: str | None = None
) -> float:
    """Return the confidence that the best hit answers; below 0 it does not.

    `share` and `text` are as in `only_nearest`.
    """
    query = ranking.query
    best = ranking.best[0]
    word_count = sum(judgement.is_informative(word) for word in query.words)
    lead = rank.lead_of(ranking.first)
    if ranking.mode == "text" or best.note not in (ranking.answer.near or {}):
        share = quality(core, ranking, best, text) if share is None else share
        return judgement.confidence_by_words(word_count, share, lead)

    similarity, others = _similarities(ranking)
    by_meaning = judgement.confidence_by_meaning(judgement.z_score(similarity, others))
    coverage = core.embedding.coverage()
    if coverage is None:
        # Of another embedder it is not known how well it compares words, so words or meaning alone suffice.
        share = _share_held(core, ranking, best, text)
        by_words = judgement.confidence_by_words(word_count, share, lead)
        return max(by_meaning, by_words) if share else by_meaning

    is_by_meaning = ranking.mode == "semantic"
    if not best.has_word and not is_by_meaning:
        return by_meaning

    by_vectors = _confidence_by_vectors(core, ranking, coverage, similarity, text)
    # A search by meaning alone may be answered by meaning alone.
    return max(by_meaning, by_vectors) if is_by_meaning else by_vectors


def _confidence_by_vectors(
    core: Core, ranking: Ranking, coverage: Coverage, similarity: float, text: str | None
) -> float:
    """Return the confidence in the best hit by the bundled word vectors.

    Comparing each word of the question with each of the note is the costly part. The words that the note contains are
    covered for certain, so a hit that answers by them alone is not compared further.
    """
    note = ranking.shown[ranking.best[0].note]
    called = _called(note)
    key, texts = _covering(core, note, text)
    weights = _informative_weights(ranking, coverage)
    informative = _informative_words(ranking)
    matched = _matched_words(core, ranking, text)
    missing = [word for word in informative if word not in matched]
    contains_only_names = (
        bool(missing) and bool(matched) and matched <= rank.names_in(ranking.query.text)
    )

    evidence = Evidence(
        word_count=len(informative),
        similarity=similarity,
        coverage=rank.share_contained(weights, called, texts()),
        lead=rank.lead_of(ranking.first),
        missing_similarity=None,
    )
    certain = judgement.confidence(evidence)
    if certain >= 0 and not contains_only_names:
        return certain

    similarities, passage_number = coverage.by_word(weights, called, key, texts)
    missing_similarity: float | None = None
    if contains_only_names:
        passages = rank.with_words(texts())
        # The note may have changed since its words were kept: then it has fewer passages.
        passage = passages[passage_number] if 0 <= passage_number < len(passages) else ""
        together = coverage.vectors.unit([" ".join(missing), f"{called} {passage}"])
        by_word = dict(zip(weights, similarities, strict=True))
        missing_similarity = float(together[0] @ together[1]) + max(
            by_word[word] for word in missing
        )

    share = judgement.coverage_of(weights, similarities)
    return judgement.confidence(
        replace(evidence, coverage=share, missing_similarity=missing_similarity)
    )


def _informative_weights(ranking: Ranking, coverage: Coverage) -> dict[str, float]:
    """Return what each word of the question counts in its coverage."""
    query = ranking.query
    rarity = rank.weights_of(query.words, query.holders, ranking.standing.notes)
    lengths = coverage.vectors.lengths([word.lower() for word in rarity])
    return judgement.informative_weights(rarity, lengths.tolist())


def _informative_words(ranking: Ranking) -> list[str]:
    return [word for word in ranking.query.words if judgement.is_informative(word)]


def _share_held(core: Core, ranking: Ranking, found: Ranked, text: str | None) -> float:
    """Return the share of the question's words, by their rarity, that a hit holds."""
    note = ranking.shown[found.note]
    weights = rank.weights_of(ranking.query.words, ranking.query.holders, ranking.standing.notes)
    return rank.share_held(weights, _called(note), _covering(core, note, text)[1]())


def _matched_words(core: Core, ranking: Ranking, text: str | None) -> set[str]:
    """Return the informative words of the question that the best hit contains in any form.

    They are read from the text, which a hit needs anyway: to ask the index would be one query more per search.
    """
    note = ranking.shown[ranking.best[0].note]
    whole = (text_of(core, note.row.path) or "") if text is None else text
    searched = f"{_called(note)} {whole[:_MAX_CHECKED_TEXT]}"
    return {word for word in _informative_words(ranking) if rank.words_begun(searched, [word])}


def _similarities(ranking: Ranking) -> tuple[float, list[float]]:
    """Return the similarity of the best hit to the question, and those of the other notes, by cosine."""
    near = {note: nearness.score for note, nearness in (ranking.answer.near or {}).items()}
    best = near.pop(ranking.best[0].note, 0.0)
    return best, list(near.values())


def _hit(core: Core, ranking: Ranking, found: Ranked, text: str | None = None) -> Hit | None:
    note, words, limit = (
        ranking.shown[found.note],
        ranking.query.words,
        core.settings.search.snippet_characters,
    )
    row, text = note.row, text_of(core, note.row.path) if text is None else text
    if text is None:
        return None
    score = quality(core, ranking, found, text)
    excerpt = choose_excerpt(text, note.passages, note.best, note.repeated, words, limit)
    shown, heading = excerpt.text or plain_text(row.description), quoted_heading(excerpt.headings)
    return Hit(
        name_of(row.path), row.title, row.description, row.type or "memory", round(score, 4), shown, heading, excerpt.line,
        note.tags, row.created or None, row.modified, row.sha256,
    )  # fmt: skip


def text_of(core: Core, path: str) -> str | None:
    """The note's text as it is now; None when it went in this moment."""
    try:
        return core.vault.read(path).data.decode("utf-8", "replace")
    except Unavailable:
        raise  # nothing can be read just now, which is not the same as nothing found
    except SimplememError:
        return None


def narrow(core: Core, given: Filter, query: Query | None = None) -> Narrow:
    """A filter with its names and dates resolved, and what a question narrows by."""
    now, query = local(), query or Query("", ())
    author = query.author or well_formed(given.author).strip()
    if len(given.tags) + len(given.properties) + len(query.tags) > _MOST_NARROWING:
        raise Invalid(
            f"a filter takes at most {_MOST_NARROWING} tags and properties",
            hint="Pass fewer of them.",
        )
    if author:
        core.changes.newest()  # the filter stands on what the log has
    kind = query.type or well_formed(given.type)
    prefix = (query.prefix or well_formed(given.prefix)).strip().lstrip("/")
    return Narrow(
        tags={well_formed(key): well_formed(value) for key, value in given.tags.items()},
        require_all=given.require_all,
        all_tags=dict(query.tags),
        properties={
            well_formed(key): well_formed(value) for key, value in given.properties.items()
        },
        type=kind,
        prefix=prefix,
        since=read_when(given.since, now) if given.since else "",
        until=read_when(given.until, now, end=True) if given.until else "",
        link_to=core.path_meant(given.link_to) if given.link_to else "",
        linked_by=core.path_meant(given.linked_by) if given.linked_by else "",
        phrases=query.phrases,
        without=query.without,
        without_forms=query.without_forms,
        author="" if author.casefold() == ANYONE else author,
        archive=archive_of(core, kind, prefix, asked=query.archive),
        archived=query.archive,
    )


def archive_of(
    core: Core, kind: str = "", prefix: str = "", *, asked: bool = False
) -> tuple[str, ...]:
    """The folders of past sessions, if a filter must tell them from the rest: not where it names them."""
    folders = tuple(
        f"{named}/" for each in core.settings.search.archive if (named := each.strip().strip("/"))
    )
    if asked:
        return folders or ("archive/sessions/",)
    below = compare_key(f"{prefix.rstrip('/')}/")
    is_named = kind.casefold() == "session" or any(
        below.startswith(compare_key(each)) for each in folders
    )
    return () if is_named else folders


def list_page(
    core: Core,
    *,
    filter: Filter | None = None,
    sort: str = "modified",
    limit: int = 50,
    cursor: str | None = None,
) -> Page:
    """Memories that pass a filter, newest first unless told otherwise."""
    limit = within(limit, 1, 1000, "limit")
    if sort not in SORTS:
        raise Invalid(f"cannot sort by {sort!r}", hint=f"Sort by one of {', '.join(SORTS)}.")
    core.prepare(vectors=False)
    behind = core.state_if_behind()
    after, _, made_for = (cursor or f"0-{sort}").partition("-")
    if made_for != sort or not (after.isdecimal() and len(after) < 10):
        raise Invalid(
            "this cursor does not belong to this list", hint="Start again without a cursor."
        )
    narrowed = narrow(core, filter or Filter())
    listing = core.fresh(
        lambda: core.index.page(narrowed, sort, limit, int(after)), lambda found: found.rows
    )
    items = tuple(
        Listed(
            name_of(row.path), row.path, row.title, row.description, row.type or "memory",
            listing.tags.get(row.id, ()), row.created or None, row.modified, row.size, row.sha256, row.problem,
        )
        for row in listing.rows
    )  # fmt: skip
    shown, less = int(after) + len(items), ""
    if not listing.total:
        from simplemem.store.explain import unmet

        less = unmet(core, narrowed)
    next_cursor = f"{shown}-{sort}" if shown < listing.total else None
    return Page(items, next_cursor, listing.total, core.state_of_list(behind), less)


def backlinks(
    core: Core,
    name: str,
    *,
    query: str | None = None,
    limit: int = 5,
    kinds: Sequence[str] = ("link", "semantic"),
) -> tuple[Backlink, ...]:
    """Memories that lead to this one, by links or by meaning, each once; in the order of a query when one is given."""
    core.prepare(vectors="semantic" in kinds)
    path, limit = core.path_meant(name), within(limit, 1, MAX_LIMIT, "limit")
    if unknown := [kind for kind in kinds if kind not in ("link", "semantic")]:
        hint = 'The kinds are "link" and "semantic".'
        raise Invalid(f"no kind of backlink called {unknown[0][:40]!r}", hint=hint)

    def once() -> tuple[Mapping[str, Sequence[StoredLink]], Sequence[tuple[Shown, float]]]:
        linking = {
            source: list(links)
            for source, links in groupby(core.index.links(path), lambda link: link.source)
        }
        wants_more = "semantic" in kinds and (
            bool(query) or "link" not in kinds or len(linking) < limit
        )
        near = _near(core, path, linking, 3 * limit) if wants_more else {}
        linking = linking if "link" in kinds else {}
        found = {source: (links[0].source_id, 1.0) for source, links in linking.items()} | near
        scores = {source: score for source, (_, score) in found.items()}
        if (
            query and scores
        ):  # in the order of a search for it among them; those not found come last
            ranking = ranked(core, query, Narrow(only=tuple(scores), hidden=True), limit)
            hits, every = (
                {found.path: found.score for found in some}
                for some in (ranking.best, ranking.every)
            )
            scores = dict.fromkeys((*hits, *every, *scores), 0.0) | every | hits
        shown_scores = judgement.falling_scores(scores.values())
        scores = dict(zip(scores, shown_scores, strict=True))
        best = {found[source][0]: scores[source] for source in list(scores)[:limit]}
        shown = core.index.shown(dict.fromkeys(best, 0), Question(like=path)) if best else {}
        return linking, [(shown[note], score) for note, score in best.items() if note in shown]

    linking, best = core.fresh(once, lambda found: [note.row for note, _ in found[1]])
    items: list[Backlink] = []
    for note, score in best:
        row, place, links, text = (
            note.row,
            note.best,
            linking.get(note.row.path, ()),
            text_of(core, note.row.path),
        )
        if text is None:
            continue
        text = Quotable.of(text).whole
        lines = text.split("\n")
        places = [
            Mention(it.form, it.line, plain_text("".join(lines[it.line - 1 : it.line]))[:300])
            for it in links
        ]
        if not places:
            said = rank.snippet(text, place, None, 200) if place is not None else row.description
            places = [Mention("", place.line if place is not None else 1, said)]
        first, *also = places
        shown = first.form, first.snippet, first.line, round(score, 4), tuple(also)
        items.append(
            Backlink(name_of(row.path), row.title, "link" if links else "semantic", *shown)
        )
    return tuple(items)


def related(core: Core, name: str, limit: int = 3) -> tuple[str, ...]:
    """The names of memories that are near in meaning, nearest first."""
    core.prepare()
    path = core.path_meant(name)

    def once() -> list[Row]:
        near = _near(core, path, [link.source for link in core.index.links(path)], limit)
        known = core.index.known(near) if near else {}
        return [known[each] for each in near if each in known]

    return tuple(name_of(row.path) for row in core.fresh(once, lambda found: found))


def _near(
    core: Core, path: str, linking: Collection[str], limit: int
) -> dict[str, tuple[NoteId, float]]:
    """The notes nearest to the middle of a note's passages, without those that link to it."""
    answer = core.index.ask(
        Question(like=path, nearest=4 * limit, narrow=Narrow(archive=archive_of(core)))
    )
    near = {note: max(each.passage, each.score) for note, each in (answer.near or {}).items()}
    others = [note for note in near if near[note] >= _SEMANTIC_FLOOR and answer.paths[note] != path]
    best = sorted(others, key=lambda note: (-round(near[note], 6), answer.paths[note]))[:limit]
    return {
        answer.paths[note]: (note, near[note]) for note in best if answer.paths[note] not in linking
    }


def within(value: int, least: int, most: int, what: str) -> int:
    if value < least:
        raise Invalid(f"{what} must be at least {least}, not {value}")
    return min(value, most)
