"""Make text public: without what says who and where its author is, and harmless in Markdown.

Home folders, absolute paths, user and host names, mail addresses, values of secret environment
variables, and what looks like a token are taken out. Names that a text about arrays needs
(``numpy``, ``root`` in prose) are never taken for those of a user.
"""

from __future__ import annotations

import builtins
import getpass
import keyword
import re
import socket
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dlprof.text.clean import clean

LEAST_NAME = 3
LEAST_SECRET = 6
ORDINARY = frozenset(
    (
        *("root", "user", "users", "admin", "test", "tests", "dev", "guest", "nobody", "ubuntu"),
        *("debian", "runner", "build", "home", "local", "localhost", "host", "linux", "python"),
        *("numpy", "torch", "jax", "tensorflow", "cupy", "numba", "onnxruntime", "dlprof", "cuda"),
        *("cpu", "array", "float", "copy", "view", "main", "work", "none", "true", "false", "data"),
    )
)
"""Names of users and hosts that are words as well: they stay, they tell nothing."""

PYTHON = frozenset(
    name.lower() for name in (*keyword.kwlist, *dir(builtins), *sys.stdlib_module_names)
)
"""Without these a script is no longer one."""

SECRET = re.compile(
    r"TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE", re.IGNORECASE
)
PACKAGES = re.compile(r"(?:site|dist)-packages/(?P<rest>\S*)")
PART = r"[^\s/\\'\"`<>|:;,()\[\]{}]"
PATH = re.compile(rf"(?:(?<![\w/.~>-])|(?<=-[LI]))(?:file://)?/(?:{PART}+/)+{PART}*")
IN_TRACEBACK = re.compile(r'(?<=File ")(?:file://)?/[^"\n]*/[^"/\n]*(?=")')
"""A path between quotes may have blanks."""
WINDOWS = re.compile(rf"\b[A-Za-z]:\\(?:{PART}+\\)*{PART}*")
HOME = re.compile(rf"(?:/home|/Users|/export/home)/{PART}+|/root(?=/|\b)")
MAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
LOGIN = re.compile(r"(?<=://)[^\s/@]{1,256}@")
TOKEN = re.compile(
    r"\b(?:gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|hf_\w{20,}|sk-[\w-]{16,}"
    r"|xox[abprs]-[\w-]{10,}|AKIA[0-9A-Z]{12,}|(?<![\w-])eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*)"
)


@dataclass(frozen=True)
class Surroundings:
    """Who and where this process is."""

    homes: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()


def surroundings(variables: Mapping[str, str]) -> Surroundings:
    """What this process knows of its user and machine; ``variables`` are those of its environment.

    A session that was written elsewhere names other people: what looks like a home folder is
    redacted wherever it comes from.
    """
    homes = {variables.get("HOME", ""), _or_empty(lambda: str(Path.home()))}
    homes = {home.rstrip("/") for home in homes if len(home.rstrip("/")) > 1}
    users = {variables.get("USER", ""), variables.get("LOGNAME", ""), _or_empty(getpass.getuser)}
    users |= {Path(home).name for home in homes}
    hosts = {_or_empty(socket.gethostname), variables.get("HOSTNAME", "")}
    hosts |= {host.partition(".")[0] for host in hosts}
    secrets = [value for name, value in variables.items() if SECRET.search(name)]
    return Surroundings(
        tuple(homes),
        _telling(users),
        _telling(hosts),
        tuple(value for value in secrets if len(value) >= LEAST_SECRET),
    )


def _telling(names: Iterable[str]) -> tuple[str, ...]:
    words = ORDINARY | PYTHON
    return tuple(name for name in names if len(name) >= LEAST_NAME and name.lower() not in words)


def _or_empty(answer: Callable[[], str]) -> str:
    try:
        return answer()
    except (OSError, KeyError, RuntimeError, ImportError):
        return ""


