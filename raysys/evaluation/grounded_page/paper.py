"""What was published: Tables 1 to 3 and the analyses of "Incorporating Visual Semantics into Sentence Representations within a Grounded
Space" (Bordes, Zablocki, Soulier, Piwowarski and Gallinari, EMNLP 2019), measured with BookCorpus and MS COCO.

Numbers stand as they are printed: out of 100.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

TEXT = " (text)"
"""End of a row's name: the same run, its sentences compared in the text space. CM has two rows in Table 1."""

STRUCTURE = {"eval/mNNO": "mNNO", "eval/rho_vis": "ρ_vis", "eval/C_inter": "C_inter", "eval/C_intra": "C_intra"}
"""Measures of a test split of captioned pictures → heading."""
STS = {"all": "STS/All", "captions": "STS/Cap", "news": "STS/News", "forum": "STS/Forum"}
"""Parts of the STS benchmark → heading."""
TASKS = {"MR": "MR", "CR": "CR", "SUBJ": "SUBJ", "MPQA": "MPQA", "MRPC": "MRPC", "SST2": "SST", "SNLI": "SNLI", "SICK-E": "SICK"}
"""Table 3's tasks of classification, as SentEval calls them → heading."""
AVERAGE = "AVG"


def sts_metric(part: str, coefficient: str = "spearman") -> str:
    """Metric of a part of STS."""
    return f"eval/STS_{part}_{coefficient}"


def task_metric(task: str, measure: str = "accuracy") -> str:
    """Metric of a task of classification."""
    return f"eval/senteval_{task}_{measure}"


SICK = "eval/SICK_spearman"
RELATEDNESS = {**{sts_metric(part): heading for part, heading in STS.items()}, SICK: "SICK"}
"""Metrics of semantic relatedness → heading."""

_TABLE_1_COLUMNS = (*STRUCTURE, *RELATEDNESS)
TABLE_1: dict[str, dict[str, float]] = {
    name: dict(zip(_TABLE_1_COLUMNS, numbers, strict=True))
    for name, numbers in {
        "t": (10.0, 4.1, 54.2, 70.1, 30, 41, 36, 21, 51),
        f"cm{TEXT}": (24.2, 12.8, 41.7, 74.8, 52, 76, 42, 37, 55),
        "p-id": (21.1, 37.9, 42.2, 69.3, 45, 66, 41, 34, 54),
        "c-id": (27.5, 10.5, 2.9, 84.7, 60, 83, 45, 20, 55),
        "cp-id": (27.9, 25.8, 6.7, 82.6, 61, 84, 46, 28, 57),
        "cm": (27.1, 19.2, 1.5, 85.8, 56, 78, 40, 34, 55),
        "p-g": (21.3, 32.4, 43.9, 73.3, 45, 66, 41, 37, 53),
        "c-g": (28.6, 9.4, 1.1, 88.5, 62, 83, 46, 29, 59),
        "cp-g": (28.9, 29.1, 4.7, 87.5, 63, 84, 48, 33, 60),
    }.items()
}
"""Row → metric → number, in the paper's order."""

