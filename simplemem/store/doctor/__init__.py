"""The doctor: what is wrong with a vault, its index or what they stand on, and how some of it is mended.

`case` is what the checks look at, `examine` runs them, each in a room of its own; `plan` makes of what can be mended one
change of many notes, and `mending` carries it out. Looking changes nothing.
"""
