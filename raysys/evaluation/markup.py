"""HTML that is safe by construction: text is escaped unless it was made here."""

import base64
import html
import io
from typing import Any

from PIL import Image, ImageOps


class Markup(str):
    """HTML source; any other string is text and gets escaped."""

    __slots__ = ()


def escape(value: object) -> Markup:
    """`value` as HTML source."""
    return value if isinstance(value, Markup) else Markup(html.escape(str(value), quote=True))


_VOID = frozenset({"img", "br", "meta", "rect", "path", "line", "circle"})
_CLOSED = frozenset({"rect", "path", "line", "circle"})


def el(name: str, /, *children: object, **attributes: object) -> Markup:
    """An element. Children: text, Markup, lists of them, or None (nothing). Attributes: `class_` → class, `stroke_width` → stroke-width;
    None and False leave the attribute out, True writes it without a value."""
    source = "<" + name
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-") if key != "viewBox" else key
        source += f" {key}" if value is True else f' {key}="{escape(value)}"'
    if name in _VOID:
        return Markup(source + ("/>" if name in _CLOSED else ">"))
    return Markup(f"{source}>{join(children)}</{name}>")


def join(children: Any) -> Markup:
    """Children of an element, one after the other."""
    if children is None:
        return Markup("")
    if isinstance(children, (list, tuple)):
        return Markup("".join(join(child) for child in children))
    return escape(children)


def picture(data: bytes | None, alt: str, size: int = 192, class_: str = "picture") -> Markup:
    """An image file's bytes as a small picture inside the page; a plain box where there is none or it cannot be read."""
    uri = _thumbnail(data, size) if data is not None else None
    if uri is None:
        return el("span", "no image" if data is None else "unreadable", class_=f"{class_} missing", role="img", aria_label=alt)
    return el("img", src=uri, alt=alt, class_=class_, loading="lazy")


def _thumbnail(data: bytes, size: int) -> str | None:
    try:
        with Image.open(io.BytesIO(data)) as image:
            image.draft("RGB", (size, size))
            turned = ImageOps.exif_transpose(image)
            turned.thumbnail((size, size))
            rgba = turned.convert("RGBA")
    except Exception:  # a decoder may raise anything on a damaged file, and a page must not fail for one picture
        return None
    white = Image.new("RGBA", rgba.size, "white")
    buffer = io.BytesIO()
    Image.alpha_composite(white, rgba).convert("RGB").save(buffer, "WEBP", quality=82)
    return "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
