"""Retrieval measured on one's own notes: questions sampled from a vault, asked with their own words held out.

`mentions` finds what a note is called or says, `sampling` makes questions of it, `pairs` keeps them in a file; `scratch` is
the private copy in which they are asked, `asking` asks, `figures` sums up. Nothing here writes to the vault or its index.
"""
