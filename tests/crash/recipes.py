"""The nine recipes as a user starts them, on a real host with a real agent, which is killed again and again.

    python -m tests.crash.recipes --kills 20 --seed 7 [--temporal] [--agent acp:goose]

The model is the scripted one: it answers by the text of the prompt. The agent, its tools, git, the commands, the
requests and the answers of the person are real.
"""

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from portico.features.jobs.recipes import copy_recipe, recipes
from portico.testing.model import ModelRule, ModelServer, Script, ScriptedCall, Step
from portico.testing.temporal import TemporalServer
from tests.crash.workflow_driver import SECRET, Driver, Report
from tests.live.programs import LIVE, MODEL

FAILED = ("f03.txt", "f10.txt", "f17.txt")
FILES = [f"f{number:02}.txt" for number in range(20)]
GH = """#!/bin/sh
# `gh` as the recipe of pull requests uses it: the state is merged after a push.
case "$*" in
  *headRefName*) echo feature ;;
  *) state=OPEN
     git --git-dir {origin} rev-parse -q --verify refs/heads/feature > /dev/null && state=MERGED
     echo '{{"state": "'$state'", "reviews": ["Please add a test."]}}' ;;
esac
"""
FLAKY = """#!/bin/sh
echo always
echo x >> {count}
[ $(($(wc -l < {count}) % 2)) = 0 ] || echo sometimes
"""


def does(match: str, say: Any, command: str = "") -> ModelRule:
    """A rule: the agent runs the command, then answers."""
    answer = Step(say=say if isinstance(say, str) else json.dumps(say))
    if not command:
        return ModelRule([answer], match=match)
    call = ScriptedCall(kind="execute", args={"command": command})
    return ModelRule([Step(calls=[call]), answer], match=match)


def script() -> Script:
    rules = [
        ModelRule([Step(say="A title")], match="title", tools=False),
        *[does(f"Update the package {name} ", name, f"echo 2 > {name}.txt") for name in "ac"],
        does("Update the package b ", "b", "touch broken"),
        *[does(f"The file is {name}", name, "" if name in FAILED else f"echo done > {name}") for name in FILES],
        does("Summarize what was done", "17 files were changed."),
        does("A stranger wrote an issue", {"kind": "bug", "reply": "Thank you."}),
        does("write a plan for this task", "First this, then that."),
        does("Implement this plan", "Built.", "echo built > it.txt"),
        does("Review the changes", {"approved": True, "findings": []}),
        does("Divide this question", {"parts": ["how", "when"]}),
        does("Research this part", "A note."),
        does("Write one report", "Because.", "echo Because > report.md"),
        does("Write release notes", "You can do more."),
        does("fails in some of its runs", "Repaired.", "touch repaired"),
        does("state of the pull request", "Fixed.", "echo test > test.txt"),
        does("Find the cause and fix it", "I added the file.", "touch fixed"),
    ]
    return Script(rules=rules, default=[Step(say="I do not know.")])


