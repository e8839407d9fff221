"""`python -m bench [NAME...]`: every benchmark, or the named ones; one table at the end."""

import importlib
import pkgutil
import sys
import time

import bench
from bench.row import Row, show

NOT_QUESTIONS = {"row", "tasks", "place", "flood", "soak", "kills", "pages", "bare_sdk", "__main__"}


def main() -> None:
    names = sys.argv[1:] or sorted(m.name for m in pkgutil.iter_modules(bench.__path__) if m.name not in NOT_QUESTIONS)
    rows: list[Row] = []
    for name in names:
        module = importlib.import_module(f"bench.{name}")
        print(f"{name}: {module.QUESTION}", file=sys.stderr, flush=True)
        started = time.perf_counter()
        rows += module.measure()
        print(f"  {time.perf_counter() - started:.1f} s", file=sys.stderr, flush=True)
    print(show(rows))


if __name__ == "__main__":
    main()
