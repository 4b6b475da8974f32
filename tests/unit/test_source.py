"""Source text is laid out and searched for names."""

import pytest

from dlprof.errors import NoReproducer
from dlprof.text.source import needed, plain


def test_what_is_not_python_is_refused_in_words():
    with pytest.raises(NoReproducer, match="not Python"):
        plain("x = (")


def test_only_what_is_needed_is_imported():
    setup = "import a\nimport b.c as c\ndef d():\n    return a.x"
    assert needed(setup, {"d"}) == "import a\ndef d():\n    return a.x"
