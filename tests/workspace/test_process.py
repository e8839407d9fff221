"""Commands: what they print, and that nothing of them is left."""

import asyncio
import errno
import os
import resource
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portico.kernel.errors import BadRequest, Forbidden, NotFound, RateLimited
from portico.workspace import process
from portico.workspace.child import UnownedPipe, refusal
from portico.workspace.process import Clip, command_environment, environment, run
from portico.workspace.terminal import Terminal
from tests.free import FREE

from .living import alive, gone, open_descriptors, pids_in

# A parent, a child in its group, one in a group of its own, one in a session of its own and a daemon that forked twice.
FAMILY = """
echo $$ >> pids
sleep 1000 & echo $! >> pids
set -m; sleep 1000 & echo $! >> pids; set +m
setsid sh -c 'echo $$ >> pids; exec sleep 1000' &
(setsid sh -c 'trap "" TERM HUP; (echo $$ >> pids; while :; do sleep 1000; done) & ' &)
"""


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"], scope="module")
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    """Both loops: they differ in how they watch descriptors and children."""
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture
def family(tmp_path: Path) -> Path:
    (tmp_path / "family.sh").write_text(FAMILY)
    return tmp_path / "pids"


async def test_lists_and_shell_lines(tmp_path: Path) -> None:
    listed = await run(["printf", "%s|", "a b", "$HOME"], policy=FREE, cwd=tmp_path, env=environment())
    assert (listed.code, listed.output, listed.cut, listed.timed_out) == (0, "a b|$HOME|", False, False)
    line = await run("echo out; echo err >&2; exit 3", policy=FREE, cwd=tmp_path, env=environment())
    assert (line.code, line.output) == (3, "out\nerr\n")
    assert (await run("pwd", policy=FREE, cwd=tmp_path, env=environment())).output.strip() == str(tmp_path)
    assert (await run("kill -9 $$", policy=FREE, cwd=tmp_path, env=environment())).code == 137
    assert (await run("cat", policy=FREE, cwd=tmp_path, env=environment(), stdin=b"typed")).output == "typed"


async def test_a_command_is_alone_in_its_session_and_group(tmp_path: Path) -> None:
    """So that Ctrl-C at the host does not reach it, and a signal to its group reaches nobody else."""
    script = "import os; print(os.getpid() == os.getsid(0) == os.getpgid(0))"
    done = await run([sys.executable, "-c", script], policy=FREE, cwd=tmp_path, env=environment())
    assert done.output == "True\n"


async def test_data_comes_without_the_warnings_in_between(tmp_path: Path) -> None:
    done = await run("printf 'a\\0b'; echo warning >&2", policy=FREE, cwd=tmp_path, env=environment(), raw=True)
    assert (done.data, done.output) == (b"a\0b", "warning\n")


async def test_the_environment_is_said_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORTICO_TOKEN", "canary")
    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    said = await run("env", policy=FREE, cwd=tmp_path, env=environment(EXTRA="1"))
    names = {line.partition("=")[0] for line in said.output.splitlines()}
    assert "canary" not in said.output
    assert {"PATH", "EXTRA"} <= names
    assert names <= {*process.environment(), "EXTRA", "PORTICO_PROCESS", "PWD", "SHLVL", "_"}


async def test_output_comes_while_it_runs(tmp_path: Path) -> None:
    heard = asyncio.Event()
    pieces: list[str] = []

    def listen(text: str) -> None:
        pieces.append(text)
        heard.set()

    async with asyncio.TaskGroup() as group:
        command = "printf '\\033[31mfirst'; read _ < go; echo second"
        os.mkfifo(tmp_path / "go")
        running = group.create_task(run(command, policy=FREE, cwd=tmp_path, env=environment(), on_output=listen))
        await asyncio.wait_for(heard.wait(), 60)
        assert pieces == ["first"]
        await asyncio.to_thread((tmp_path / "go").write_text, "\n")
    assert running.result().output == "".join(pieces) == "firstsecond\n"


