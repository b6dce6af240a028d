"""What belongs together, and the tags that suggests."""

from __future__ import annotations

from dataclasses import replace

from making import by_words, entry

from simplemem.kinds.learned.access import Read
from simplemem.kinds.learned.clusters import clusters, suggest_tags
from simplemem.kinds.learned.likeness import likeness_of

POOL = [
    entry("a", "postgres connection pool exhausted under load", tags=("postgres",)),
    entry("b", "postgres connection pool exhausted at night", tags=("postgres",)),
    entry("c", "the postgres connection pool was exhausted again", tags=()),
]
OTHERS = [entry("x", "balloons fly with hydrogen"), entry("y", "tea is best with lemon")]
ALL = [*POOL, *OTHERS]


def test_a_cluster_grows_around_the_entry_that_is_read_most() -> None:
    (found,) = clusters(ALL, by_words(ALL), {"c": Read(5, "2026")}, threshold=0.4)
    assert found.center.id == "c" and {each.id for each in found.members} == {"a", "b", "c"}
    assert {"postgres", "pool", "connection", "exhausted"} == set(found.words)
    (found,) = clusters(ALL, by_words(ALL), {}, threshold=0.4)
    assert found.center.id != "c" or POOL[2].confidence == 0.8


def test_threshold_size_and_number_are_heeded() -> None:
    likeness = by_words(ALL)
    assert clusters(ALL, likeness, {}, threshold=0.99) == []
    assert clusters(ALL, likeness, {}, threshold=0.4, least=4) == []
    assert len(clusters(ALL, likeness, {}, threshold=0.0, least=1)) == 1
    alone = clusters(ALL, likeness, {}, threshold=0.4, least=1, most=2)
    assert [len(each.members) for each in alone] == [3, 1]


def test_no_entry_is_in_two_clusters() -> None:
    found = clusters(ALL, by_words(ALL), {}, threshold=0.1, least=1, most=None)
    ids = [each.id for cluster in found for each in cluster.members]
    assert sorted(ids) == sorted(each.id for each in ALL)


def test_what_most_are_tagged_with_is_suggested_to_the_rest_in_the_spelling_there_is() -> None:
    found = clusters(ALL, by_words(ALL), {}, threshold=0.4)
    suggested = {each.tag: each for each in suggest_tags(found, {"Postgres": 7, "pool": 1})}
    known = suggested["Postgres"]
    assert (known.having, known.of, known.is_known, [each.id for each in known.entries]) == (2, 3, True, ["c"])
    assert suggested["pool"].is_known and {each.id for each in suggested["pool"].entries} == {"a", "b", "c"}


def test_how_far_something_is_is_suggested_to_nobody() -> None:
    some = [replace(each, tags=("status/open",) if each.id != "c" else ()) for each in POOL]
    found = clusters(some, by_words(some), {}, threshold=0.3)
    assert len(found) == 1 and "status/open" not in {each.tag for each in suggest_tags(found, {"status/open": 2})}


def test_two_alike_suggest_no_tag() -> None:
    two = POOL[:2]
    assert suggest_tags(clusters(two, by_words(two), {}, threshold=0.3), {}) == []


def test_vectors_are_compared_where_there_are_some_and_what_has_none_is_counted() -> None:
    def bytes_of(*numbers: int) -> bytes:
        return bytes(number & 0xFF for number in numbers)

    vectors = [[bytes_of(100, 0), bytes_of(0, 100)], [bytes_of(70, 70)], [], [bytes_of(-50, -50)], [bytes_of(0, 0)]]
    likeness = likeness_of(ALL, vectors, "a-model")
    assert likeness.method == "embedding (a-model)" and likeness.unknown == 1
    scores = [round(each, 3) for each in likeness.to(0)]
    assert scores == [1.0, 1.0, 0.0, -1.0, 0.0]
    assert list(likeness.pairs(0.9)) == [(0, 1, 1.0)]


def test_without_vectors_words_stand_in_and_that_is_said() -> None:
    likeness = by_words(ALL)
    assert "words" in likeness.method
    assert likeness.near(0, 0.4) == [1, 2]
