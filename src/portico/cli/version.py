"""`portico version`."""

import platform
import sqlite3

from portico import __version__
from portico.cli.output import JsonFlag, print_json


def version(as_json: JsonFlag = False) -> None:
    """Print the version.

    Example: portico version --json
    """
    if as_json:
        print_json({"portico": __version__, "python": platform.python_version(), "sqlite": sqlite3.sqlite_version})
    else:
        print(f"portico {__version__}")
