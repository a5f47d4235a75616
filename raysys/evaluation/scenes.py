"""Sentences of a few scenes on a map: t-SNE, with how closely each scene keeps together (Figure 3)."""

from collections.abc import Sequence

import numpy as np
from sklearn.manifold import TSNE

from raysys.evaluation.grounded_page.examples import SceneMap, ScenePoint
from raysys.evaluation.ranking import unit_vectors
from raysys.evaluation.structure import clusters

_PERPLEXITY = 30.0
"""Of the paper on t-SNE (van der Maaten and Hinton 2008) it is the middle of the range; less where there are few sentences."""


def choose_scenes(
    texts: Sequence[str], scenes: Sequence[str | None], count: int = 5, each: int = 50, least: int = 5, seed: int = 0
) -> list[int]:
    """Rows of sentences of `count` scenes drawn by `seed`, scene after scene; none where fewer than two scenes have enough sentences.

    A scene is what groups the sentences, such as the category of their pictures. The choice knows nothing of any system, so that
    all systems show the same sentences.

    Args:
        texts: sentences; one that occurs in several scenes belongs to none, and equal ones of a scene are one.
        scenes: of each sentence; None: it has none.
        count: most scenes.
        each: most sentences of a scene, drawn by `seed` too.
        least: a scene with fewer sentences is not drawn.
        seed: same sentences and seed: same rows.
    """
    of: dict[str, set[str]] = {}
    for text, scene in zip(texts, scenes, strict=True):
        if scene is not None:
            of.setdefault(text, set()).add(scene)
    holding: dict[str, dict[str, int]] = {}
    for row, (text, scene) in enumerate(zip(texts, scenes, strict=True)):
        if scene is not None and len(of[text]) == 1:
            holding.setdefault(scene, {}).setdefault(text, row)
    enough = sorted(scene for scene, its_texts in holding.items() if len(its_texts) >= max(2, least))
    if len(enough) < 2:
        return []
    generator = np.random.default_rng(seed)
    chosen: list[int] = []
    for scene in generator.permutation(enough)[:count].tolist():
        chosen += sorted(generator.permutation(list(holding[scene].values()))[:each].tolist())
    return chosen


def scene_map(vectors: np.ndarray, texts: Sequence[str], scenes: Sequence[str], seed: int = 0) -> SceneMap:
    """Lay sentences out in the plane by t-SNE of the cosines of their vectors, deterministic by `seed`.

    C_intra and C_inter are those of :func:`raysys.evaluation.structure.clusters`, of the vectors themselves. The exact gradient is
    computed, whose cost grows with the square of the number of sentences: a few hundred take seconds.

    Args:
        vectors: float [n, d]; need not be normalised.
        texts: the sentences.
        scenes: of each; at least two scenes, of at least two sentences each.
        seed: of t-SNE.

    Raises:
        ValueError: too few scenes, or a scene of one sentence.
        RunFailed: vectors that are not finite.
    """
    counts = {scene: list(scenes).count(scene) for scene in dict.fromkeys(scenes)}
    if len(counts) < 2 or min(counts.values()) < 2:
        raise ValueError(f"a map needs two scenes of two sentences each, not {counts}")
    unit = unit_vectors(vectors, "sentences").numpy()
    spread = unit.shape[1] > 1 and np.ptp(unit, axis=0).any()  # without any, there are no principal axes to begin with
    network = TSNE(perplexity=min(_PERPLEXITY, (len(unit) - 1) / 3), init="pca" if spread else "random", method="exact", random_state=seed)
    points = network.fit_transform(unit)  # of unit vectors the squared distance is 2 − 2 cos
    cosines = clusters(vectors, scenes)
    return SceneMap(
        [ScenePoint(text, scene, x, y) for text, scene, (x, y) in zip(texts, scenes, points.tolist(), strict=True)],
        cosines.intra,
        cosines.inter,
        {scene: cosines.groups[scene] for scene in counts},
    )