_TABLE_3_COLUMNS = (*map(task_metric, TASKS), task_metric(AVERAGE))
TABLE_3: dict[str, dict[str, float]] = {
    name: dict(zip(_TABLE_3_COLUMNS, numbers, strict=True))
    for name, numbers in {
        "t-half": (72.7, 75.2, 90.6, 84.7, 71.8, 76.2, 68.8, 79.3, 77.4),
        "gs-cap": (72.0, 76.8, 90.7, 85.5, 72.9, 76.7, 73.7, 82.9, 78.4),
        "gs-img": (74.5, 79.3, 90.8, 87.8, 73.0, 80.0, 72.2, 80.9, 79.8),
        "gs-both": (72.5, 75.7, 90.7, 85.4, 72.9, 76.7, 72.2, 81.4, 78.4),
        "t": (75.9, 79.2, 92.0, 86.7, 72.2, 81.8, 72.0, 81.1, 80.1),
        "t-cm": (77.6, 81.4, 92.6, 88.3, 73.5, 82.0, 73.0, 81.4, 81.1),
        "seq": (76.1, 79.8, 92.5, 86.7, 70.0, 81.7, 67.3, 76.7, 78.9),
        "t-p-id": (77.5, 81.5, 92.7, 88.4, 73.7, 82.4, 72.4, 81.1, 81.2),
        "t-p-g": (77.8, 81.8, 93.0, 88.1, 73.3, 83.5, 72.8, 82.2, 81.6),
        "t-c-id": (77.5, 81.6, 92.8, 88.3, 72.9, 82.2, 73.1, 82.3, 81.3),
        "t-c-g": (77.3, 81.5, 92.8, 88.6, 73.6, 82.6, 74.1, 82.6, 81.6),
        "t-cp-id": (77.3, 81.2, 93.0, 88.4, 73.0, 82.5, 73.5, 82.1, 81.4),
        "t-cp-g": (77.4, 81.5, 93.0, 88.1, 73.2, 82.7, 73.9, 82.9, 81.6),
    }.items()
}
"""Row → metric → accuracy, in the paper's order."""

MRPC_F1 = dict(zip(TABLE_3, (79.2, 80.6, 80.3, 81.3, 80.2, 81.1, 79.5, 81.3, 81.6, 80.5, 81.1, 80.6, 80.9), strict=True))
"""Row → F1 of MRPC, which the table prints beside its accuracy."""

STARRED: dict[str, frozenset[str]] = {
    "t-half": frozenset(TASKS),
    "gs-cap": frozenset({"MR", "CR", "SUBJ", "MPQA", "SST2"}),
    "gs-img": frozenset({"MR", "CR", "SUBJ", "MPQA", "SST2", "SNLI", "SICK-E"}),
    "gs-both": frozenset({"MR", "CR", "SUBJ", "MPQA", "SST2", "SNLI", "SICK-E"}),
    "t": frozenset({"MR", "CR", "MPQA", "SST2", "SNLI", "SICK-E"}),
    "t-cm": frozenset({"SST2", "SICK-E"}),
    "seq": frozenset({"MR", "CR", "MPQA", "MRPC", "SST2", "SNLI", "SICK-E"}),
}
"""Row → tasks on which the paper found it to differ significantly from the best scenario."""

SCENARIOS = ("t-p-id", "t-p-g", "t-c-id", "t-c-g", "t-cp-id", "t-cp-g")
"""The paper's own models in Table 3, with the best of which the others are compared."""

CONCRETENESS = {"STS_captions": 3.10, "STS_news": 2.61, "STS_forum": 2.39}
"""Set → mean concreteness of its words, by ratings from 1 to 5."""
CONCRETENESS_GAIN = "+43 points for the first and +12 for the others"
SCENES = {"t": {"eval/C_inter": 19.0, "eval/C_intra": 22.0}, "cp-g": {"eval/C_inter": 11.0, "eval/C_intra": 27.0}}
"""Figure 3: row → measures of five scenes."""
NEIGHBOURS = (
    ("Two people are in love", "Two people are fencing indoors", "A couple just got married and are taking a picture with family"),
    ("A man is horrified", "A man and a woman are smiling", "A teenage boy wearing a cap looks irritated"),
    ("This is a tragedy", "A group of people are at a party", "Men doing a war reenactment"),
)
"""Table 2: query, nearest sentence of T, nearest sentence of C_g + P_g."""


@dataclass(frozen=True)
class Finding:
    """Something that the paper concludes from its tables, as pairs of rows."""

    claim: str
    metrics: Sequence[str]
    better: Sequence[str]
    """Rows, each of which is better than each of `worse`, or paired with them one by one."""
    worse: Sequence[str]
    paired: bool = False
    low: bool = False
    """The score is the better the lower it is."""

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """(better row, worse row)."""
        if self.paired:
            return list(zip(self.better, self.worse, strict=True))
        return [(better, worse) for better in self.better for worse in self.worse if better != worse]


