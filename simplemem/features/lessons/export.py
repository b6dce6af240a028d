"""All lessons of a store as one text: Markdown, or a picture or data with the entities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from simplemem.features.graph.service import graph_of
from simplemem.features.graph.values import Entity, Graph, Observation, Relation
from simplemem.features.lessons import TYPES
from simplemem.features.lessons.description import LessonRelation, RelationsByPath
from simplemem.features.lessons.lesson import Lesson
from simplemem.features.lessons.service import lesson_service
from simplemem.store import EnhancedStore

MARKDOWN: Final = "md"


def export_text(store: EnhancedStore, file_format: str) -> str:
    """Return all lessons of a store as text in a format. Nothing is written.

    `md` groups them by type, the most confident first, superseded ones last. The other formats
    (`html`, `json`, `dot`, `d3`, `cytoscape`) also contain the graph of entities. Raises KeyError
    for any other format.
    """
    service = lesson_service(store)
    lessons = service.lessons()
    relations = service.relations_of(lessons)
    if file_format == MARKDOWN:
        return _export_markdown(lessons, relations)
    return _export_graph(store, lessons, relations, file_format)


def _export_graph(
    store: EnhancedStore,
    lessons: Sequence[Lesson],
    relations_by_path: RelationsByPath,
    file_format: str,
) -> str:
    """Return the lessons, the entities and the relations of both as a picture or as data.

    `file_format` is one of those of `export_text`, except `md`. Raises KeyError for any other.
    """
    from simplemem.features.graph.drawing import build_drawing
    from simplemem.features.graph.graph_export import PICTURES, cytoscape, node_link

    nodes: list[Entity] = []
    relations: list[Relation] = []
    details: dict[str, dict[str, str]] = {}
    for lesson in lessons:
        details[lesson.path] = {"text": lesson.text}
        nodes.append(_entity_of(lesson))
        for relation in relations_by_path[lesson.path]:
            edge = Relation(
                _base_name(lesson),
                relation.type,
                _base_name(relation.target),
            )
            relations.append(edge)

    entity_graph = graph_of(store).read()
    nodes += [entity for entity in entity_graph.entities if entity.path not in details]
    relations += entity_graph.relations

    graph = Graph(tuple(nodes), tuple(relations))
    drawing = build_drawing(store.root.name, graph, details=details)
    writers = {**PICTURES, "d3": node_link, "cytoscape": cytoscape}
    return writers[file_format](drawing)


def _entity_of(lesson: Lesson) -> Entity:
    """Return a lesson as an entity of the graph, with its text as the only observation."""
    observation = Observation(lesson.text)
    return Entity(
        _base_name(lesson),
        lesson.type,
        (observation,),
        lesson.path,
    )


def _base_name(lesson: Lesson) -> str:
    """Return the name of the note of a lesson without its folder."""
    return lesson.name.rpartition("/")[2]


def _export_markdown(lessons: Sequence[Lesson], relations: RelationsByPath) -> str:
    """Return the lessons as Markdown, below a heading for each type that has lessons."""
    by_type: dict[str, list[Lesson]] = {type_name: [] for type_name in TYPES}
    for lesson in lessons:
        of_type = by_type.setdefault(lesson.type, [])
        of_type.append(lesson)

    lines = ["# Knowledge\n"]
    for type_name, of_type in by_type.items():
        if not of_type:
            continue
        heading = type_name.capitalize()
        lines.append(f"## {heading} ({len(of_type)})\n")
        of_type.sort(key=_export_order)
        for lesson in of_type:
            lines += _lesson_paragraphs(lesson, relations[lesson.path])
    return "\n".join(lines)


def _export_order(lesson: Lesson) -> tuple[bool, float]:
    """Return a sort key: superseded lessons come last, otherwise the most confident first."""
    return lesson.is_superseded, -(lesson.confidence or 0.0)


def _lesson_paragraphs(lesson: Lesson, relations: Sequence[LessonRelation]) -> list[str]:
    """Return the Markdown of a lesson: heading, properties, content, context and relations.

    Each item ends with a line feed and is a paragraph. `relations` are those that begin at the
    lesson; without a context or relations, their item is missing.
    """
    confidence = "unknown"
    if lesson.confidence is not None:
        confidence = f"{lesson.confidence:g}"
    properties = [f"confidence {confidence}"]
    if lesson.verified:
        properties.append("verified")
    if lesson.is_superseded:
        properties.append("superseded")
    properties += [f"#{tag}" for tag in lesson.tags]
    properties_text = " · ".join(properties)

    lines = [
        f"### {lesson.headline}\n",
        f"*{properties_text}* · [[{lesson.name}]] · `{lesson.id}`\n",
        f"{lesson.content}\n",
    ]
    if lesson.context:
        lines.append(f"**Context:** {lesson.context}\n")

    bullets = [f"- {relation.type} [[{relation.target.name}]]\n" for relation in relations]
    if bullets:
        lines.append("".join(bullets))
    return lines
