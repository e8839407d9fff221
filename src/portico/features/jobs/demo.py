"""The packaged demo entry: every kind of work once, with directives that the demo agent follows."""

from pathlib import Path

from portico.features.jobs.entry import Entry
from portico.features.jobs.load import load_entry, parse


def demo_text() -> bytes:
    """The packaged file, as a template for a new entry."""
    return Path(__file__).with_name("demo_entry.json").read_bytes()


def demo_entry() -> Entry:
    return load_entry(parse(demo_text(), name="demo_entry.json"), "demo_entry.json:")
