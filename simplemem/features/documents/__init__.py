"""Documents as notes, the facts that are extracted from them, and answers from all of them.

`document.py` reads and writes the notes. Tools call `service.py` to ingest documents, and
`memories.py` for memories, which are facts or documents. Files and pages become Markdown in
`convert.py` and `fetch.py`; `extraction.py` extracts facts. `recall.py` answers questions from
facts, documents and the graph. `knowledge_base.py` is a folder of files beside all this.
"""
