"""Regions by rule and by trained detectors, beside what transformers' own code says of the same pictures."""

import json

import numpy as np
import pytest
import torch
from transformers import AutoImageProcessor, ResNetConfig, ResNetForImageClassification

from raysys.errors import UserError
from raysys.models.detectors import best_apart, boxes_told, build_detector, grid, salient_boxes
from raysys.shards.sample import SampleError
from tests.models.small_detectors import QUERIES, SIZE, save_detr, save_rt_detr


def blank(height: int = 40, width: int = 60) -> torch.Tensor:
    return torch.full((3, height, width), 255, dtype=torch.uint8)


def noise(height: int, width: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(0, 256, (3, height, width), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))


def test_boxes_of_the_json_are_cut_at_the_edge_and_the_largest_are_taken():
    told = {"boxes": [[7, -2.5, 1, 10, 11], [1, 2, 3, 4], [0, 30, 20, 70, 50]]}
    assert boxes_told(blank(), told, 36).tolist() == [[0, 1, 10, 11], [1, 2, 3, 4], [30, 20, 60, 40]]
    assert boxes_told(blank(), told, 2).tolist() == [[0, 1, 10, 11], [30, 20, 60, 40]]
    assert boxes_told(blank(), told, 2).dtype == np.float32


@pytest.mark.parametrize(
    ("boxes", "reason"),
    [
        (None, "no field 'boxes'"),
        ([], "no field 'boxes'"),
        ({"a": 1}, "no field 'boxes'"),
        ([[1, 2, 3]], "no list of"),
        ([["a", 0, 0, 1, 1], ["a", "b", 0, 1, 1]], "no list of"),
        ([5], "no list of"),
        ([[0, 5, 5, 9, 9], [0, 9, 5, 9, 9]], r"\[0, 9, 5, 9, 9\] has no area within 60 × 40"),
        ([[0, 9, 5, 3, 9]], "has no area"),
        ([[0, 61, 5, 70, 9]], "has no area"),
        ([[0, float("nan"), 5, 8, 9]], "has no area"),
    ],
)
def test_boxes_that_are_none(boxes, reason):
    with pytest.raises(SampleError, match=reason) as error:
        boxes_told(blank(), {} if boxes is None else {"boxes": boxes}, 36)
    assert (error.value.member, error.value.cause) == ("json", "layout")


def test_a_grid_has_the_whole_picture_its_cells_and_what_stands_out():
    picture = blank()
    picture[:, 8:16, 30:42] = 0
    boxes = grid(picture, {}, 36)
    assert boxes[0].tolist() == [0, 0, 60, 40]
    assert boxes[1:4].tolist() == [[0, 0, 12, 8], [12, 0, 24, 8], [24, 0, 36, 8]]
    assert boxes[25].tolist() == [48, 32, 60, 40]
    assert len(boxes) == 27
    assert np.abs(boxes[26] - [30, 8, 42, 16]).max() <= 2
    assert len(grid(noise(40, 60), {}, 36)) == 36
    assert [len(grid(noise(40, 60), {}, most)) for most in (1, 2, 5, 6)] == [1, 2, 5, 6]
    assert len(grid(noise(1, 1), {}, 36)) == 1


def test_of_several_things_the_most_salient_comes_first_and_sizes_do_not_matter():
    picture = blank(400, 600)
    picture[:, 20:60, 500:540] = 0
    picture[1:, 200:300, 100:300] = 0  # larger
    first, second = salient_boxes(picture, 10)
    assert np.abs(first - [100, 200, 300, 300]).max() <= 10
    assert np.abs(second - [500, 20, 540, 60]).max() <= 10
    assert len(salient_boxes(picture, 1)) == 1
    assert salient_boxes(blank(), 10).shape == (0, 4)