_RIVALS = tuple(name for name in TABLE_1 if name != "cp-g")
_G, _ID = ("c-g", "p-g", "cp-g"), ("c-id", "p-id", "cp-id")
_AVERAGE = (task_metric(AVERAGE),)
FINDINGS: Mapping[str, Sequence[Finding]] = {
    "structure": (
        Finding("Grounding improves over T", ("eval/mNNO",), tuple(name for name in TABLE_1 if name != "t"), ("t",)),
        Finding("C_g + P_g keeps the neighbours of the pictures best", ("eval/mNNO",), ("cp-g",), _RIVALS),
        Finding("A grounded space is better than grounding the text space itself", ("eval/mNNO",), _G, _ID, paired=True),
        Finding(
            "Cluster information alone packs captions of one picture most",
            ("eval/C_intra",),
            ("c-id",),
            ("p-id", "cp-id", f"cm{TEXT}", "t"),
        ),
        Finding("Cluster information alone packs captions of one picture most", ("eval/C_intra",), ("c-g",), ("p-g", "cp-g", "cm")),
        Finding(
            "Cluster information alone parts different pictures most",
            ("eval/C_inter",),
            ("c-id",),
            ("p-id", "cp-id", f"cm{TEXT}", "t"),
            low=True,
        ),
        Finding("Cluster information alone parts different pictures most", ("eval/C_inter",), ("c-g",), ("p-g", "cp-g", "cm"), low=True),
        Finding(
            "Perceptual information alone correlates with the pictures most",
            ("eval/rho_vis",),
            ("p-id",),
            ("c-id", "cp-id", f"cm{TEXT}", "t"),
        ),
        Finding("Perceptual information alone correlates with the pictures most", ("eval/rho_vis",), ("p-g",), ("c-g", "cp-g", "cm")),
        Finding(
            "Perceptual information alone packs captions of one picture least",
            ("eval/C_intra",),
            ("p-id",),
            ("c-id", "cp-id", f"cm{TEXT}"),
            low=True,
        ),
        Finding(
            "Perceptual information alone packs captions of one picture least", ("eval/C_intra",), ("p-g",), ("c-g", "cp-g", "cm"), low=True
        ),
        Finding(
            "C + P has more of both than the projection CM",
            ("eval/rho_vis", "eval/C_intra"),
            ("cp-id", "cp-g"),
            (f"cm{TEXT}", "cm"),
            paired=True,
        ),
        Finding("C + P has more of both than the projection CM", ("eval/C_inter",), ("cp-id",), (f"cm{TEXT}",), low=True),
    ),
    "relatedness": (
        Finding("Grounding improves over T", (sts_metric("all"), SICK), tuple(name for name in TABLE_1 if name != "t"), ("t",)),
        Finding("C_g + P_g judges sentences best", (sts_metric("all"), SICK), ("cp-g",), _RIVALS),
        Finding(
            "A grounded space is better than grounding the text space itself",
            (sts_metric("all"), SICK),
            ("c-g", "cp-g"),
            ("c-id", "cp-id"),
            paired=True,
        ),
    ),
    "senteval": (
        Finding("Grounding improves over T", _AVERAGE, SCENARIOS, ("t",)),
        Finding("Learning jointly is better than sequentially", _AVERAGE, SCENARIOS, ("seq", "gs-img", "gs-cap", "gs-both")),
        Finding("GroundSent improves over T of half the size, and not over T", _AVERAGE, ("gs-cap", "gs-img", "gs-both"), ("t-half",)),
        Finding("GroundSent improves over T of half the size, and not over T", _AVERAGE, ("t",), ("gs-cap", "gs-img", "gs-both")),
        Finding("The structure of the pictures helps more than projecting onto them", _AVERAGE, SCENARIOS, ("t-cm",)),
        Finding(
            "A grounded space is better than grounding the text space itself",
            _AVERAGE,
            ("t-c-g", "t-p-g", "t-cp-g"),
            ("t-c-id", "t-p-id", "t-cp-id"),
            paired=True,
        ),
    ),
}
"""Kind of score → what the paper concludes. Where its words and its tables disagree, the tables count: of C_g + P_g and CM (vis.) it says
that the former has the lower C_inter, and prints 4.7 and 1.5; of P_g and P_id that the former judges sentences better, and prints less."""
