"""Chinese (simplified): measure words, 两 before them; a size is put between the colour with 的 and the noun."""

from ..scenes import Figures
from .base import NOMINATIVE, Frames, Language, alike, same_case

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
    None: ("个", "图形"),
}


def noun_phrase(figures: Figures, case: str) -> str:
    return NUMERALS[figures.count] + SHAPES[figures.shape][0] + _unnumbered(figures)


def _unnumbered(figures: Figures) -> str:
    colour = COLOURS[figures.colour] if figures.colour else ""
    size = SIZES[figures.size] if figures.size else ""
    return colour + ("的" if colour and size else "") + size + SHAPES[figures.shape][1]


LANGUAGE = Language(
    tag="zh-Hans",
    noun_phrase=noun_phrase,
    places={"left of": "{anchor}左边", "right of": "{anchor}右边", "above": "{anchor}上方", "below": "{anchor}下方"},
    anchor_case=same_case(NOMINATIVE),
    phrase="{place}的{subject}",
    sentence="图中{place}有{subject}。",
    sentence_alone="图中有{subject}。",
    more=Frames(
        known=_unnumbered,
        uncounted=_unnumbered,
        frames={
            "colour": alike("{subject}是什么颜色的？"),
            "shape": alike("{subject}是什么形状的？"),
            "count": alike("图中有多少{subject}？"),
            "exists": alike("图中{placed}有{subject}吗？"),
            "what": alike("图中{placed}有什么？"),
            "left": alike("左图中{placed}有{subject}。"),
            "right": alike("右图中{placed}有{subject}。"),
            "both": alike("两张图中{placed}都有{subject}。"),
            "one": alike("只有一张图中{placed}有{subject}。"),
            "more left": alike("左图中的{subject}比右图中的多。"),
            "more right": alike("右图中的{subject}比左图中的多。"),
        },
    ),
)
