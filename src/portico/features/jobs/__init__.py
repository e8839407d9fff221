"""Entries, tasks and work trees, run over the host's public surface. Imports host, never a door.

What runs, reads and draws jobs is imported when it is first used: clients need only the shapes.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from portico.features.jobs.entry import Entry, EntryError, Job, Model, Task, Work, to_json
from portico.features.jobs.state import JobStatus, JobSummary, WorkSummary
from portico.features.jobs.write import alt, entry, job, loop, par, seq, task

if TYPE_CHECKING:
    from portico.features.jobs.chart import ChartGraph, JobListing, generate_chart, job_listing
    from portico.features.jobs.demo import demo_entry
    from portico.features.jobs.jobs import Jobs, NoEntry
    from portico.features.jobs.load import load_entry, load_file
    from portico.features.jobs.schema import entry_schema
    from portico.features.jobs.source import EntrySource, find_entry
    from portico.features.jobs.task_record import TaskInfo
    from portico.features.jobs.validate import validate_entry

__all__ = [
    "ChartGraph",
    "Entry",
    "EntryError",
    "EntrySource",
    "Job",
    "JobListing",
    "JobStatus",
    "JobSummary",
    "Jobs",
    "Model",
    "NoEntry",
    "Task",
    "TaskInfo",
    "Work",
    "WorkSummary",
    "alt",
    "demo_entry",
    "entry",
    "entry_schema",
    "find_entry",
    "generate_chart",
    "job",
    "job_listing",
    "load_entry",
    "load_file",
    "loop",
    "par",
    "seq",
    "task",
    "to_json",
    "validate_entry",
]


_MODULES = {
    "chart": ("ChartGraph", "JobListing", "generate_chart", "job_listing"),
    "demo": ("demo_entry",),
    "jobs": ("Jobs", "NoEntry"),
    "load": ("load_entry", "load_file"),
    "schema": ("entry_schema",),
    "source": ("EntrySource", "find_entry"),
    "task_record": ("TaskInfo",),
    "validate": ("validate_entry",),
}
"""What is imported on demand."""
_LATER = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"portico.features.jobs.{_LATER[name]}"), name)
