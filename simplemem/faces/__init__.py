"""The tools that agents call: a module a toolset. They check arguments, call the store and say what
happened; they know no protocol."""
