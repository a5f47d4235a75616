"""Japanese: native numerals with の; colours as adjectives in い where they exist, otherwise as nouns with の."""

from ..scenes import Figures
from .base import NOMINATIVE, Language, same_case

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
}


def noun_phrase(figures: Figures, case: str) -> str:
    size = SIZES[figures.size] if figures.size else ""
    return NUMERALS[figures.count] + size + COLOURS[figures.colour] + SHAPES[figures.shape]


LANGUAGE = Language(
    tag="ja",
    noun_phrase=noun_phrase,
    places={"left of": "{anchor}の左に", "right of": "{anchor}の右に", "above": "{anchor}の上に", "below": "{anchor}の下に"},
    anchor_case=same_case(NOMINATIVE),
    phrase="{place}ある{subject}",
    sentence="{place}{subject}があります。",
    sentence_alone="{subject}があります。",
)
