"""What a terminal has shown: the newest of it, in its parts, whenever somebody looks."""

import random

import pytest

from portico.workspace.scrollback import Loose, Scrollback, ShellCommand

LIMIT = 100


def play(seed: int, looks: bool) -> tuple[Scrollback, str]:
    """Some hundred steps of a shell; `looks`: somebody reads after each. Returns also all that was ever printed."""
    dice, shown, printed = random.Random(seed), Scrollback(LIMIT), ""
    for step in range(300):
        match dice.choice(["print", "print", "print", "key", "start", "end", "clear" if seed % 2 else "print"]):
            case "print":
                text = f"{step}:" + "x" * dice.choice([0, 3, 30, 99, 250])
                shown.add(text)
                printed += text
            case "key":
                shown.add("k")
                printed += "k"
            case "start":
                shown.start(ShellCommand(str(step), "l" * dice.choice([1, 40]), 0))
            case "end" if shown.parts and isinstance(last := shown.parts[-1], ShellCommand):
                last.complete = True
            case "clear":
                shown.clear()
                printed = ""
        if looks:
            assert printed.endswith(shown.text())
    return shown, printed


@pytest.mark.parametrize("seed", range(20))
def test_the_newest_is_kept_however_often_somebody_looks(seed: int) -> None:
    shown, printed = play(seed, looks=False)
    watched, _ = play(seed, looks=True)
    assert shown.parts == watched.parts
    assert printed.endswith(shown.text())
    lines = sum(len(part.line) for part in shown.parts if isinstance(part, ShellCommand))
    assert len(shown.text()) + lines == shown.size
    assert len(shown.text()) >= min(len(printed), LIMIT - lines)
    assert shown.size <= LIMIT + LIMIT // 10 + 40  # the line of the first command is not cut


def test_output_goes_to_the_command_that_runs_and_beside_one_that_has_ended() -> None:
    shown = Scrollback()
    shown.add("$ ")
    shown.start(ShellCommand("1", "make", 0))
    shown.add("built\n")
    last = shown.parts[-1]
    assert isinstance(last, ShellCommand)
    last.complete = True
    shown.add("$ ")
    shown.add("l")
    assert shown.parts == [Loose("$ "), ShellCommand("1", "make", 0, "built\n", True), Loose("$ l")]
    shown.clear()
    assert (shown.parts, shown.size, shown.text()) == ([], 0, "")


def test_thousands_of_keys_and_one_long_piece_are_cut_alike() -> None:
    keys, piece = Scrollback(5_000), Scrollback(5_000)
    text = "".join(str(number % 10) for number in range(12_345))
    for key in text:
        keys.add(key)
    piece.add(text)
    assert piece.text() == text[-5_000:]
    assert text.endswith(keys.text())
    assert 5_000 <= len(keys.text()) <= 5_500
