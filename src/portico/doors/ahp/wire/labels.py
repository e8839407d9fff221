"""The labels of approvals in the client's language (`locale` of `initialize`).

Frames are encoded once for all clients. The labels of a client with another language are replaced in its copy. The
searched bytes contain bare quotes, which are escaped inside a JSON string: they match only the options themselves.
"""

import msgspec

Labels = list[tuple[bytes, bytes]]

ENGLISH = {
    "allow-once": "Allow once",
    "allow-session": "Allow in this session",
    "allow-folder": "Allow always in this folder",
    "deny": "Deny",
}
OTHERS: dict[str, tuple[str, ...]] = {
    "de": ("Einmal erlauben", "In dieser Sitzung erlauben", "In diesem Ordner immer erlauben", "Ablehnen"),
    "fr": ("Autoriser une fois", "Autoriser dans cette session", "Toujours autoriser dans ce dossier", "Refuser"),
    "es": ("Permitir una vez", "Permitir en esta sesión", "Permitir siempre en esta carpeta", "Denegar"),
    "ja": ("一度だけ許可", "このセッションで許可", "このフォルダーでは常に許可", "拒否"),
    "zh": ("允许一次", "在此会话中允许", "在此文件夹中始终允许", "拒绝"),
}
"""In the order of the English ones. Other languages get English."""


def labels_of(locale: str) -> Labels:
    """What to replace for a client; empty for English and for languages without labels. `de-AT` is German."""
    language = locale.replace("_", "-").partition("-")[0].lower()
    words = OTHERS.get(language, ())
    return [
        (_option(ident, label), _option(ident, other))
        for (ident, label), other in zip(ENGLISH.items(), words, strict=False)
    ]


def _option(ident: str, label: str) -> bytes:
    """The beginning of an option, as `parts.option` is encoded."""
    return msgspec.json.encode({"id": ident, "label": label})[:-1]


def localized(frame: bytes, labels: Labels) -> bytes:
    for english, other in labels:
        if english in frame:
            frame = frame.replace(english, other)
    return frame
