"""One line of the table."""

import statistics
from collections.abc import Sequence
from typing import NamedTuple


class Row(NamedTuple):
    what: str
    measured: str
    baseline: str
    """What the same machine does with nothing of ours, in the same run."""
    ratio: str
    bar: str
    """The budget, with a tick or a cross."""


def verdict(bar: str, held: bool) -> str:
    return f"{bar} {'ok' if held else 'MISSED'}"


def p50(values: Sequence[float]) -> float:
    return statistics.median(values)


def p99(values: Sequence[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.99))]


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms"


def show(rows: Sequence[Row]) -> str:
    """The table as Markdown, aligned."""
    table = [Row("what", "measured", "bare baseline", "ratio", "bar"), *rows]
    widths = [max(len(row[i]) for row in table) for i in range(5)]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in table
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)
