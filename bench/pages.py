"""How quick the pages are, in a real Chromium over a real host: `python -m bench pages`. Needs Node and Chromium.

The budgets are for a quiet machine. `worked` is time on the page's own thread, which a busy machine does not lengthen.
"""

import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from bench.row import Row, verdict

QUESTION = "How long do pages and lists take to open, to scroll and to take a key while an agent streams?"
WEB = Path(__file__).parents[1] / "web"
OPEN_MS = 400
LONG_TASK_MS = 50
FRAME_MS = 16
LISTED_MS = 100
LIVE_MS = 300
SWITCH_MS = 50
ELEMENTS = 3_000
"""Of a page with 10,000 rows in its list, and of one in a long conversation."""
GROWTH = 1.5
"""Of memory over 100 turns after the first 40: what was said stays, and nothing else."""


def measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "measured.jsonl"
        env = {**os.environ, "MEASURED": str(path)}
        subprocess.run(["npm", "run", "--silent", "measure"], cwd=WEB, env=env, check=True, stdout=subprocess.DEVNULL)
        return rows([json.loads(line) for line in path.read_text().splitlines()])


def rows(told: list[dict[str, Any]]) -> list[Row]:
    def of(name: str, number: str) -> float:
        return float(statistics.median(each[number] for each in told if each["name"] == name))

    portal, opened, worked = of("portal", "opened"), of("opened", "shown"), of("opened", "worked")
    longest, frame, short = of("typed", "longestWorked"), of("scrolled 100,000", "worked"), of("scrolled", "worked")
    by_clock = of("typed", "longest")
    first, last = of("memory", "first"), of("memory", "last")
    key, by_clock_key = of("typed", "keyWorked"), of("typed", "median")
    listed, live, switched = of("list", "cachedWorked"), of("list", "liveWorked"), of("switched", "worked")
    streamed = [each for each in told if each["name"] == "streamed"]
    middle, end = streamed[len(streamed) // 2], streamed[-1]
    elements = max(of("list", "elements"), of("scrolled", "elements"), end["elements"])
    held = verdict(f"under {OPEN_MS} ms", opened < OPEN_MS)
    smooth = verdict(f"under {FRAME_MS} ms", frame < FRAME_MS)
    quick = verdict(f"under {LONG_TASK_MS} ms", longest < LONG_TASK_MS)
    flat = verdict(f"under {GROWTH:g}x", last < GROWTH * first)
    typed = verdict(f"under {FRAME_MS} ms", key < FRAME_MS)
    painted = verdict(f"under {LISTED_MS} ms", listed < LISTED_MS)
    told_live = verdict(f"under {LIVE_MS} ms", live < LIVE_MS)
    seen = verdict(f"under {SWITCH_MS} ms", switched < SWITCH_MS)
    small = verdict(f"under {ELEMENTS:,}", elements < ELEMENTS)
    steady = verdict(f"under {GROWTH:g}x", end["nodes"] < GROWTH * middle["nodes"])
    return [
        Row("open 10,000 blocks", f"{opened:.0f} ms", f"old page {portal:.0f} ms", _ratio(opened, portal), held),
        Row("  of it on the page's thread", f"{worked:.0f} ms", "", "", ""),
        Row("open 100,000 blocks, thread", f"{of('opened 100,000', 'worked'):.0f} ms", "", "", ""),
        Row("a frame in 100,000 blocks", f"{frame:.1f} ms", f"10,000: {short:.1f} ms", _ratio(frame, short), smooth),
        Row("longest task at 2,000 deltas/s", f"{longest:.0f} ms", f"by the clock {by_clock:.0f} ms", "", quick),
        Row(
            "a key until it shows, thread",
            f"{key:.0f} ms",
            f"with the test's round trips {by_clock_key:.0f} ms",
            "",
            typed,
        ),
        Row(
            "the list as it was, thread", f"{listed:.0f} ms", f"by the clock {of('list', 'cached'):.0f} ms", "", painted
        ),
        Row("the list live, thread", f"{live:.0f} ms", f"by the clock {of('list', 'live'):.0f} ms", "", told_live),
        Row("a session seen before, thread", f"{switched:.0f} ms", "", "", seen),
        Row("elements in the page", f"{elements:.0f}", f"{of('list', 'rows'):.0f} rows of the list", "", small),
        Row("memory after 120 turns", f"{last:.1f} MB", f"after 40: {first:.1f} MB", _ratio(last, first), flat),
        Row(
            f"nodes after {end['minutes']:.0f} min of streaming",
            f"{end['nodes']:,.0f}",
            f"half-way {middle['nodes']:,.0f}",
            _ratio(end["nodes"], middle["nodes"]),
            steady,
        ),
        Row("  heap", f"{end['heap']:.1f} MB", f"half-way {middle['heap']:.1f} MB", "", ""),
    ]


def _ratio(one: float, other: float) -> str:
    return f"{one / other:.2f}" if other else ""
