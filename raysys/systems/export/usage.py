"""Examples for a model card, complete as they stand: each format's way to the same vectors."""

import json

import torch

from raysys.data.language_codes import language_ids
from raysys.models.backbones import TransformersFeatures
from raysys.models.heads import WhitenedHead
from raysys.systems.encoder import Encoder
from raysys.systems.export.image_folder import network_arguments, processor_arguments
from raysys.systems.globetrotter import Globetrotter
from raysys.systems.rc3.encoder import Rc3Encoder

_TEXTS = '["a red apple", "ein roter Apfel"]'


def usage(encoder: Encoder, formats: list[str]) -> list[str]:
    """A section for raysys and one for each of `formats`, in Markdown with one block of Python each.

    A block makes `sentences`, float [2, d], and, where the format knows images, `pictures`, float [1, d], of ``picture.jpg``.
    """
    makers = {"transformers": _transformers, "sentence-transformers": _sentence_transformers, "onnx": _onnx}
    if isinstance(encoder.system, Rc3Encoder):
        makers = {"transformers": _mbart}
    elif not isinstance(encoder.system, Globetrotter):
        makers = {}  # what makes a sentence vector of them is in raysys alone
    blocks = {"raysys": _raysys(encoder)} | {name: make(encoder) for name, make in makers.items() if name in formats}
    return ["\n".join([f"### {name}", "", "```python", *block, "```"]) for name, block in blocks.items()]


def _raysys(encoder: Encoder) -> list[str]:
    known = encoder.info["languages"]
    texts = f"{_TEXTS}, {json.dumps([known[0], known[-1]])}" if encoder.reads_languages else _TEXTS
    pictures = [
        'pictures = encoder.encode_images([Path("picture.jpg").read_bytes()])',
        f"print(pictures @ encoder.encode_captions_for_images({texts}).T)",
    ]
    return [
        *(["from pathlib import Path", ""] if encoder.has_images else []),
        "from raysys.systems.encoder import Encoder",
        "",
        'encoder = Encoder.load(".")',
        f"sentences = encoder.encode_texts({texts})",
        "print(sentences @ sentences.T)",
        *(pictures if encoder.has_images else []),
    ]


def _mbart(encoder: Encoder) -> list[str]:
    known = encoder.info["languages"]
    tags = encoder.tokenizer.convert_ids_to_tokens(list(language_ids(encoder.tokenizer, known).values()))
    texts = json.dumps([f"a red apple{tags[0]}", f"ein roter Apfel{tags[-1]}"], ensure_ascii=False)
    return [
        "import torch",
        "import torch.nn.functional as F",
        "from transformers import AutoTokenizer, MBartForConditionalGeneration",
        "",
        'tokenizer = AutoTokenizer.from_pretrained("text")',
        'network = MBartForConditionalGeneration.from_pretrained("text").eval()',
        f"texts = {texts}  # each with the token of its language behind it",
        'tokens = tokenizer(texts, padding=True, return_tensors="pt")',
        "with torch.inference_mode():",
        '    states = network.model.encoder(tokens["input_ids"], attention_mask=tokens["attention_mask"]).last_hidden_state',
        "sentences = F.normalize(states[:, 0], dim=-1)",
        "print(sentences @ sentences.T)",
    ]


def _sentence_transformers(encoder: Encoder) -> list[str]:
    trust = ", trust_remote_code=True" if encoder.system.text.settings.trigram_buckets else ""
    return [
        "from sentence_transformers import SentenceTransformer",
        "",
        f'model = SentenceTransformer("sentence-transformers"{trust})',
        f"sentences = model.encode({_TEXTS})",
        "print(model.similarity(sentences, sentences))",
    ]


def _onnx(encoder: Encoder) -> list[str]:
    pictures = [
        'pictures = encoder.encode_images([Image.open("picture.jpg")])',
        f"print(pictures @ encoder.encode_captions_for_images({_TEXTS}).T)",
    ]
    return [
        "import sys",
        "",
        *(["from PIL import Image", ""] if encoder.has_images else []),
        'sys.path.insert(0, "onnx")',
        "from raysys_onnx_encoder import OnnxEncoder",
        "",
        'encoder = OnnxEncoder("onnx")',
        f"sentences = encoder.encode_texts({_TEXTS})",
        "print(sentences @ sentences.T)",
        *(pictures if encoder.has_images else []),
    ]


