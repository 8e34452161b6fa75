"""Kubernetes quantities, exact: "500m", "1.5Gi", "129e6" as fractions, never as floats."""

import re
from collections.abc import Iterable
from fractions import Fraction

DECIMAL_SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 10**3),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
}
BINARY_SUFFIXES = {
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}
# The API server's own bounds: nothing finer than one nano, nothing above a signed 64-bit number.
FINEST = Fraction(1, 10**9)
LARGEST = Fraction(2**63 - 1)
MAX_TEXT = 64

_PATTERN = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))"
    r"(?:[eE](?P<exponent>[+-]?[0-9]{1,3})|(?P<suffix>[numkMGTPE]|[KMGTPE]i)?)"
)


class QuantityError(ValueError):
    """The text is not a Kubernetes quantity, or one that no API server would keep as it is."""


def parse(text: str) -> Fraction:
    """The exact value of a quantity in its base unit (cores, bytes, pieces).

    "1E" is ten to the eighteenth and "1E3" a thousand, as in Kubernetes. Raises QuantityError.
    """
    match = _PATTERN.fullmatch(text) if len(text) <= MAX_TEXT else None
    if match is None:
        raise QuantityError(f"not a Kubernetes quantity: {text[:MAX_TEXT]!r}")
    value = Fraction(match["number"]) * _scale(match["exponent"], match["suffix"] or "")
    if abs(value) > LARGEST:
        raise QuantityError(f"larger than 2^63-1: {text!r}")
    if (value / FINEST).denominator != 1:
        raise QuantityError(f"finer than one nano: {text!r}")
    return value


def millis(text: str) -> int:
    """CPU in thousandths of a core, rounded up as the scheduler of Kubernetes does."""
    return _round_up(parse(text) * 1000)


def whole(text: str) -> int:
    """Bytes or pieces, rounded up as the scheduler of Kubernetes does."""
    return _round_up(parse(text))


def total(texts: Iterable[str]) -> Fraction:
    """The exact sum: "100m" and "200m" make 3/10, with no rounding on the way."""
    return sum((parse(text) for text in texts), start=Fraction(0))


def canonical(value: Fraction, *, binary: bool = False) -> str:
    """The shortest text that `parse` reads back as exactly this value: "300m", "16Gi" (binary), "2k".

    Raises QuantityError for values that have no exact text (finer than one nano).
    """
    suffixes = BINARY_SUFFIXES if binary else DECIMAL_SUFFIXES
    for suffix, scale in sorted(suffixes.items(), key=lambda item: item[1], reverse=True):
        if value and (value / scale).denominator == 1:
            return f"{value / scale}{suffix}"
    if value.denominator == 1:
        return str(value.numerator)
    if binary:
        return canonical(value)
    raise QuantityError(f"finer than one nano: {value}")


def _scale(exponent: str | None, suffix: str) -> Fraction:
    if exponent is not None:
        return Fraction(10) ** int(exponent)
    return DECIMAL_SUFFIXES.get(suffix) or BINARY_SUFFIXES[suffix]


def _round_up(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)
