"""From a query to ranked notes, lists, backlinks and context packs.

`pipeline.py` puts the steps of a search together. `needs.py` declares what the store provides.
"""
