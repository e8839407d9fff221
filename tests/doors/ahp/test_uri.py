import pytest
from hypothesis import given
from hypothesis import strategies as st

from portico.doors.ahp.wire import uri


def test_the_default_chat_is_the_one_the_editor_derives() -> None:
    assert uri.default_chat("copilot:/abc") == "ahp-chat://default/Y29waWxvdDovYWJj"
    assert uri.default_chat("copilot:/ab") == "ahp-chat://default/Y29waWxvdDovYWI"


@given(st.text())
def test_a_default_chat_names_its_session(session: str) -> None:
    chat = uri.default_chat(session)
    assert "=" not in chat
    assert uri.default_chat_session(chat) == session


@pytest.mark.parametrize(
    "chat", ["ahp-chat:/x", "ahp-chat://default/_", "ahp-chat://default/YQ!!", "ahp-chat://default/_w", ""]
)
def test_other_uris_name_no_session(chat: str) -> None:
    assert uri.default_chat_session(chat) is None


@pytest.mark.parametrize(
    ("candidate", "root"),
    [
        ("ahp-root://", True),
        ("ahp-root:", True),
        ("ahp-root:///", True),
        ("agenthost:/root", True),
        ("agenthost:/terminal/1", False),
        ("ahp-root://x", False),
    ],
)
def test_root_uris(candidate: str, root: bool) -> None:
    assert uri.is_root(candidate) is root


def test_annotations_belong_to_a_session() -> None:
    assert uri.annotations("ahp-session:/1") == "ahp-session:/1/annotations"
    assert uri.annotations_session("ahp-session:/1/annotations") == "ahp-session:/1"
    assert uri.annotations_session("ahp-session:/1") is None


@pytest.mark.parametrize("session", ["a:/1", "copilot:/abc/def", "ahp-session:/x/subagent/y"])
@pytest.mark.parametrize("call", ["c1", "toolu_01", "a/b", "ä b"])
def test_sub_agents_have_one_name_in_each_dialect(session: str, call: str) -> None:
    chat = uri.subagent(session, call)
    old = uri.seed_subagent(chat)
    assert old is not None
    assert old.startswith(f"{session}/subagent/")
    assert uri.subagent_of_seed(old) == chat


@pytest.mark.parametrize("name", ["ahp-chat://subagent/!/c", "ahp-chat://subagent/YQ", "ahp-chat://x/YQ/c", "a:/1", ""])
def test_nothing_else_is_a_sub_agent(name: str) -> None:
    assert uri.seed_subagent(name) is None
