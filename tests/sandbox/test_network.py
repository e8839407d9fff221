"""Targets: every spelling of a host is one value, and nothing else is a host."""

import pytest

from portico.sandbox.network import Destination, Network, environment, parse_target


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("pypi.org:443", "pypi.org:443"),
        ("PyPI.org.:443", "pypi.org:443"),
        ("2130706433:80", "127.0.0.1:80"),
        ("0x7f000001:80", "127.0.0.1:80"),
        ("0177.0.0.1:80", "127.0.0.1:80"),
        ("127.1:80", "127.0.0.1:80"),
        ("0:80", "0.0.0.0:80"),
        ("[::ffff:127.0.0.1]:80", "127.0.0.1:80"),
        ("[::FFFF:7f00:1]:80", "127.0.0.1:80"),
        ("[0:0:0:0:0:0:0:1]:80", "[::1]:80"),
    ],
)
def test_a_target_has_one_spelling(text: str, target: str) -> None:
    assert str(parse_target(text)) == target


@pytest.mark.parametrize(
    "text",
    [
        *("", "pypi.org", ":443", "pypi.org:0", "pypi.org:65536", "pypi.org:-1", "pypi.org:4 43", "a b:1", "a%2eb:1"),
        *("a/b:1", "a@b:1", "[fe80::1%eth0]:1", "[::1:1", "::1", "[pypi.org]:1", "-a.org:1", "a..b:1", "a.0x:1"),
        *(f"{'a' * 64}.org:1", "bücher.de:1", "1.2.3.4.5:1", "256.1.1.1.:1", "a.1:1", "a\0b:1", "[::1]x:1"),
    ],
)
def test_anything_else_is_no_target(text: str) -> None:
    assert parse_target(text) is None


@pytest.mark.parametrize(
    ("host", "port", "covered"),
    [
        ("pypi.org", 443, True),
        ("pypi.org", 80, True),
        ("pypi.org", 22, False),
        ("evilpypi.org", 443, False),
        ("pypi.org.evil.com", 443, False),
        ("a.npmjs.org", 443, True),
        ("a.b.npmjs.org", 443, True),
        ("npmjs.org", 443, False),
        ("evilnpmjs.org", 443, False),
        ("example.com", 8443, True),
        ("example.com", 443, False),
        ("2606:4700::1111", 443, True),
        ("127.0.0.1", 11434, False),
    ],
)
def test_what_a_policy_covers(host: str, port: int, covered: bool) -> None:
    hosts = ("pypi.org", "*.npmjs.org", "example.com:8443", "[2606:4700::1111]:443")
    assert Network(hosts=hosts, ports=(11434,)).covers(Destination(host, port)) is covered


def test_the_proxy_is_set_in_both_spellings() -> None:
    variables = environment()
    assert {variables[name] for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy")} == {
        "http://127.0.0.1:3128"
    }
    assert variables["NO_PROXY"] == variables["no_proxy"] == "127.0.0.1,localhost,::1"
