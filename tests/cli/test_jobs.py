"""`portico run`, `jobs`, `check` and `chart`."""

import json
import subprocess
from pathlib import Path

import pytest

from portico.features.jobs import to_json
from tests.cli.terminal import TerminalCommand
from tests.jobs.playing import Data, failing, make, ok
from tests.jobs.samples import loop, par, ref, seq
from tests.process import PORTICO, HostProcess, environment, inside


def write(folder: Path, tasks: dict[str, Data], work: Data | None = None) -> None:
    (folder / "portico.entry.json").write_bytes(to_json(make(tasks, work)))


def test_run_without_a_host(tmp_path: Path) -> None:
    write(tmp_path, {"ok": ok(), "no": failing()}, seq(ref("ok"), ref("no")))
    done = inside(tmp_path / "home", "run", "main", "--agent", "scripted")
    assert done.stdout.splitlines() == [
        "r.0 ok started as task-1",
        "r.0 ok succeeded",
        "r.1 no started as task-2",
        "r.1 no failed",
        "job-1 failed no: toolExecuted check failed: missing tools: job_prepare_document",
    ], done.stderr
    assert done.returncode == 1


def test_run_prints_events_for_programs(tmp_path: Path) -> None:
    write(tmp_path, {"ok": ok()})
    done = inside(tmp_path / "home", "run", "main", "--agent", "scripted", "--json")
    types = [json.loads(line)["event"]["type"] for line in done.stdout.splitlines()]
    assert types == ["job.started", "work.started", "work.ended", "job.ended"]
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["run", "nothing"], 66, "/portico.entry.json: 'main'."),
        (["run", "nothing", "--entry", "../{}/portico.entry.json"], 66, "There is no job 'nothing'. The jobs of "),
        (["run", "main", "--cwd", "nowhere"], 64, "is not a folder"),
        (["run", "main", "--entry", "nowhere.json"], 64, "Cannot be read"),
        (["run", "main", "--detach"], 64, "There is no running host"),
        (["jobs", "list"], 69, "portico serve"),
    ],
)
def test_what_cannot_run_says_why(tmp_path: Path, words: list[str], code: int, message: str) -> None:
    write(tmp_path, {"ok": ok()})
    done = inside(tmp_path / "home", *(word.format(tmp_path.name) for word in words))
    assert message in done.stderr
    assert done.returncode == code


