"""Add sessions to a history, and read it back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dlprof.clean import clean
from dlprof.errors import HistoryError
from dlprof.history.entry import MAJOR as OURS
from dlprof.history.entry import NAME, SCHEMA, Entry, Foreign, Newer, decode, encode
from dlprof.history.folder import Folder


@dataclass(frozen=True)
class History:
    """Sessions in order of time. ``ignored``: files that are none, and why."""

    entries: tuple[Entry, ...]
    ignored: tuple[tuple[str, str], ...] = ()
    left_out: int = 0
    """Older sessions that were not asked for."""


@dataclass(frozen=True)
class Added:
    """``new`` is false where the measurement was there, ``first`` where nothing was."""

    entry: Entry
    new: bool
    first: bool


def add(folder: Folder, entries: Sequence[Entry]) -> list[Added]:
    """Add entries; those that are there stay as they are. Raises :class:`HistoryError`."""
    names = folder.names()
    _check_names(folder, names or ())
    known = {match[3] for match in map(NAME.fullmatch, names or ()) if match}
    done: list[Added] = []
    for entry in entries:
        new = entry.id not in known and folder.create(entry.name, encode(entry))
        known.add(entry.id)
        # Others may add at the same time: only one of them can be the only one that is there.
        first = new and not names and not done and folder.names() == [entry.name]
        done.append(Added(entry, new, first))
    return done


def read(folder: Folder, last: int | None = None) -> History:
    """All sessions, or the ``last`` ones. Raises :class:`HistoryError` for no history, and for one
    that a newer major version writes: a trend that ends where it began is worse than none.
    """
    names = folder.names()
    if names is None:
        raise HistoryError(f"there is no history at {folder.address.shown}")
    _check_names(folder, names)
    ours = sorted((name for name in names if NAME.fullmatch(name)), key=_time)
    others = [name for name in names if not NAME.fullmatch(name)]
    wanted = ours if last is None else ours[-last:]
    entries: dict[str, Entry] = {}
    ignored: list[tuple[str, str]] = []
    for name in (*wanted, *others):
        try:
            entry = decode(folder.read(name))
        except Newer as error:
            raise _newer(folder, name, str(error)) from None
        except (Foreign, HistoryError) as error:
            ignored.append((clean(name), str(error)))
        else:
            entries.setdefault(entry.id, entry)
    found = sorted(entries.values(), key=lambda entry: (entry.created, entry.id))
    kept = found if last is None else found[-last:]
    return History(tuple(kept), tuple(ignored), len(ours) - len(wanted))


def _time(name: str) -> tuple[str, str]:
    match = NAME.fullmatch(name)
    return (match[2], match[3]) if match else ("", name)


def _check_names(folder: Folder, names: Sequence[str]) -> None:
    for name in names:
        match = NAME.fullmatch(name)
        if match and int(match[1]) > OURS:
            raise _newer(folder, name, f"a newer dlprof wrote it; this one knows {SCHEMA}")


def _newer(folder: Folder, name: str, why: str) -> HistoryError:
    return HistoryError(f"cannot use the history {folder.address.shown}: {clean(name)}: {why}")
