"""sentence-transformers reads the export by itself and gives the same vectors."""

import json
import random
import subprocess
import sys

import numpy as np
import pytest

from raysys.errors import RunFailed, UserError
from raysys.systems.export import agreement
from raysys.systems.export.sentence_transformers_export import export_sentence_transformers
from tests.systems.export.encoders import KINDS, make

RANGES = [(0x41, 0x7A), (0xC0, 0x17F), (0x391, 0x3C9), (0x410, 0x44F), (0x531, 0x556), (0x5D0, 0x5EA), (0x620, 0x64A), (0x904, 0x939)]
RANGES += [(0xE01, 0xE2E), (0x10D0, 0x10F0), (0x1200, 0x1248), (0x3041, 0x30FF), (0x4E00, 0x9FA5), (0xAC00, 0xD7A3), (0x1F300, 0x1F5FF)]
LINES = [
    " ".join(
        "".join(chr(random.Random(f"{script} {line} {word}").randint(*RANGES[script])) for _ in range(1 + word))
        for word in range(line % 9 + 1)
    )
    for script in range(len(RANGES))
    for line in range(67)
] + ["  spaces  ", "e\u0301 zero\u200bwidth", "ﾊﾝｶｸ", "İIıi", "[MASK] [CLS]"]
ENCODE = """
import json, sys
from pathlib import Path
import numpy as np
from sentence_transformers import SentenceTransformer
from transformers import AutoImageProcessor, AutoModel
root = Path(sys.argv[1])
lines = json.loads((root / "lines.json").read_text())
for folder in root.glob("*/sentence-transformers"):
    model = SentenceTransformer(str(folder), device="cpu", trust_remote_code=folder.parent.name == "trigrams")
    np.save(folder / "vectors.npy", model.encode(lines))
AutoModel.from_pretrained(root / "trigrams" / "image", trust_remote_code=True)
AutoImageProcessor.from_pretrained(root / "trigrams" / "image", trust_remote_code=True)
"""


@pytest.fixture(scope="module")
def encoders(tmp_path_factory):
    """One encoder of each kind."""
    return {kind: make(kind, tmp_path_factory.mktemp(kind)) for kind in KINDS}


@pytest.fixture(scope="module")
def exports(encoders, tmp_path_factory):
    """Their exports, in folders of their names."""
    root = tmp_path_factory.mktemp("exports")
    for kind, encoder in encoders.items():
        assert export_sentence_transformers(encoder, root / kind / "sentence-transformers") < 1e-6
    encoders["trigrams"].save(root / "trigrams")
    return root


@pytest.mark.slow
def test_a_thousand_lines_in_a_process_without_raysys(encoders, exports, without_raysys):
    assert len(LINES) >= 1000
    (exports / "lines.json").write_text(json.dumps(LINES))
    done = subprocess.run([sys.executable, "-c", ENCODE, exports], capture_output=True, text=True, env=without_raysys, check=False)
    assert done.returncode == 0, done.stderr
    for kind, encoder in encoders.items():
        vectors = np.load(exports / kind / "sentence-transformers" / "vectors.npy")
        assert (vectors * encoder.encode_texts(LINES)).sum(axis=1).min() >= 0.99999, kind


@pytest.mark.parametrize("kind", KINDS)
def test_only_trigrams_need_code(exports, kind):
    folder = exports / kind / "sentence-transformers"
    code = sorted(path.name for path in folder.rglob("*.py"))
    assert code == (["raysys_encoding.py", "raysys_trigram_transformer.py"] if kind == "trigrams" else [])
    types = [module["type"] for module in json.loads((folder / "modules.json").read_text())]
    assert all(name.startswith("sentence_transformers.") for name in types[1:])
    assert types[0].startswith("sentence_transformers.") == (kind != "trigrams")


def test_without_trust_the_code_is_refused_by_name(trigrams, tmp_path):
    from sentence_transformers import SentenceTransformer

    export_sentence_transformers(trigrams, tmp_path)
    with pytest.raises(ValueError, match="trust_remote_code=True"):
        SentenceTransformer(str(tmp_path), device="cpu")


def test_an_export_that_differs_is_refused(trigrams, tmp_path, monkeypatch):
    monkeypatch.setattr(agreement, "TOLERANCE", 1e-12)
    with pytest.raises(RunFailed, match=r"the sentence-transformers folder: differs from the trained encoder by \d\.\de-\d\d"):
        export_sentence_transformers(trigrams, tmp_path)


def test_a_missing_package_is_named(trigrams, tmp_path, monkeypatch):
    monkeypatch.setattr(agreement.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"needs the package sentence_transformers: pip install 'raysys\[export\]'"):
        export_sentence_transformers(trigrams, tmp_path)
