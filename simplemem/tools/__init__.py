"""The tools that agents call: they validate arguments, call the store and describe the result.

They know no protocol. `simplemem.server` and `simplemem.web` do.
"""
