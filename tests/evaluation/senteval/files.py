"""Small files in SentEval's layouts, with sentences whose words say the label, more or less."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np


def write(path: Path, lines: Sequence[str], encoding: str = "utf-8") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(f"{line}\n" for line in lines).encode(encoding))


def sentences(count: int, label: int, seed: int) -> list[str]:
    """Sentences of 3 to 6 words; of ten words in use, some are said more often with a label."""
    random = np.random.default_rng([seed, label])
    chances = np.roll(np.linspace(1, 5, 10), 4 * label)
    return [" ".join(f"w{word}" for word in random.choice(10, random.integers(3, 7), p=chances / chances.sum())) for _ in range(count)]


def polarity(folder: Path, positive: str = "rt-polarity.pos", negative: str = "rt-polarity.neg", count: int = 70) -> None:
    write(folder / positive, sentences(count, 1, 0))
    write(folder / negative, sentences(count + 11, 0, 0))


def pairs(count: int, classes: int, seed: int) -> list[tuple[str, str, int]]:
    random = np.random.default_rng(seed)
    found = []
    for first in sentences(count, 0, seed):
        label = int(random.integers(classes))
        words = first.split()
        if label:
            words[0] = f"w{random.integers(10)}"
        if label > 1:
            words = [*words[1:], "w9"]
        found.append((first, " ".join(words), label))
    return found


def sick(folder: Path, count: int = 90) -> None:
    names = ("ENTAILMENT", "NEUTRAL", "CONTRADICTION")
    for seed, name in enumerate(("train", "trial", "test_annotated")):
        rows = [f"{row}\t{a}\t{b}\t3.5\t{names[label]}" for row, (a, b, label) in enumerate(pairs(count, 3, seed))]
        write(folder / f"SICK_{name}.txt", ["pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment", *rows])


def mrpc(folder: Path, count: int = 120) -> None:
    for seed, name in enumerate(("train", "test")):
        rows = [f"{label}\t1\t2\t{a}\t{b}" for a, b, label in pairs(count, 2, seed)]
        write(folder / f"msr_paraphrase_{name}.txt", ["\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String", *rows])


def snli(folder: Path, count: int = 90) -> None:
    names = ("entailment", "neutral", "contradiction")
    for seed, name in enumerate(("train", "dev", "test")):
        made = pairs(count, 3, seed)
        for column, file in enumerate(("s1", "s2")):
            write(folder / f"{file}.{name}", [str(pair[column]) for pair in made])
        write(folder / f"labels.{name}", [names[label] for _, _, label in made])


def phrases(folder: Path, classes: int, line: Callable[[str, int], str], count: int = 60) -> None:
    for seed, name in enumerate(("train", "dev", "test")):
        texts = [line(text, label) for label in range(classes) for text in sentences(count // classes, label, seed)]
        write(folder / f"sentiment-{name}", texts)


def everything(folder: Path) -> None:
    """All nine tasks in one folder."""
    polarity(folder / "MR")
    polarity(folder / "CR", "custrev.pos", "custrev.neg")
    polarity(folder / "SUBJ", "subj.objective", "subj.subjective")
    polarity(folder / "MPQA", "mpqa.pos", "mpqa.neg")
    mrpc(folder / "MRPC")
    sick(folder / "SICK")
    snli(folder / "SNLI")
    phrases(folder / "SST" / "binary", 2, lambda text, label: f"{text}\t{label}")
    phrases(folder / "SST" / "fine", 5, lambda text, label: f"{label} {text}")


def bag_of_words(texts: Sequence[str]) -> np.ndarray:
    """float32 [n, 11]: counts of the ten words, and of all others."""
    found = np.zeros((len(texts), 11), dtype=np.float32)
    for row, text in enumerate(texts):
        for word in text.split():
            found[row, int(word[1]) if len(word) == 2 and word[0] == "w" else 10] += 1
    return found
