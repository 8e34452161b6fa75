"""Kubernetes quantities are read and written without losing a bit."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusters import quantities
from clusters.quantities import QuantityError

READ = {
    "129e6": 129_000_000,
    "128974848": 128_974_848,
    "129M": 129_000_000,
    "128974848000m": 128_974_848,
    "123Mi": 128_974_848,
    "1e3": 1000,
    "1E3": 1000,
    "1E": 10**18,
    "1Ei": 2**60,
    ".5": Fraction(1, 2),
    "5.": 5,
    "+1": 1,
    "-1": -1,
    "1k": 1000,
    "0.1": Fraction(1, 10),
    "1e-3": Fraction(1, 1000),
    "7n": Fraction(7, 10**9),
    "0": 0,
}
REFUSED = [
    "1K", "1gi", "1 Gi", "1_000", "0x10", "\uff11", "", " 1", "1 ", "1\n", ".", "+", "1.2.3", "1e", "e3",
    "1Gi2", "1mi", "٣", "NaN", "inf", "1e999", "0.5n", "8Ei", "1" * 65, "1e9999999999", "--1", "1,5",
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), READ.items())
def test_a_quantity_is_read_exactly(text: str, value: Fraction) -> None:
    assert quantities.parse(text) == value


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(QuantityError):
        quantities.parse(text)


def test_a_tenth_and_two_tenths_of_a_core_are_three_hundred_milli() -> None:
    assert quantities.canonical(quantities.total(["0.1", "0.2"])) == "300m"


def test_fractions_of_a_milli_and_of_a_byte_are_rounded_up() -> None:
    assert quantities.millis("100500u") == 101
    assert quantities.whole("1500m") == 2
    assert quantities.whole("-1500m") == -1


@pytest.mark.parametrize(
    ("value", "binary", "text"),
    [
        (Fraction(16 * 2**30), True, "16Gi"),
        (Fraction(16 * 10**9), False, "16G"),
        (Fraction(1000), True, "1000"),
        (Fraction(0), False, "0"),
        (Fraction(1, 2), True, "500m"),
    ],
)
def test_the_shortest_exact_text_is_written(value: Fraction, *, binary: bool, text: str) -> None:
    assert quantities.canonical(value, binary=binary) == text


def test_a_value_without_an_exact_text_is_refused() -> None:
    with pytest.raises(QuantityError):
        quantities.canonical(Fraction(1, 3))


@given(number=st.integers(-(2**63) + 1, 2**63 - 1), power=st.integers(0, 9), binary=st.booleans())
@settings(deadline=None)
def test_writing_and_reading_a_value_changes_nothing(number: int, power: int, *, binary: bool) -> None:
    value = Fraction(number, 10**power)
    assert quantities.parse(quantities.canonical(value, binary=binary)) == value


@given(st.text(max_size=70))
@settings(deadline=None)
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        quantities.parse(text)
    except QuantityError:
        return
    assert text.isascii()