def test_jobs_on_a_running_host(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write(tmp_path, {"no": failing(), "ok": ok()}, seq(ref("ok"), ref("no")))
    with HostProcess(home):
        assert inside(home, "run", "main", "--detach").stdout == "job-1\n"
        assert inside(home, "jobs", "tail", "job-1").returncode == 1
        assert inside(home, "jobs", "resume", "job-1").stdout == "job-2\n"
        assert inside(home, "jobs", "retry", "job-1", "--json").stdout == '{"job": "job-3"}\n'
        assert inside(home, "jobs", "tail", "job-3").returncode == 1
        assert inside(home, "jobs", "stop", "job-3").returncode == 0
        listed = inside(home, "jobs", "list").stdout.splitlines()
        assert [line.split("\t")[:2] for line in listed] == [["job-3", "main"], ["job-2", "main"], ["job-1", "main"]]
        shown = inside(home, "jobs", "show", "job-2").stdout
        assert "from job-1" in shown
        assert inside(home, "jobs", "show", "job-9").returncode == 66


ASKING = seq(
    {"kind": "Wait", "seconds": 0.01},
    {"kind": "Ask", "question": ["Way?"], "choices": [{"label": "left", "work": ref("ok")}, {"label": "right"}]},
    ref("good"),
)
GOOD = ok(criteria=[{"person": {"question": ["Good?"]}}])


@pytest.mark.parametrize("follow", ["run", "tail"])
def test_a_job_that_asks_and_waits_without_a_terminal(tmp_path: Path, follow: str) -> None:
    """It ended with a KeyError, and a script saw exit code 1 of a job that succeeds."""
    home = tmp_path / "home"
    write(tmp_path, {"ok": ok(), "good": GOOD}, ASKING)
    with HostProcess(home):
        if follow == "tail":
            inside(home, "run", "main", "--detach")
        words = ["run", "main"] if follow == "run" else ["jobs", "tail", "job-1"]
        with subprocess.Popen(
            [PORTICO, *words],
            cwd=tmp_path,
            env=environment(PORTICO_HOME=str(home)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stderr is not None
            for question, answer in (("Way? [left, right]", "LEFT"), ("Good? [Yes, No]", "yes")):
                line = process.stderr.readline()
                assert line.startswith(f"job-1 asks: {question} (portico inbox answer session-")
                inside(home, "inbox", "answer", line.split()[-2], answer)
            out, err = process.communicate(timeout=60)
    assert (process.returncode, out.splitlines()[-1], err) == (0, "job-1 succeeded", "")
    assert "r.0 wait 0.01 s succeeded" in out
    assert "r.1 Way? succeeded" in out


def test_a_question_of_a_job_is_answered_in_the_terminal(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write(tmp_path, {"ok": ok(), "good": GOOD}, ASKING)
    with HostProcess(home), TerminalCommand(home, "run", "main") as command:
        command.expect("job-1 asks: Way\\?")
        command.expect("Choose \\[left, right\\]: ")
        command.enter("up\n")
        command.expect("'up' is none of the options: 'left', 'right'")
        command.expect("Choose \\[left, right\\]: ")
        command.enter("Left\n")
        command.expect("job-1 asks: Good\\?")
        command.expect("Is it good\\? \\[Yes, No\\]: ")
        command.enter("yes\n")
        command.expect("(optional)")
        command.enter("\n")
        code, rest = command.finish()
    assert (code, "✔ Way?" in rest, "succeeded" in rest) == (0, True, True)


def test_a_question_that_is_answered_elsewhere_leaves_the_terminal(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write(tmp_path, {"ok": ok()}, {"kind": "Ask", "question": ["Way?"]})
    with HostProcess(home), TerminalCommand(home, "run", "main") as command:
        command.expect("Answer: ")
        inside(home, "do", "question.answer", "question=session-1.q2", "text=up")
        command.expect("job-1 main: succeeded")
        assert command.finish()[0] == 0


def test_check(tmp_path: Path) -> None:
    write(tmp_path, {"ok": ok()}, par(ref("ok"), loop(ref("ok"))))
    done = inside(tmp_path / "home", "check", "portico.entry.json")
    assert "Job main" in done.stdout
    assert "└─ Loop" in done.stdout
    (tmp_path / "wrong.yaml").write_text("models: {}")
    done = inside(tmp_path / "home", "check", "wrong.yaml")
    assert (done.returncode, done.stderr.startswith("portico: entry.models.driving: Should exist.")) == (64, True)


def test_chart(tmp_path: Path) -> None:
    write(tmp_path, {"ok": ok()}, par(ref("ok"), ref("ok")))
    chart = ["chart", "portico.entry.json", "main"]
    assert inside(tmp_path / "home", *chart).stdout.startswith("Par\n")
    assert inside(tmp_path / "home", *chart, "--format", "svg").stdout.startswith("<svg")
    assert json.loads(inside(tmp_path / "home", *chart, "--json").stdout)["nodes"][0]["hint"] == "ParBegin"
    assert inside(tmp_path / "home", "chart", "portico.entry.json", "other").returncode == 66


def test_the_schema_is_for_editors(tmp_path: Path) -> None:
    done = inside(tmp_path / "home", "check", "--schema")
    assert json.loads(done.stdout)["title"] == "Portico entry"
    nothing = inside(tmp_path / "home", "check")
    assert (nothing.returncode, "--schema" in nothing.stderr) == (64, True)


def test_run_uses_the_entry_of_the_running_host_and_show_says_why_it_failed(tmp_path: Path) -> None:
    """Without an entry of one's own the demo was run, whatever the host had."""
    write(tmp_path, {"no": failing()})
    entry = (tmp_path / "portico.entry.json").rename(tmp_path / "theirs.json")
    with HostProcess(tmp_path / "home", "--entry", str(entry)):
        assert inside(tmp_path / "home", "run", "main").returncode == 1
        shown = inside(tmp_path / "home", "jobs", "show", "job-1").stdout
    assert "[TASK FAILED] Decision: task failed (criteria not satisfied)" in shown


def test_a_job_is_shown_with_its_steps_in_order_and_their_sessions(tmp_path: Path) -> None:
    """It named no session, so that nobody could look at what a step had done."""
    home = tmp_path / "home"
    write(tmp_path, {"one": ok(), "two": ok()}, seq(ref("two"), ref("one")))
    with HostProcess(home, "--entry", str(tmp_path / "portico.entry.json")):
        job = inside(home, "run", "main").stdout.splitlines()[-1].split()[0]
        lines = inside(home, "jobs", "show", job).stdout.splitlines()
        steps = [line.split()[1].rstrip(":") for line in lines if line.startswith("  [")]
        assert steps == ["two", "one"]
        sessions = [each["id"] for each in json.loads(inside(home, "sessions", "list", "--json").stdout)]
        assert all(any(session in line for line in lines) for session in sessions), lines


def test_a_job_that_lacks_input_names_the_option(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with HostProcess(home):
        done = inside(home, "run", "plan-and-write")
        assert (done.returncode, "--input" in done.stderr) == (64, True), done.stderr
