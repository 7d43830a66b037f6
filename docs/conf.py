"""How Sphinx builds the site: `scripts/docs`."""

import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS.parent), str(DOCS / "_ext")]

import rlm_rag  # noqa: E402 (the checkout's own, whatever is installed)

project = "rlm-rag"
release = version = rlm_rag.__version__
html_title = f"rlm-rag {release}"
html_theme = "furo"
html_show_copyright = False
html_show_sourcelink = False
html_copy_source = False

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "generated",
]
exclude_patterns = ["_ext"]
# Links to headings, as they work on the pages of a repository.
myst_heading_anchors = 3
# Blocks of output and of pseudo-code are no one's language.
highlight_language = "text"
# Of these every colour can be read on its ground, as WCAG 2.2 counts contrast.
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "github-dark"

# Two hyphens are the beginning of an option.
smartquotes = False

# Docstrings write code in single backticks.
default_role = "code"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_class_signature = "mixed"
maximum_signature_line_length = 88
python_use_unqualified_type_names = True

MADE_BY_OTHERS = {
    f"rlm_rag.{name}" for name in ("SearchableCorpus", "Corpus", "Conversation", "Map")
}


def setup(app):
    """Correct what autodoc and napoleon would show."""
    app.connect("autodoc-process-signature", without_constructor)
    # Before napoleon, whose priority is 500.
    app.connect("autodoc-process-docstring", keep_first_line, priority=400)


def without_constructor(app, what, name, found, options, signature, returns):
    """Show no arguments of what programs get from functions, and never make."""
    return ("", returns) if name in MADE_BY_OTHERS else None


def keep_first_line(app, what, name, found, options, lines):
    """Keep napoleon from taking what stands before a property's first colon for its type."""
    if what == "property":
        lines.insert(0, "")
