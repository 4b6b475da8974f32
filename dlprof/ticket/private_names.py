"""Take the home folder, the user's name and the machine's name out of a text."""

from __future__ import annotations

import os
import re
import socket

KEPT = frozenset(("root", "user", "ubuntu", "runner", "localhost"))
"""Names of users and hosts that are the same everywhere."""
LEAST_LETTERS = 3


def without_names(text: str) -> str:
    """Return ``text`` with ``~``, ``<user>`` and ``<host>`` for the names of this machine."""
    home, host = os.path.expanduser("~"), socket.gethostname()  # noqa: PTH111 - never raises
    user = os.environ.get("USER") or os.path.basename(home)  # noqa: PTH119
    words = {home: "~", host: "<host>", host.partition(".")[0]: "<host>", user: "<user>"}
    for name, word in words.items():
        if len(name) >= LEAST_LETTERS and name not in KEPT:
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", word, text)
    return text
