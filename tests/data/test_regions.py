"""Reading `.rois.npz`: fractions and areas, and whatever may be wrong with it."""

import io

import numpy as np
import pytest

from raysys.data.regions import read_regions
from raysys.errors import UserError
from raysys.shards.reader import RawSample
from raysys.shards.sample import SampleError
from tests.data.rc3_worlds import rois

BOXES = np.array([[0, 0, 8, 6], [4, 3, 16.5, 12], [2, 2, 2, 9]], np.float32)
FEATURES = np.arange(12, dtype=np.float32).reshape(3, 4)


def sample(data: bytes | None) -> RawSample:
    return RawSample(0, "000003.tar", "s1", {"json": b"{}"} | ({} if data is None else {"rois.npz": data}))


@pytest.mark.parametrize("most", [1, 3, 9])
@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_boxes_as_fractions_and_their_area(most, kind):
    features, boxes = read_regions(sample(rois(FEATURES.astype(kind), BOXES)), most, 4)
    np.testing.assert_array_equal(features, FEATURES[:most])
    assert features.dtype == kind, "as stored"
    expected = [[0, 0, 0.5, 0.5, 0.25], [0.25, 0.25, 1, 1, 0.5625], [0.125, 1 / 6, 0.125, 0.75, 0]]
    np.testing.assert_allclose(boxes, np.array(expected)[:most], atol=1e-7)
    assert boxes.dtype == np.float32


def archive(**arrays) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


WHOLE = rois(FEATURES, BOXES)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (None, r"000003\.tar: sample 's1': it has no regions \(\.rois\.npz\): add them with jobs/extract_rois\.py"),
        (b"", "cannot be read"),
        (WHOLE[:300], "cannot be read"),
        (bytes([*WHOLE[:200], *[WHOLE[200] ^ 255], *WHOLE[201:]]), "cannot be read"),
        (archive(features=FEATURES, boxes=BOXES), "cannot be read: 'size is not a file in the archive'|cannot be read: .*size"),
        (archive(features=np.array([{}], object), boxes=BOXES, size=[16, 12]), "cannot be read"),
        (rois(FEATURES.astype(int), BOXES), "are of the types int64, float32 and int32"),
        (rois(FEATURES, BOXES[:2]), r"are \[3, 4\], \[2, 4\] and \[2\] where"),
        (rois(FEATURES[:0], BOXES[:0]), r"are \[0, 4\], \[0, 4\] and \[2\] where"),
        (rois(FEATURES[0], BOXES), r"are \[4\], \[3, 4\] and \[2\] where"),
        (rois(FEATURES, BOXES, [16, 12, 1]), r"and \[3\] where"),
        (rois(FEATURES, BOXES, [0, 12]), "within a picture of 0 × 12 pixels"),
        (rois(FEATURES, BOXES[:, [2, 1, 0, 3]]), "are not left, top, right, bottom"),
        (rois(np.where(FEATURES == 5, np.nan, FEATURES), BOXES), "not finite"),
        (rois(FEATURES, np.where(BOXES == 9, np.inf, BOXES)), "not finite"),
    ],
)
def test_what_is_wrong_is_said(data, reason):
    with pytest.raises(SampleError, match=reason) as error:
        read_regions(sample(data), 36, 4)
    assert (error.value.member, error.value.cause) == (("", "layout") if data is None else ("rois.npz", "image"))


def test_another_width_names_the_setting():
    with pytest.raises(
        UserError, match=r"model\.network\.region_size is 2048, .*000003\.tar: sample 's1' are vectors of 4 numbers: set it to 4"
    ):
        read_regions(sample(WHOLE), 36, 2048)
