"""``dlprof explain``."""

from __future__ import annotations

from typing import Annotated

import typer


def explain(
    rule: Annotated[
        str | None, typer.Argument(help="An id or a name: DLP003 or unordered.")
    ] = None,
) -> None:
    """Explain a rule: what it finds, how dlprof knows, and what to do. Lists all without one."""
    from dlprof.cli.show import colour, say, text_of
    from dlprof.rules import RULES
    from dlprof.rules.pages import index, page

    if rule is None:
        say("".join(f"{found.id}  {found.name:<20}{index(found.id)}\n" for found in RULES))
        return
    text = page(rule)
    if not colour():
        say(text)
        return
    from rich.markdown import Markdown

    say(text_of(Markdown(text)))
