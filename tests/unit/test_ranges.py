"""Shapes as ranges: powers of two."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlprof.errors import UsageError
from dlprof.plan.axes import parse_shape, parse_shapes

pytestmark = pytest.mark.unit


def test_a_range_is_every_power_of_two():
    assert parse_shapes("1Ki..8Ki") == ((1024,), (2048,), (4096,), (8192,))


def test_a_range_may_skip_some():
    assert parse_shapes("1Ki..1Gi by 1024") == ((2**10,), (2**20,), (2**30,))


def test_a_range_that_begins_at_its_end_is_one_shape():
    assert parse_shapes("16..16") == ((16,),)


def test_what_is_no_range_is_one_shape():
    assert parse_shapes("4x4") == ((4, 4),)


def test_lengths_may_have_binary_prefixes():
    assert parse_shape("4Kix2Mi") == (4096, 2 * 2**20)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("8..4", "is empty"),
        ("1000..4096", "powers of two"),
        ("0..4", "powers of two"),
        ("4..8 by 3", "powers of two"),
        ("4..8 by 1", "is not like"),
        ("4x4..8x8", "is not like"),
        ("..", "is not like"),
        ("4..8..16", "is not like"),
        ("4..", "is not like"),
        ("1..16777216Ti", "memory has addresses"),
    ],
)
def test_another_range_is_refused_in_words(text, reason):
    with pytest.raises(UsageError, match=reason):
        parse_shapes(text)


@given(st.text(alphabet="0123456789KiMGx. by"))
def test_any_text_gives_shapes_or_is_refused(text):
    with suppress(UsageError):
        assert parse_shapes(text)
