"""What one text states, read once for messages, statements and documents."""

from __future__ import annotations

from simplemem.features.facts.reader import read_text


def test_a_message_states_facts_in_sentences_of_its_author() -> None:
    reading = read_text("My sister is called Ruth. Tom says my dog is called Rex. Is it late?")

    assert reading.stated == ("My sister is called Ruth.",)
    assert [(fact.key, fact.value) for fact in reading.facts] == [("sister_name", "Ruth")]


def test_what_a_message_quotes_is_not_stated() -> None:
    reading = read_text('> My sister is called Ruth.\n\nShe wrote "my dog is called Rex".')

    assert not reading.facts


def test_a_short_text_has_statements_without_questions_and_greetings() -> None:
    assert read_text("Hi there! I live in Rome. What time is it?").statements == ["I live in Rome."]
    assert read_text("Hi there!").statements == []


def test_a_long_text_is_a_document_whose_author_may_state_something() -> None:
    reading = read_text("The harbour was busy that day. " * 20 + "I live in Rome.")

    assert reading.statements is None
    assert reading.own_statements == ("I live in Rome.",)


def test_sentences_say_what_has_changed() -> None:
    reading = read_text("We moved last week. The weather was fine.")

    assert list(reading.changes) == ["We moved last week."]
    assert reading.sentences_of_change == ("We moved last week.",)
