"""Make text public: without what says who and where its author is.

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
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dlprof.text.clean import clean

LEAST_NAME, LEAST_SECRET = 3, 6
"""Characters of a name, and of a secret: shorter ones are parts of words."""
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
HOME = re.compile(rf"(?:/home|/Users|/export/home)/{PART}+|/root(?=/|\b)")
BELOW_HOME = re.compile(rf"~(?:/{PART}*)+")
MAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
LOGIN = re.compile(r"(?<=://)[^\s/@]{1,256}@")
TOKEN = re.compile(
    r"\b(?:gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|hf_\w{20,}|sk-[\w-]{16,}"
    r"|xox[abprs]-[\w-]{10,}|AKIA[0-9A-Z]{12,}|(?<![\w-])eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*)"
)
Instead = str | Callable[[re.Match[str]], str]


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
    homes = {home.rstrip("/") for home in (variables.get("HOME", ""), _or_empty(_home)) if home}
    homes -= {""}
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


def _home() -> str:
    return str(Path.home())


def _or_empty(answer: Callable[[], str]) -> str:
    try:
        return answer()
    except (OSError, KeyError, RuntimeError, ImportError):
        return ""


def _telling(names: Iterable[str]) -> tuple[str, ...]:
    words = ORDINARY | PYTHON
    return tuple(name for name in names if len(name) >= LEAST_NAME and name.lower() not in words)


@dataclass
class Redactor:
    """Redacts text after text, and keeps a count of what it took out, by (before, after)."""

    surroundings: Surroundings
    removed: dict[tuple[str, str], int] = field(default_factory=dict)

    def __call__(self, text: str) -> str:
        """``text`` without what is private."""
        for pattern, instead in self._patterns():
            text = re.sub(pattern, lambda match, by=instead: self._replaced(match, by), text)
        return text

    def _patterns(self) -> Iterator[tuple[str | re.Pattern[str], Instead]]:
        """In this order: what is whole must go before a part of it would."""
        here = self.surroundings
        yield from ((re.escape(one), "<secret>") for one in _longest_first(here.secrets))
        yield TOKEN, "<secret>"
        yield LOGIN, "<login>@"
        yield MAIL, "<mail>"
        yield IN_TRACEBACK, _shortened
        yield from ((rf"{re.escape(one)}(?![\w-]|\.\w)", "~") for one in _longest_first(here.homes))
        yield HOME, "~"
        yield BELOW_HOME, _shortened
        yield PATH, _shortened
        for word, names in (("<host>", here.hosts), ("<user>", here.users)):
            for name in _longest_first(names):
                yield rf"(?<!\w){re.escape(name)}(?!\w)", word

    def _replaced(self, match: re.Match[str], instead: Instead) -> str:
        after = instead if isinstance(instead, str) else instead(match)
        if after != match[0]:
            key = match[0], after
            self.removed[key] = self.removed.get(key, 0) + 1
        return after

    def report(self) -> list[str]:
        """One line for each thing that was taken out."""
        return [
            f"removed {count} time{'' if count == 1 else 's'}: {clean(before)} -> {clean(after)}"
            for (before, after), count in self.removed.items()
        ] or ["nothing private was found"]


def _longest_first(words: Iterable[str]) -> list[str]:
    return sorted(words, key=len, reverse=True)


def _shortened(match: re.Match[str]) -> str:
    """What of a path helps a reader: its end within installed packages, else its last part."""
    path = match[0].removeprefix("file://").rstrip("/")
    if path.startswith(("/proc/", "/dev/", "/sys/")):  # the same everywhere
        return match[0]
    inside = PACKAGES.search(path)
    if inside is not None:
        return f"<path>/site-packages/{inside['rest']}"
    return f"<path>/{path.rpartition('/')[2]}"
