"""Which sentences of a message state nothing, beside small talk."""

from __future__ import annotations

import pytest

from simplemem.features.facts.unstated import stated_sentences, topic_to_forget

UNSTATED = """
what can you make with half a swede and some ham that needs using
sorry me again, is it bad luck to start knitting now
I ate nine deviled eggs, should I be worried
qué hago con medio roscón duro como una piedra
Janine at work reckons the practice is being sold
My sister says we should move to Leeds
apparently they are closing the pool
Dicen que van a bajar los precios
Mehmet meint, im Sommer streichen sie die Linie
Il paraît que la piscine va fermer
If they make me do Saturdays I'm off
si no le sale nada antes del verano, no compramos
Falls wir das Haus verkaufen, ziehen wir um
oh great, the van won't start
well that went well
recommend me a novel
Schreib mir bitte eine Anzeige, kurz
"""

STATED = """
I live in Leeds
The doctor says I must not lift anything
The vet says ours weighs 11 kilos
El médico dice que no tome sal
Der Arzt sagt, ich darf kein Salz essen
I said no to the offer
Can you stop giving me recipes with aubergine
If in doubt I always prefer the train
La casa de mi madre está en Murcia
Die Laube ist nicht geheizt
Write commit messages in German
Give me short answers
Make the tests pass before you commit
"""


@pytest.mark.parametrize("sentence", UNSTATED.strip().splitlines())
def test_a_question_hearsay_a_condition_sarcasm_and_a_request_state_nothing(sentence: str) -> None:
    assert stated_sentences([sentence]) == []


@pytest.mark.parametrize("sentence", STATED.strip().splitlines())
def test_what_is_meant_to_be_kept_is_kept(sentence: str) -> None:
    assert stated_sentences([sentence]) == [sentence]


def test_what_goes_on_with_hearsay_and_names_nothing_is_left_out() -> None:
    message = ["Dale says old Hollis is selling out", "He never gets it right"]
    assert stated_sentences(message) == []
    kept = "I live in Dayton"
    assert stated_sentences([message[0], kept]) == [kept]
    assert stated_sentences(["Should I renew it?", "It expires on 3 May"]) == [
        "It expires on 3 May"
    ]


@pytest.mark.parametrize(
    ("sentence", "topic"),
    [
        ("hey can you drop what I said about Steph?", "steph"),
        ("Delete everything about the divorce please", "the divorce please"),
        ("Otra cosa, lo del golpe con el coche bórralo", "golpe con el coche"),
        ("Kannst du alles löschen was ich über die Krankheit geschrieben hab", "die krankheit"),
        ("Oublie ce que je t'ai dit sur Paul", "paul"),
        ("I forgot what I said about Steph", ""),
        ("Don't forget the milk", ""),
    ],
)
def test_a_topic_to_forget(sentence: str, topic: str) -> None:
    assert topic_to_forget(sentence) == topic


def test_of_a_message_that_asks_to_forget_only_the_request_counts() -> None:
    request = "Can you drop what I said about Steph?"
    assert stated_sentences([request, "My kid uses this tablet too"]) == [request]


@pytest.mark.parametrize(
    "sentence",
    [
        "hiiii",
        "oh wonderful, another fire drill before lunch",
        "just what I always wanted",
        "ugh could you reword this so it sounds less angry",
        "does dutch cheese melt",
        "Tell me something nice",
        "No I don't want a list of exercises",
        "Dice la del quiosco que cierran la calle",
        "madre mía qué semana",
        "ja toll, der Zug fällt aus",
        "Im Treppenhaus heißt es, der Aufzug bleibt kaputt",
        "Moin",
        "Super, encore une grève",
        "Il pleut sur Brest",
    ],
)
def test_greetings_mockery_and_rumours_as_people_write_them_state_nothing(sentence: str) -> None:
    assert stated_sentences([sentence]) == []


@pytest.mark.parametrize(
    "sentence",
    [
        "Great news, I got the job at Fiat",
        "Wonderful, my sister had her baby",
        "Do the dishes on Monday",
        "Will lives in Manchester",
        "Morning shifts start at six now",
        "Could you remember that I'm allergic to nuts",
        "Genial, me han dado el piso",
        "Dice mi médico que no tome sal",
        "Super, ich hab die Stelle",
        "Super, j'ai eu le poste",
    ],
)
def test_good_news_and_words_of_a_doctor_state_something(sentence: str) -> None:
    assert stated_sentences([sentence]) == [sentence]
