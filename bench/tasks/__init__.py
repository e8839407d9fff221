"""The tasks of `portico.testing.tasks` with a scripted model, for several agents: `python -m bench.tasks --help`."""
