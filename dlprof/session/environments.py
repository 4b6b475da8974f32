"""The environments of a session: what each result was measured in.

The header's own ``environment`` and ``request["python"]`` are those of the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dlprof.session.model import Header, Result, Session


def environment_of(header: Header, result: Result) -> Mapping[str, Any]:
    """What a result was measured in: its own environment, where the session has several."""
    for environment in header.environments:
        if result.environment and environment.get("name") == result.environment:
            return environment
    return header.environment


def environments_of(header: Header) -> Sequence[tuple[str, Mapping[str, Any]]]:
    """All of them with their names; the only one has none."""
    named = [(str(one.get("name") or ""), one) for one in header.environments]
    return named or [("", header.environment)]


def seen_from(session: Session, results: Sequence[int]) -> Session:
    """The session as if the environment of the first of ``results`` were its only one."""
    indices = [index for index in results[:1] if 0 <= index < len(session.results)]
    if not session.environments or not indices:
        return session
    environment = dict(environment_of(session, session.results[indices[0]]))
    request = {**session.request, "python": environment.get("executable")}
    return session.model_copy(update={"environment": environment, "request": request})
