"""How the site is built: `make docs` writes it to site/, and every warning is an error."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src"), str(HERE)]

from weightedshap import __version__

project, author = "weightedshap", "The weightedshap developers"
copyright = author
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "house",
]
exclude_patterns = [
    "_build",
    "auto_examples/**/*.ipynb",
    "auto_examples/**/*.py",
    "auto_examples/**/*.md5",
]
suppress_warnings = ["config.cache", "myst.xref_ambiguous"]
nitpicky = True
templates_path = ["_templates"]

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_dmath_double_inline = True

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
default_role = "ours"

sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["auto_examples"],
    "filename_pattern": "",
    "within_subsection_order": "FileNameSortKey",
    "image_srcset": ["2x"],
    "thumbnail_size": (480, 320),
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "run_stale_examples": True,  # they show what the library does now
    "write_computation_times": False,  # its page asks other servers for scripts
    "matplotlib_animations": False,
    "reset_modules": ("matplotlib", "house.warnings_are_errors"),
    "reset_modules_order": "both",
    "abort_on_example_error": False,
    "backreferences_dir": "reference/used",
    "doc_module": ("weightedshap",),
    "inspect_global_variables": True,
    "ignore_repr_types": r"matplotlib\.",
    "reference_url": {"weightedshap": None},
}

html_theme = "pydata_sphinx_theme"
html_title = "weightedshap"
html_static_path = ["_static"]
html_css_files = ["house.css"]
html_favicon = "_static/mark.svg"
html_copy_source = html_show_sourcelink = False
html_math_renderer = "mathml"
html_theme_options = {
    "logo": {
        "text": "weightedshap",
        "image_light": "_static/mark.svg",
        "image_dark": "_static/mark.svg",
    },
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "back_to_top_button": False,
}
html_sidebars = {"index": []}
