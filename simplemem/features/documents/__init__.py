"""Documents as notes, the facts that are extracted from them, and answers from all of them.

`document.py` reads and writes the notes and `service.py` is what tools call. Files and pages become
Markdown in `convert.py` and `fetch.py`; `extraction.py` extracts facts. `recall.py` answers
questions from facts, documents and the graph. `knowledge_base.py` is a folder of files beside all
this.
"""
