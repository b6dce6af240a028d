"""Arguments held to the schema that is listed: strictly, with the few forms forgiven that models send."""

from __future__ import annotations

from typing import Any

import pytest

from simplemem.faces.contract import flag, number, several, text, thing
from simplemem.faces.fitted import Unfit, fitted, utf16_length

SCHEMA = thing(
    {
        "items": several(thing({"name": text(), "tags": several(text())})),
        "limit": number("", minimum=1, maximum=9),
        "whole": {"type": "integer"},
        "really": flag(),
        "about": {"type": "object"},
        "query": {"type": "string", "maxLength": 4},
    },
    ("items",),
)


@pytest.mark.parametrize(
    ("sent", "taken"),
    [
        ({"items": []}, {"items": []}),
        ({"items": [{"name": "", "tags": ["a"], "id": 7}], "more": 1}, {"items": [{"name": "", "tags": ["a"]}]}),
        ({"items": '[{"name": "x", "tags": "[\\"y\\"]"}]'}, {"items": [{"name": "x", "tags": ["y"]}]}),
        ({"items": [], "limit": None, "really": False}, {"items": [], "really": False}),
        ({"items": [], "limit": "2.5", "whole": 3.0}, {"items": [], "limit": 2.5, "whole": 3.0}),
        ({"items": [], "really": "false"}, {"items": [], "really": False}),
        ({"items": [], "about": {"any": [1]}}, {"items": [], "about": {"any": [1]}}),
        ({"items": [], "about": '{"any": 1}'}, {"items": [], "about": {"any": 1}}),
        ({"items": [], "query": "\ud800abc"}, {"items": [], "query": "\ud800abc"}),
    ],
)
def test_what_fits_is_taken_and_what_is_not_known_is_dropped(sent: dict[str, Any], taken: dict[str, Any]) -> None:
    assert fitted(SCHEMA, sent) == taken


@pytest.mark.parametrize(
    ("sent", "issue"),
    [
        ({}, "Invalid input: expected array, received undefined at items"),
        ({"items": None}, "Invalid input: expected array, received null at items"),
        ({"items": "x"}, "Invalid input: expected array, received string at items"),
        ({"items": {"name": "x"}}, "Invalid input: expected array, received object at items"),
        ({"items": [1]}, "Invalid input: expected object, received number at items[0]"),
        ({"items": [{"name": "x"}]}, "Invalid input: expected array, received undefined at items[0].tags"),
        ({"items": [{"name": True, "tags": []}]}, "Invalid input: expected string, received boolean at items[0].name"),
        ({"items": [{"name": "", "tags": [1]}]}, "Invalid input: expected string, received number at items[0].tags[0]"),
        ({"items": [], "limit": 10}, "Invalid input: 10 is not between what is allowed at limit"),
        ({"items": [], "limit": "many"}, "Invalid input: expected number, received string at limit"),
        ({"items": [], "limit": "NaN"}, "Invalid input: expected number, received number at limit"),
        ({"items": [], "whole": 1.5}, "Invalid input: expected integer, received number at whole"),
        ({"items": [], "really": 1}, "Invalid input: expected boolean, received number at really"),
        ({"items": [], "query": "🧠🧠x"}, "Too big: expected string to have <=4 characters at query"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(sent: dict[str, Any], issue: str) -> None:
    with pytest.raises(Unfit) as refused:
        fitted(SCHEMA, sent)
    assert refused.value.issues == [issue]


def test_all_that_is_wrong_is_told_a_line_each() -> None:
    with pytest.raises(Unfit) as refused:
        fitted(SCHEMA, {"items": [{"tags": []}, 2], "really": "yes"})
    assert str(refused.value).split("\n") == [
        "Invalid input: expected string, received undefined at items[0].name",
        "Invalid input: expected object, received number at items[1]",
        "Invalid input: expected boolean, received string at really",
    ]


@pytest.mark.parametrize(("said", "length"), [("", 0), ("abc", 3), ("é", 1), ("🧠", 2), ("\ud800", 1)])
def test_a_length_is_that_of_javascript(said: str, length: int) -> None:
    assert utf16_length(said) == length
