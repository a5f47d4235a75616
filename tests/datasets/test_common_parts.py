"""The small parts the recipes share: Debian packages, pictures, groups, lots."""

import io
import random
import tarfile
from collections import Counter

import numpy as np
import pytest
from PIL import Image

from raysys.errors import UserError
from tests.datasets.recipes import recipe_module

deal = recipe_module("common.deal")
debian = recipe_module("common.debian")
groups = recipe_module("common.groups")
pictures = recipe_module("common.pictures")


def ar(*members: tuple[str, bytes]) -> bytes:
    data = b"!<arch>\n"
    for name, content in members:
        data += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode() + content + b"\n" * (len(content) % 2)
    return data


def packed(mode: str, files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


FILES = {"./usr/share/x/a.txt": b"A", "./usr/share/x/deep/b.png": b"B", "./usr/share/x/c.ogg": b"C", "./usr/share/xy/d.txt": b"D"}


@pytest.mark.parametrize("packing", ["xz", "gz", "bz2", ""])
def test_files_of_a_debian_package(tmp_path, packing):
    path = tmp_path / "x.deb"
    data = ar(("debian-binary", b"2.0"), ("control.tar.xz", b"odd"), (f"data.tar.{packing}".rstrip("."), packed(f"w:{packing}", FILES)))
    path.write_bytes(data)
    assert debian.read_files(path, "usr/share/x", (".txt", ".png")) == {"a.txt": b"A", "deep/b.png": b"B"}


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"hello world", "not an ar archive"), (ar(("a", b"1")), "no data.tar"), (ar(("data.tar", b"12345"))[:-4], "cut short")],
)
def test_what_is_no_debian_package_is_named(tmp_path, data, reason):
    path = tmp_path / "x.deb"
    path.write_bytes(data)
    with pytest.raises(UserError, match=f"{path} is not a Debian package: .*{reason}"):
        debian.read_files(path, "usr", (".txt",))


def test_ar_members_at_odd_and_even_lengths():
    data = ar(("one", b"1"), ("two/", b"22"), ("three", b"333"))
    found = [(name, data[offset : offset + size]) for name, offset, size in debian.ar_members(io.BytesIO(data))]
    assert found == [("one", b"1"), ("two", b"22"), ("three", b"333")]


def test_groups_grow_together_and_keep_their_order():
    parts = groups.Groups("abcdef")
    parts.join_equal([(1, "a"), (2, "b"), (1, "e")])
    parts.join("f", "e")
    assert parts.groups() == [["a", "e", "f"], ["b"], ["c"], ["d"]]


def drawing(seed: int) -> Image.Image:
    values = np.random.default_rng(seed).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    return Image.fromarray(values).resize((64, 64), Image.Resampling.NEAREST)


def test_mirrored_and_turned_drawings_are_alike_and_others_are_not():
    one = drawing(1)
    turned = [one.transpose(way) for way in Image.Transpose]
    small = [pictures.thumbnail(image) for image in (one, drawing(2), *turned, drawing(3))]
    pairs = pictures.alike(small, 0.007)
    assert {pair for pair in pairs if 0 in pair} == {(0, 2 + index) for index in range(len(turned))}
    assert not any(1 in pair or len(small) - 1 in pair for pair in pairs)


def test_alike_measures_root_mean_square():
    grey = np.full((16, 16, 3), 0.5, dtype=np.float32)
    assert pictures.alike([grey, grey + 0.006], 0.007) == [(0, 1)]
    assert pictures.alike([grey, grey + 0.008], 0.007) == []


def test_pictures_lie_on_white_and_are_only_scaled_down():
    clear = Image.new("RGBA", (300, 100), (255, 0, 0, 0))
    clear.paste((0, 0, 255, 255), (0, 0, 150, 100))
    buffer = io.BytesIO()
    clear.save(buffer, format="PNG")
    image = pictures.read_raster(buffer.getvalue(), 150)
    assert image.size == (150, 50)
    assert image.getpixel((10, 25)) == (0, 0, 255)
    assert image.getpixel((140, 25)) == (255, 255, 255)
    assert pictures.read_raster(buffer.getvalue(), 1000).size == (300, 100)
    decoded = Image.open(io.BytesIO(pictures.encode(image)))
    assert decoded.format == "WEBP"
    assert np.array_equal(np.asarray(decoded.convert("RGB")), np.asarray(image))


def test_svg_sizes_in_points_and_on_white():
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="48pt" height="24pt"><rect width="32" height="32" fill="#f00"/></svg>'
    image = pictures.render_svg(svg, 128)
    assert image.size == (128, 64)
    assert image.getpixel((30, 30)) == (255, 0, 0)
    assert image.getpixel((120, 30)) == (255, 255, 255)
    with pytest.raises(ValueError, match=r"(?i)svg|parse|node"):
        pictures.render_svg("<svg", 128)


def test_lots_differ_by_purpose_and_repeat():
    assert deal.lot(1, "a").random() == deal.lot(1, "a").random()
    assert len({deal.lot(*key).random() for key in ((1, "a"), (1, "b"), (2, "a"), (1, "a", "b"))}) == 4


def test_whole_groups_are_chosen_up_to_the_wanted_number():
    items = [[f"{size}{index}" for index in range(size)] for size in (1, 1, 2, 3, 3, 5)]
    for seed in range(20):
        chosen = deal.choose_groups(items, 7, random.Random(seed))
        assert sum(map(len, chosen)) == 7
        assert all(group in items for group in chosen)


def test_languages_are_dealt_evenly_and_without_repetition():
    languages = ["a", "b", "c", "d", "e"]
    dealer = deal.LanguageDeal(languages, random.Random(0))
    hands = [dealer.deal(3, languages) for _ in range(200)]
    assert all(len(set(hand)) == 3 for hand in hands)
    counts = Counter(language for hand in hands for language in hand)
    assert max(counts.values()) - min(counts.values()) <= 1
    assert len({tuple(sorted(hand)) for hand in hands}) == 10
    assert len({hand[0] for hand in hands}) == 5


def test_a_small_choice_is_dealt_round_and_none_is_dealt_from_nothing():
    dealer = deal.LanguageDeal(["a", "b"], random.Random(0))
    assert Counter(dealer.deal(5, ["a", "b"])) in (Counter(a=3, b=2), Counter(a=2, b=3))
    assert dealer.deal(3, []) == []
