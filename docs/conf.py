"""How the documentation is built: `make docs` writes it to docs/_build/html, and a warning is an error.

Nothing is fetched while it is built, and nothing when it is read: formulas are MathML, fonts those of the reader.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

DOCS = Path(__file__).parent
EXECUTED = os.environ.get("GALLERY") == "1"
sys.path.insert(0, str(DOCS / "extensions"))

import examples  # noqa: E402  (docs/extensions is on the path only now)
import pages  # noqa: E402

import assay  # noqa: E402

pages.write()
examples.write()

project = "assay"
author = "the authors of assay"
release = version = assay.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "pages",
    "formulas",
    "docstrings",
]
exclude_patterns = ["_build", "extensions", "figures", "gallery/*.py", "gallery/*.ipynb"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
smartquotes = False  # docstrings hold code in sentences
html_math_renderer = "mathml"

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
add_module_names = False
toc_object_entries = False
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": str(examples.COPIES),
    "gallery_dirs": "gallery",
    "plot_gallery": EXECUTED,
    "image_scrapers": ("examples.figures",),
    "reset_modules": (),
    "capture_repr": (),
    "remove_config_comments": True,
    "show_signature": False,
    "show_memory": False,
    "download_all_examples": False,
    "notebook_images": False,
    "min_reported_time": 10_000,
    "write_computation_times": False,
}

html_theme = "furo"
html_title = "assay"
html_static_path = ["static"]
html_css_files = ["assay.css"] if EXECUTED else ["assay.css", "unexecuted.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}
