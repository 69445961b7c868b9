"""The README's ten lines with the installed wheel and its dependencies alone; run from outside of
the source tree."""

import importlib.util
import re
import sys
from pathlib import Path

import matplotlib as mpl

import weightedshap

README = Path(__file__).parents[1] / "README.md"
EXTRAS = ("torch", "shap", "shapiq", "polars", "xgboost", "catboost", "plotly", "onnxruntime")


def main() -> None:
    home = Path(weightedshap.__file__).resolve()
    assert home.is_relative_to(Path(sys.prefix).resolve()), (
        f"imported from {home}, not from the wheel"
    )
    present = [name for name in EXTRAS if importlib.util.find_spec(name)]
    assert not present, f"more is installed than the wheel asks for: {present}"
    assert all(
        (home.parent / file).is_file()
        for file in ("py.typed", "report/page.html", "report/page.css")
    )
    mpl.use("Agg")
    ten_lines = re.findall(
        r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.M | re.S
    )[0]
    names: dict[str, object] = {}
    exec(compile(ten_lines, "README.md", "exec"), names)
    assert isinstance(names["explanation"], weightedshap.Explanation)


main()
