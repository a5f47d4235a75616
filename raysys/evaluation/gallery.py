"""The parts of a report that show examples: translations, transitive matches, failures."""

from collections.abc import Sequence

from raysys.evaluation.examples import Retrieved, Side, TransitiveMatch, TranslationExample
from raysys.evaluation.markup import Markup, el, join, picture
from raysys.evaluation.naming import language_name
from raysys.evaluation.report_data import ReportData
from raysys.evaluation.wording import headline, remark

KINDS = {
    "match": (
        "Taken as translations",
        "The images are alike and each caption fits its image, so training pulls the two captions together.",
    ),
    "weak caption": (
        "Turned down: a caption does not fit its image",
        "The images are alike, but at least one caption says something else than its picture.",
    ),
    "different images": (
        "Turned down: the images differ",
        "Each caption fits its own image, but the images have too little in common.",
    ),
}


def _said(text: str, language: str, class_: str) -> Markup:
    """A sentence of any language: its own direction, its own language for the font."""
    return el("div", el("bdi", text, lang=language), class_=class_, dir="auto")


def _query(example: TranslationExample) -> Markup:
    return el(
        "div",
        picture(example.image, f"Picture of: {example.gloss or example.text}"),
        el(
            "div",
            el("div", language_name(example.language), class_="tag"),
            _said(example.text, example.language, "sentence"),
            el("div", example.gloss, class_="gloss", lang="en") if example.gloss else None,
        ),
        class_="query",
    )


def _mark(right: bool) -> Markup:
    return el(
        "span", "✓" if right else "✗", class_="mark yes" if right else "mark no", role="img", aria_label="right" if right else "wrong"
    )


def _found(found: Retrieved) -> Markup:
    expected = None
    if not found.right:
        expected = el(
            "div", f"right, at place {found.expected_rank} of {found.candidates}: ", el("bdi", found.expected, lang=found.language)
        )
        expected = el("div", expected, class_="expected")
    return el(
        "li",
        _mark(found.right),
        picture(found.image, f"Picture that belongs to: {found.text}", size=80),
        el("div", el("div", language_name(found.language), class_="tag"), _said(found.text, found.language, "text")),
        el("div", _signed(found.similarity), class_="similarity", title="similarity β"),
        expected,
    )


def translations(data: ReportData) -> list[Markup]:
    """Sentences and what was found for them."""
    parts: list[Markup] = []
    for split, examples in data.translations.items():
        if examples:
            cards = [el("article", _query(e), el("ul", [_found(f) for f in e.retrieved], class_="found"), class_="card") for e in examples]
            parts += [el("h3", headline(split), class_="kind"), _tally(examples)]
            parts.append(el("div", cards, class_="grid examples", style="margin-bottom:26px"))
    if not parts:
        return []
    return [
        remark(
            "Sentences drawn at random, not chosen for success. The encoder sees text alone; pictures are shown for the reader. ",
            "The number is the similarity β of the two sentences.",
        ),
        *parts,
    ]


def _tally(examples: Sequence[TranslationExample]) -> Markup:
    found = [f.right for example in examples for f in example.retrieved]
    return remark(f"{sum(found)} of {len(found)} shown here are right.")


def matches(data: ReportData) -> list[Markup]:
    """Pairs of captioned images with the similarities between them."""
    if not data.matches:
        return []
    parts = [
        remark(
            "No translation is given in training. Two captions of different languages count as alike as far as α says: the product of "
            "how well each caption fits its image (",
            _symbol("α^x"),
            ") and how alike the images are (",
            _symbol("α^v"),
            f"), less a margin of {data.margin:g}. β is what the trained encoder then says of the two captions alone.",
        )
    ]
    for kind, (title, explained) in KINDS.items():
        cards = [_match(match) for match in data.matches if match.kind == kind]
        if cards:
            parts += [el("h3", title, class_="kind"), remark(explained), el("div", cards, class_="grid matches")]
    return parts


def _match(match: TransitiveMatch) -> Markup:
    weaker = min(match.left.image_caption, match.right.image_caption)

    def down(side: Side) -> Markup:
        return _edge("down", "α^x", side.image_caption, low=match.kind == "weak caption" and side.image_caption <= weaker + 0.05)

    def words(side: Side) -> Markup:
        return el(
            "div",
            el("div", language_name(side.language), class_="tag"),
            _said(side.text, side.language, "sentence"),
            el("div", side.gloss, class_="gloss", lang="en") if side.gloss else None,
            class_="words",
        )

    return el(
        "article",
        picture(match.left.image, f"Picture of: {match.left.gloss or match.left.text}"),
        _edge("across", "α^v", match.images, low=match.kind == "different images"),
        picture(match.right.image, f"Picture of: {match.right.gloss or match.right.text}"),
        down(match.left),
        el("div", "α", el("b", f"{match.transitive:.2f}"), class_="alpha"),
        down(match.right),
        words(match.left),
        _edge("across", "β", match.captions, low=False),
        words(match.right),
        class_="card match",
    )


def _edge(direction: str, name: str, value: float, low: bool) -> Markup:
    strength = f"--w:{max(0.15, min(1.0, value)):.2f}"
    label = el("span", _symbol(name), f" {_signed(value)}")
    return el("div", label, class_=f"edge {direction}" + (" low" if low else ""), style=strength)


def _symbol(name: str) -> Markup:
    """`α^x` with its index raised."""
    base, _, raised = name.partition("^")
    return join([base, el("sup", raised) if raised else None])


def _signed(value: float) -> str:
    text = f"{value:.2f}"
    return "0.00" if text == "-0.00" else text.replace("-", "−")


def failures(data: ReportData) -> list[Markup]:
    """The worst translations."""
    if not data.failures:
        return []
    cards = [_failure(example) for example in data.failures]
    return [
        remark("The worst of those examined: a wrong sentence lies much nearer than the true translation."),
        el("div", cards, class_="grid examples"),
    ]


def _failure(example: TranslationExample) -> Markup:
    found = example.retrieved[0]
    place = f"right, at place {found.expected_rank:,} of {found.candidates:,}"
    lines = [
        (False, found.image, f"found in {language_name(found.language)}", found.text, found.similarity),
        (True, example.image, place, found.expected, found.expected_similarity),
    ]
    rows = [
        el(
            "li",
            _mark(right),
            picture(image, f"Picture that belongs to: {text}", size=80),
            el("div", el("div", label, class_="tag"), _said(text, found.language, "text")),
            el("div", _signed(similarity), class_="similarity", title="similarity β"),
        )
        for right, image, label, text, similarity in lines
    ]
    return el("article", _query(example), el("ul", rows, class_="found"), class_="card")
