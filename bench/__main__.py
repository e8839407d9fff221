"""`python -m bench [NAME...]`: every benchmark, or the named ones; one table at the end. `--list` names them."""

import argparse
import importlib
import pkgutil
import sys
import time
from types import ModuleType

import bench
from bench.row import Row, show

LONG = {"pages"}
"""Run only by name: it needs a browser."""


def questions() -> dict[str, ModuleType]:
    """Modules that measure something: the others are helpers, or programs of their own."""
    found = {each.name: importlib.import_module(f"bench.{each.name}") for each in _modules()}
    return {name: module for name, module in found.items() if hasattr(module, "QUESTION")}


def _modules() -> list[pkgutil.ModuleInfo]:
    found = [each for each in pkgutil.iter_modules(bench.__path__) if each.name != "__main__"]
    return sorted(found, key=lambda each: each.name)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--list", action="store_true", help="print the names and what each measures")
    given = parser.parse_args()
    known = questions()
    if given.list:
        print("\n".join(f"{name:12}{module.QUESTION}" for name, module in known.items()))
        return
    if unknown := [name for name in given.names if name not in known]:
        parser.error(f"there is no benchmark {', '.join(unknown)}; choose from {', '.join(known)}")
    rows: list[Row] = []
    for name in given.names or [name for name in known if name not in LONG]:
        print(f"{name}: {known[name].QUESTION}", file=sys.stderr, flush=True)
        started = time.perf_counter()
        rows += known[name].measure()
        print(f"  {time.perf_counter() - started:.1f} s", file=sys.stderr, flush=True)
    print(show(rows))


if __name__ == "__main__":
    main()
