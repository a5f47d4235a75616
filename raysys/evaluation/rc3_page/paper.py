"""What the RC³ paper printed: the rows and columns of its Tables 1–5, and what it concludes from the ablations.

Numbers are as printed, out of 100, each table by itself: Table 4 prints other last digits of some retrieval scores than Table 2.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class PaperRow:
    """A row of the tables: a pre-trained system, and how it sees pictures in fine-tuning."""

    system: str
    """How it is pre-trained (:data:`raysys.systems.rc3.names.Rc3Name`)."""
    visual: Literal["patches", "regions", "combined"]
    label: str


ROWS: dict[str, PaperRow] = {
    "m3p": PaperRow("m3p", "regions", "M³P"),
    "muniter": PaperRow("muniter", "regions", "mUNITER"),
    "xuniter": PaperRow("xuniter", "regions", "xUNITER"),
    "uc2": PaperRow("uc2", "regions", "UC²"),
    "memad": PaperRow("memad", "regions", "MeMAD"),
    "vl-t5": PaperRow("vl-t5", "regions", "VL-T5"),
    "vl-bart": PaperRow("vl-bart", "regions", "VL-BART"),
    "rc3-patches": PaperRow("rc3", "patches", "RC³-Patch"),
    "rc3-regions": PaperRow("rc3", "regions", "RC³-ROI"),
    "rc3-combined": PaperRow("rc3", "combined", "RC³-Combined"),
    "rc3-no-kl": PaperRow("rc3-no-kl", "regions", "w/o KL"),
    "rc3-no-rxvtcl": PaperRow("rc3-no-rxvtcl", "regions", "w/o R-XVtCL"),
    "rc3-no-rxvtcl-xtcl": PaperRow("rc3-no-rxvtcl-xtcl", "regions", "w/o R-XVtCL & XTCL"),
}
"""Every row. The rivals saw regions alone, and the paper evaluates its ablations with regions."""

ZERO_SHOT_TASKS = ("xvnli", "xgqa", "marvl", "itr")
"""Fine-tuned in English, scored in every language."""
MMT = "mmt"
TASKS = {"xvnli": "XVNLI", "xgqa": "xGQA", "marvl": "MaRVL", "itr": "ITR", MMT: "MMT"}
"""What the tasks are called."""
SCORES = {"xvnli": "eval/accuracy", "xgqa": "eval/accuracy", "marvl": "eval/accuracy", "itr": "eval/recall", MMT: "eval/bleu"}
"""Task → the score that the tables print: accuracy, mean of both directions' recall@1, BLEU."""

MMT_ROWS = ("memad", "vl-t5", "vl-bart", "rc3-patches", "rc3-regions", "rc3-combined")
RIVAL_ROWS = ("m3p", "muniter", "xuniter", "uc2", "rc3-patches", "rc3-regions", "rc3-combined")
ABLATION_ROWS = ("rc3-combined", "rc3-regions", "rc3-no-kl", "rc3-no-rxvtcl", "rc3-no-rxvtcl-xtcl")

Column = tuple[str, str]
"""(task, test): a language, or of MMT a test set with its pair of languages such as `2016 en-de`."""
Table = Mapping[str, Mapping[Column, float]]
"""Row → column → number; a cell that the paper leaves empty is not there."""


def _table(columns: list[Column], rows: dict[str, list[float | None]]) -> dict[str, dict[Column, float]]:
    return {name: {c: v for c, v in zip(columns, values, strict=True) if v is not None} for name, values in rows.items()}


COLUMNS_1: list[Column] = [(task, "en") for task in ZERO_SHOT_TASKS]
TABLE_1 = _table(
    COLUMNS_1,
    {
        "m3p": [76.89, 53.75, 68.22, 27.97],
        "muniter": [76.38, 54.68, 71.91, 42.70],
        "xuniter": [75.77, 54.83, 71.55, 35.25],
        "uc2": [76.38, 55.19, 70.56, 35.97],
        "rc3-patches": [71.21, 41.36, None, None],
        "rc3-regions": [77.91, 54.13, 69.42, 41.12],
        "rc3-combined": [78.43, 55.92, 69.74, 41.30],
    },
)

