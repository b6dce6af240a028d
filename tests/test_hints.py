"""Hints of errors: each interface words their sentences for its own callers."""

from __future__ import annotations

import pickle

from simplemem.errors import Hint, HintSentence, NotFound

UPDATE = HintSentence("update", "Update it;")
OVERWRITE = HintSentence("overwrite", "overwrite=true replaces it.", argument="overwrite")
UNDO = HintSentence("undo", 'undo("v3") restores it.', {"version": "v3", "folder": "/a/b"})


def test_a_hint_is_a_text_with_words_for_python() -> None:
    assert Hint("First.", UPDATE, OVERWRITE) == "First. Update it; overwrite=true replaces it."
    assert NotFound("x", hint=Hint(UNDO)).as_dict()["hint"] == 'undo("v3") restores it.'


def test_each_sentence_is_worded_by_its_key_and_values() -> None:
    words = {"update": "`edit` changes it;", "undo": "`undo {version}` restores it."}
    hint = Hint("First.", UPDATE, UNDO)
    worded = hint.worded(lambda sentence: words[sentence.key].format(**sentence.values))
    assert worded == "First. `edit` changes it; `undo v3` restores it."


def test_a_sentence_without_words_is_left_out_and_its_semicolon_becomes_a_full_stop() -> None:
    hint = Hint(UPDATE, OVERWRITE)
    assert hint.worded(lambda it: None if it.argument else it.text) == "Update it."
    assert hint.worded(lambda it: it.text if it.argument else None) == OVERWRITE.text
    assert hint.worded(lambda _: None) == ""


def test_a_hint_keeps_its_sentences_when_it_is_copied_or_folders_are_withheld() -> None:
    error = NotFound("no /a/b", hint=Hint("In /a/b.", UNDO))
    error.withhold_folders(["/a/b"])
    hint = pickle.loads(pickle.dumps(error.hint))
    assert hint == 'In …. undo("v3") restores it.'
    assert hint.worded(lambda it: f"{it.values['version']} {it.values['folder']}") == "In …. v3 …"
