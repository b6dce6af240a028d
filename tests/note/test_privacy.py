"""A note is private when its header, its tags or a rule say so, and when nobody can tell."""

from __future__ import annotations

import pytest

from simplemem.note.names import private_by_rule
from simplemem.note.note import private_reason, read_note


def reason(text: str, path: str = "a.md", rules: tuple[str, ...] = ()) -> str | None:
    return private_reason(path, read_note(text.encode()), rules)


@pytest.mark.parametrize("value", ["true", "yes", "True", "'true'", "1", "on", "[family]", "until I die"])
def test_the_property_private_keeps_a_note_private_unless_it_says_no(value: str) -> None:
    assert reason(f"---\nprivate: {value}\n---\nText.\n") == "property"
    assert reason(f"---\ntitle: x\nPrivate: {value}\n---\nText.\n") == "property"


@pytest.mark.parametrize("value", ["false", "no", "'false'", "", "~", "0", '""'])
def test_a_property_that_says_no_or_nothing_keeps_nothing_private(value: str) -> None:
    assert reason(f"---\nprivate: {value}\n---\nText.\n") is None


@pytest.mark.parametrize(
    "text",
    [
        "---\ntags: [one, private]\n---\n",
        "---\ntags: Private/Health\n---\n",
        "---\ntags: {private: true}\n---\n",
        "---\ntags: {private: family}\n---\n",
        "Only this line is #private in it.\n",
        "Or #PRIVATE/taxes is.\n",
    ],
)
def test_the_tag_private_and_those_below_it_keep_a_note_private(text: str) -> None:
    assert reason(text) == "tag"


@pytest.mark.parametrize(
    "text",
    [
        "---\ntags: [privately, not/private]\n---\nThe private life of bees.\n",
        "---\ntags: {private: false}\n---\n",
        "```\n#private\n```\n",
        "Words of a note.\n\n---\n\nprivate: a word at the beginning of a line\n",
    ],
)
def test_other_tags_and_words_keep_nothing_private(text: str) -> None:
    assert reason(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "---\nprivate: true\nlist: [\n---\nText.\n",
        "---\nlist: [\n---\nText.\n",
        "---\nprivate: true\n\nThe header was never closed.\n",
        "\n---\ntitle: x\nprivate: true\n---\nThe header came a line too late.\n",
    ],
)
def test_a_header_that_cannot_be_read_may_say_private_so_its_note_is(text: str) -> None:
    assert reason(text) == "unreadable"


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("journal/", "journal/2026/a.md"),
        ("journal", "journal/a.md"),
        ("/Journal/", "journal/a.md"),
        ("plans/will", "plans/will.md"),
        ("plans/will.md", "plans/will.md"),
        ("cafe\u0301/", "Café/a.md"),
        ("*.secret.md", "deep/er/a.secret.md"),
        ("people/*/health", "people/ada/health.md"),
        ("*/private", "people/private/a.md"),
        ("journal\\", "journal/a.md"),
        ("./journal/", "journal/a.md"),
        ("**/secret/*", "secret/a.md"),
        ("**/secret/*", "deep/secret/a.md"),
        ("[Personal]/", "[Personal]/a.md"),
        ("[Personal]*", "[Personal] 2026/a.md"),
        ("/", "anything.md"),
        ("*", "deep/anything.md"),
    ],
)
def test_a_rule_names_a_folder_a_note_or_a_pattern(rule: str, path: str) -> None:
    assert private_by_rule(path, ["other/", rule])
    assert reason("Text.\n", path, (rule,)) == "rule"


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("journal/", "journal.md"),
        ("journal/", "journalism/a.md"),
        ("journal/", "old/journal/a.md"),
        ("plans/will", "plans/willow.md"),
        ("", "a.md"),
        ("*.secret.md", "a.md"),
    ],
)
def test_a_rule_says_nothing_of_other_paths(rule: str, path: str) -> None:
    assert not private_by_rule(path, [rule])
