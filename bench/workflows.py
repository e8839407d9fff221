"""What does a step of a workflow cost, how long do a thousand items take, and what do workflow files cost a start?"""

import asyncio
import tempfile
import time
from pathlib import Path

import uvloop

from bench.row import Row, ms, p50, verdict
from portico.features.jobs import Jobs
from portico.features.jobs import events as je
from portico.features.jobs.workflow.files import load_text
from portico.testing.fixtures import HostOpener
from portico.workspace import adoption

QUESTION = "a step, 1,000 items, 200 jobs at a time, 500 workflow files"

STEPS = 200
ITEMS = 1_000
JOBS = 200
FILES = 500
STARTS = 7


def measure() -> list[Row]:
    return uvloop.run(_measure())


async def _measure() -> list[Row]:
    adoption.adopt()  # as every host does at its start
    steps = "steps: [" + ", ".join(["{run: 'true'}"] * STEPS) + "]"
    each = f"steps: [{{each: \"{{{{ range({ITEMS}) | list }}}}\", parallel: 8, steps: [{{run: 'true'}}]}}]"
    spawn = await _spawned(STEPS)
    cpu, _, _ = await _run(steps)
    items, wall, events = await _run(each)
    few_items, _, few = await _run(each.replace(str(ITEMS), str(ITEMS // 10)))
    jobs, together, _ = await _run("steps: [{run: 'true'}]", JOBS)
    turns, prompts, _ = await _run("steps: [{prompt: '[[say:ok]]'}]", JOBS)
    none, many = await _starts()
    return [
        Row(
            "a step (run: true), our CPU",
            ms(cpu / STEPS),
            f"a bare process: {ms(spawn)}",
            f"{cpu / STEPS / spawn:.1f}x",
            verdict("3 ms", cpu / STEPS < 0.003),
        ),
        Row(
            f"each over {ITEMS:,} items, parallel 8",
            f"{wall:.2f} s, {items:.2f} s CPU",
            f"{ITEMS // 10} items: {few_items:.2f} s CPU",
            f"{items / few_items:.1f}x",
            verdict("5 s", wall < 5),
        ),
        Row(
            f"journal of {ITEMS:,} items",
            f"{events} events",
            f"{ITEMS // 10} items: {few}",
            f"{events / few:.1f}x",
            verdict("linear", events < 10.5 * few),
        ),
        Row(
            f"{JOBS} jobs with a command at a time",
            f"{together:.2f} s, {ms(jobs / JOBS)} CPU each",
            f"a step: {ms(cpu / STEPS)}",
            f"{jobs / JOBS / (cpu / STEPS):.1f}x",
            "-",
        ),
        Row(
            f"{JOBS} jobs with a prompt at a time",
            f"{prompts:.2f} s, {ms(turns / JOBS)} CPU each",
            f"a step: {ms(cpu / STEPS)}",
            f"{turns / JOBS / (cpu / STEPS):.1f}x",
            "-",
        ),
        Row(
            f"{FILES} workflow files at the start",
            ms(many),
            f"without: {ms(none)}",
            f"{many / none:.2f}x",
            verdict("20 ms more", many - none < 0.02),
        ),
    ]


async def _spawned(count: int) -> float:
    """Our CPU for a process without anything around it."""
    begun = time.process_time()
    for _ in range(count):
        await (await asyncio.create_subprocess_exec("true")).wait()
    return (time.process_time() - begun) / count


async def _run(text: str, jobs_at_once: int = 1) -> tuple[float, float, int]:
    """CPU, duration and events of the job's channel."""
    with tempfile.TemporaryDirectory() as name:
        opener = HostOpener(Path(name))
        host = await opener()
        jobs = await Jobs.open(host)
        entry = load_text(text, "main.yaml", "main")
        cpu, begun = time.process_time(), time.monotonic()
        started = [await jobs.start_job("main", cwd=name, by="bench", entry=entry) for _ in range(jobs_at_once)]
        for job in started:
            async for records in host.log.follow(f"job/{job}"):
                if any(isinstance(record.event, je.JobEnded) for record in records):
                    break
        used, took = time.process_time() - cpu, time.monotonic() - begun
        assert all(jobs.job(job).status == "succeeded" for job in started), jobs.job(started[0]).error
        events = host.log.head(f"job/{started[0]}")
        await jobs.close()
        await opener.close()
    return used, took, events


async def _starts() -> tuple[float, float]:
    """The time to open a host and its jobs, without and with workflow files in its folder."""
    times: dict[int, list[float]] = {0: [], FILES: []}
    for _ in range(STARTS):
        for files, found in times.items():
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name) / ".portico/jobs"
                folder.mkdir(parents=True)
                for number in range(files):
                    (folder / f"job{number}.yaml").write_text("steps: [{run: 'true'}]")
                begun = time.monotonic()
                opener = HostOpener(Path(name))
                jobs = await Jobs.open(await opener())
                found.append(time.monotonic() - begun)
                await jobs.close()
                await opener.close()
    return p50(times[0]), p50(times[FILES])
