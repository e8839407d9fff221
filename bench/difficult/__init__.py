"""Difficult but ordinary answers of model endpoints, as bytes, for several agents: `python -m bench.difficult --help`.

`cases_*.py` has the cases by subject, `endpoint.py` the server that sends them, `run.py` plays one with one agent.
"""
