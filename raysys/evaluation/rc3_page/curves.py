"""The losses of pre-training over its steps: a chart for each loss, a line for each system that has it."""

from collections.abc import Mapping

import numpy as np

from raysys.evaluation.figures import Curve, nice_ticks, running_mean
from raysys.evaluation.markup import Markup, el
from raysys.evaluation.rc3_page.data import Rc3Comparison
from raysys.evaluation.wording import named, remark

CSS = """
:root{--c0:#2257c5;--c1:#c2410c;--c2:#15803d;--c3:#7e22ce;--c4:#0e7490;--c5:#b0155e;--c6:#8a6d00;--c7:#4d5866;--c8:#0f766e;
  --c9:#9f1239;--c10:#4338ca}
@media (prefers-color-scheme:dark){
:root{--c0:#85abff;--c1:#ff9a5c;--c2:#62cf94;--c3:#c89bff;--c4:#5cc8de;--c5:#ff86bd;--c6:#e0c04a;--c7:#a3acba;--c8:#4fd1c1;
  --c9:#ff8fa3;--c10:#a5a8ff}
}
.losses{grid-template-columns:repeat(auto-fill,minmax(min(100%,430px),1fr))}
.lines{list-style:none;margin:8px 0 0;padding:0;font-size:13px;columns:2;column-gap:18px}
.lines li{display:flex;gap:7px;align-items:baseline;break-inside:avoid}
.lines i{flex:none;width:14px;height:0;border-top:2.5px solid;transform:translateY(-3px)}
.lines .last{margin-left:auto;font-variant-numeric:tabular-nums;font-weight:600}
"""
TITLES = {
    "loss": "Sum of the losses",
    "mlm": "Masked words (MLM)",
    "mclm": "Translation from masked text and picture (MCLM)",
    "itm": "Picture and text match (ITM)",
    "xtcl": "Texts across languages (XTCL)",
    "rxvtcl": "Pictures with texts across languages (R-XVtCL)",
    "kl": "KL(P_vtr ‖ P_tr)",
    "masked_regions": "Masked regions",
    "text_mlm": "Masked words of text alone",
    "pair_mlm": "Masked words of both languages",
    "translation": "Translation",
    "infilling": "Infilled text",
    "spans": "Corrupted spans",
}
"""What the terms are called."""
_WIDTH, _HEIGHT = 440, 210
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 12, 10, 26


def curves(data: Rc3Comparison) -> list[Markup]:
    """A card for each loss, in the order of the titles, then others."""
    names = [name for name in [*TITLES, *data.curves] if data.curves.get(name)]
    systems = list(dict.fromkeys(system for lines in data.curves.values() for system in lines))
    if not names:
        return []
    colours = {system: f"var(--c{index % 11})" for index, system in enumerate(systems)}
    return [
        remark(
            "Running means of the run of each system with its first seed, the value of the last step beside its name. Losses of different "
            "terms are not comparable, and a lower one is no proof of a better system."
        ),
        el("div", [_card(TITLES.get(name, name), data.curves[name], colours) for name in dict.fromkeys(names)], class_="grid losses"),
    ]


def _card(title: str, lines: Mapping[str, Curve], colours: Mapping[str, str]) -> Markup:
    legend = [
        el("li", el("i", style=f"color:{colours[system]}"), el("span", named(system)), el("span", f"{curve.values[-1]:.3g}", class_="last"))
        for system, curve in lines.items()
    ]
    return el("div", el("h3", named(title)), _chart(title, lines, colours), el("ul", legend, class_="lines"), class_="card")


def _chart(title: str, lines: Mapping[str, Curve], colours: Mapping[str, str]) -> Markup:
    smooth = {system: running_mean(np.asarray(curve.values, float)) for system, curve in lines.items()}
    # The first steps are far above the rest and would flatten it.
    settled = np.concatenate([values[len(values) // 50 :] for values in smooth.values()])
    ticks = nice_ticks(float(settled.min()), float(settled.max()))
    low, high = ticks[0], ticks[-1]
    first = min(curve.steps[0] for curve in lines.values())
    last = max(max(curve.steps[-1] for curve in lines.values()), first + 1)

    def x(step: float) -> float:
        return round(_LEFT + (step - first) / (last - first) * (_WIDTH - _LEFT - _RIGHT), 1)

    def y(value: float) -> float:
        return round(_TOP + (high - min(value, high)) / (high - low) * (_HEIGHT - _TOP - _BOTTOM), 1)

    parts = [
        [
            el("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y(tick), y2=y(tick), class_="grid"),
            el("text", f"{tick:g}".replace("-", "−"), x=_LEFT - 6, y=y(tick) + 3.5, text_anchor="end", class_="tick"),
        ]
        for tick in ticks
    ]
    marks = [tick for tick in nice_ticks(first, last, 4) if first <= tick <= last]
    parts += [[el("text", f"{tick:,.0f}", x=x(tick), y=_HEIGHT - 7, text_anchor="middle", class_="tick")] for tick in marks]
    for system, curve in lines.items():
        points = "L".join(f"{x(step)},{y(float(value))}" for step, value in zip(curve.steps, smooth[system], strict=True))
        parts.append([el("path", d=f"M{points}", class_="curve", style=f"stroke:{colours[system]}")])
    told = ", ".join(f"{system} {curve.values[-1]:.3g}" for system, curve in lines.items())
    return el("svg", parts, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", aria_label=f"{title}, last values: {told}", class_="chart")
