"""Entries, tasks and work trees, run over the host's public surface. Imports host, never a door."""

from portico.jobs.chart import ChartGraph, JobListing, generate_chart, job_listing
from portico.jobs.demo import demo_entry
from portico.jobs.entry import Entry, EntryError, Job, Model, Task, Work, to_json
from portico.jobs.jobs import Jobs, NoEntry
from portico.jobs.load import load_entry, load_file
from portico.jobs.schema import entry_schema
from portico.jobs.source import EntrySource, find_entry
from portico.jobs.state import JobStatus, JobSummary, WorkSummary
from portico.jobs.task_record import TaskInfo
from portico.jobs.validate import validate_entry
from portico.jobs.write import alt, entry, job, loop, par, seq, task

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
