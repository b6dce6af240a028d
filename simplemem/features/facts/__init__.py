"""Facts as notes: what is stated about whom, since when, how surely, and what replaced it.

A fact has a note of its own: one per statement (`fact.py`), or one per key for conversations
(`key_notes.py`). For both, `reader.py` says what a text states, `outcome.py` what a new fact does
to earlier ones, `reviews.py` what is left to the agent, `outdating.py` what the note of a replaced
or disputed fact says, and `decay.py` what time does to a fact.

`service.py` is what tools call. It adds statements with `adding.py`, which compares each with the
current ones (`comparing.py`). The other modules are rules without I/O, such as `reading.py` for one
statement and `reconciling.py` for two. Word lists and patterns are in `words/`.
"""
