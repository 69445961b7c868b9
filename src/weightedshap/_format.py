"""Format numbers, shares, changes and texts for readers: 207,327 · 13.6 % smaller · 1 row.

Prints, figures, the report and the command line all write numbers with these functions, and nothing
of the package is imported here. A minus is the sign −, thousands are separated by commas, and NaN
is written "?".
"""

import math

import numpy as np
import numpy.typing as npt

# Absolute values outside these limits are written with a power of ten.
SMALLEST = 1e-4
LARGEST = 1e15


def number(value: float, digits: int = 4, sign: bool = False) -> str:
    """Format a number to `digits` significant digits, integers in full: 0.0432, 207,327, −3.

    Very large and very small numbers get a power of ten. `sign` writes a plus before positive ones.
    """
    if math.isnan(value):
        return "?"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"

    if value and not SMALLEST <= abs(value) < LARGEST:
        mantissa, exponent = f"{value:.{max(digits - 2, 0)}e}".split("e")
        text = f"{_without_trailing_zeros(mantissa)}e{int(exponent)}"
    else:
        # Adding 0.0 turns −0.0 into 0.
        text = _without_trailing_zeros(f"{value + 0.0:,.{_decimals(value, digits)}f}")
    plus = "+" if sign and value > 0 else ""
    return (plus + text).replace("-", "−")


def _without_trailing_zeros(text: str) -> str:
    """Remove the zeros at the end of the decimals from a number written as text."""
    return text.rstrip("0").rstrip(".") if "." in text else text


def _decimals(value: float, digits: int) -> int:
    """Return the number of decimals that show `digits` significant digits of a value."""
    magnitude = math.floor(math.log10(abs(value))) if value else 0
    return max(0, digits - 1 - magnitude)


def _fixed(value: float, decimals: int) -> str:
    """Format a number with exactly `decimals` decimals."""
    return f"{round(value, decimals) + 0.0:,.{decimals}f}".replace("-", "−")


def with_margin(value: float, margin: float, digits: int = 4) -> str:
    """Format a number and its margin of error: ``0.123 ± 0.004``.

    The two numbers get as many decimals as the first two digits of the margin need. A margin of 0
    is left out; if it is unknown (NaN), the number has `digits` digits, followed by ``± ?``.
    """
    if margin == 0:
        return number(value, digits)
    # Unknown, negative, tiny and huge margins have no decimals that the number could share.
    if not SMALLEST <= margin < LARGEST or not math.isfinite(value):
        return f"{number(value, digits)} ± {number(margin, 2)}"
    decimals = _decimals(margin, 2)
    return f"{_fixed(value, decimals)} ± {_fixed(margin, decimals)}"


def percent(share: float, digits: int = 0) -> str:
    """Format a fraction of 1 as a percentage with `digits` decimals: ``14 %``.

    A fraction that would be rounded to 0 or 100 % is written ``< 1 %`` or ``> 99 %``.
    """
    if not math.isfinite(share):
        return "? %"
    text = _fixed(100 * share, digits)
    least = 10.0**-digits
    if 0 < share < 1:
        if float(text) == 0:
            return f"< {_fixed(least, digits)} %"
        if float(text) == 100:
            return f"> {_fixed(100 - least, digits)} %"
    return f"{text} %"


def percents(shares: npt.ArrayLike) -> list[str]:
    """Format fractions that sum to 1 as whole percentages that sum to 100.

    All fractions are rounded down; then those with the largest remainders are raised by one, as
    many as are missing.
    """
    exact = 100 * np.asarray(shares, dtype=np.float64)
    # A share such as 0.29 is 28.999…96 % in floating point and must not be cut to 28.
    whole = np.floor(exact + 1e-9)
    n_missing = max(0, round(float(exact.sum() - whole.sum())))
    most_lost_first = np.argsort(-(exact - whole), kind="stable")
    whole[most_lost_first[:n_missing]] += 1
    return [f"{part:.0f} %" for part in whole]


def format_change(
    change: float, less: str = "smaller", more: str = "larger", digits: int = 1
) -> str:
    """Format a relative change in words: −0.136 is ``13.6 % smaller``.

    `less` and `more` are the words for a decrease and an increase. A change that is rounded to 0 is
    ``the same``.
    """
    if not math.isfinite(change):
        return "not comparable"
    if round(100 * change, digits) == 0:
        return "the same"
    return f"{percent(abs(change), digits)} {less if change < 0 else more}"


def plural(count: int, word: str, words: str | None = None) -> str:
    """Format a count with its noun: ``1 row``, ``1,200 rows``; `words` is an irregular plural."""
    if count == 1:
        return f"{count:,} {word}"
    return f"{count:,} {words or word + 's'}"


def quote(value: object, most: int = 80) -> str:
    """Format a value with ``repr``; shorten a string of more than `most` characters.

    The full length of the string is written after the cut.
    """
    if isinstance(value, str) and len(value) > most:
        return f"{value[:most]!r}… ({len(value):,} characters)"
    return repr(value)
