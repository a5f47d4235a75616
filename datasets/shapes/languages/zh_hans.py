"""Chinese (simplified): measure words, 两 before them; a size is put between the colour with 的 and the noun."""

from ..scenes import Figures
from .base import NOMINATIVE, Language, same_case

NUMERALS = {1: "一", 2: "两", 3: "三", 4: "四"}
COLOURS = {
    "red": "红色",
    "orange": "橙色",
    "yellow": "黄色",
    "green": "绿色",
    "blue": "蓝色",
    "purple": "紫色",
    "pink": "粉色",
    "black": "黑色",
}
SIZES = {"small": "小", "large": "大"}
# measure word, noun
SHAPES = {
    "circle": ("个", "圆形"),
    "square": ("个", "正方形"),
    "triangle": ("个", "三角形"),
    "star": ("颗", "星星"),
    "heart": ("颗", "爱心"),
    "cross": ("个", "十字"),
    "ring": ("个", "圆环"),
    "arrow": ("个", "箭头"),
}


def noun_phrase(figures: Figures, case: str) -> str:
    measure, noun = SHAPES[figures.shape]
    size = f"的{SIZES[figures.size]}" if figures.size else ""
    return NUMERALS[figures.count] + measure + COLOURS[figures.colour] + size + noun


LANGUAGE = Language(
    tag="zh-Hans",
    noun_phrase=noun_phrase,
    places={"left of": "{anchor}左边", "right of": "{anchor}右边", "above": "{anchor}上方", "below": "{anchor}下方"},
    anchor_case=same_case(NOMINATIVE),
    phrase="{place}的{subject}",
    sentence="图中{place}有{subject}。",
    sentence_alone="图中有{subject}。",
)
