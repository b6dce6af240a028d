"""A graph of names that want to be something else where they are put."""

from __future__ import annotations

from simplemem.kinds.graph.values import Entity, Graph, Observation, Relation
from simplemem.kinds.picture.drawing import Drawing, drawing_of

ODD = (
    "</script><img src=x onerror=alert(1)>",
    "<!-- <script>",
    "]]> & \"quoted\" 'twice'",
    "back\\slash \\n \\N",
    "line\nbreak\ttab\r",
    "nul \x00 bell \x07 escape \x1b[31m",
    "half \ud800 a character",
    "separators \u2028 \u2029 \x85",
    "{{data}} {{script}} ${x}",
    "javascript:alert(1)",
    "emoji 🎈 и 田辺",
    "family 👨\u200d👩\u200d👧 and می\u200cخواهم",
    "",
    "__proto__",
    "constructor",
    "x" * 5000,
)


def odd_drawing() -> Drawing:
    """Every odd string as a name, a type, an observation, a relation's type and an attribute."""
    entities = tuple(Entity(each, each, (Observation(each), Observation(f"[[{each}]]"))) for each in ODD)
    relations = tuple(
        Relation(a, a, b, {"said": a, "strength": 0.5}) for a, b in zip(ODD, (*ODD[1:], "nobody"), strict=True)
    )
    return drawing_of(ODD[0], Graph(entities, relations))
