"""The container backend: its arguments as a table, the image of a project, and real containers with podman."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from portico.features.sandboxes.devcontainer import image_for
from portico.features.sandboxes.feature import Sandboxes, confine
from portico.kernel.errors import SandboxUnavailable
from portico.sandbox.available import check_image
from portico.sandbox.container import _SHELL, Engine, container, inner_command, removal, variables
from portico.sandbox.mounts import Mount
from portico.sandbox.policy import Limits, Namespaces, Policy
from portico.server.settings import SandboxSettings
from portico.testing.fixtures import HostOpener
from portico.workspace.process import environment, run
from tests.features import feature
from tests.sandbox.outside import site
from tests.sandboxes.test_running import output

JOINS = Namespaces("/proc/7/fd/1", "/proc/7/fd/2", "/proc/7/fd/3", "/tmp/s/scratch")
PLAIN = Policy("project", "/p", "/home/ada", joins=JOINS, image="an/image:1", limits=Limits(tmp=9))


@pytest.mark.parametrize(
    ("policy", "mount", "engine", "wanted"),
    [
        (PLAIN, None, "podman", "--pull never"),
        (PLAIN, None, "podman", "--read-only --cap-drop ALL --security-opt no-new-privileges"),
        (PLAIN, None, "podman", "--user 0:8"),
        (PLAIN, None, "podman", "--network ns:/proc/7/fd/2"),
        (PLAIN, None, "docker", "--network none"),
        (replace(PLAIN, joins=None), None, "podman", "--network none"),
        (PLAIN, None, "podman", "--label portico.sandbox=/tmp/s/scratch"),
        (PLAIN, None, "podman", "--tmpfs /tmp:rw,nosuid,nodev,size=9"),
        (PLAIN, None, "podman", "--env-file /f --workdir /p an/image:1"),
        (PLAIN, Mount("write", "/p"), "podman", "--mount type=bind,source=/p,target=/p"),
        (PLAIN, Mount("write", "/p", "/real"), "podman", "--mount type=bind,source=/real,target=/p"),
        (PLAIN, Mount("protect", "/p/.git/hooks"), "podman", "target=/p/.git/hooks,readonly"),
        (PLAIN, Mount("read", "/data"), "podman", "--mount type=bind,source=/data,target=/data,readonly"),
        (PLAIN, Mount("hide_file", "/p/.env"), "podman", "source=/dev/null,target=/p/.env,readonly"),
        (PLAIN, Mount("hide_folder", "/p/.ssh"), "podman", "--tmpfs /p/.ssh:rw,nosuid,nodev,size=4096"),
        (PLAIN, Mount("home", "/home/ada"), "podman", "--tmpfs /home/ada:rw,nosuid,nodev,size=9"),
        (replace(PLAIN, limits=Limits(processes=5)), None, "podman", "--pids-limit 5 --ulimit nproc=5:5"),
        (replace(PLAIN, limits=Limits(memory=6)), None, "podman", "--memory 6"),
        (replace(PLAIN, limits=Limits(files=7)), None, "docker", "--ulimit nofile=7:7"),
    ],
)
def test_arguments(policy: Policy, mount: Mount | None, engine: Engine, wanted: str) -> None:
    found = container(policy, [mount] if mount else [], engine, "/f", "/p", "0:8")
    assert wanted in " ".join(found)


@pytest.mark.parametrize(
    "mount", [Mount("read", "/usr"), Mount("link", "/bin", "usr/bin"), Mount("protect", "/proc/sys")]
)
def test_the_system_is_that_of_the_image(mount: Mount) -> None:
    without = container(PLAIN, [], "podman", "/f", "/p", "0:8")
    assert container(PLAIN, [mount], "podman", "/f", "/p", "0:8") == without


@pytest.mark.parametrize(
    ("command", "inner"),
    [
        (["/usr/bin/python3", "-c", "x"], ["python3", "-c", "x"]),
        (["make", "test"], ["make", "test"]),
        (["/p/run.sh", "a"], ["/p/run.sh", "a"]),
        (["/usr/bin/bash", "-c", "ls"], ["sh", "-c", _SHELL, "sh", "-c", "ls"]),
    ],
)
def test_programs_are_those_of_the_image(command: list[str], inner: list[str]) -> None:
    assert inner_command(command) == inner


def test_only_root_joins_the_network() -> None:
    assert "--network none" in " ".join(container(PLAIN, [], "podman", "/f", "/p", "1000:0"))


def test_a_terminal_is_kept() -> None:
    assert "--tty" in container(PLAIN, [], "podman", "/f", "/p", "0:8", tty=True)
    assert "--tty" not in container(PLAIN, [], "podman", "/f", "/p", "0:8")


def test_variables_are_in_a_file_and_cannot_add_others() -> None:
    env = {"PATH": "/outside", "A": "1", "B": "x\nLD_PRELOAD=evil", "SSH_AUTH_SOCK": "/s", "C D": "2"}
    found = variables(PLAIN, env).decode().splitlines()
    assert "A=1" in found
    assert "https_proxy=http://127.0.0.1:3128" in found
    assert not [line for line in found if line.startswith(("PATH", "B=", "LD_PRELOAD", "SSH_AUTH_SOCK", "C D"))]


def test_the_containers_of_a_sandbox_are_removed_by_their_label() -> None:
    assert removal("podman", "/x") == (
        "podman ps --all --quiet --filter label=portico.sandbox=/x | xargs --no-run-if-empty podman rm --force"
    )


@pytest.mark.parametrize(
    ("setting", "file", "found"),
    [
        ("an/image:2", None, "an/image:2"),
        ("", '{"image": "mcr.example.com/base:1"}', "mcr.example.com/base:1"),
        ("", '{\n // a comment "image": "no"\n "image": "one", /* , */ "features": {},\n}', "one"),
        ("", '{"image": "http://x//y"}', "http://x//y"),
        ("mine", '{"image": "theirs"}', "mine"),
    ],
)
def test_the_image_of_a_project(tmp_path: Path, setting: str, file: str | None, found: str) -> None:
    if file is not None:
        (tmp_path / ".devcontainer").mkdir()
        (tmp_path / ".devcontainer/devcontainer.json").write_text(file)
    assert image_for(setting, str(tmp_path)) == found


@pytest.mark.parametrize(
    ("setting", "file", "words"),
    [
        ("", None, "set sandbox.image, or add .devcontainer/devcontainer.json"),
        ("", '{"build": {"dockerfile": "Dockerfile"}}', "names no 'image'"),
        ("", "{", "cannot be read"),
        ("", "[]", "names no 'image'"),
        ("", '{"image": "--privileged"}', "is no name of an image"),
        ("a b", None, "is no name of an image"),
        ("--volume=/:/host", None, "is no name of an image"),
    ],
)
def test_what_is_no_image_is_refused(tmp_path: Path, setting: str, file: str | None, words: str) -> None:
    """An image that begins with a dash would be an option of the engine."""
    if file is not None:
        (tmp_path / ".devcontainer.json").write_text(file)
    with pytest.raises(SandboxUnavailable, match=words):
        image_for(setting, str(tmp_path))


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailable, match=r"neither podman nor docker is installed.*sudo apt install podman"):
        check_image("an/image")


# -- real containers -------------------------------------------------------------------------------------------------

IMAGE = "localhost/portico-sandbox-test"
PROGRAMS = ("sh", "cat", "ls", "id", "curl", "sleep", "touch", "mkdir")
LIMITED = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=512:512", "--network", "none")


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An image of some programs of this machine: no registry is used."""
    if shutil.which("podman") is None:
        pytest.skip("podman is not installed")
    root = tmp_path_factory.mktemp("image")
    for name in PROGRAMS:
        program = os.path.realpath(shutil.which(name) or "/bin/false")
        _copied(root, program, f"/bin/{name}")
        for line in subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout.split():
            if line.startswith("/"):
                _copied(root, line, line)
    (root / "etc").mkdir()
    (root / "etc/made").write_text("of the image\n")
    packed = subprocess.run(["tar", "-C", str(root), "-c", "."], capture_output=True, check=True).stdout
    made = subprocess.run(["podman", "import", "-", IMAGE], input=packed, capture_output=True, check=False)
    tried = subprocess.run(["podman", "run", "--rm", *LIMITED, IMAGE, "/bin/id"], capture_output=True, check=False)
    if made.returncode or tried.returncode:
        pytest.skip(f"podman does not run here: {(made.stderr + tried.stderr).decode()[-300:]}")
    yield IMAGE
    subprocess.run(["podman", "rmi", "--force", IMAGE], capture_output=True, check=False)


