"""One finding as a bug ticket in Markdown: what is wrong, how sure, how to see it, what to do."""

from __future__ import annotations

from dlprof.evidence.ticket.run import Ran, run
from dlprof.evidence.ticket.text import LIMIT, ticket

__all__ = ["LIMIT", "Ran", "run", "ticket"]
