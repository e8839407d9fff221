"""Portico, the host for coding agents: one log, many doors."""

__version__ = "0.3.0"

from portico.old_names import install as _install_old_names

_install_old_names()
