"""A whole graph that is to be taken in: which of its names get a page of their own, and what is to stand on those.

What is there is left as it is. Of entities and relations that are told twice the first counts.
"""

from __future__ import annotations

from simplemem.kinds.graph.draft import Drafting
from simplemem.kinds.graph.relating import Relating
from simplemem.kinds.graph.values import Graph, Relation


class TakingIn:
    """What an import shall make. The pages are chosen at once, so that their relations can link to one another."""

    def __init__(self, graph: Graph, relating: Relating, drafting: Drafting) -> None:
        self._graph = graph
        self._relating = relating
        self._drafting = drafting
        self._bonds: dict[str, list[str]] = {}
        names = dict.fromkeys(each.name for each in graph.entities)
        ends = [end for each in graph.relations for end in (each.source, each.target)]
        self.new = {each.name: each for each in reversed(graph.entities) if relating.is_lacking(each.name)}
        making = dict.fromkeys(name for name in [*names, *ends] if relating.end(name) is None)
        self.paths = {name: drafting.choose(name) for name in making}
        self.stubs = [self.new[name] for name in names if name in self.new and name not in self.paths]
        self.later: list[Relation] = []  # of pages that are there already

    def relate(self) -> None:
        """Say each relation as a line of the new page it begins at."""
        relations = {each.key: each for each in reversed(self._graph.relations)}
        for key in dict.fromkeys(each.key for each in self._graph.relations):
            relation = relations[key]
            if relation.source not in self.paths:
                self.later.append(relation)
                continue
            target = self.paths.get(relation.target) or self._relating.end(relation.target)
            line = self._relating.line(self.paths[relation.source], relation, target)
            self._bonds.setdefault(relation.source, []).append(line)

    def make(self, name: str, order: int, moment: str) -> None:
        """Draft the page of a name; one that is no entity's only holds its relations."""
        entity = self.new.get(name)
        kind, said = (None, ()) if entity is None else (entity.type, entity.observations)
        self._drafting.make(name, kind, order, moment, said, self._bonds.get(name, ()), self.paths[name])
