"""What an editor sends, as a message: a mention keeps its place, an attachment follows the text."""

from typing import Any

import acp
import pytest

from portico.client.acp.prompt import message_of

LIB = acp.resource_link_block("lib.py", "file:///w/lib.py")
OPEN = acp.resource_block(acp.embedded_text_resource("file:///w/open.py", "x = 1"))
PICTURE = acp.image_block("aGk=", "image/png")


def t(text: str) -> Any:
    return acp.text_block(text)


CASES: dict[str, tuple[list[Any], str]] = {
    "in the middle": ([t("look at "), LIB, t(" and explain it")], "look at @lib.py and explain it"),
    "without blanks": ([t("look at"), LIB, t("and explain it")], "look at @lib.py and explain it"),
    "at the beginning": ([LIB, t(" is wrong")], "@lib.py is wrong"),
    "at the end": ([t("explain "), LIB], "explain @lib.py"),
    "in brackets": ([t("the library ("), LIB, t(") fails")], "the library (@lib.py) fails"),
    "before a full stop": ([t("fix "), LIB, t(".")], "fix @lib.py."),
    "two in a row": ([t("compare "), LIB, OPEN, t(" please")], "compare @lib.py @open.py please"),
    "with its content": ([t("fix "), OPEN, t(" now")], "fix @open.py now"),
    "behind the text": ([t("fix it"), LIB], "fix it"),
    "a picture in the middle": ([t("this "), PICTURE, t("is it")], "this \nis it"),
    "two texts": ([t("one"), t("two")], "one\ntwo"),
    "no text": ([LIB], ""),
    "nothing": ([], ""),
}


@pytest.mark.parametrize(("blocks", "text"), CASES.values(), ids=CASES)
def test_the_text_of_a_prompt(blocks: list[Any], text: str) -> None:
    found, attachments = message_of(blocks)
    assert found == text
    assert len(attachments) == sum(block.type != "text" for block in blocks), "nothing is lost"
