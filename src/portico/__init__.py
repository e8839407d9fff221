"""Portico, the host for coding agents: one log, many doors."""

__version__ = "0.3.0"
