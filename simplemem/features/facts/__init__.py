"""Facts as notes: what is stated about whom, since when, how surely, and what replaced it.

`fact.py` reads and writes the notes and `service.py` is what tools call. A new fact goes through
`adding.py`, which compares it with the current ones (`comparing.py`). The other modules are rules
without I/O: `reading.py` reads what a statement says, `reconciling.py` what it does to others, and
`decay.py` what time does to it. Word lists and patterns are in `words/`.
"""
