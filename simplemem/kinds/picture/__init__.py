"""The graph to look at: from entities, notes and links to a page, a drawing, or a file for another program.

`drawing.py` is the value that all forms are made of, `from_store.py` makes it of a vault; the rest is pure.
"""
