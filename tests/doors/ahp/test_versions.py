import pytest
from hypothesis import given
from hypothesis import strategies as st

from portico.doors.ahp.wire.versions import SEED, SUPPORTED, later, negotiate, parse
from tests.doors.ahp.fixtures import V1, dialect


@pytest.mark.parametrize(
    ("offered", "spoken"),
    [
        (["0.9.0", "0.7.0", "0.6.0", "0.5.2", "0.5.1"], "0.9.0"),
        (["0.5.1", "1.0.0"], "1.0.0"),
        (["0.7.0", "0.8.0"], "0.8.0"),
        (["2.0.0", "0.6.0"], "0.6.0"),
        (["0.9.3"], "0.9.3"),
        (["0.5.0"], None),
        (["0.4.0", "2.0.0"], None),
        (["1.1.0"], "1.1.0"),
        (["1.7.3", "0.9.0", "2.0.0"], "1.7.3"),
        (["1.0.9", "1.0.0"], "1.0.9"),
        (["01.0.0", "1.00.0", "1.0.0-rc1", "1.0"], None),
        (["1.1.0-dev", "latest", "", "1", "0.9", None, 7, "0.9.0"], "0.9.0"),
        ([], None),
    ],
)
def test_the_highest_version_both_speak(offered: list[object], spoken: str | None) -> None:
    assert negotiate(offered) == spoken


@pytest.mark.parametrize("version", SUPPORTED)
def test_every_supported_version_is_accepted_alone(version: str) -> None:
    assert negotiate([version]) == version


def test_supported_versions_are_listed_highest_first() -> None:
    orders = [order for version in SUPPORTED if (order := parse(version))]
    assert orders == sorted(orders, reverse=True)


@given(st.lists(st.text() | st.integers() | st.none()))
def test_anything_may_be_offered(offered: list[object]) -> None:
    spoken = negotiate(offered)
    assert spoken is None or spoken in offered


def test_version_1_is_the_oldest() -> None:
    assert V1.seed
    assert not V1.since("0.5.1")
    assert V1.since(SEED)
    assert dialect("1.0.0").since("0.9.0")
    assert not dialect("0.9.0").since("1.0.0")


def test_each_dialect_has_its_own_clock_face() -> None:
    assert V1.now() == 9999
    assert dialect().now() == "1970-01-01T00:00:09.999Z"


@pytest.mark.parametrize(
    ("start", "moment"),
    [
        ("1970-01-01T00:00:01.000Z", "1970-01-01T00:00:02.500Z"),
        ("1970-01-01T01:00:01+01:00", "1970-01-01T00:00:02.500Z"),
        ("1970-01-01T00:00:01", "1970-01-01T00:00:02.500Z"),
        ("soon", None),
        ("9999-12-31T23:59:59.999Z", None),
    ],
)
def test_a_time_and_a_duration(start: str, moment: str | None) -> None:
    assert later(start, 1500) == moment
