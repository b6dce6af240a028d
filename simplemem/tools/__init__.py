"""The tools that agents call. They check arguments, call the store and say what happened; they know no protocol."""
