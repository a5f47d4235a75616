"""Figure 3: sentences of a few scenes as points, by t-SNE."""

from collections.abc import Sequence

from raysys.evaluation.grounded_page.examples import SceneMap, ScenePoint
from raysys.evaluation.markup import Markup, el

COLOURS = ("#3b76d6", "#d9822b", "#2f9e6e", "#b5489f", "#8a6d3b", "#5f6b7a", "#c94a4a", "#2aa3b8")
"""Of the scenes in turn; readable on light and dark. Shapes differ too, for those who do not tell colours apart."""
_PATHS = (
    "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0Z",
    "M-3.6,-3.6H3.6V3.6H-3.6Z",
    "M0,-4.6L4.4,3.4H-4.4Z",
    "M0,-4.8L4.8,0L0,4.8L-4.8,0Z",
    "M-1.4,-4.4H1.4V-1.4H4.4V1.4H1.4V4.4H-1.4V1.4H-4.4V-1.4H-1.4Z",
)

CSS = """
.maps{grid-template-columns:repeat(auto-fit,minmax(min(100%,380px),1fr));margin:0 0 16px}
.maps .card{margin:0}
.scene-map{display:block;width:100%;height:auto}
.scene-map .frame{fill:none;stroke:var(--rule)}
.scene-map path{stroke:var(--card);stroke-width:.7;fill-opacity:.85}
.scene-names{display:flex;flex-wrap:wrap;gap:2px 16px;font-size:13.5px;margin:0 0 12px;padding:0;list-style:none}
.scene-names svg{width:13px;height:13px;margin-right:5px;vertical-align:-2px}
"""


def scene_map(found: SceneMap, scenes: Sequence[str], title: str, size: int = 360) -> Markup:
    """The points in a square; point at one for its sentence.

    Args:
        found: of one run.
        scenes: names in the order of their colours, the same for all maps that stand side by side.
        title: for those who do not see it.
        size: pixels.
    """
    # Both axes alike: only distances mean anything.
    low_x, low_y = min((p.x for p in found.points), default=0.0), min((p.y for p in found.points), default=0.0)
    wide = max([p.x - low_x for p in found.points] + [p.y - low_y for p in found.points], default=0.0) or 1.0
    edge = 12

    def place(point: ScenePoint) -> str:
        scale = (size - 2 * edge) / wide
        return f"translate({round(edge + (point.x - low_x) * scale, 1)} {round(size - edge - (point.y - low_y) * scale, 1)})"

    marks = [
        el("g", el("title", f"{point.scene}: {point.text}"), _symbol(scenes.index(point.scene)), transform=place(point))
        for point in found.points
    ]
    frame = el("rect", x=0.5, y=0.5, width=size - 1, height=size - 1, rx=8, class_="frame")
    summary = f"{title}: {len(found.points)} sentences of {len(scenes)} scenes by t-SNE"
    return el("svg", frame, marks, viewBox=f"0 0 {size} {size}", role="img", aria_label=summary, class_="scene-map")


def scene_names(scenes: Sequence[str]) -> Markup:
    """Which colour and shape is which scene."""
    return el(
        "ul",
        [el("li", el("svg", _symbol(i), viewBox="-5 -5 10 10", aria_hidden="true"), scene) for i, scene in enumerate(scenes)],
        class_="scene-names",
    )


def _symbol(number: int) -> Markup:
    return el("path", d=_PATHS[number % len(_PATHS)], fill=COLOURS[number % len(COLOURS)])
