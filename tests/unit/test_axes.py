"""Shapes, dtypes and layouts read from text."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dlprof.errors import UsageError
from dlprof.plan.axes import MOST_AXES, parse_dtype, parse_layout, parse_shape, shape_text, split
from dlprof.probes.base import DTYPES, LAYOUTS

pytestmark = pytest.mark.unit

lengths = st.integers(min_value=0, max_value=2**20)


def refusal(parse, text):
    """The one sentence that a text is refused with."""
    with pytest.raises(UsageError) as caught:
        parse(text)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    return message


@given(st.lists(lengths, max_size=MOST_AXES))
def test_every_shape_survives_being_written_and_read(shape):
    assume(math.prod(max(length, 1) for length in shape) < 2**50)
    assert parse_shape(shape_text(shape)) == tuple(shape)


@given(st.text(max_size=40))
def test_any_text_is_a_shape_or_is_refused_in_one_sentence(text):
    try:
        shape = parse_shape(text)
    except UsageError as refused:
        assert len(str(refused).splitlines()) == 1  # noqa: PT017 - most texts are refused
    else:
        assert parse_shape(shape_text(shape)) == shape


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("4096x4096", (4096, 4096)),
        ("1048576", (1048576,)),
        ("0", (0,)),
        ("2x0x3", (2, 0, 3)),
        ("0x10", (0, 10)),
        ("scalar", ()),
        (" 4X4 ", (4, 4)),
        ("SCALAR", ()),
        ("007", (7,)),
        ("x".join("1" * MOST_AXES), (1,) * MOST_AXES),
    ],
)
def test_a_shape_is_lengths_with_x_between(text, shape):
    assert parse_shape(text) == shape


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "x",
        "4x",
        "x4",
        "4xx4",
        "4,4",
        "4*4",
        "-1",
        "+4",
        "4.0",
        "1e6",
        "4 x 4",
        "a",
        "(4, 4)",
        "\u0663x\u0663",
        "\u00b2",
        "\uff14",
        "4\n4",
        "4\u00d74",
        "1_000",
    ],
)
def test_a_text_that_is_no_shape_is_told_what_a_shape_is_like(text):
    assert "is not like 4096x4096, 1048576, 0 or scalar" in refusal(parse_shape, text)


def test_a_shape_has_no_more_axes_than_can_be_measured():
    assert "has 33 axes; at most 32" in refusal(parse_shape, "x".join("1" * (MOST_AXES + 1)))


@pytest.mark.parametrize("text", ["9" * 30, "99999999999x99999999999", f"0x{2**63}", "9" * 1000])
def test_a_shape_has_no_more_elements_than_memory_has_addresses(text):
    assert "more elements than memory has addresses" in refusal(parse_shape, text)


def test_a_number_too_long_for_python_is_refused_by_its_length():
    message = refusal(parse_shape, "9" * 10_000)
    assert message == "shape of 10000 characters is too long"


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_is_known_by_its_name_in_any_case(name):
    assert parse_dtype(f" {name.upper()} ") == name


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_is_known_by_its_name_in_any_case(name):
    assert parse_layout(name.lower()) == name


@pytest.mark.parametrize(
    ("parse", "text", "near"),
    [
        (parse_dtype, "flaot32", "float32"),
        (parse_dtype, "bf16loat", "bfloat16"),
        (parse_dtype, "Int33", "int32"),
        (parse_layout, "stride", "strided"),
        (parse_layout, "read-only", "readonly"),
        (parse_layout, "BROADCASTED", "broadcast"),
    ],
)
def test_a_misspelled_name_is_answered_with_the_nearest_one(parse, text, near):
    assert refusal(parse, text).endswith(f"did you mean {near!r}?")


@pytest.mark.parametrize(("parse", "known"), [(parse_dtype, DTYPES), (parse_layout, LAYOUTS)])
def test_a_name_near_to_none_is_answered_with_all_of_them(parse, known):
    assert refusal(parse, "qqq").endswith(f"known are {', '.join(known)}")


@given(st.text(max_size=40))
def test_any_text_is_a_dtype_or_is_refused_in_one_sentence(text):
    assume(text.strip().lower() not in DTYPES)
    assert refusal(parse_dtype, text)


def test_options_are_repeated_or_separated_by_commas():
    assert split(["4x4,8", "scalar"]) == ["4x4", "8", "scalar"]


def test_nothing_between_commas_is_no_option():
    assert split([",4x4,, ,"]) == ["4x4"]
