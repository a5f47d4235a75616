"""Japanese: native numerals with の; colours as adjectives in い where they exist, otherwise as nouns with の."""

from ..scenes import Figures
from .base import NOMINATIVE, Frames, Language, alike, same_case

NUMERALS = {1: "一つの", 2: "二つの", 3: "三つの", 4: "四つの"}
COLOURS = {
    "red": "赤い",
    "orange": "オレンジ色の",
    "yellow": "黄色い",
    "green": "緑色の",
    "blue": "青い",
    "purple": "紫色の",
    "pink": "ピンク色の",
    "black": "黒い",
}
SIZES = {"small": "小さな", "large": "大きな"}
SHAPES = {
    "circle": "円",
    "square": "正方形",
    "triangle": "三角形",
    "star": "星",
    "heart": "ハート",
    "cross": "十字",
    "ring": "輪",
    "arrow": "矢印",
    None: "図形",
}


def noun_phrase(figures: Figures, case: str) -> str:
    return NUMERALS[figures.count] + _unnumbered(figures)


def _unnumbered(figures: Figures) -> str:
    size = SIZES[figures.size] if figures.size else ""
    colour = COLOURS[figures.colour] if figures.colour else ""
    return size + colour + SHAPES[figures.shape]


LANGUAGE = Language(
    tag="ja",
    noun_phrase=noun_phrase,
    places={"left of": "{anchor}の左に", "right of": "{anchor}の右に", "above": "{anchor}の上に", "below": "{anchor}の下に"},
    anchor_case=same_case(NOMINATIVE),
    phrase="{place}ある{subject}",
    sentence="{place}{subject}があります。",
    sentence_alone="{subject}があります。",
    more=Frames(
        known=_unnumbered,
        uncounted=_unnumbered,
        frames={
            "colour": alike("{subject}は何色ですか。"),
            "shape": alike("{subject}はどんな形ですか。"),
            "count": alike("{subject}はいくつありますか。"),
            "exists": alike("{placed}{subject}はありますか。"),
            "what": alike("{placed}何がありますか。"),
            "left": alike("左の絵を見ると、{placed}{subject}があります。"),
            "right": alike("右の絵を見ると、{placed}{subject}があります。"),
            "both": alike("どちらの絵にも{placed}{subject}があります。"),
            "one": alike("片方の絵だけに{placed}{subject}があります。"),
            "more left": alike("左の絵には右の絵より多くの{subject}があります。"),
            "more right": alike("右の絵には左の絵より多くの{subject}があります。"),
        },
    ),
)
