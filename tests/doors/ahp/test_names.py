"""The names of our things on the wire: what a client calls a session, and what it means by a name."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portico.doors.ahp.view import names
from portico.doors.ahp.wire import uri
from portico.kernel.errors import BadRequest, NotFound
from portico.kernel.events import Origin
from portico.kernel.state import Summary


def session(ident: str = "session-1", agent: str = "loop", **fields: Any) -> Summary:
    return Summary(ident, agent, "", "/", "", "idle", 0, 0, 0, **fields)


@pytest.mark.parametrize(
    ("of", "seed", "name"),
    [
        (session(), False, "loop:/session-1"),
        (session(), True, "loop:/session-1"),
        (session(agent="acp:goose"), False, "acp-goose:/session-1"),
        (session(agent="My Agent!"), False, "my-agent-:/session-1"),
        (session(agent=""), False, "agent:/session-1"),
        (session(uri="vscode:/abc"), False, "vscode:/abc"),
        (session(uri="vscode:/abc"), True, "vscode:/abc"),
        (session("session-2", parent="session-1"), False, "ahp-chat:/session-2"),
        (session("session-2", parent="session-1", uri="c:/2"), False, "c:/2"),
        (
            session("session-2", parent="session-1", uri=uri.subagent("loop:/session-1", "c9")),
            True,
            "loop:/session-1/subagent/c9",
        ),
        (session("session-2", uri="c:/2", promoted=True), False, "loop:/session-2"),
        (session("session-2", uri="c:/2", promoted=True), True, "c:/2"),
    ],
    ids=[
        "ours",
        "ours in version 1",
        "a vendor's agent",
        "a scheme has no spaces",
        "no agent yet",
        "the client's",
        "the client's in version 1",
        "a chat",
        "a chat that was named",
        "a sub-agent in version 1",
        "a chat that became a session",
        "the same in version 1",
    ],
)
def test_what_a_session_is_called(of: Summary, seed: bool, name: str) -> None:
    assert names.session_uri(of, seed=seed) == name


@pytest.mark.parametrize(
    ("of", "name"),
    [
        (session(), uri.default_chat("loop:/session-1")),
        (session(uri="vscode:/abc"), uri.default_chat("vscode:/abc")),
        (session("session-2", parent="session-1"), "ahp-chat:/session-2"),
        (session("session-2", parent="session-1", uri="c:/2"), "c:/2"),
        (session("session-2", promoted=True, uri="c:/2"), "c:/2"),
        (session("session-2", promoted=True), "ahp-chat:/session-2"),
    ],
)
def test_what_a_chat_is_called(of: Summary, name: str) -> None:
    assert names.chat_uri(of) == name


@pytest.mark.parametrize(
    ("origin", "name"),
    [
        (None, uri.chat("loop:/session-1", "session-2")),
        (Origin("fork", "session-1", "t1"), uri.chat("loop:/session-1", "session-2")),
        (Origin("agent", "session-1", "t1", call="c9"), uri.subagent("loop:/session-1", "c9")),
        (Origin("agent", "session-1", "t1"), uri.chat("loop:/session-1", "session-2")),
    ],
    ids=["a chat", "a fork", "a sub-agent", "a sub-agent of no call"],
)
def test_what_a_new_chat_is_called(origin: Origin | None, name: str) -> None:
    assert names.child_uri(session(), "session-2", origin) == name


class Known:
    """A host that knows these sessions, by id and by the name that a client gave."""

    def __init__(self, *known: Summary) -> None:
        self._known = {key: each for each in known for key in (each.id, each.uri) if key}

    def find(self, ident: str) -> Any:
        found = self._known.get(ident)
        return SimpleNamespace(id=found.id, summary=found) if found is not None else None


SUBAGENT = uri.subagent("vscode:/abc", "c9")
HOST = Known(
    session("session-1"),
    session("session-2", uri="vscode:/abc"),
    session("session-3", parent="session-1"),
    session("session-4", parent="session-2", uri=SUBAGENT),
    session("session-5", promoted=True, uri="c:/5"),
)


@pytest.mark.parametrize(
    ("name", "ident"),
    [
        ("loop:/session-1", "session-1"),
        ("other:/session-1", None),
        ("session-1", None),
        ("loop:/session-9", None),
        ("vscode:/abc", "session-2"),
        ("loop:/session-2", None),
        ("ahp-chat:/session-3", "session-3"),
        ("vscode:/abc/subagent/c9", "session-4"),
        ("loop:/session-5", "session-5"),
        ("c:/5", "session-5"),
        ("", None),
    ],
)
def test_which_session_a_name_means(name: str, ident: str | None) -> None:
    found = names.find_session(HOST, name)
    assert (found.id if found is not None else None) == ident


@pytest.mark.parametrize(
    ("name", "ident"),
    [
        (uri.default_chat("loop:/session-1"), "session-1"),
        (uri.default_chat("vscode:/abc"), "session-2"),
        (uri.default_chat("loop:/session-9"), None),
        ("ahp-chat:/session-3", "session-3"),
        ("ahp-chat:/session-1", None),
        (SUBAGENT, "session-4"),
        ("c:/5", "session-5"),
        ("vscode:/abc", None),
        ("loop:/session-1", None),
    ],
)
def test_which_chat_a_name_means(name: str, ident: str | None) -> None:
    found = names.find_chat(HOST, name)
    assert (found.id if found is not None else None) == ident


@pytest.mark.parametrize("name", ["vscode:/1", "x:", "a:b", "x:" + "y" * 2046])
def test_a_client_may_choose_any_uri(name: str) -> None:
    assert names.chosen(name, "session") == name


@pytest.mark.parametrize(
    "name",
    ["", "nothing", " x:/1", "x:/1 ", "x:/1\n", "x:" + "y" * 2047, None, 7, ["x:/1"], "ahp-root://", "agenthost:/root"],
    ids=repr,
)
def test_what_is_no_uri_or_the_roots_is_refused(name: object) -> None:
    with pytest.raises(BadRequest) as refused:
        names.chosen(name, "chat")
    assert refused.value.field == "chat"


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("file:///a/b.py", "/a/b.py"),
        ("file:///a%20b/%C3%A4", "/a b/ä"),
        ("file://localhost/a", "/a"),
        ("file:///", "/"),
        ("file:/a", "/a"),
        ("file:///a?b#c", "/a"),
    ],
)
def test_the_path_of_a_file_uri(name: str, path: str) -> None:
    assert names.path_of(name) == path
    assert names.folder_of(name) == path


@pytest.mark.parametrize("name", ["http:///a", "file://elsewhere/a", "/a", "a", "file:a", "", "untitled:Untitled-1"])
def test_nothing_else_is_a_file(name: str) -> None:
    with pytest.raises(NotFound):
        names.path_of(name)


def test_a_folder_may_be_a_plain_path() -> None:
    assert names.folder_of("/a b/%41") == "/a b/%41"


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1))
def test_a_path_survives_its_uri(path: str) -> None:
    assert names.path_of(names.file_uri(f"/{path}")) == f"/{path}"


@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.sampled_from([names.GIT, names.EDIT, names.DIFF])
)
def test_a_version_of_a_file_is_known_again(key: str, scheme: str) -> None:
    name = names.version_uri(scheme, key, "/src/my file.py")
    assert "/".join(names.version_key(scheme, name)) == key
    assert name.endswith("/src/my%20file.py"), "editors show name and language by the path"


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("git-blob:/session-1/abc", ["session-1", "abc"]),
        ("git-blob://2f/a.py", ["", ""]),
    ],
)
def test_a_version_as_it_was_written_before(name: str, key: list[str]) -> None:
    assert names.version_key(names.GIT, name) == key


@pytest.mark.parametrize("name", ["git-blob://xyz/a.py", "git-blob://ff/a.py", "git-blob://abc/a.py"])
def test_a_version_that_nobody_wrote_is_not_there(name: str) -> None:
    with pytest.raises(NotFound):
        names.version_key(names.GIT, name)