def _transformers(encoder: Encoder) -> list[str]:
    settings, system, images = encoder.system.text.settings, encoder.system, encoder.has_images
    name = "caption_head" if system.has_caption_head else "image_caption_head" if images else ""
    return [
        *(["import sys", ""] if settings.trigram_buckets else []),
        "import torch",
        "import torch.nn.functional as F",
        *(["from PIL import Image"] if images else []),
        *(["from safetensors.torch import load_file"] if name else []),
        f"from transformers import {'AutoImageProcessor, ' * images}AutoModel, AutoTokenizer",
        *(
            ["", 'sys.path.insert(0, "text")', "from raysys_encoding import TextForm, encode_texts, pad_rows"]
            * bool(settings.trigram_buckets)
        ),
        *(_HEAD if name else []),
        "",
        f"texts = {_TEXTS}",
        'tokenizer = AutoTokenizer.from_pretrained("text")',
        'text = AutoModel.from_pretrained("text", add_pooling_layer=False).eval()',
        *(_TRIGRAMS if settings.trigram_buckets else ['tokens = tokenizer(texts, padding=True, truncation=True, return_tensors="pt")']),
        "with torch.inference_mode():",
        "    states = text(**tokens).last_hidden_state",
        *(["    pooled = states[:, 0]"] if settings.pooling == "cls" else _MEAN),
        f'    sentences = head("{name}", pooled)' if name else "    sentences = F.normalize(pooled, dim=-1)",
        "print(sentences @ sentences.T)",
        *(_pictures(encoder) if images else []),
    ]


_TRIGRAMS = [
    "# ids of character trigrams stand behind those of the tokenizer",
    "rows = encode_texts(tokenizer.backend_tokenizer, texts, TextForm(**text.config.text_form))",
    "ids, mask = map(torch.from_numpy, pad_rows([row for row, _ in rows], tokenizer.pad_token_id))",
    'tokens = {"input_ids": ids, "attention_mask": mask}',
]
_MEAN = [
    '    mask = tokens["attention_mask"].unsqueeze(-1)',
    "    pooled = (states * mask).sum(dim=1) / mask.sum(dim=1)",
]
_HEAD = """
heads = load_file("heads.safetensors")


def head(name, vectors):
    vectors = F.gelu(F.linear(vectors, heads[f"{name}.dense.weight"], heads[f"{name}.dense.bias"]))
    vectors = F.layer_norm(vectors, vectors.shape[-1:], heads[f"{name}.norm.weight"], heads[f"{name}.norm.bias"])
    return F.normalize(vectors, dim=-1)
""".splitlines()
_WHITENED = [
    '    whitened = (features - heads["image_head.mean"]) / heads["image_head.deviation"]',
    '    vectors = F.linear(whitened, heads["image_head.dense.weight"], heads["image_head.dense.bias"])',
    "    pictures = F.normalize(vectors, dim=-1)",
]


def _pictures(encoder: Encoder) -> list[str]:
    image = encoder.system.image
    network, processor = _arguments(network_arguments(image)), _arguments(processor_arguments(encoder.preprocess.settings))
    forward = _arguments(getattr(image.network, "arguments", {}))
    return [
        "",
        f'processor = AutoImageProcessor.from_pretrained("image"{processor})',
        f'image = AutoModel.from_pretrained("image"{network}).eval()',
        "with torch.inference_mode():",
        f'    output = image(**processor(Image.open("picture.jpg"), return_tensors="pt"){forward})',
        f"    features = output.{_features(encoder)}",
        *(_WHITENED if isinstance(encoder.system.image_head, WhitenedHead) else ['    pictures = head("image_head", features)']),
        "print(pictures)",
    ]


def _arguments(values: dict[str, bool]) -> str:
    return "".join(f", {name}={value}" for name, value in values.items())


def _features(encoder: Encoder) -> str:
    """What of the network's output is the picture's vector; as :class:`TransformersFeatures` takes it."""
    network, size = encoder.system.image.network, encoder.preprocess.settings.size
    if not isinstance(network, TransformersFeatures):
        return "pooler_output"
    with torch.inference_mode():
        output = network.model(pixel_values=torch.zeros(1, 3, size, size, device=encoder.device), **network.arguments)
    if output.get("pooler_output") is not None:
        return "pooler_output.flatten(1)"
    return "last_hidden_state.mean(dim=(2, 3))" if output.last_hidden_state.dim() == 4 else "last_hidden_state[:, 0]"
