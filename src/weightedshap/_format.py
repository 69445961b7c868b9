"""Numbers as people write them, in prints, figures, report and command line: 207,327 · 13.6 %
smaller · 1 row."""

import math

import numpy as np
import numpy.typing as npt

SMALLEST = 1e-4
LARGEST = 1e15  # sizes outside are written with a power of ten


def number(value: float, digits: int = 4, sign: bool = False) -> str:
    """A number to so many digits, the whole ones in full: 0.0432, 207,327, −3; a power of ten if
    tiny or huge."""
    if not math.isfinite(value):
        return "?" if math.isnan(value) else "∞" if value > 0 else "−∞"
    if value and not SMALLEST <= abs(value) < LARGEST:
        front, power = f"{value:.{max(digits - 2, 0)}e}".split("e")
        text = f"{_trimmed(front)}e{int(power)}"
    else:
        text = _trimmed(f"{value + 0.0:,.{_places(value, digits)}f}")
    return (("+" if sign and value > 0 else "") + text).replace("-", "−")


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _places(value: float, digits: int) -> int:
    """Decimals that show so many digits of a value."""
    return max(0, digits - 1 - (math.floor(math.log10(abs(value))) if value else 0))


def _at(value: float, places: int) -> str:
    return f"{round(value, places) + 0.0:,.{places}f}".replace("-", "−")


def with_margin(value: float, margin: float, digits: int = 4) -> str:
    """``0.123 ± 0.004``, to the first two digits of the margin; ``0.1234 ± ?`` where that is
    unknown."""
    if not math.isfinite(margin) or margin <= 0 or not math.isfinite(value):
        return number(value, digits) + ("" if margin == 0 else f" ± {number(margin, 2)}")
    if not SMALLEST <= margin < LARGEST:
        return f"{number(value, digits)} ± {number(margin, 2)}"
    places = _places(margin, 2)
    return f"{_at(value, places)} ± {_at(margin, places)}"


def percent(share: float, digits: int = 0) -> str:
    """``14 %``; ``< 1 %`` and ``> 99 %`` where rounding would tell none or all."""
    if not math.isfinite(share):
        return "? %"
    least = 10.0**-digits
    text = _at(100 * share, digits)
    if 0 < share < 1 and float(text) in (0.0, 100.0):
        return (
            f"< {_at(least, digits)} %" if float(text) == 0 else f"> {_at(100 - least, digits)} %"
        )
    return f"{text} %"


def percents(shares: npt.ArrayLike) -> list[str]:
    """Whole percentages of shares that make up 1, and add up to 100: those cut most are rounded
    up."""
    exact = 100 * np.asarray(shares, dtype=np.float64)
    whole = np.floor(exact + 1e-9)
    up = np.argsort(-(exact - whole), kind="stable")[
        : max(0, round(float(exact.sum() - whole.sum())))
    ]
    whole[up] += 1
    return [f"{part:.0f} %" for part in whole]


def compared(change: float, less: str = "smaller", more: str = "larger", digits: int = 1) -> str:
    """A relative change in words: −0.136 is ``13.6 % smaller``; ``the same`` where rounding leaves
    nothing."""
    if not math.isfinite(change):
        return "not comparable"
    if round(100 * change, digits) == 0:
        return "the same"
    return f"{percent(abs(change), digits)} {less if change < 0 else more}"


def plural(count: int, word: str, words: str | None = None) -> str:
    """``1 row``, ``1,200 rows``."""
    return f"{count:,} {word if count == 1 else words or word + 's'}"


def quoted(value: object, most: int = 80) -> str:
    """Return ``'Ulm'``, and of a long text its beginning and its length."""
    if isinstance(value, str) and len(value) > most:
        return f"{value[:most]!r}… ({len(value):,} characters)"
    return repr(value)
