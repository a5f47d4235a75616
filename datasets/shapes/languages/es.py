"""Spanish: colour and size follow the noun and agree with it."""

from ..scenes import Figures
from .base import NOMINATIVE, Language, same_case, words

ARTICLES = {"m": "un", "f": "una"}
NUMERALS = {2: "dos", 3: "tres", 4: "cuatro"}
# masculine, feminine, masculine plural, feminine plural
COLOURS = {
    "red": ("rojo", "roja", "rojos", "rojas"),
    "orange": ("naranja", "naranja", "naranjas", "naranjas"),
    "yellow": ("amarillo", "amarilla", "amarillos", "amarillas"),
    "green": ("verde", "verde", "verdes", "verdes"),
    "blue": ("azul", "azul", "azules", "azules"),
    "purple": ("morado", "morada", "morados", "moradas"),
    "pink": ("rosa", "rosa", "rosas", "rosas"),
    "black": ("negro", "negra", "negros", "negras"),
}
SIZES = {"small": ("pequeño", "pequeña", "pequeños", "pequeñas"), "large": ("grande", "grande", "grandes", "grandes")}
# gender, singular, plural
SHAPES = {
    "circle": ("m", "círculo", "círculos"),
    "square": ("m", "cuadrado", "cuadrados"),
    "triangle": ("m", "triángulo", "triángulos"),
    "star": ("f", "estrella", "estrellas"),
    "heart": ("m", "corazón", "corazones"),
    "cross": ("f", "cruz", "cruces"),
    "ring": ("m", "anillo", "anillos"),
    "arrow": ("f", "flecha", "flechas"),
}


def noun_phrase(figures: Figures, case: str) -> str:
    gender, singular, plural = SHAPES[figures.shape]
    several = figures.count > 1
    form = 2 * several + (gender == "f")
    return words(
        NUMERALS[figures.count] if several else ARTICLES[gender],
        plural if several else singular,
        COLOURS[figures.colour][form],
        SIZES[figures.size][form] if figures.size else "",
    )


LANGUAGE = Language(
    tag="es",
    noun_phrase=noun_phrase,
    places={
        "left of": "a la izquierda de {anchor}",
        "right of": "a la derecha de {anchor}",
        "above": "encima de {anchor}",
        "below": "debajo de {anchor}",
    },
    anchor_case=same_case(NOMINATIVE),
    phrase="{subject} {place}",
    sentence="La imagen muestra {subject} {place}.",
    sentence_alone="La imagen muestra {subject}.",
)
