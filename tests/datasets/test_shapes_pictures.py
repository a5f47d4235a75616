"""The pictures of the drawn world show the facts: right colour at the right place, right number, right side, right size."""

import colorsys
import io
import itertools
from random import Random

import numpy as np
import pytest
from PIL import Image

from tests.datasets.recipes import recipe_module

scenes, pictures = recipe_module("shapes.scenes"), recipe_module("shapes.pictures")
Figures, Scene = scenes.Figures, scenes.Scene

LARGEST = [Figures(4, "blue", "square", "large"), Figures(1, "red", "circle", "large"), Figures(3, "black", "ring", "large")]


def ink(picture: Image.Image) -> np.ndarray:
    """Where something is drawn: bool [height, width]. Backgrounds are light and nearly grey."""
    pixels = np.asarray(picture).astype(int)
    return (pixels.max(2) - pixels.min(2) > 80) | (pixels.max(2) < 140)


def components(mask: np.ndarray) -> list[np.ndarray]:
    """Connected areas of more than two pixels: int [n, 2] of (row, column) each."""
    rest, found = {(int(row), int(column)) for row, column in np.argwhere(mask)}, []
    while rest:
        area, border = [], [rest.pop()]
        while border:
            row, column = border.pop()
            area.append((row, column))
            for neighbour in itertools.product((row - 1, row, row + 1), (column - 1, column, column + 1)):
                if neighbour in rest:
                    rest.remove(neighbour)
                    border.append(neighbour)
        if len(area) > 2:
            found.append(np.array(area))
    return found


def colour_name(pixels: np.ndarray) -> str:
    """The colour of the world that is nearest to the median of RGB pixels [n, 3]."""
    hue, saturation, value = colorsys.rgb_to_hsv(*(np.median(pixels, axis=0) / 255))
    if value < 0.3:
        return "black"

    def distance(name: str) -> float:
        degrees, chroma, _ = pictures.COLOURS[name]
        turn = abs(hue * 360 - degrees) % 360
        return min(turn, 360 - turn) + 60 * abs(saturation - chroma)

    return min((name for name in pictures.COLOURS if name != "black"), key=distance)


def random_scene(random: Random) -> "Scene":
    def figures(count: int) -> "Figures":
        return Figures(count, random.choice(scenes.COLOURS), random.choice(scenes.SHAPES), random.choice((None, *scenes.SIZES)))

    if random.random() < 0.3:
        return Scene.of(figures(random.choice(scenes.COUNTS)))
    first, second = random.choice(recipe_module("shapes.concepts").PAIR_COUNTS)
    return Scene.of(figures(first), random.choice(scenes.RELATIONS), figures(second))


def check(scene, seed: int) -> None:
    picture, placed = pictures.draw(scene, Random(seed))
    areas = components(ink(picture))
    assert len(areas) == len(placed) == sum(figures.count for figures in scene.figures), scene
    for figure in placed:
        centre = np.array([figure.y, figure.x]) * picture.width
        nearest = min(areas, key=lambda area: np.linalg.norm((area.max(0) + area.min(0)) / 2 - centre))
        assert np.linalg.norm((nearest.max(0) + nearest.min(0)) / 2 - centre) < 0.5 * figure.diameter * picture.width
        left, top, right, bottom = figure.box(picture.width)
        assert left - 1 <= nearest[:, 1].min() <= nearest[:, 1].max() <= right + 1
        assert top - 1 <= nearest[:, 0].min() <= nearest[:, 0].max() <= bottom + 1
        pixels = np.asarray(picture)[tuple(nearest.T)]
        facts = scene.figures[figure.index]
        vivid = pixels[np.argsort(pixels.min(1))[: max(4, len(pixels) // 2)]] if facts.colour != "black" else pixels
        assert colour_name(vivid) == facts.colour, (scene, figure)


def test_number_place_and_colour_are_drawn():
    random = Random(7)
    for seed in range(150):
        check(random_scene(random), seed)


@pytest.mark.parametrize("colour", scenes.COLOURS)
@pytest.mark.parametrize("shape", scenes.SHAPES)
def test_every_colour_and_shape_can_be_seen(colour, shape):
    check(Scene.of(Figures(2, colour, shape, "small")), 3)


@pytest.mark.parametrize("relation", scenes.RELATIONS)
def test_sides_are_kept(relation):
    for seed, (first, second) in enumerate(itertools.permutations(LARGEST, 2)):
        if first.count + second.count > 5:
            continue
        scene = Scene.of(first, relation, second)
        _, placed = pictures.draw(scene, Random(seed))
        subject = [figure for figure in placed if scene.figures[figure.index] == first]
        anchor = [figure for figure in placed if scene.figures[figure.index] == second]
        for one, other in itertools.product(subject, anchor):
            apart = (one.diameter + other.diameter) / 2
            along = one.x - other.x if relation in ("left of", "right of") else one.y - other.y
            assert (-along if relation in ("left of", "above") else along) > apart


def test_sizes_can_be_told_apart():
    small, middle, large = (pictures.DIAMETERS[size] for size in ("small", None, "large"))
    assert small[1] * 1.25 < middle[0]
    assert middle[1] * 1.25 < large[0]
    for size, (least, most) in pictures.DIAMETERS.items():
        _, placed = pictures.draw(Scene.of(Figures(3, "red", "star", size)), Random(1))
        assert all(least <= figure.diameter <= most for figure in placed)


def test_shapes_look_different():
    """Upright shapes of one size, seen as masks on a common grid, differ in a tenth of their box at least."""
    masks = {}
    for shape in scenes.SHAPES:
        upright = next(seed for seed in itertools.count() if _turn(shape, seed) < 0.1)
        picture, (figure,) = pictures.draw(Scene.of(Figures(1, "black", shape, "large")), Random(upright), size=192)
        left, top, right, bottom = figure.box(picture.width)
        crop = Image.fromarray(ink(picture)).crop((int(left), int(top), round(right), round(bottom)))
        masks[shape] = np.asarray(crop.resize((48, 48)))
    for first, second in itertools.combinations(scenes.SHAPES, 2):
        assert (masks[first] != masks[second]).mean() > 0.1, (first, second)


def _turn(shape: str, seed: int) -> float:
    """How far a large black figure drawn alone with `seed` is turned, 0..1 of what its shape allows: the last number drawn."""
    random = Random(seed)
    drawn: list[float] = []
    uniform = random.uniform

    def record(low: float, high: float) -> float:
        drawn.append(uniform(low, high))
        return drawn[-1]

    random.uniform = record  # type: ignore[method-assign]
    pictures.draw(Scene.of(Figures(1, "black", shape, "large")), random, size=192)
    return abs(drawn[-1])


def test_the_same_facts_look_different_each_time():
    scene = Scene.of(Figures(2, "red", "star"), "above", Figures(1, "green", "ring"))
    drawn = [pictures.draw(scene, Random(seed))[0].tobytes() for seed in range(20)]
    assert len(set(drawn)) == 20
    assert pictures.draw(scene, Random(5))[0].tobytes() == drawn[5]


def test_both_formats_occur():
    picture, _ = pictures.draw(Scene.of(Figures(1, "red", "star")), Random(0))
    formats = set()
    for seed in range(20):
        data, extension = pictures.encode(picture, Random(seed))
        image = Image.open(io.BytesIO(data))
        assert image.size == (96, 96)
        formats.add((image.format, extension))
    assert formats == {("PNG", "png"), ("JPEG", "jpg")}
