"""Records of all tasks and their images, small and made by hand; and a base for fine-tuning that was never trained."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from raysys.shards.sample import Sample
from raysys.shards.writer import write_shards
from raysys.storage import Storage
from tests.shards.tars import picture

IMAGES, REGION_SIZE = 12, 6
LABELS = ("entailment", "neutral", "contradiction")
ANSWERS = ("red", "two", "a ring")
TEXTS = {
    "en": ("a red circle", "two blue stars", "a ring", "four green squares"),
    "de": ("ein roter Kreis", "zwei blaue Sterne", "ein Ring", "vier grüne Quadrate"),
    "zh-Hans": ("红色的圆", "两颗蓝色的星", "一个环", "四个绿色的方块"),
}


def rois(number: int) -> bytes:
    """Of image `number`: 1 to 3 regions, whose features are its number and theirs."""
    count, buffer = 1 + number % 3, io.BytesIO()
    features = np.full((count, REGION_SIZE), number, np.float32) + np.arange(count, dtype=np.float32)[:, None] / 8
    boxes = np.array([[4 * place, 3, 4 * place + 8, 9] for place in range(count)], np.float32)
    np.savez(buffer, features=features, boxes=boxes, size=np.array([16, 12], np.int32))
    return buffer.getvalue()


def image_sample(number: int, regions: bool = True, split: str = "images", **more: Any) -> Sample:
    """An image of key ``pic-<number>``."""
    metadata = {"texts": {}, "image": f"pic-{number}.jpg"} | more
    return Sample(split, f"pic-{number}", picture(number), "png", metadata, {"rois.npz": rois(number)} if regions else {})


def text_of(number: int, language: str) -> str:
    return f"{TEXTS[language][number % 4]} {number}"


def record(task: str, number: int, language: str = "en", **changed: Any) -> Sample:
    """Record `number` of a published task about image ``pic-<number mod IMAGES>``."""
    images = [f"pic-{number % IMAGES}", f"pic-{(number + 1) % IMAGES}"][: 2 if task in ("nlvr2", "marvl") else 1]
    texts = [text_of(number, language)] if task not in ("flickr30k",) else [text_of(number, language), f"{text_of(number, language)} !"]
    published = {
        "xvnli": {"gold_label": LABELS[number % 3]},
        "xgqa": {"answer": ANSWERS[number % 3]},
        "nlvr2": {"label": "True" if number % 2 else "False"},
        "marvl": {"label": bool(number % 2)},
    }.get(task, {})
    fields = {"texts": {language: texts}, "images": images, "task": task, "id": f"r{number}", "record": published} | changed
    return Sample(task, f"{number:07d}", None, metadata=fields)


def translation(number: int, **changed: Any) -> Sample:
    """Captions of image ``pic-<number>`` in English and German."""
    captions = {language: [text_of(number, language)] for language in ("en", "de")}
    return Sample("mmt", f"{number:06d}", None, metadata={"captions": captions, "group": f"pic-{number % IMAGES}"} | changed)


def write(folder: Path | str, samples: list[Sample], shards: int = 2) -> str:
    write_shards(samples, str(folder), shards, Storage())
    return str(folder)


def write_world(folder: Path, records: int = 24) -> str:
    """A folder of data with the splits of all tasks."""
    write(folder / "images", [image_sample(number) for number in range(IMAGES)])
    for task, train in (("xvnli", "xvnli"), ("xgqa", "xgqa"), ("marvl", "nlvr2"), ("itr", "flickr30k")):
        test = {"itr": "xflickrco", "marvl": "marvl"}.get(task, train)
        count = IMAGES if task == "itr" else records
        write(folder / f"{train}-train-en", [record(train, number) for number in range(count)])
        for language in ("en", "de"):
            write(folder / f"{test}-test-{language}", [record(test, number, language) for number in range(IMAGES)])
    write(folder / "mmt-train", [translation(number) for number in range(IMAGES)])
    return str(folder)


def write_base(folder: Path) -> str:
    """The folder of a run that looks as if RC³ had been pre-trained in it: settings, and an export of random weights."""
    import torch
    from safetensors.torch import save_file

    from raysys.data.images import ImagePreprocessorSettings
    from raysys.data.multilingual_tokenizer import train_multilingual_tokenizer
    from raysys.models.visual_mbart import VisualMBart, VisualMBartSettings
    from raysys.runs.rc3.settings import Rc3DataSettings, Rc3Settings
    from raysys.settings import dumps
    from raysys.systems.rc3.heads import MatchingHead
    from raysys.systems.rc3.settings import Rc3ModelSettings
    from raysys.training.settings import RunSettings

    tokenizer = train_multilingual_tokenizer([text for texts in TEXTS.values() for text in texts], tuple(TEXTS), 300, 24)
    sizes: dict[str, Any] = {"size": 16, "layers": 1, "decoder_layers": 1, "heads": 2, "feed_forward": 32, "regions": 2}
    network = VisualMBartSettings(
        **sizes, region_size=REGION_SIZE, patch=8, image_size=16, max_tokens=24, vocabulary_size=len(tokenizer), dropout=0.0
    )
    image = ImagePreprocessorSettings(size=16)
    settings = Rc3Settings(
        run=RunSettings(name=folder.name, storage=str(folder.parent)),
        data=Rc3DataSettings(image=image, languages=tuple(TEXTS)),
        model=Rc3ModelSettings(network=network),
    )
    torch.manual_seed(1)
    (folder / "export").mkdir(parents=True)
    (folder / "settings.yaml").write_text(dumps(settings))
    VisualMBart(network).save_pretrained(folder / "export" / "text")
    tokenizer.save_pretrained(folder / "export" / "text")
    save_file({f"matching.{name}": value for name, value in MatchingHead(16).state_dict().items()}, folder / "export" / "heads.safetensors")
    card = {"system": "rc3", "preprocessing": image.model_dump(mode="json"), "info": {"languages": list(TEXTS)}}
    (folder / "export" / "raysys.json").write_text(json.dumps(card))
    return str(folder)
