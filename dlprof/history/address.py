"""Where a history is: a folder, or an address that fsspec knows. What is secret in it is not shown.

An address may hold a login or a token. It is kept nowhere, and every message about it goes
through :meth:`Address.told`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from dlprof.errors import HistoryError, UsageError
from dlprof.text.clean import clean

VARIABLE = "DLPROF_HISTORY"
LOCAL = ("file", "local")
HIDDEN = "<hidden>"
LEAST_SECRET = 3
LONGEST = 300

_LINK = re.compile(r"::(?=[a-zA-Z][a-zA-Z0-9+.-]*://)")
"""Between the addresses of a chain; elsewhere colons may be of a password."""

_TYPING_ERROR = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:/(?!/)")
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")


@dataclass(frozen=True)
class Address:
    """``text`` may hold secrets: it is for fsspec alone. ``folder`` is set for a local one."""

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
    def protocol(self) -> str:
        return self.text.partition("://")[0].rpartition("::")[2]

    @property
    def protocols(self) -> tuple[str, ...]:
        """Those of all addresses of a chain."""
        heads = (part.partition("://") for part in _LINK.split(self.text))
        # What stands before the first address may be a chain itself: zip::simplecache::s3://…
        chains = (head.split("::") if not colon else [head] for head, colon, _ in heads)
        return tuple(protocol for chain in chains for protocol in chain)

    def told(self, message: str) -> str:
        """A message of a driver in one line, without what :attr:`shown` hides."""
        for secret in sorted(self._secrets(), key=len, reverse=True):
            message = message.replace(secret, HIDDEN)
        lines = message.strip().splitlines()
        return clean(lines[0], LONGEST) if lines else "no reason given"

    def _secrets(self) -> set[str]:
        """Every part that is not shown, as it stands and decoded."""
        if self.folder is not None:
            return set()
        known = set(re.split(r"[:/@?&=#]+", self.shown))
        hidden = [part for part in re.split(r"[:/@?&=#]+", self.text) if part not in known]
        whole = [part for part in _LINK.split(self.text) if _shown(part) != part]
        logins = [part.partition("://")[2].rpartition("@")[0] for part in whole]
        found = [*hidden, *whole, *logins, *(login.partition(":")[2] for login in logins)]
        return {form for one in found for form in (one, unquote(one)) if len(form) >= LEAST_SECRET}


def parse(text: str) -> Address:
    """An address from the command line. Raises :class:`UsageError`."""
    if not text.strip() or "\0" in text:
        raise UsageError("the address of a history is empty or no address")
    if _TYPING_ERROR.match(text):
        protocol = text.partition(":")[0]
        raise UsageError(f"the address of a history begins with {protocol}:/: write {protocol}://")
    if not _URL.match(text) and "::" not in text:
        return Address(text, _folder(text))
    protocol, _, rest = text.partition("://")
    if protocol.lower() in LOCAL and "::" not in text:
        return Address(text, _folder(rest))
    return Address(text, None)


def given(text: str | None, option: str, variables: Mapping[str, str] | None = None) -> Address:
    """The address that was given, else that of :data:`VARIABLE`. Raises :class:`UsageError`."""
    found = (
        text if text is not None else (os.environ if variables is None else variables).get(VARIABLE)
    )
    if not found:
        raise UsageError(f"which history? Give {option}, or set {VARIABLE}")
    return parse(found)


def _folder(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError as error:  # ~nobody
        raise HistoryError(f"cannot find the history {clean(text)}: {error}") from None


def _shown(part: str) -> str:
    """One address of a chain. Where login or query cannot be told from the rest, nothing of it."""
    protocol, colon, rest = part.partition("://")
    if not colon:
        return HIDDEN if {"@", "?"} & set(part) else part
    head, mark, query = rest.partition("?")
    if "@" in query and "@" not in head:  # a password with a question mark, or a query with a mail
        return f"{protocol}://{HIDDEN}"
    # A secret key may hold slashes: all before the last @ is taken for the login.
    _, at, place = head.rpartition("@")
    place = place.partition("#")[0]
    return f"{protocol}://{HIDDEN + '@' if at else ''}{place}{'?' + HIDDEN if mark else ''}"