Inputs = Callable[["RecipeDriver"], dict[str, Any]]
INPUTS: dict[str, Inputs] = {
    "dependencies": lambda driver: {"outdated": "cat outdated.json", "test": "test ! -f broken"},
    "triage": lambda driver: {"title": "It crashes", "url": f"{driver.web.url}/reply"},
    "fan-out": lambda driver: {"files": "f*.txt", "task": "Finish it.", "check": 'grep -q done "$PORTICO_FILE"'},
    "plan-review": lambda driver: {"task": "Build it", "test": "test -f it.txt"},
    "research": lambda driver: {"question": "Why?"},
    "fix-until-green": lambda driver: {"test": "test -f fixed"},
    "release-notes": lambda driver: {},
    "flaky-tests": lambda driver: {"runs": 4, "test": "./all-tests", "again": "test -f repaired"},
    "pull-request": lambda driver: {"number": 7, "test": "true"},
}
RESULTS: dict[str, Any] = {
    "dependencies": "2 updated, 1 not: b",
    "triage": "bug: replied",
    "fan-out": {"summary": "17 files were changed.", "failed": list(FAILED)},
    "plan-review": "Approved and green: Built.",
    "research": "Because.",
    "fix-until-green": "I added the file.",
    "release-notes": "You can do more.",
    "flaky-tests": {"flaky": ["sometimes"], "not repaired": []},
    "pull-request": "The pull request is MERGED.",
}
LEFT: dict[str, tuple[str, list[str]]] = {
    "dependencies": ("dependencies/", ["a.txt", "c.txt"]),
    "fan-out": ("fan-out/", FILES),
    "plan-review": ("task/", ["it.txt"]),
    "fix-until-green": ("fix/", ["fixed"]),
    "flaky-tests": ("flaky/", ["repaired"]),
    "release-notes": ("release-notes/", ["release-notes.md"]),
}
"""The branch that a recipe leaves, and files in it."""
SHARED = ("research",)
"""Recipes that work in the folder itself."""


