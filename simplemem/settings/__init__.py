"""The settings: which there are, where their values come from, and which vault they are for.

Import from the modules. This file imports nothing, because a command that a running server answers
needs only `location.py`, and loading more would take most of its time.
"""
