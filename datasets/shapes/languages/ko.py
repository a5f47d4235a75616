"""Korean: native numerals with the counter 개 after the noun."""

from ..scenes import Figures
from .base import NOMINATIVE, Language, same_case, words

NUMERALS = {1: "한 개", 2: "두 개", 3: "세 개", 4: "네 개"}
COLOURS = {
    "red": "빨간",
    "orange": "주황색",
    "yellow": "노란",
    "green": "초록색",
    "blue": "파란",
    "purple": "보라색",
    "pink": "분홍색",
    "black": "검은",
}
SIZES = {"small": "작은", "large": "큰"}
SHAPES = {
    "circle": "원",
    "square": "정사각형",
    "triangle": "삼각형",
    "star": "별",
    "heart": "하트",
    "cross": "십자가",
    "ring": "고리",
    "arrow": "화살표",
}


def noun_phrase(figures: Figures, case: str) -> str:
    size = SIZES[figures.size] if figures.size else ""
    return words(size, COLOURS[figures.colour], SHAPES[figures.shape], NUMERALS[figures.count])


LANGUAGE = Language(
    tag="ko",
    noun_phrase=noun_phrase,
    places={"left of": "{anchor}의 왼쪽에", "right of": "{anchor}의 오른쪽에", "above": "{anchor}의 위에", "below": "{anchor}의 아래에"},
    anchor_case=same_case(NOMINATIVE),
    phrase="{place} 있는 {subject}",
    sentence="{place} {subject}가 있습니다.",
    sentence_alone="그림에 {subject}가 있습니다.",
)
