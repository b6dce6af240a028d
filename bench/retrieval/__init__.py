"""How well search finds the evidence of public benchmarks: `python -m bench.retrieval --help`."""
