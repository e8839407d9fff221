"""`portico run` and its neighbors with workflows: real processes, a temporary host for each job."""

import json
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from portico.cli.follow_job import result_lines
from portico.cli.job_flags import inputs_help, read_flags
from portico.cli.job_questions import EVIDENCE_LINES, chosen, evidence_lines
from portico.cli.job_tree import workflow_lines
from portico.features.jobs.events import Artifact
from portico.features.jobs.rows import JobRow
from portico.features.jobs.state import JobSummary
from portico.features.jobs.step import Flow, JobInput
from portico.features.jobs.workflow.files import load_text
from portico.kernel.errors import BadRequest
from portico.kernel.state import QuestionPart
from tests.cli.terminal import TerminalCommand

TEXT = """
    about: Greets people.
    inputs:
      names: {type: list, about: Whom to greet}
      loud: {type: boolean, default: false}
    steps:
      - id: all
        each: "{{ inputs.names }}"
        name: "for {{ item }}"
        may_fail: true
        steps:
          - {id: hello, run: "echo hello {{ item }}{{ '!' if inputs.loud else '' }}; test {{ item }} != Bob"}
    result: "{{ steps.all.output | join(', ') }}"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project/.portico/jobs"
    folder.mkdir(parents=True)
    (folder / "greet.yaml").write_text(dedent(TEXT))
    return tmp_path / "project"


def portico(project: Path, *words: str, text: str = "") -> "subprocess.CompletedProcess[str]":
    home = str(project.parent / "home")
    command = [sys.executable, "-m", "portico", *words]
    more = [] if words[0] == "check" or "--help" in words else ["--home", home, "--agent", "scripted"]
    return subprocess.run(
        [*command, *more], cwd=project, input=text, capture_output=True, text=True, timeout=60, check=False
    )


def test_a_workflow_runs_with_its_inputs_as_options(project: Path) -> None:
    done = portico(project, "run", "greet", "--names", "Ann, Bob", "--loud")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [re.sub(r"\d+\.\ds", "0.0s", line) for line in done.stdout.splitlines()]
    ends = [
        "hello: echo hello Ann!; test… [for Ann] succeeded after 0.0s",
        "hello: echo hello Bob!; test… [for Bob] failed after 0.0s: "
        "The command failed with exit code 1: echo hello Bob!; test Bob != Bob",
    ]
    assert sorted(line for line in lines if " after " in line) == ends
    assert lines[-2:] == ["job-1 succeeded", "hello Ann!"]


def test_help_of_a_job_lists_its_inputs(project: Path) -> None:
    done = portico(project, "run", "greet", "--help")
    assert done.stdout.splitlines() == [
        "Usage: portico run greet [OPTIONS]",
        "",
        "Greets people.",
        "",
        "Inputs:",
        "  --names LIST  Whom to greet (required)",
        "  --loud BOOLEAN  [false]",
    ]
    assert "Run a job and watch it." in portico(project, "run", "--help").stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--nams", "x"], "There is no option '--nams'. Did you mean '--names'?"),
        ([], "The input 'names' is missing (Whom to greet)."),
        (["--names", "x", "--loud=perhaps"], "The input 'loud' should be true or false."),
    ],
)
def test_wrong_inputs_are_explained(project: Path, words: list[str], expected: str) -> None:
    done = portico(project, "run", "greet", *words)
    assert (done.returncode, expected in done.stderr) == (64, True), done.stderr


def test_check_reports_all_files(project: Path) -> None:
    (project / ".portico/jobs/bad.yaml").write_text("steps:\n  - {run: x, retyr: 1}\n  - {promt: y}\n")
    done = portico(project, "check")
    assert done.returncode == 64
    assert done.stdout.startswith("Job greet\n  Greets people.\n  input names (list, required): Whom to greet\n")
    places = [line.partition("bad.yaml:")[2].partition(": ")[0] for line in done.stderr.splitlines()]
    assert places == ["2:14", "3:5"]
    found = json.loads(portico(project, "check", "--json").stdout)
    assert [each["line"] for each in found["problems"]] == [2, 3]


def test_flags_are_read() -> None:
    spec = {"a-b": JobInput(), "n": JobInput(type="number"), "yes": JobInput(type="boolean")}
    assert read_flags(spec, ["--a-b", "x y", "--n=3", "--yes"]) == {"a-b": "x y", "n": "3", "yes": "true"}
    assert read_flags(spec, ["--yes", "false", "--a_b=-x"]) == {"yes": "false", "a-b": "-x"}
    for wrong in (["--n"], ["--n", "x"], ["word"], ["--no", "1"]):
        with pytest.raises(BadRequest):
            read_flags(spec, wrong)


def test_a_job_without_inputs() -> None:
    assert inputs_help("x", Flow()).splitlines()[-1] == "It has no inputs."


def row(work: int, status: str, *items: str, reason: str = "") -> JobRow:
    more = {"started": 0, "ended": 1500, "items": list(items), "reason": reason}
    return JobRow(path="r", work=work, step="s", name="step", kind="run", task="t", status=status, **more)  # type: ignore[arg-type]


def test_many_items_are_counted_and_failed_ones_are_named() -> None:
    work = load_text(dedent(TEXT), "greet.yaml", "greet").jobs["greet"].work
    rows = [
        row(0, "failed" if number < 10 else "succeeded", f"item {number}", reason="no\nmore") for number in range(50)
    ]
    lines = workflow_lines(work, rows)
    assert lines[0] == "  each item of {{ inputs.names }}"
    assert lines[1].endswith(": 40 ✔  10 ✘")
    assert lines[2] == "      ✘ s: step [item 0]: no 1.5s"
    assert lines[-1] == "      … and 2 more"
    assert workflow_lines(work, [])[1].strip().startswith("· hello: echo hello")


def test_the_result_of_a_job_comes_with_its_files() -> None:
    summary = JobSummary("job-1", "x", "failed", 0, "/", "me", error="why", result={"a": 1})
    summary.artifacts = [Artifact("a.md", 3, "abc")]
    assert result_lines(summary) == ["why", '{\n  "a": 1\n}', "a.md (3 bytes): /v1/blobs/abc"]


# -- secret inputs -------------------------------------------------------------------------------------------------

CANARY = "c4nary-19c-value"
DEPLOY = """
inputs: {my-token: {type: secret, about: Of the forge}}
steps: [{run: "printf %s {{ inputs['my-token'] }} > got"}]
"""


def test_a_secret_input_comes_from_a_file_or_standard_input(project: Path) -> None:
    (project / ".portico/jobs/deploy.yaml").write_text(DEPLOY)
    (project / "token.txt").write_text(f"{CANARY}-1\n")
    for given, path in ((f"{CANARY}-1", "token.txt"), (f"{CANARY}-2", "-")):
        done = portico(project, "run", "deploy", "--my-token-file", path, text=f"{CANARY}-2\n")
        assert done.returncode == 0, done.stderr
        assert (project / "got").read_text() == given
        assert CANARY not in done.stdout + done.stderr


WRONG_SECRETS = {
    "an argument": (["--my-token", CANARY], "'my-token' is a secret, and other programs see arguments."),
    "an argument with =": ([f"--my-token={CANARY}"], "--my-token-file PATH ('-' reads standard input)"),
    "without a terminal": ([], "The input 'my-token' is missing. Use --my-token-file PATH"),
    "no file": (["--my-token-file", "nothing"], "'nothing' cannot be read: No such file or directory."),
    "a wrong option": (["--my-tokn-file", "x"], "Did you mean '--my-token-file'?"),
    "too short": (["--my-token-file", "short.txt"], "The input 'my-token': A secret has at least 4 characters"),
}


@pytest.mark.parametrize(("words", "expected"), WRONG_SECRETS.values(), ids=WRONG_SECRETS)
def test_a_secret_is_not_an_argument(project: Path, words: list[str], expected: str) -> None:
    (project / ".portico/jobs/deploy.yaml").write_text(DEPLOY)
    (project / "short.txt").write_text("abc")
    done = portico(project, "run", "deploy", *words)
    assert (done.returncode, expected in done.stderr) == (64, True), done.stderr
    assert CANARY not in done.stdout + done.stderr


def test_help_and_plan_need_no_value(project: Path) -> None:
    (project / ".portico/jobs/deploy.yaml").write_text(DEPLOY)
    told = portico(project, "run", "deploy", "--help").stdout
    assert "  --my-token-file PATH  Of the forge (required; asked for on a terminal)" in told
    plan = portico(project, "run", "deploy", "--plan").stdout
    assert "input my-token: [secret]" in plan


def test_a_terminal_is_asked_without_echo(project: Path) -> None:
    (project / ".portico/jobs/deploy.yaml").write_text(DEPLOY)
    where = ("--cwd", str(project), "--agent", "scripted")
    terminal = TerminalCommand(project.parent / "home", "run", "deploy", *where)
    shown = terminal.expect(r"my-token \(Of the forge\): ")
    terminal.enter(f"{CANARY}\n")
    code, rest = terminal.finish()
    assert (code, CANARY in shown + rest) == (0, False), rest
    assert (project / "got").read_text() == CANARY


def test_a_missing_input_is_named_as_an_option(project: Path) -> None:
    done = portico(project, "run", "greet")
    assert (done.returncode, done.stdout) == (64, "")
    expected = "The input 'names' is missing (Whom to greet). All inputs: portico run greet --help"
    assert expected in done.stderr


def test_options_can_be_chosen_by_number() -> None:
    options = ["Approve", "2", "Reject"]
    assert [chosen(text, options) for text in ("1", "2", "3", "4", "0", "Reject", "²")] == [
        "Approve",
        "2",
        "Reject",
        "4",
        "0",
        "Reject",
        "²",
    ]


def test_a_question_is_shown_with_what_the_person_needs() -> None:
    shown = [
        {"type": "text", "title": "Shown", "text": "\n".join(map(str, range(EVIDENCE_LINES + 3)))},
        {"type": "image", "title": "a.png", "data": "x"},
    ]
    lines = evidence_lines(QuestionPart("q", "Well?", evidence=shown))
    assert lines[:2] == ["-- Shown", "0"]
    assert lines[-4:] == ["… and 3 more lines in the workbench", "-- a.png", "(a picture: see the workbench)", "--"]
    assert evidence_lines(QuestionPart("q", "Well?")) == []