def test_non_maximum_suppression_by_hand():
    boxes = np.array([[0, 0, 10, 10], [0, 0, 10, 8], [0, 0, 10, 5], [20, 0, 30, 10]], np.float32)
    scores = np.array([0.9, 0.8, 0.7, 0.95], np.float32)
    # intersection over union with the first: 0.8 and 0.5; of the second with the third: 50 / 80
    assert best_apart(boxes, scores, 9, 0.7).tolist() == [3, 0, 2]
    assert best_apart(boxes, scores, 9, 0.8).tolist() == [3, 0, 1, 2]
    assert best_apart(boxes, scores, 9, 0.4).tolist() == [3, 0]
    assert best_apart(boxes, scores, 1, 0.7).tolist() == [3]
    assert best_apart(boxes[:0], scores[:0], 9, 0.7).tolist() == []


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("detectors")
    return {"detr": (folder / "detr", save_detr(folder / "detr")), "rt_detr": (folder / "rt_detr", save_rt_detr(folder / "rt_detr"))}


@pytest.mark.parametrize("kind", ["detr", "rt_detr"])
def test_regions_of_a_trained_detector_are_those_of_transformers(saved, kind):
    folder, model = saved[kind]
    picture = noise(50, 70)
    detector = build_detector(str(folder), QUERIES, 1.0, torch.device("cpu"))
    (found,) = detector([picture], [{}])
    assert detector.feature_size == SIZE
    assert found.features.shape == (len(found.boxes), SIZE)

    processor = AutoImageProcessor.from_pretrained(folder)
    inputs = processor(images=[picture.permute(1, 2, 0).numpy()], return_tensors="pt")
    with torch.no_grad():
        output = model(**inputs)
    # over all labels of a query transformers takes one for DETR, and any for RT-DETR: there the best of each query comes first
    theirs = processor.post_process_object_detection(output, threshold=0.0, target_sizes=[(50, 70)])[0]
    order = theirs["scores"].argsort(descending=True)
    best = theirs["boxes"][order][0].clamp(min=0).numpy()
    np.testing.assert_allclose(found.boxes[0], np.minimum(best, [70, 50, 70, 50]), atol=1e-3)
    scores = output.logits.softmax(-1)[..., :-1] if kind == "detr" else output.logits.sigmoid()
    query = int(scores[0].amax(-1).argmax())
    np.testing.assert_allclose(found.features[0], output.last_hidden_state[0, query].numpy(), atol=1e-5)
    np.testing.assert_allclose(scores[0].amax().item(), theirs["scores"].max().item(), rtol=1e-5)


def test_a_picture_has_the_same_regions_beside_any_others(saved):
    detector = build_detector(str(saved["detr"][0]), 7, 0.7, torch.device("cpu"))
    pictures = [noise(50, 70, 1), noise(64, 64, 2), noise(50, 70, 3)]
    together = detector(pictures, [{}] * 3)
    for picture, found in zip(pictures, together, strict=True):
        (alone,) = detector([picture], [{}])
        np.testing.assert_allclose(alone.boxes, found.boxes, atol=1e-3)
        np.testing.assert_allclose(alone.features, found.features, atol=1e-4)
        assert len(found.boxes) <= 7
        assert (found.boxes[:, 2:] > found.boxes[:, :2]).all()
        assert (found.boxes <= [picture.shape[2], picture.shape[1]] * 2).all()
    assert detector([], []) == []


def test_what_is_no_detector(saved, tmp_path):
    def refused(name, *words):
        with pytest.raises(UserError) as error:
            build_detector(str(name), 7, 0.7, torch.device("cpu"))
        assert all(word in str(error.value) for word in words), error.value

    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "cannot be loaded from this folder", "'grid'")
    config = ResNetConfig(embedding_size=8, hidden_sizes=[8], depths=[1], layer_type="basic")
    ResNetForImageClassification(config).save_pretrained(tmp_path / "classifier")
    (tmp_path / "classifier/preprocessor_config.json").write_text((saved["detr"][0] / "preprocessor_config.json").read_text())
    refused(tmp_path / "classifier", "cannot be loaded from this folder")
    save_detr(tmp_path / "other")
    values = json.loads((tmp_path / "other/config.json").read_text())
    (tmp_path / "other/config.json").write_text(json.dumps(values | {"decoder_layers": 2}))
    refused(tmp_path / "other", "the weights lack", "tensors")
    refused(tmp_path / "not" / "there", "neither a folder here nor to be had")
