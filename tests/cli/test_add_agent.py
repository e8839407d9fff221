"""`portico agents add NAME` by the registry of ACP agents, with real npm and pip against registries on loopback."""

import base64
import hashlib
import io
import json
import subprocess
import sys
import tarfile
import threading
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.agents.acp_agent import FAKE
from tests.process import inside

RUNNER = f"#!{sys.executable} -SE\nexec(open({str(FAKE)!r}).read())\n"
NPM: dict[str, Any] = {"name": "@acme/agent", "version": "1.2.3", "license": "MIT", "bin": {"acme": "run.py"}}


def npm_package() -> bytes:
    """A package whose program is the fake ACP agent."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for name, text, mode in (("package.json", json.dumps(NPM), 0o644), ("run.py", RUNNER, 0o755)):
            info = tarfile.TarInfo(f"package/{name}")
            info.size, info.mode = len(text.encode()), mode
            archive.addfile(info, io.BytesIO(text.encode()))
    return data.getvalue()


def wheel() -> bytes:
    info = "pyacme-2.0.dist-info"
    files = {
        "pyacme.py": f"import runpy\n\n\ndef main():\n    runpy.run_path({str(FAKE)!r}, run_name='__main__')\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: pyacme\nVersion: 2.0\nLicense: Apache-2.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[console_scripts]\npyacme = pyacme:main\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return data.getvalue()


def files(address: str) -> dict[str, bytes]:
    """What the two registries serve."""
    tarball = npm_package()
    digest = base64.b64encode(hashlib.sha512(tarball).digest()).decode()
    dist = {"tarball": f"{address}/npm/agent-1.2.3.tgz", "integrity": f"sha512-{digest}", "unpackedSize": 4_200_000}
    packument = {"name": NPM["name"], "dist-tags": {"latest": "1.2.3"}, "versions": {"1.2.3": {**NPM, "dist": dist}}}
    return {
        "/npm/agent-1.2.3.tgz": tarball,
        "/npm/@acme%2fagent": json.dumps(packument).encode(),
        "/pypi/pyacme-2.0-py3-none-any.whl": wheel(),
        "/pypi/pyacme/": b'<a href="/pypi/pyacme-2.0-py3-none-any.whl">pyacme-2.0-py3-none-any.whl</a>',
    }


class Handler(BaseHTTPRequestHandler):
    served: dict[str, bytes]

    def do_GET(self) -> None:
        body = self.served.get(self.path.replace("%2F", "%2f"))
        self.send_response(200 if body is not None else 404)
        self.send_header("Content-Type", "text/html" if self.path.endswith("/") else "application/octet-stream")
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body or b"")

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def packages() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    address = f"http://127.0.0.1:{server.server_port}"
    Handler.served = files(address)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield address
    server.shutdown()
    thread.join()
    server.server_close()


Registry = Callable[..., str]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def agents(home: Path, tmp_path: Path, packages: str) -> Run:
    """`portico agents ...` where npm and pip know the registries on loopback only."""
    env = {
        "npm_config_registry": f"{packages}/npm/",
        "npm_config_cache": str(tmp_path / "npm"),
        "npm_config_userconfig": str(tmp_path / "npmrc"),
        "PIP_INDEX_URL": f"{packages}/pypi/",
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_FIND_LINKS": "",
    }
    return lambda *args: inside(home, "agents", *args, **env)


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    def write(**distributions: Any) -> str:
        about = {"version": "9", "license": "MIT", "description": "Says hello."}
        agents = [{"id": name, "distribution": found} | about for name, found in distributions.items()]
        path = tmp_path / "registry.json"
        path.write_text(json.dumps({"version": "1.0.0", "agents": [*agents, {"id": 5}, {"id": "../x"}]}))
        return str(path)

    return write


@pytest.mark.parametrize(
    ("distribution", "shown", "program"),
    [
        (
            {"npx": {"package": "@acme/agent@1.2.3", "args": ["--acp"], "env": {"ACME": "1"}}},
            [
                "licence  MIT\n",
                "package  @acme/agent@1.2.3 (npm)",
                "size     4.2 MB unpacked, 0.0 MB to download",
                "sets     ACME=1",
            ],
            "programs/hello/node_modules/.bin/acme",
        ),
        (
            {"uvx": {"package": "pyacme@2.0", "args": ["--acp"], "env": {"ACME": "1"}}},
            ["licence  Apache-2.0 / MIT", "package  pyacme==2.0 (pypi)", "MB to download", "sets     ACME=1"],
            "programs/hello/bin/pyacme",
        ),
    ],
    ids=["npm", "pypi"],
)
def test_an_agent_of_the_registry_is_added_by_its_name(
    home: Path, agents: Run, registry: Registry, distribution: Any, shown: list[str], program: str
) -> None:
    where = ("--registry", registry(hello=distribution))
    asked = agents("add", "hello", *where)
    assert (asked.returncode, "Say --yes" in asked.stderr) == (64, True), asked.stderr
    assert [words for words in shown if words not in asked.stderr] == []
    assert not (home / "programs").exists()
    done = agents("add", "hello", "--yes", "--env", "MORE=2", "--json", *where)
    assert done.returncode == 0, done.stderr
    assert (json.loads(done.stdout)["agent"], json.loads(done.stdout)["check"]["status"]) == ("acp:hello", "ready")
    table = tomllib.loads((home / "settings.toml").read_text())["agents"]["acp"]["hello"]
    assert table == {"command": [str(home / program), "--acp"], "env": {"ACME": "1", "MORE": "2"}}
    again = agents("add", "hello", "--yes", *where)
    assert (again.returncode, "already" in again.stderr) == (75, True)
    tried = json.loads(agents("list", "--check", "--json").stdout)
    assert [each["status"] for each in tried["checks"] if each["agent"] == "acp:hello"] == ["ready"]


@pytest.mark.parametrize(
    ("distribution", "code", "words"),
    [
        ({"binary": {"linux-x86_64": {"archive": "x", "cmd": "./x"}}}, 64, "comes as a program to download"),
        ({}, 64, "comes as a program to download"),
        ({"npx": {"package": "git+https://x/y"}}, 64, "names a package that is none"),
        ({"npx": {"package": "--registry=x"}}, 64, "names a package that is none"),
        ({"npx": {"package": "../here"}}, 64, "names a package that is none"),
        ({"npx": {"package": "a b"}}, 64, "names a package that is none"),
        ({"uvx": {"package": "-r/etc/passwd"}}, 64, "names a package that is none"),
        ({"uvx": {"package": "x @ file:///y"}}, 64, "names a package that is none"),
        ({"npx": {"package": "@acme/nosuch"}}, 69, "npm view @acme/nosuch failed"),
        ({"uvx": {"package": "nosuch"}}, 69, "pip install --dry-run nosuch failed"),
    ],
)
def test_what_cannot_be_installed_says_why_and_leaves_nothing(
    home: Path, agents: Run, registry: Registry, distribution: Any, code: int, words: str
) -> None:
    done = agents("add", "hello", "--yes", "--registry", registry(hello=distribution))
    assert (done.returncode, words in done.stderr) == (code, True), done.stderr
    assert not (home / "settings.toml").exists()
    assert not (home / "programs" / "hello").exists()


def test_the_registry_is_searched(agents: Run, registry: Registry) -> None:
    listed: dict[str, Any] = {"hello": {"npx": {"package": "@acme/agent"}}}
    listed["other"] = {"uvx": {"package": "pyacme"}, "binary": {"x": {}}}
    where = ("--registry", registry(**listed))
    found = json.loads(agents("search", "OTHER", "--json", *where).stdout)
    assert [(each["id"], each["license"]) for each in found] == [("other", "MIT")]
    lines = agents("search", *where).stdout.splitlines()
    assert lines == ["hello\t9\tMIT\tnpm\tSays hello.", "other\t9\tMIT\tPyPI, binary\tSays hello."]
    assert "No agent is called like this." in agents("search", "nothing", *where).stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [("not json", "is not a registry of ACP agents"), ('{"agents": 5}', "is not a registry"), (None, "cannot be read")],
)
def test_a_bad_registry_is_named_with_the_other_way(agents: Run, tmp_path: Path, text: str | None, words: str) -> None:
    path = tmp_path / "list.json"
    if text is not None:
        path.write_text(text)
    done = agents("add", "hello", "--registry", str(path))
    assert done.returncode == 64
    assert words in done.stderr
    assert "portico agents add hello -- COMMAND" in done.stderr


def test_a_registry_that_is_away(agents: Run) -> None:
    done = agents("search", "--registry", "http://127.0.0.1:1/registry.json")
    assert (done.returncode, "could not be read" in done.stderr) == (69, True), done.stderr


def test_a_search_needs_no_network_and_a_refresh_is_kept(home: Path, agents: Run, registry: Registry) -> None:
    shipped = {each["id"] for each in json.loads(agents("search", "--json").stdout)}
    assert {"cline", "kilo", "factory-droid", "auggie", "qoder", "cursor", "kimi", "mistral-vibe", "junie"} <= shipped
    where = ("--registry", registry(hello={"npx": {"package": "@acme/agent"}}))
    assert agents("search", "--refresh", *where).returncode == 0
    assert [each["id"] for each in json.loads(agents("search", "--json").stdout)] == ["hello"]
    bad = agents("search", "--refresh", "--registry", "http://127.0.0.1:1/registry.json")
    assert bad.returncode == 69
    assert [each["id"] for each in json.loads(agents("search", "--json").stdout)] == ["hello"]
