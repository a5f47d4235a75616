"""What a report is made from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from raysys.evaluation.examples import TransitiveMatch, TranslationExample

TRANSLATION_SCORES = (
    "R@1 is the share of sentences whose nearest sentence in another language is its translation, averaged over ordered pairs "
    "of languages. “Share in top M − 1” ranks the sentences of all M − 1 other languages together and counts the true translations "
    "among the first M − 1. Ties count with the expected value of a random order."
)
STRUCTURE_SCORES = (
    "mNNO is the mean share of nearest neighbours that a caption and its picture have in common, each in its own space; ρ_vis the "
    "correlation of the cosines of captions with those of their pictures; C_intra and C_inter the mean cosine of captions of one "
    "picture and of different ones. STS and SICK are Spearman's correlation of cosines with people's ratings; the rest is the accuracy "
    "of logistic regression on the sentences' vectors."
)


@dataclass(frozen=True)
class ReportData:
    """Everything a report shows. All of it is text or numbers from elsewhere and is escaped; an empty field leaves its part out."""

    title: str
    summary: str = ""
    """What was run, in a sentence or two."""
    facts: Sequence[tuple[str, str]] = ()
    """Short label–value pairs under the title: data, steps, duration, seed …"""
    results: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    """System → test split → result of `scores.score`, in the order to be shown."""
    this: str = "this run"
    """Which system of `results` the report is about."""
    rival: str = ""
    """The system whose scores the headline figures are compared with, such as the same model without L_t."""
    explained: str = TRANSLATION_SCORES
    """What the scores mean."""
    split_notes: Mapping[str, str] = field(default_factory=dict)
    """Test split → what it holds."""
    metrics: Sequence[Mapping[str, Any]] = ()
    """Lines of metrics.jsonl."""
    translations: Mapping[str, Sequence[TranslationExample]] = field(default_factory=dict)
    """Test split → examples."""
    matches: Sequence[TransitiveMatch] = ()
    margin: float = 0.4
    """m of the transitive similarity, named in the text beside `matches`."""
    failures: Sequence[TranslationExample] = ()
    samples: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Split → language → samples."""
    bad_samples: Sequence[tuple[str, str]] = ()
    """(shard, key and member; reason) of each sample that could not be used."""
    settings: str = ""
    """The resolved settings, YAML."""
    commands: Sequence[tuple[str, str]] = ()
    """(what it does, command line)."""
