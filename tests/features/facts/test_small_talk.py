"""Which sentences state nothing: questions, greetings, thanks and acknowledgements, in four languages."""

from __future__ import annotations

import pytest

from simplemem.features.facts.small_talk import is_small_talk

SMALL_TALK = """
Hi there!
Good morning everyone
Thank you so much for your help
Thanks a lot, Anna Lee
Thank you for fixing the printer yesterday
What is my name?
what is my alarm code
Hey, how are you?
Can you remind me where I parked?
could you help me with the report
Tell me what my wifi password is
Got it, thanks
See you tomorrow
Is Anna vegetarian?
how many cats do I have
Hey!! 👋
Hola, ¿qué tal?
Muchas gracias por tu ayuda
¿Dónde vivo?
dónde trabajo
Vale, gracias
Dime dónde vivo
Danke schön!
Guten Morgen
Wo wohne ich?
Wie heißt meine Frau
Merci beaucoup
Où est-ce que j'habite ?
Quel est mon code
"""

STATEMENTS = """
I live in Berlin
Hi, I'm Tom
Hola, soy Ana
Hi, likes tea
Hello Kitty is my favourite brand
Thanks to Maria I found a flat
Thanks for reminding me that I'm allergic to nuts
Thanks, but I no longer eat meat
Cheers is my favourite show
When I travel I prefer aisle seats
What I like most is tea
Will is my brother
Did you know I moved to Leipzig?
¿Sabías que vivo en Leipzig?
My dentist is Dr. Marsh, right?
Como carne otra vez
OK Computer is my favourite album
No nuts
Yes, I smoke
Sure, my number is 555 0101
Sorry, the code is 0815
Remind me to call the bank
Do yoga on Mondays
Can swim
Danke ist mein Lieblingswort
Ich wohne in Köln
J'habite à Lyon
Quand j'étais petit, j'habitais Lyon
日本語が好きです
"""


@pytest.mark.parametrize("sentence", SMALL_TALK.strip().splitlines())
def test_small_talk_states_nothing(sentence: str) -> None:
    assert is_small_talk(sentence)


@pytest.mark.parametrize("sentence", STATEMENTS.strip().splitlines())
def test_what_states_something_is_no_small_talk(sentence: str) -> None:
    assert not is_small_talk(sentence)


def test_a_letter_whose_small_form_is_longer_changes_no_verdict() -> None:
    assert is_small_talk("Muy amable İsmail")
    assert not is_small_talk("Que tengas buen İİİİİİ, soy Ana")