class RecipeDriver(Driver):
    """One project for each recipe."""

    def __init__(self, folder: Path, seed: int, model: str, agent: str = "loop", temporal: str = "") -> None:
        self.model, self.agent_name = model, agent
        super().__init__(folder, seed, temporal)
        self.agent = ["--agent", agent]
        programs = folder / "programs"
        programs.mkdir()
        (programs / "gh").write_text(GH.format(origin=folder / "origin"))
        (programs / "gh").chmod(0o755)
        self.environment["PATH"] = f"{programs}:{self.environment['PATH']}"
        self.answers = {
            "Open a pull request": "Leave the branch",
            "Send this reply": "send it",
            "Is this plan good": "Approve",
            "Use these release notes": "Use them",
            "Push these": "Push",
        }
        self.pace = 2.5

    def _prepare(self, temporal: str) -> None:
        self.home.mkdir()
        settings = f'models = ["{MODEL}"]\n[notices]\nallow_private = ["127.0.0.1"]\n'
        settings += f'[agents.loop]\nbase_url = "{self.model}/v1"\napi_key = "k"\ndiscover = false\n'
        if self.agent_name.startswith("acp:"):
            live = next(each for each in LIVE if each.name == self.agent_name.removeprefix("acp:"))
            table = live.table(self.folder / "vendor", self.model)
            settings += f"[agents.acp.{live.name}]\ncommand = {json.dumps(table['command'])}\nstart_timeout = 170\n"
            settings += f"[agents.acp.{live.name}.env]\n"
            settings += "".join(f"{name} = {json.dumps(value)}\n" for name, value in table["env"].items())
        if temporal:
            settings += f'[jobs]\nengine = "temporal"\naddress = "{temporal}"\n'
        (self.home / "settings.toml").write_text(settings)
        self.projects = [self.folder / name for name in INPUTS]
        for project in self.projects:
            self._project(project)
        self._portico("secrets", "set", "GH_TOKEN", stdin=SECRET)

    def _project(self, project: Path) -> None:
        project.mkdir()
        copy_recipe(project.name, project)
        (project / "outdated.json").write_text(json.dumps([{"name": n, "latest_version": "2"} for n in "abc"]))
        (project / "all-tests").write_text(FLAKY.format(count=self.folder / "count"))
        (project / "all-tests").chmod(0o755)
        for name in FILES if project.name == "fan-out" else []:
            (project / name).write_text("begun\n")
        self.git(project, "init", "-q", "-b", "main")
        self.git(project, "config", "user.name", "Ann")
        self.git(project, "config", "user.email", "ann@example.org")
        self.git(project, "add", "--all")
        self.git(project, "commit", "-q", "-m", "start")
        self.git(project, "tag", "v1")
        self.git(project, "commit", "-q", "--allow-empty", "-m", "Do more")
        if project.name == "pull-request":
            self.git(self.folder, "init", "-q", "--bare", "origin")
            self.git(project, "remote", "add", "origin", str(self.folder / "origin"))
            self.git(project, "push", "-q", "origin", "HEAD:refs/pull/7/head")

    async def _starts(self, jobs: int) -> None:
        for name in list(INPUTS)[:jobs]:
            self.expected[name] = (name, str(self.folder / name))
            body = {"job": name, "cwd": str(self.folder / name), "inputs": INPUTS[name](self)}
            while name not in await self._tags():
                await self.call("POST", "/v1/jobs", body)

    async def _tags(self) -> dict[str, dict[str, Any]]:
        while True:
            status, listing = await self.call("GET", "/v1/jobs")
            if status == 200:
                return {job["name"]: job for job in listing["jobs"]}
            await asyncio.sleep(0.1)

    async def _stop(self, job: dict[str, Any]) -> None:
        """Nothing is stopped here. The pull request changes from time to time: its hook is called."""
        if job["name"] == "pull-request" and not job.get("ended") and self.rng.random() < 0.2:
            await self.call("POST", f"/v1/jobs/{job['id']}/hooks/changed", {})

    async def check_rest(self) -> None:
        jobs = await self._tags()
        for name in self.expected:
            job = jobs.get(name, {"id": "none", "status": "was never started"})
            if (job["status"], job.get("result")) != ("succeeded", RESULTS[name]):
                self.report.wrong(f"{name} {job['status']}: {job.get('error') or job.get('result')}")
        status, inbox = await self.call("GET", "/v1/inbox")
        if status == 200 and inbox["waiting"]:
            self.report.wrong(f"the inbox still has {[each.get('title') for each in inbox['waiting']]}")
        if "triage" in self.expected and not self.web.seen["/reply"]:
            self.report.wrong("no reply was sent")

    def check_files(self) -> None:
        for project in SHARED:
            if (self.folder / project / "report.md").exists():
                (self.folder / project / "report.md").unlink()
            elif project in self.expected:
                self.report.wrong(f"{project} has no report")
        super().check_files()

    def _check_branches(self) -> None:
        for name in self.expected:
            prefix, files = LEFT.get(name, ("", []))
            branches = self.git(self.folder / name, "branch", "--format=%(refname:short)").split()
            found = [each for each in branches if prefix and each.startswith(prefix) and "-job-" not in each]
            if prefix and len(found) != 1:
                self.report.wrong(f"{name} has the branches {branches}")
            there = self.git(self.folder / name, "ls-tree", "--name-only", found[0]).split() if found else []
            if missing := set(files).difference(there) if found else set():
                self.report.wrong(f"{found[0]} lacks {sorted(missing)}")


async def drive(folder: Path, seed: int, kills: int, agent: str = "loop", temporal: str = "", jobs: int = 9) -> Report:
    assert set(INPUTS) == set(recipes())
    async with ModelServer(script()) as model:
        driver = RecipeDriver(folder, seed, model.url, agent, temporal)
        try:
            return await driver.run(jobs, kills)
        finally:
            if driver.process is not None and driver.process.poll() is None:
                driver.process.kill()
                driver.process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--jobs", type=int, default=9)
    parser.add_argument("--agent", default="loop")
    parser.add_argument("--temporal", action="store_true", help="use the Temporal engine")
    parser.add_argument("--folder", type=Path, help="keep everything here")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="portico-recipes-") as scratch:
        folder = given.folder or Path(scratch)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        server = TemporalServer(Path(scratch) / "temporal").start() if given.temporal else None
        try:
            address = server.address if server is not None else ""
            report = asyncio.run(drive(folder, given.seed, given.kills, given.agent, address, given.jobs))
        finally:
            if server is not None:
                server.stop(at_once=True)
    print(dict(report.counts))
    print("\n".join(report.errors) or "no errors")
    sys.exit(1 if report.errors else 0)


if __name__ == "__main__":
    main()
