"""The public surface, and what importing it loads."""

import pytest

import dlprof


@pytest.mark.parametrize("name", dlprof.__all__)
def test_every_public_name_is_there(name):
    assert getattr(dlprof, name) is not None


def test_another_name_is_answered_with_an_attribute_error():
    with pytest.raises(AttributeError, match="'other'"):
        dlprof.other  # noqa: B018 - the access is the test
