"""Arithmetic of colours for the tests: contrast as in WCAG 2, distance in OKLab, sight with two kinds of cones.

Sources: WCAG 2.2, relative luminance; OKLab by Björn Ottosson; the matrices of Machado, Oliveira and
Fernandes (2009) for severity 1, applied to linear light.
"""

from collections.abc import Iterable
from math import dist
from typing import TypeAlias

Triple: TypeAlias = tuple[float, float, float]
Matrix: TypeAlias = tuple[Triple, Triple, Triple]

SIGHTS: dict[str, Matrix] = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deutan": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritan": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
TO_CONES: Matrix = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
TO_OKLAB: Matrix = (
    (0.2104542553, 0.7936177850, -0.0040720468),
    (1.9779984951, -2.4285922050, 0.4505937099),
    (0.0259040371, 0.7827717662, -0.8086757660),
)


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, 1 to 21."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def least_distance(pairs: Iterable[tuple[str, str]]) -> float:
    """Return the smallest distance (OKLab, times 100) between the colours of any pair under any sight."""
    listed = list(pairs)
    return min(100 * dist(_seen(one, sight), _seen(other, sight)) for sight in SIGHTS.values() for one, other in listed)


def _luminance(colour: str) -> float:
    red, green, blue = _linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(colour: str) -> Triple:
    digits = colour.removeprefix("#")
    full = digits if len(digits) == 6 else "".join(digit * 2 for digit in digits)
    red, green, blue = (int(full[at : at + 2], 16) / 255 for at in (0, 2, 4))
    return _light(red), _light(green), _light(blue)


def _light(share: float) -> float:
    return share / 12.92 if share <= 0.04045 else float(((share + 0.055) / 1.055) ** 2.4)


def _seen(colour: str, sight: Matrix) -> Triple:
    red, green, blue = _times(sight, _linear(colour))
    clipped = (min(1.0, max(0.0, red)), min(1.0, max(0.0, green)), min(1.0, max(0.0, blue)))
    long, middle, short = _times(TO_CONES, clipped)
    return _times(TO_OKLAB, (long ** (1 / 3), middle ** (1 / 3), short ** (1 / 3)))


def _times(matrix: Matrix, vector: Triple) -> Triple:
    first, second, third = (sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix)
    return first, second, third
