"""The text of an HTML page, with its headings, lists, links and code as Markdown."""

import re
from html.parser import HTMLParser

_SKIPPED = frozenset({"script", "style", "noscript", "svg", "template", "head", "iframe"})
_BLOCKS = frozenset(
    {"p", "div", "section", "article", "main", "header", "footer", "nav", "aside", "ul", "ol", "table", "tr", "br"}
    | {"dl", "dt", "dd", "form", "figure", "blockquote", "hr"}
)
_HEADINGS = {f"h{level}": f"\n\n{'#' * level} " for level in range(1, 7)}


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._skipped = 0
        self._code = 0
        self._links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SKIPPED:
            self._skipped += 1
        elif tag in _HEADINGS:
            self.parts.append(_HEADINGS[tag])
        elif tag == "li":
            self.parts.append("\n- ")
        elif tag == "pre":
            self._code += 1
            self.parts.append("\n```\n")
        elif tag in _BLOCKS:
            self.parts.append("\n")
        elif tag in ("td", "th"):
            self.parts.append(" | ")
        elif tag == "a":
            self._links.append(dict(attrs).get("href") or "")
            self.parts.append("[")

    def handle_endtag(self, tag: str) -> None:
        if tag in _SKIPPED:
            self._skipped = max(0, self._skipped - 1)
        elif tag == "pre":
            self._code = max(0, self._code - 1)
            self.parts.append("\n```\n")
        elif tag in _BLOCKS or tag in _HEADINGS:
            self.parts.append("\n")
        elif tag == "a" and self._links:
            self.parts.append(f"]({self._links.pop()})")

    def handle_data(self, data: str) -> None:
        if not self._skipped:
            self.parts.append(data if self._code else re.sub(r"\s+", " ", data))


def page_text(html: str) -> str:
    title = re.search(r"<title[^>]*>(.*?)</title>", html, re.DOTALL | re.IGNORECASE)
    reader = _Reader()
    reader.feed(html)
    reader.close()
    text = re.sub(r"\[\s*\]\([^)]*\)", "", "".join(reader.parts))
    text = re.sub(r"[ \t]+\n", "\n", text)
    text = re.sub(r"\n{3,}", "\n\n", text).strip()
    head = f"# {' '.join(title[1].split())}\n\n" if title is not None else ""
    return head + text
