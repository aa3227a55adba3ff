"""Pages that are made from files elsewhere in the repository, and links that lead to them.

In the repository a page links to `../studies/planted/README.md`; on the site that is the page `studies/planted`. Links
are written for the repository, where they are tested, and changed here while the site is built.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
ORPHAN = "---\norphan: true\n---\n\n"  # a page that no list leads to, but a link
LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(?=[)#])")


def published() -> dict[Path, Path]:
    """The page that each file outside of docs becomes."""
    studies = {readme: DOCS / "studies" / f"{readme.parent.name}.md" for readme in ROOT.glob("studies/*/README.md")}
    tables = {
        path: DOCS / "studies" / path.parents[2].name / path.name for path in ROOT.glob("studies/*/results/tables/*.md")
    }
    examples = {path: DOCS / "gallery" / f"{path.stem}.rst" for path in ROOT.glob("examples/plot_*.py")}
    examples[ROOT / "examples"] = DOCS / "gallery" / "index.rst"
    others = {ROOT / "CONTRIBUTING.md": DOCS / "contributing.md", ROOT / "CHANGELOG.md": DOCS / "changelog.md"}
    return studies | tables | examples | others


def write() -> None:
    """Writes the pages, where they are not there as they should be, and takes away those of studies that are gone."""
    texts = {page: moved(file, page) for file, page in published().items() if file.suffix == ".md"}
    for page, text in texts.items():
        page.parent.mkdir(parents=True, exist_ok=True)
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")
    for page in (DOCS / "studies").rglob("*.md"):
        if page not in texts:
            page.unlink()


def moved(file: Path, page: Path) -> str:
    """The text of a file with links that lead from the page to where they led from the file."""
    text = linked(file.read_text(encoding="utf-8"), file, page)
    return f"{ORPHAN}{text}" if file.parent.name == "tables" else text


def linked(text: str, file: Path, page: Path) -> str:
    """The text with each link to a file of the repository as one to its page, or to the file, from this page."""
    pages = published()

    def there(found: re.Match[str]) -> str:
        target = (file.parent / found[1]).resolve()
        if not target.exists():
            return found[1]
        return Path(os.path.relpath(pages.get(target, target), page.parent)).as_posix()

    return LINK.sub(there, text)


def setup(app: Any) -> dict[str, bool]:
    """Links of every page are changed as it is read."""

    def read(app: Any, name: str, source: list[str]) -> None:
        page = Path(app.env.doc2path(name))
        if page.suffix == ".md":
            source[0] = linked(source[0], page, page)

    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
