import pytest
from hypothesis import given
from hypothesis import strategies as st

from portico.doors.ahp import uri


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
