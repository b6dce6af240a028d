"""Any sequence of calls gives what a plain model in memory gives, by two servers in turn and after a restart."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from simplemem.features.graph.service import KnowledgeGraph
from simplemem.features.graph.values import Entity, Graph, NoSuchEntity, Observation, Relation
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

QUICK = Settings.model_validate({"embed": {"provider": "none"}, "write": {"durability": "fast"}})
NAMES = [
    "Alice",
    "alice",
    "a/b",
    "",
    "n\nx",
    "\ud800",
    "CON",
    "x" * 300,
    "[[x]]",
    "café",
    "cafe\u0301",
    '"q"',
]
TEXTS = ["likes tea", "", "a\nb", "- works at [[Alice]]", "%%", "## Relations", " x ", "[cat] y #z"]
TYPES = ["person", "", "123", "a: b"]
KINDS = ["knows", "Knows", "", "works at", "[[x]]", 'say "hi"', "new\nline"]
name, text, kind = st.sampled_from(NAMES), st.sampled_from(TEXTS), st.sampled_from(KINDS)
entity = st.builds(
    lambda n, t, said: Entity(n, t, tuple(map(Observation, said))),
    name,
    st.sampled_from(TYPES),
    st.lists(text, max_size=3),
)
relation = st.builds(lambda a, k, b: Relation(a, k, b), name, kind, name)
CALLS = st.one_of(
    st.tuples(st.just("create"), st.lists(entity, max_size=4)),
    st.tuples(st.just("relate"), st.lists(relation, max_size=4)),
    st.tuples(st.just("add"), st.lists(st.tuples(name, st.lists(text, max_size=3)), max_size=3)),
    st.tuples(st.just("drop"), st.lists(name, max_size=2)),
    st.tuples(st.just("unsay"), st.lists(st.tuples(name, st.lists(text, max_size=3)), max_size=2)),
    st.tuples(st.just("unrelate"), st.lists(relation, max_size=3)),
    st.tuples(st.just("restart"), st.just([])),
)


DELETIONS = {
    "drop": "delete_entities",
    "unsay": "delete_observations",
    "unrelate": "delete_relations",
}


class Model:
    """What the calls mean, in lists."""

    def __init__(self) -> None:
        self.entities: dict[str, Entity] = {}
        self.relations: dict[tuple[str, str, str], None] = {}

    def create(self, given: list[Entity]) -> list[Entity]:
        new = {each.name: each for each in reversed(given) if each.name not in self.entities}
        made = [each for each in given if new.get(each.name) is each]
        self.entities |= {each.name: each for each in made}
        return made

    def relate(self, given: list[Relation]) -> list[tuple[str, str, str]]:
        made = [
            key for key in dict.fromkeys(each.key for each in given) if key not in self.relations
        ]
        self.relations |= dict.fromkeys(made)
        return made

    def add(self, given: list[tuple[str, list[str]]]) -> list[tuple[str, list[str]]]:
        for each, _ in given:
            if each not in self.entities:
                raise NoSuchEntity(each)
        added = []
        for each, said in given:
            held = self.entities[each]
            new = [one for one in said if one not in held.texts]
            self.entities[each] = Entity(
                each, held.type, (*held.observations, *map(Observation, new))
            )
            added.append((each, new))
        return added

    def drop(self, names: list[str]) -> None:
        self.entities = {each: held for each, held in self.entities.items() if each not in names}
        self.relations = {
            key: None for key in self.relations if key[0] not in names and key[2] not in names
        }

    def unsay(self, given: list[tuple[str, list[str]]]) -> None:
        for each, said in given:
            if each in self.entities:
                held = self.entities[each]
                kept = tuple(one for one in held.observations if one.text not in said)
                self.entities[each] = Entity(each, held.type, kept)

    def unrelate(self, given: list[Relation]) -> None:
        self.relations = {
            key: None for key in self.relations if key not in {each.key for each in given}
        }

    def told(
        self, names: set[str] | None = None
    ) -> tuple[list[tuple[str, str, list[str]]], set[tuple[str, str, str]]]:
        kept = [each for each in self.entities.values() if names is None or each.name in names]
        ends = {each.name for each in kept}
        return (
            [(each.name, each.type, each.texts) for each in kept],
            {key for key in self.relations if names is None or key[0] in ends or key[2] in ends},
        )


def told(graph: Graph) -> tuple[list[tuple[str, str, list[str]]], set[tuple[str, str, str]]]:
    keys = [each.key for each in graph.relations]
    assert len(set(keys)) == len(keys)
    return [(each.name, each.type, each.texts) for each in graph.entities], set(keys)


@settings(max_examples=min(40, 2 * settings.default.max_examples), deadline=None)
@given(
    st.lists(st.tuples(CALLS, st.integers(0, 1)), min_size=3, max_size=14),
    st.sets(name, max_size=3),
    text,
)
def test_any_calls_mean_what_the_model_says(
    calls: list[tuple[tuple[str, list], int]], opened: set[str], wanted: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        model = Model()
        stores = [EnhancedStore(Path(folder), QUICK) for _ in range(2)]
        graphs = [KnowledgeGraph(store) for store in stores]
        for (what, given_), who in calls:
            graph = graphs[who]
            if what == "create":
                assert graph.create_entities(given_) == model.create(given_)
            elif what == "relate":
                assert [each.key for each in graph.create_relations(given_)] == model.relate(given_)
            elif what == "add":
                asked = [(each, list(map(Observation, said))) for each, said in given_]
                try:
                    expected: object = model.add(given_)
                except NoSuchEntity as error:
                    expected = error.message
                try:
                    assert graph.add_observations(asked) == expected
                except NoSuchEntity as error:
                    assert error.message == expected
            elif what in DELETIONS:
                getattr(graph, DELETIONS[what])(given_)
                getattr(model, what)(given_)
            else:
                stores[who].close()
                stores[who] = EnhancedStore(Path(folder), QUICK)
                graphs[who] = KnowledgeGraph(stores[who])
            assert told(graphs[1 - who].read()) == model.told()
        assert told(graphs[0].open(opened)) == model.told(opened)
        low = wanted.lower()
        found = {
            each.name
            for each in model.entities.values()
            if any(low in part.lower() for part in (each.name, each.type, *each.texts))
        }
        assert told(graphs[1].search(wanted)) == model.told(found)
        for store in stores:
            store.close()
