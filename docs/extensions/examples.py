"""The examples as sphinx-gallery wants them: a title in the docstring, and the text of a cell in lines of its own."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
EXAMPLES = DOCS.parent / "examples"
COPIES = DOCS / "_build" / "examples"

HEADER = """
Examples
========

Short scripts in cells, each of which ends in a figure or a page. They run as they stand, and the tests run them all.
``GALLERY=1 make docs`` runs them while the pages are built and shows what they print and draw, which takes some
minutes; without it the pages show the code alone.

"""


def write() -> None:
    """Writes a copy of each example, only where it differs from the one that is there."""
    COPIES.mkdir(parents=True, exist_ok=True)
    texts = {path.name: gallery(path.stem, path.read_text(encoding="utf-8")) for path in EXAMPLES.glob("plot_*.py")}
    for name, text in (texts | {"GALLERY_HEADER.rst": HEADER}).items():
        path = COPIES / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for path in COPIES.glob("plot_*.py"):
        if path.name not in texts:
            path.unlink()


def gallery(name: str, source: str) -> str:
    """The source of an example with a title, its command as code, and each cell's text below the cell's mark."""
    title = name.removeprefix("plot_").replace("_", " ").capitalize()
    source = re.sub(r'\A"""', f'"""\n{title}\n{"=" * len(title)}\n\n', source)
    source = re.sub(r"^(python examples/.*)$", r".. code-block:: console\n\n   \1", source, count=1, flags=re.M)
    return re.sub(r"^# %% (.+)$", r"# %%\n# \1", source, flags=re.M)


def figures(block: Any, variables: dict[str, Any], settings: dict[str, Any]) -> str:
    """The figures that a cell has just drawn, as sphinx-gallery shows them below it."""
    from sphinx_gallery.scrapers import figure_rst

    shown = []
    for figure in sorted(Path.cwd().glob("*.svg")):
        place = Path(next(variables["image_path_iterator"])).with_suffix(".svg")
        shutil.move(figure, place)
        shown.append(str(place))
    return figure_rst(shown, settings["src_dir"])