def _copied(root: Path, source: str, target: str) -> None:
    place = root / target.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, place)


async def containers() -> bytes:
    command = ["podman", "ps", "--all", "--quiet", "--filter", "label=portico.sandbox"]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=True)
    return done.stdout


async def test_a_session_works_in_a_container(open_host: HostOpener, tmp_path: Path, image: str) -> None:
    work = tmp_path / "work"
    (work / ".git/hooks").mkdir(parents=True)
    (work / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "secret").write_text("secret")
    host = await open_host()
    async with site(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello") as there:
        settings = SandboxSettings(backend="container", image=image, hosts=[f"127.0.0.1:{there.port}"])
        settings.allow_private = ["127.0.0.1"]
        feature(host, Sandboxes).configure(settings)
        session = await host.start(by="test", cwd=str(work), config={"sandbox": "project"})
        assert await output(session, "cat /etc/made; echo $PORTICO_SANDBOX; pwd") == f"of the image\nproject\n{work}"
        assert await output(session, "echo x > made; cat made") == "x"
        assert (work / "made").read_text() == "x\n"
        for line in ("touch .git/hooks/post-commit", f"cat {tmp_path}/secret", "touch /etc/x", "cat /root/.bashrc"):
            assert "cannot" in (said := await output(session, f"{line} || echo cannot")), said
        # curl does not use the proxy for loopback unless it is told to.
        fetch = f"curl -s --noproxy '' -x http://127.0.0.1:3128 http://127.0.0.1:{there.port}/; echo; "
        direct = f"curl -s --noproxy '*' http://127.0.0.1:{there.port}/ || echo refused"
        assert await output(session, fetch + direct) == "hello\nrefused"
        policy = await confine(session)
        started = await run("sleep 0.2; exit 3", policy=policy, cwd=work, env=environment())
        assert started.code == 3
        await session.close(by="test")
    await host.close()
    assert await containers() == b""


async def test_a_cancelled_command_leaves_no_container(open_host: HostOpener, tmp_path: Path, image: str) -> None:
    host = await open_host()
    feature(host, Sandboxes).configure(SandboxSettings(backend="container", image=image))
    session = await host.start(by="test", cwd=str(tmp_path), config={"sandbox": "project"})
    policy = await confine(session)
    done = await run("echo started; exec sleep 54321", policy=policy, cwd=tmp_path, env=environment(), timeout=3)
    assert done.timed_out
    await feature(host, Sandboxes).end(session.id)
    assert await containers() == b""


async def test_an_image_that_is_missing_is_named(open_host: HostOpener, tmp_path: Path, image: str) -> None:
    host = await open_host()
    feature(host, Sandboxes).configure(SandboxSettings(backend="container", image="localhost/nosuch"))
    session = await host.start(by="test", cwd=str(tmp_path), config={"sandbox": "project"})
    with pytest.raises(SandboxUnavailable, match=r"has no image 'localhost/nosuch'.*podman pull localhost/nosuch"):
        await confine(session)


HOST = """
import asyncio, sys
from pathlib import Path
from portico.sandbox.network import Network
from portico.sandbox.policy import Limits, Policy
from portico.features.sandboxes.running import RunningSandbox
from portico.workspace.process import environment, run

async def main():
    here = Path(sys.argv[1])
    limits = Limits(files=1024, processes=100)
    sandbox = await RunningSandbox.open(Network(), None, limits)
    policy = sandbox.applied(Policy("project", str(here), "/root", image=sys.argv[2], limits=limits))
    await run("echo started > mark; exec sleep 54321", policy=policy, cwd=here, env=environment())

asyncio.run(main())
"""


async def test_no_container_is_left_after_the_host_was_killed(tmp_path: Path, image: str) -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", HOST, str(tmp_path), image)
    async with asyncio.timeout(60):
        while not (tmp_path / "mark").exists():  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert await containers() != b""
    process.kill()
    await process.wait()
    async with asyncio.timeout(60):
        while await containers() != b"":  # noqa: ASYNC110
            await asyncio.sleep(0.1)
