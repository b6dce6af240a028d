"""The doctor: what is wrong with a vault, its index or what they stand on, and how what is sure is mended.

`checks` and `links` look and change nothing, `system` says what the vault stands on, `mending` drafts one change of all
that can be mended and carries it out. What is merely likely is offered, never done.
"""
