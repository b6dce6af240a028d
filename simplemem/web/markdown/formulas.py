"""Formulas: `$inline$` and `$$display$$`, shown as MathML, which browsers draw without a script."""

from __future__ import annotations

import html
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml

if TYPE_CHECKING:
    from collections.abc import Callable
    from xml.etree.ElementTree import Element

_MAX_CHARACTERS: Final = 4_000  # of a formula: the time grows faster than its length

# The elements and attributes of MathML that the page may contain. Links, styles and scripts are not
# among them: an element that is not listed is replaced by its contents, an attribute is left out.
_ELEMENTS: Final = frozenset(
    """
    math menclose mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow ms
    mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover none
    """.split()
)
_ATTRIBUTES: Final = frozenset(
    """
    accent accentunder columnalign columnlines columnspacing depth display displaystyle fence form
    frame height largeop linethickness lspace mathcolor mathvariant maxsize minsize movablelimits
    notation rowlines rowspacing rspace scriptlevel separator stretchy symmetric voffset width
    """.split()
)


def add_rules(parser: MarkdownIt) -> None:
    """Add formulas to a parser. As in Obsidian, `$5 and $6` is none."""
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    dollarmath_plugin(
        parser,
        allow_labels=False,
        allow_space=False,
        allow_digits=False,
        allow_blank_lines=False,
        double_inline=True,
        renderer=_render_formula,
    )
    # A `div` may not be within a paragraph.
    parser.add_render_rule("math_inline_double", _render_display_within_text)


def _render_display_within_text(
    _renderer: object, tokens: Any, position: int, _options: object, _environment: object
) -> str:
    """Return the HTML of a formula in double dollars that is within a paragraph."""
    formula = _render_formula(tokens[position].content, {"display_mode": True})
    return f'<span class="math display">{formula}</span>'


def _render_formula(source: str, options: dict[str, Any]) -> str:
    """Return the MathML of a formula; if it cannot be read or is too long, its source as code."""
    display = "block" if options["display_mode"] else "inline"
    as_code = f'<code class="formula">{escapeHtml(source)}</code>'
    if len(source) > _MAX_CHARACTERS:
        return as_code

    try:
        return _serialize(_converter()(source, display=display))
    except Exception:  # noqa: BLE001  (the converter raises errors of many kinds)
        return as_code


@cache
def _converter() -> Callable[..., Element]:
    """Return the function that makes MathML of TeX. It is imported for the first formula."""
    from latex2mathml.converter import convert_to_element

    return convert_to_element


def _serialize(element: Element) -> str:
    """Return an element as HTML, with no other elements and attributes than the listed ones."""
    # The converter writes characters as references, such as `&#x0002B;`.
    content = escapeHtml(html.unescape(element.text or ""))
    for child in element:
        content += _serialize(child)
    if element.tag not in _ELEMENTS:
        return content

    attributes = ""
    for name, value in element.attrib.items():
        if name in _ATTRIBUTES:
            attributes += f' {name}="{escapeHtml(value)}"'
    return f"<{element.tag}{attributes}>{content}</{element.tag}>"
