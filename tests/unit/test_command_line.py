"""What the command line makes of a Ctrl-C before a verb began."""

from __future__ import annotations

import pytest

from dlprof import cli

pytestmark = pytest.mark.unit


def interrupted(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("name", "does"),
    [("app", interrupted), ("app", lambda **_: 130), ("_register", interrupted)],
    ids=["typer lets it through", "typer makes a code of it", "while verbs are imported"],
)
def test_it_is_said_that_it_was_interrupted(monkeypatch, capsys, name, does):
    monkeypatch.setattr(cli, "_register", lambda _: None)
    monkeypatch.setattr(cli, "stop_in_order", lambda: None)
    monkeypatch.setattr(cli.streams, "settle", lambda: None)
    monkeypatch.setattr(cli.streams, "finish", lambda: None)
    monkeypatch.setattr(cli, name, does)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "dlprof: interrupted\n"
