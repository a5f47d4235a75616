"""Files of STS and SICK as SentEval's scripts leave them, with made-up sentences."""

import numpy as np

from raysys.evaluation.rated_pairs import YEARS

COUNTS = {"captions": 5, "news": 4, "forum": 3}


def write(path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def rows(seed: int, n: int) -> list[tuple[str, str, float]]:
    generator = np.random.default_rng(seed)
    return [(f"a {seed} {i} sentence .", f"another “{i % 3}” {seed}", float(generator.integers(0, 26) / 5)) for i in range(n)]


def write_year(folder, parts, n=6) -> None:
    for seed, part in enumerate(parts):
        data = rows(seed, n)
        write(folder / f"STS.input.{part}.txt", *(f"{first}\t{second}" for first, second, _ in data))
        write(folder / f"STS.gs.{part}.txt", *(f"{rating:g}" for _, _, rating in data))


def write_benchmark(folder, counts=COUNTS) -> None:
    for split in ("train", "dev", "test"):
        lines = []
        for genre, n in counts.items():
            named = "forums" if (genre, split) == ("forum", "test") else genre
            lines += [f"main-{named}\tMSRvid\t2012{split}\t{i:04}\t{r:.3f}\t{a}\t{b}" for i, (a, b, r) in enumerate(rows(len(genre), n))]
        write(folder / f"sts-{split}.csv", *lines)


def write_sick(folder) -> None:
    for seed, split in enumerate(("train", "trial", "test_annotated")):
        heading = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
        write(folder / f"SICK_{split}.txt", heading, *(f"{i}\t{a}\t{b}\t{r}\tNEUTRAL" for i, (a, b, r) in enumerate(rows(seed, 7))))


def write_all(folder) -> None:
    """All that SentEval has."""
    for year, parts in YEARS.items():
        write_year(folder / "STS" / year, parts)
    write_benchmark(folder / "STS" / "STSBenchmark")
    write_sick(folder / "SICK")
