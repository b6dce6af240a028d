"""Renders the Markdown of Obsidian as HTML: one module per notation.

`simplemem.web.render` puts them together. Nothing here reads a vault or a store: what a note refers
to is in its `NoteContext`. The worker process of the page (`simplemem.web.render_worker`) runs all
of it except `parts`, which the server needs.
"""