@dataclass
class Redactor:
    """Redacts text after text, and keeps a count of what it took out, by (before, after)."""

    surroundings: Surroundings
    removed: dict[tuple[str, str], int] = field(default_factory=dict)

    def __call__(self, text: str) -> str:
        """``text`` without what is private."""
        here = self.surroundings
        for secret in _longest_first(here.secrets):
            text = self._sub(re.escape(secret), "<secret>", text)
        text = self._sub(TOKEN, "<secret>", text)
        text = self._sub(LOGIN, "<login>@", text)
        text = self._sub(MAIL, "<mail>", text)
        text = self._sub(IN_TRACEBACK, _shortened, text)
        for home in _longest_first(here.homes):
            text = self._sub(rf"{re.escape(home)}(?![\w-]|\.\w)", "~", text)
        text = self._sub(HOME, "~", text)
        text = self._sub(rf"~(?:/{PART}*)+", _shortened, text)
        text = self._sub(PATH, _shortened, text)
        text = self._sub(WINDOWS, "<path>", text)
        for host in _longest_first(here.hosts):
            text = self._sub(rf"(?<![\w-]){re.escape(host)}(?![\w-])", "<host>", text)
        for user in _longest_first(here.users):
            text = self._sub(rf"(?<!\w){re.escape(user)}(?!\w)", "<user>", text)
        return text

    def report(self) -> list[str]:
        """One line for each thing that was taken out."""
        return [
            f"removed {count} time{'' if count == 1 else 's'}: {clean(before)} -> {clean(after)}"
            for (before, after), count in self.removed.items()
        ] or ["nothing private was found"]

    def _sub(
        self,
        pattern: str | re.Pattern[str],
        instead: str | Callable[[re.Match[str]], str],
        text: str,
    ) -> str:
        def replaced(match: re.Match[str]) -> str:
            after = instead if isinstance(instead, str) else instead(match)
            if after != match[0]:
                key = match[0], after
                self.removed[key] = self.removed.get(key, 0) + 1
            return after

        return re.sub(pattern, replaced, text)


def _longest_first(words: Iterable[str]) -> list[str]:
    return sorted(words, key=len, reverse=True)


def _shortened(match: re.Match[str]) -> str:
    """What of a path helps a reader: its end within installed packages, else its last part."""
    path = match[0].removeprefix("file://").rstrip("/")
    inside = PACKAGES.search(path)
    if inside is not None:
        return f"<path>/site-packages/{inside['rest']}"
    system = ("/proc/", "/dev/", "/sys/")
    if path.startswith(system):  # the same everywhere
        return match[0]
    return f"<path>/{path.rpartition('/')[2]}"


FENCE = re.compile(r"`{3,}")
MOST = 200_000
"""Characters of a text that are looked through for what is private: no ticket shows as many."""
MARKS = re.compile(r"([\\`*_{}\[\]<>#!|~@&])")
ENTITIES = {"@": "&#64;", "#": "&#35;", "<": "&lt;", ">": "&gt;", "&": "&amp;"}
"""An entity keeps GitHub from a mention or an issue's number; a backslash does not."""


@dataclass(frozen=True)
class Markdown:
    """Text from outside in Markdown: shown as it is, never run, linked, or read as a mention.

    Every text is redacted first: escapes would hide what is private, and a cut would leave half.
    """

    redact: Callable[[str], str]

    def code(self, text: str, longest: int = 300) -> str:
        """One line of code."""
        shown = clean(self.redact(text[:MOST]), longest)
        longest_run = max((len(run) for run in re.findall(r"`+", shown)), default=0)
        ticks = "`" * (longest_run + 1)
        pad = " " if shown[:1] in ("`", " ", "") or shown[-1:] in ("`", " ") else ""
        return f"{ticks}{pad}{shown}{pad}{ticks}"

    def block(self, text: str, language: str = "") -> str:
        """Lines of code or output; the fence is longer than any within."""
        text = self.redact(text[:MOST])
        lines = [clean(line, len(text)) for line in text.expandtabs().split("\n")]
        longest = max((len(run) for run in FENCE.findall(text)), default=2)
        fence = "`" * max(3, longest + 1)
        return "\n".join((f"{fence}{language}", *lines, fence))

    def prose(self, text: str, longest: int = 1500) -> str:
        """A sentence in which nothing means anything to Markdown or HTML."""
        shown = clean(self.redact(text[:MOST]), longest)
        return MARKS.sub(lambda match: ENTITIES.get(match[0], f"\\{match[0]}"), shown)
