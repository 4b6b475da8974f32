"""Where a history is: a folder, or an address that fsspec knows. Its secrets are never shown."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from dlprof.errors import HistoryError, UsageError
from dlprof.text.clean import clean

VARIABLE = "DLPROF_HISTORY"
HIDDEN = "<hidden>"
LEAST_SECRET = 3

_LINK = re.compile(r"::(?=[a-zA-Z][a-zA-Z0-9+.-]*://)")
"""Between the addresses of a chain; elsewhere colons may be of a password."""
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")
_TYPING_ERROR = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]+):/(?!/)")
_PARTS = re.compile(r"[:/@?&=#]+")


@dataclass(frozen=True, repr=False)
class Address:
    """``text`` may hold a login or a token: it is for fsspec alone. ``folder`` is a local one."""

    text: str
    folder: Path | None

    def __repr__(self) -> str:
        return f"Address({self.shown!r})"

    @property
    def shown(self) -> str:
        """The address without login and query."""
        if self.folder is not None:
            return str(self.folder)
        return "::".join(_shown(part) for part in _LINK.split(self.text))

    @property
    def protocols(self) -> tuple[str, ...]:
        """Those of all addresses of a chain, such as ``simplecache::s3://bucket/folder``."""
        links = (part.partition("://")[0] for part in _LINK.split(self.text))
        return tuple(protocol for link in links for protocol in link.split("::"))

    def without_secrets(self, message: str) -> str:
        """A message of a driver in one line, without what :attr:`shown` hides."""
        known = set(_PARTS.split(self.shown))
        hidden = {part for part in _PARTS.split(self.text) if part not in known}
        links = [part for part in _LINK.split(self.text) if _shown(part) != part]
        hidden.update(links, (part.partition("://")[2].rpartition("@")[0] for part in links))
        forms = {form for part in hidden for form in (part, unquote(part))}
        for secret in sorted(forms, key=len, reverse=True):
            if self.folder is None and len(secret) >= LEAST_SECRET:
                message = message.replace(secret, HIDDEN)
        lines = message.strip().splitlines()
        return clean(lines[0], 300) if lines else "no reason given"


def parse(text: str) -> Address:
    """An address from the command line. Raises :class:`UsageError`."""
    if not text.strip() or "\0" in text:
        raise UsageError("the address of a history is empty or no address")
    slip = _TYPING_ERROR.match(text)
    if slip:
        raise UsageError(f"the address of a history begins with {slip[1]}:/: write {slip[1]}://")
    protocol, _, rest = text.partition("://")
    if "::" not in text and not _URL.match(text):
        return Address(text, _folder(text))
    if "::" not in text and protocol.lower() in ("file", "local"):
        return Address(text, _folder(rest))
    return Address(text, None)


def given(text: str | None, option: str) -> Address:
    """The address that was given, else that of :data:`VARIABLE`. Raises :class:`UsageError`."""
    found = os.environ.get(VARIABLE) if text is None else text
    if not found:
        raise UsageError(f"which history? Give {option}, or set {VARIABLE}")
    return parse(found)


def _folder(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError as error:  # ~nobody
        raise HistoryError(f"cannot find the history {clean(text)}: {error}") from None


def _shown(part: str) -> str:
    """One address of a chain; nothing of it if login or query cannot be told from the rest."""
    protocol, colon, rest = part.partition("://")
    if not colon:
        return HIDDEN if {"@", "?"} & set(part) else part
    head, mark, query = rest.partition("?")
    if "@" in query and "@" not in head:  # a password may hold a question mark
        return f"{protocol}://{HIDDEN}"
    _, at, place = head.rpartition("@")  # a secret key may hold slashes
    place = place.partition("#")[0]
    return f"{protocol}://{HIDDEN + '@' if at else ''}{place}{'?' + HIDDEN if mark else ''}"