COLUMNS_2: list[Column] = [
    ("xvnli", "fr"),
    *(("xgqa", tag) for tag in ("de", "id", "zh")),
    *(("marvl", tag) for tag in ("id", "zh")),
    *(("itr", tag) for tag in ("de", "ja", "zh")),
]
TABLE_2 = _table(
    COLUMNS_2,
    {
        "m3p": [56.36, 33.42, 32.58, 28.65, 56.47, 55.04, 12.60, 9.95, 15.60],
        "muniter": [59.36, 23.95, 9.36, 7.03, 54.79, 55.34, 11.95, 7.00, 11.60],
        "xuniter": [63.32, 34.83, 33.73, 19.55, 55.14, 53.06, 13.95, 10.50, 15.87],
        "uc2": [69.67, 42.85, 28.67, 31.16, 56.74, 59.88, 26.25, 23.32, 28.95],
        "rc3-patches": [64.43, 24.44, 22.53, 25.97, None, None, None, None, None],
        "rc3-regions": [71.65, 40.39, 29.24, 36.06, 57.80, 62.55, 35.20, 30.82, 35.52],
        "rc3-combined": [72.43, 43.69, 31.94, 39.49, 57.26, 60.77, 34.35, 30.90, 37.20],
    },
)

COLUMNS_3: list[Column] = [(MMT, f"{year} en-{tag}") for tag in ("de", "fr") for year in ("2016", "2017")]
TABLE_3 = _table(
    COLUMNS_3,
    {
        "memad": [38.9, 32.0, 62.2, 54.4],
        "vl-t5": [45.5, 40.9, None, None],
        "vl-bart": [41.3, 35.9, None, None],
        "rc3-patches": [45.49, 42.06, 68.29, 62.56],
        "rc3-regions": [45.73, 41.52, 68.38, 62.71],
        "rc3-combined": [45.86, 42.01, 68.50, 62.66],
    },
)

COLUMNS_4: list[Column] = [
    *(("xvnli", tag) for tag in ("en", "fr")),
    *(("xgqa", tag) for tag in ("en", "de", "id", "zh")),
    *(("marvl", tag) for tag in ("en", "id", "zh")),
    *(("itr", tag) for tag in ("en", "de", "ja", "zh")),
]
TABLE_4 = _table(
    COLUMNS_4,
    {
        "rc3-combined": [78.43, 72.43, 55.92, 43.69, 31.94, 39.49, 69.74, 57.26, 60.77, 41.30, 34.35, 30.90, 37.25],
        "rc3-regions": [77.91, 71.65, 54.13, 40.39, 29.24, 36.06, 69.42, 57.80, 62.55, 41.12, 35.22, 30.82, 35.55],
        "rc3-no-kl": [76.26, 70.69, 53.41, 43.49, 24.32, 33.27, 69.41, 55.31, 58.89, 40.60, 34.72, 29.15, 35.20],
        "rc3-no-rxvtcl": [74.34, 70.26, 52.63, 44.87, 20.06, 41.93, 69.28, 50.62, 57.41, 40.82, 34.02, 30.72, 35.02],
        "rc3-no-rxvtcl-xtcl": [76.17, 70.52, 52.43, 39.71, 11.17, 33.28, 68.83, 52.21, 56.42, 39.22, 33.80, 30.02, 34.70],
    },
)

LANGUAGES_5 = ("en", "de", "fr", "ja", "zh", "id")
TABLE_5: list[list[int]] = [
    [5_157_134, 739_697, 814_485, 376_759, 357_677, 163_442],
    [739_697, 3_248_830, 516_048, 199_996, 163_226, 77_632],
    [814_485, 516_048, 2_485_944, 223_177, 188_968, 91_712],
    [376_759, 199_996, 223_177, 1_032_183, 174_226, 67_030],
    [357_677, 163_226, 188_968, 174_226, 798_853, 66_294],
    [163_442, 77_632, 91_712, 67_030, 66_294, 266_144],
]
"""Pictures of D_w with texts in both languages; on the diagonal, with texts in the one."""

ORDER = (
    ("rc3-regions", "rc3-no-kl"),
    ("rc3-regions", "rc3-no-rxvtcl"),
    ("rc3-no-kl", "rc3-no-rxvtcl-xtcl"),
    ("rc3-no-rxvtcl", "rc3-no-rxvtcl-xtcl"),
)
"""(better, worse): RC³ > without KL or without R-XVtCL > without both, averaged over zero-shot languages."""