async def test_output_is_bounded_at_head_and_tail(tmp_path: Path) -> None:
    live: list[str] = []
    script = "import sys; print('start'); sys.stdout.write('x' * 5_000_000); print('end')"
    done = await run(
        [sys.executable, "-c", script], policy=FREE, cwd=tmp_path, env=environment(), on_output=live.append
    )
    assert done.cut
    assert done.output.startswith("start\nxxx")
    assert done.output.endswith("xxxend\n")
    assert "bytes left out" in done.output
    assert len(done.output) < process.HEAD + process.TAIL + 100
    assert process.LIVE_MAX < sum(map(len, live)) < process.LIVE_MAX + 200


@given(st.lists(st.binary(max_size=30), max_size=20), st.integers(0, 20), st.integers(1, 20))
def test_a_clip_keeps_the_first_and_the_last(pieces: list[bytes], head: int, tail: int) -> None:
    clip = Clip(head, tail)
    for piece in pieces:
        clip.add(piece)
    whole = b"".join(pieces)
    expected = whole if len(whole) <= head + tail else whole[:head] + whole[-tail:]
    assert (clip.data(), clip.dropped) == (expected, len(whole) - len(expected))


async def test_a_timeout_tells_what_was_said_until_then(tmp_path: Path) -> None:
    done = await run("echo before; sleep 1000", policy=FREE, cwd=tmp_path, env=environment(), timeout=3)
    assert (done.output, done.timed_out, done.code) == ("before\n", True, 143)


