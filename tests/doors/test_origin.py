"""SECURITY 5 and 6: where a request comes from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portico.kernel.errors import Forbidden, Misdirected
from portico.server.origin import (
    LOOPBACK_NAMES,
    check_host,
    check_origin,
    host_name,
    is_editor_origin,
    is_loopback,
    is_origin,
)


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("localhost:8888", "localhost"),
        ("LocalHost", "localhost"),
        ("127.0.0.1:1", "127.0.0.1"),
        ("[::1]:8888", "::1"),
        ("[::1]", "::1"),
    ],
)
def test_the_name_in_a_host_header(header: str, name: str) -> None:
    assert host_name(header) == name
    check_host(header, LOOPBACK_NAMES)


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        ":8888",
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.nip.io:8888",
        "evil.example@localhost",
        "localhost:8888:9",
        "[::1].evil.example",
        "127.1",
        "2130706433",
    ],
)
def test_every_other_host_is_somebody_elses(header: str | None) -> None:
    with pytest.raises(Misdirected) as refused:
        check_host(header, LOOPBACK_NAMES)
    assert "None" not in refused.value.message


@given(st.text())
def test_no_text_but_ours_passes_as_a_host(header: str) -> None:
    try:
        check_host(header, LOOPBACK_NAMES)
    except Misdirected:
        return
    assert any(header.lower().startswith((name, f"[{name}")) for name in LOOPBACK_NAMES)


def test_programs_and_our_own_pages_pass() -> None:
    none: frozenset[str] = frozenset()
    check_origin("localhost:1", False, None, None, none)
    check_origin("localhost:1", False, "http://localhost:1", "same-origin", none)
    check_origin("localhost:1", True, "https://localhost:1", None, none)
    check_origin("localhost:1", False, None, "none", none)
    check_origin("localhost:1", False, "https://other.example", "cross-site", frozenset({"https://other.example"}))


@pytest.mark.parametrize(
    ("origin", "site"),
    [
        ("null", None),
        ("null", "same-origin"),
        ("https://localhost:1", None),  # another scheme
        ("http://localhost:2", "same-site"),  # another port
        ("http://localhost:1.evil.example", None),
        ("http://127.0.0.1:1", None),  # another name of ours is still another origin
        ("", None),
        (None, "cross-site"),
        (None, "same-site"),
        (None, "anything-new"),
    ],
)
def test_a_foreign_page_does_not(origin: str | None, site: str | None) -> None:
    with pytest.raises(Forbidden):
        check_origin("localhost:1", False, origin, site, frozenset())


def test_what_is_loopback() -> None:
    assert all(map(is_loopback, ["localhost", "127.0.0.1", "127.9.9.9", "::1"]))
    assert not any(map(is_loopback, ["0.0.0.0", "::", "10.0.0.1", "example.org", ""]))


def test_what_is_an_origin() -> None:
    assert all(map(is_origin, ["https://example.org", "http://localhost:3000"]))
    assert not any(
        map(is_origin, ["*", "null", "example.org", "https://example.org/", "https://", "file://x", "https://a/b"])
    )


def test_an_origin_may_have_any_scheme_but_the_one_of_local_files() -> None:
    assert all(map(is_origin, ["vscode-file://vscode-app", "tauri://localhost", "app://obsidian.md", "x+y.z-1://a:2"]))
    assert not any(
        map(is_origin, ["file://", "tauri://", "vscode-file:", "://a", "1a://b", "a://*", "a://b c", "a://u@b"])
    )


@pytest.mark.parametrize(
    ("origin", "known"),
    [
        ("vscode-file://vscode-app", True),
        ("vscode-webview://1a2b3c4d", True),
        ("vscode-webview://0f8fad5b-d9cb-469f-a165-70867728950e", True),
        (None, False),
        ("", False),
        ("null", False),
        ("vscode-file://evil", False),
        ("vscode-file://vscode-app.evil.example", False),
        ("vscode-file://vscode-app/", False),
        ("VSCODE-FILE://vscode-app", False),
        ("vscode-webview://", False),
        ("vscode-webview://a.evil.example", False),
        ("https://vscode-file://vscode-app", False),
        ("https://vscode-app", False),
        ("http://localhost:1", False),
        ("vscode-file://vscode-app\nhttps://evil.example", False),
    ],
)
def test_which_origins_are_those_of_an_editor(origin: str | None, known: bool) -> None:
    assert is_editor_origin(origin) is known
