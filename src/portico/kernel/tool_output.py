"""The output of tool calls as it is stored: long output is cut to its head and tail."""

from portico.kernel import limits


def grow(output: str, left_out: int, more: str) -> tuple[str, int]:
    """Append a piece to live output. Long output is cut to its head and tail with a note on the omitted characters in
    between, so that a program that prints megabytes does not cost quadratic time."""
    keep = limits.TOOL_OUTPUT_CHARS
    grown = output + more
    if len(grown) <= 4 * keep:
        return grown, left_out
    rest = grown[keep + len(missing(left_out)) :]
    left_out += len(rest) - keep
    return f"{grown[:keep]}{missing(left_out)}{rest[-keep:]}", left_out


def cut(text: str, left_out: int = 0) -> str:
    """Cut output that is too long for an event to head and tail. `left_out`: characters that `grow` has omitted."""
    if len(text) <= limits.TOOL_OUTPUT_CHARS:
        return text
    half = limits.TOOL_OUTPUT_CHARS // 2
    length = len(text) - len(missing(left_out)) + left_out
    return f"{text[:half]}{missing(length - 2 * half)}{text[-half:]}"


def missing(characters: int) -> str:
    return f"\n... {characters} characters left out ...\n" if characters > 0 else ""


def pieces(text: str) -> list[str]:
    """Split a text into deltas that fit; an empty text gives none."""
    size = limits.DELTA_BYTES
    return [text] if 0 < len(text) <= size else [text[at : at + size] for at in range(0, len(text), size)]