async def test_a_cancel_ends_the_whole_family(tmp_path: Path, family: Path) -> None:
    task = asyncio.create_task(run("bash family.sh; sleep 1000", policy=FREE, cwd=tmp_path, env=environment()))
    pids = await pids_in(family, 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [pid for pid in pids if alive(pid)] == []


async def test_a_command_ends_although_it_is_cancelled_twice_and_all_threads_are_busy(tmp_path: Path) -> None:
    """The second cancel withdrew the end of the process, and the command lived on."""
    loop = asyncio.get_running_loop()
    loop.set_default_executor(executor := ThreadPoolExecutor(1))
    free = threading.Event()
    task = asyncio.create_task(run("echo $$ > pids; exec sleep 60", policy=FREE, cwd=tmp_path, env=environment()))
    (pid,) = await pids_in(tmp_path / "pids", 1)
    blocked = loop.run_in_executor(executor, free.wait)
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    free.set()
    await blocked
    await gone(pid)


async def test_what_a_command_leaves_behind_ends_with_it(tmp_path: Path, family: Path) -> None:
    """Otherwise `server &` holds the output open, and the call never returns."""
    done = await asyncio.wait_for(run("bash family.sh; sleep 0.3", policy=FREE, cwd=tmp_path, env=environment()), 60)
    pids = await pids_in(family, 5)
    assert (done.code, done.timed_out) == (0, False)
    assert [pid for pid in pids if alive(pid)] == []


async def test_nobody_chooses_the_mark_by_which_its_family_is_found(tmp_path: Path) -> None:
    """Agents say what stands in the environment of their commands."""
    line = "setsid sh -c 'echo $$ > pid; exec sleep 1000' & while [ ! -s pid ]; do sleep 0.01; done"
    await run(line, policy=FREE, cwd=tmp_path, env=environment(PORTICO_PROCESS="1.1.mine"))
    [pid] = await pids_in(tmp_path / "pid", 1)
    await gone(pid)


async def test_who_hides_its_environment_ends_with_its_group(tmp_path: Path) -> None:
    line = "env -i /bin/sh -c 'echo $$ > pid; exec sleep 1000' & while [ ! -s pid ]; do sleep 0.01; done"
    await run(line, policy=FREE, cwd=tmp_path, env=environment())
    [pid] = await pids_in(tmp_path / "pid", 1)
    await gone(pid)


async def test_a_command_that_ignores_the_polite_signal_is_ended_too(tmp_path: Path) -> None:
    command = "trap '' TERM; echo $$ > pids; while :; do sleep 1000; done"
    task = asyncio.create_task(run(command, policy=FREE, cwd=tmp_path, env=environment()))
    (pid,) = await pids_in(tmp_path / "pids", 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not alive(pid)


async def test_a_host_that_ignores_signals_does_not_make_its_children_deaf(tmp_path: Path) -> None:
    """Started with `nohup` or `&`, and no Ctrl-C would ever end anything in a terminal."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        done = await run("grep SigIgn /proc/self/status", policy=FREE, cwd=tmp_path, env=environment())
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert int(done.output.split()[1], 16) & 1 << signal.SIGINT - 1 == 0


async def test_others_are_left_alone(tmp_path: Path) -> None:
    bystander = await asyncio.create_subprocess_exec("sleep", "1000", start_new_session=True)
    try:
        await run("true", policy=FREE, cwd=tmp_path, env=environment())
        assert alive(bystander.pid)
    finally:
        bystander.kill()
        await bystander.wait()


async def test_what_cannot_be_started(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    for command, error in ((["no-such-program"], NotFound), (["./plain"], Forbidden), (["a\0"], BadRequest)):
        with pytest.raises(error):
            await run(command, policy=FREE, cwd=tmp_path, env=environment())
    with pytest.raises(NotFound):
        await run("true", policy=FREE, cwd=tmp_path / "missing", env=environment())
    with pytest.raises(BadRequest):
        await run([], policy=FREE, cwd=tmp_path, env=environment())


async def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    await run("true", policy=FREE, cwd=tmp_path, env=environment())
    before = open_descriptors()
    await asyncio.gather(*(run("echo x", policy=FREE, cwd=tmp_path, env=environment()) for _ in range(5)))
    with pytest.raises(NotFound):
        await run(["no-such-program"], policy=FREE, cwd=tmp_path, env=environment())
    assert open_descriptors() == before


async def test_a_pipe_that_a_transport_has_is_closed_once() -> None:
    """The second time would hit what another thread has opened in between under the same number."""
    read, write = os.pipe()
    closed = asyncio.Event()
    opened: list[int] = []

    class Watched(UnownedPipe):
        def close(self) -> None:
            opened.append(os.dup(write))
            super().close()
            closed.set()

    pipe = Watched(os.fdopen(read, "rb", buffering=0))
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(asyncio.Protocol, pipe)
    transport.close()
    async with asyncio.timeout(30):
        await closed.wait()
    for descriptor in [write, *opened]:
        os.close(descriptor)  # raises, where somebody else has closed it
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(pipe.fileno())


async def test_a_folder_that_looks_like_a_repository_runs_nothing(tmp_path: Path) -> None:
    """`git status` in a subfolder that an agent had written ran the program that its config named."""
    evil = tmp_path / "sub"
    await run(["git", "init", "-q", "--bare", str(evil)], policy=FREE, cwd=tmp_path, env=environment())
    with (evil / "config").open("a") as config:
        config.write(f"[core]\n\tbare = false\n\tworktree = .\n\tfsmonitor = touch {tmp_path}/pwned;false\n")
    await run("git status", policy=FREE, cwd=evil, env=environment())
    assert (tmp_path / "pwned").exists(), "the attack itself does not work any more: find another one"
    (tmp_path / "pwned").unlink()
    done = await run("git status", policy=FREE, cwd=evil, env=command_environment())
    assert done.code != 0
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM], ids=errno.errorcode.get)
def test_a_host_that_has_nothing_left_is_no_mistake_of_the_caller(number: int) -> None:
    """Starting a terminal without file descriptors was answered with 400."""
    found = refusal(OSError(number, os.strerror(number)), "bash")
    assert (found.code, found.retry_after) == ("rate_limited", 5.0)
    assert os.strerror(number) in found.message


async def test_a_terminal_without_file_descriptors(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    terminal = Terminal(lambda event: None, command=["/bin/sh"], policy=FREE, cwd=tmp_path, env={}, typed=False)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, before[1]))
    try:
        with pytest.raises(RateLimited, match="ulimit -n"):
            await terminal.start()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
