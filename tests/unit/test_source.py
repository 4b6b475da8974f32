"""Source text is searched for names."""

from dlprof.text.source import needed


def test_only_what_is_needed_is_imported():
    setup = "import a\nimport b.c as c\ndef d():\n    return a.x"
    assert needed(setup, {"d"}) == "import a\ndef d():\n    return a.x"
