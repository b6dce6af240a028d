"""Facts as notes: what is stated about whom, since when, how surely, and what replaced it.

A fact has a note of its own: one per statement (`fact.py`), or one per key for conversations
(`key_notes.py`). Both forms share one definition:

- `reader.py` says what a text states.
- `reconciling.py` decides what a new fact does to those that are known, and `known_facts.py` which
  of them it may change. `new_fact.py` and `outcome.py` are its input and its answer. It has a
  module for facts with a key (`reconciling_keys.py`) and one for statements
  (`reconciling_statements.py`, with `restating.py` for those that are stated already).
- `reviews.py` says what is left to the agent.
- `outdating.py` says what the note of a replaced or disputed fact has.
- `decay.py` says what time does to a fact.

`service.py` is what tools call. It adds statements with `adding.py`, which compares each with the
current ones (`comparing.py`) and writes what the reconciler decides. The other modules are rules
without I/O, such as `reading.py` for one statement, `statement_rules.py` for two and `doubt.py` for
what a text puts in doubt. Word lists and patterns are in `words/`.
"""
