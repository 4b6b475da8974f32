"""Add sessions to a history, and read it back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dlprof.errors import HistoryError
from dlprof.history.entry import MAJOR as OURS
from dlprof.history.entry import NAME, SCHEMA, Entry, Foreign, Newer, decode, encode
from dlprof.history.folder import Folder
from dlprof.history.machine import machine_of
from dlprof.text.clean import clean


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
    """Add entries; those that are there stay as they are. Raises :class:`HistoryError`, also where
    the file of one is there and cannot be read.
    """
    names = folder.names()
    _check_names(folder, names or ())
    known = {match[3]: match[0] for match in map(NAME.fullmatch, names or ()) if match}
    done: list[Added] = []
    for entry in entries:
        new = entry.id not in known and folder.create(entry.name, encode(entry))
        if entry.id in known:
            _check_whole(folder, known[entry.id])
        known.setdefault(entry.id, entry.name)
        # Others may add at the same time: only one of them can be the only one that is there.
        first = new and not names and not done and folder.names() == [entry.name]
        done.append(Added(entry, new, first))
    return done


def _check_whole(folder: Folder, name: str) -> None:
    try:
        decode(folder.read(name))
    except Newer as error:
        raise _newer(folder, name, str(error)) from None
    except Foreign as error:
        raise HistoryError(
            f"the history {folder.address.shown} has this measurement in {clean(name)}, and "
            f"{error}: take that file away and add the session again"
        ) from None


def read(folder: Folder, last: int | None = None) -> History:
    """All sessions, or the ``last`` ones that can be read. One that was added before and after
    ``--resume`` counts once.

    Raises :class:`HistoryError` for no history, for one of which no file can be read, and for one
    that a newer major version writes: a trend that ends where it began is worse than none.
    """
    names = folder.names()
    if names is None:
        raise HistoryError(f"there is no history at {folder.address.shown}")
    _check_names(folder, names)
    ours = sorted((name for name in names if NAME.fullmatch(name)), key=_time, reverse=True)
    others = [name for name in names if not NAME.fullmatch(name)]
    reader = _Reader(folder)
    for name in others:
        reader.read(name)
    renamed, looked_at, at = len(reader.entries), 0, ""
    for name in ours:
        # A session and the same one, finished later, are of one time.
        if last is not None and _time(name)[0] != at and reader.holds(renamed + last):
            break
        at = _time(name)[0]
        looked_at += 1
        reader.read(name)
    found = _whole(reader.entries)
    if not found and reader.unread and not reader.foreign:
        raise reader.unread[0]
    kept = found if last is None else found[-last:]
    return History(tuple(kept), tuple(sorted(reader.ignored)), len(ours) - looked_at)


@dataclass
class _Reader:
    """Reads files one by one. ``ignored`` are those that are no entries, with the reason:
    ``unread`` are the errors of those that could not be read, ``foreign`` counts the others.
    """

    folder: Folder
    entries: dict[str, Entry] = field(default_factory=dict)
    ignored: list[tuple[str, str]] = field(default_factory=list)
    unread: list[HistoryError] = field(default_factory=list)
    foreign: int = 0

    def holds(self, count: int) -> bool:
        return len(self.entries) >= count and len(_whole(self.entries)) >= count

    def read(self, name: str) -> None:
        try:
            entry = decode(self.folder.read(name))
        except Newer as error:
            raise _newer(self.folder, name, str(error)) from None
        except HistoryError as error:
            self.unread.append(error)
            self.ignored.append((clean(name), str(error)))
        except Foreign as error:
            self.foreign += 1
            self.ignored.append((clean(name), str(error)))
        else:
            self.entries.setdefault(entry.id, entry)


def _whole(entries: Mapping[str, Entry]) -> list[Entry]:
    """The entries in order of time, without those that were finished later and are there so too."""
    finished = {_begun(entry) for entry in entries.values() if entry.session.complete}
    kept = [
        entry
        for entry in entries.values()
        if entry.session.complete or _begun(entry) not in finished
    ]
    return sorted(kept, key=lambda entry: (entry.created, entry.id))


def _begun(entry: Entry) -> tuple[object, ...]:
    """What a session and the same one, finished with ``--resume``, have in common."""
    session = entry.session
    asked = [repr(session.request.get(name)) for name in ("pairs", "axes", "globs", "python")]
    return (entry.created, session.seed, *asked, machine_of(session.environment))


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
