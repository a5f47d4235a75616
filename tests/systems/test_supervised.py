"""The supervised system: its loss knows the translations, and everything else is Globetrotter's."""

import dataclasses

import pytest
import torch

from raysys.objectives.translation import translation_loss
from raysys.systems.globetrotter import Globetrotter
from raysys.systems.supervised import Supervised
from tests.training.worlds import batch, model_settings, objective, tiny_backbone


@pytest.fixture(scope="module")
def backbone(tmp_path_factory) -> str:
    return tiny_backbone(tmp_path_factory.mktemp("backbone"))


def make(kind: type[Globetrotter], backbone: str, **weights: float) -> Globetrotter:
    torch.manual_seed(3)
    return kind(model_settings(backbone), objective(**weights)).eval()


def translated(number: int = 0):
    """A batch in which the last row has no translation, and the first two say the same."""
    given = batch(number)
    rows = len(given.ids)
    concepts = torch.arange(rows)
    concepts[1] = concepts[0]
    return dataclasses.replace(
        given,
        translation_ids=torch.roll(given.input_ids, 1, dims=0),
        translation_mask=torch.roll(given.attention_mask, 1, dims=0),
        translated=torch.arange(rows) < rows - 1,
        concepts=concepts,
    )


@pytest.mark.parametrize("cloze", [0.0, 1.0])
def test_the_caption_loss_is_over_captions_and_their_translations(backbone, cloze):
    system, given = make(Supervised, backbone, cloze=cloze), translated()
    vectors = system(given)
    captions = system.sentence_vectors(given.input_ids, given.attention_mask, given.languages)
    others = system.sentence_vectors(given.translation_ids, given.translation_mask, given.languages)
    assert vectors["caption"].allclose(captions, atol=1e-5)
    assert vectors["translation"].allclose(others, atol=1e-5)
    known = given.translated
    temperature = system.objective.temperature.transitive
    expected = translation_loss(torch.cat([captions, others[known]]), temperature, torch.cat([given.concepts, given.concepts[known]]))
    assert system.losses(vectors)["transitive"].item() == pytest.approx(expected.item(), rel=1e-5)


def test_all_other_terms_and_weights_are_those_of_globetrotter(backbone):
    told, plain, given = make(Supervised, backbone), make(Globetrotter, backbone), translated()
    assert told.state_dict().keys() == plain.state_dict().keys()
    ours, theirs = told.losses(told(given)), plain.losses(plain(given))
    assert ours.keys() == theirs.keys()
    for name in ours.keys() - {"transitive"}:
        assert ours[name].item() == pytest.approx(theirs[name].item(), rel=1e-4), name
    assert ours["transitive"].item() != pytest.approx(theirs["transitive"].item(), rel=1e-3)


def test_every_trained_weight_has_a_gradient(backbone):
    system = make(Supervised, backbone)
    system.total(system.losses(system(translated()))).backward()
    assert all(parameter.grad is not None for parameter in system.parameters() if parameter.requires_grad)


def test_rows_divided_among_workers_give_the_same_losses(backbone):
    system, given = make(Supervised, backbone), translated()
    rows = len(given.ids)
    parts = [system(given.rows(start, stop)) for start, stop in ((0, 3), (3, 4), (4, rows))]
    together = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
    for name, term in system.losses(system(given)).items():
        assert system.losses(together)[name].item() == pytest.approx(term.item(), rel=1e-5), name


def test_a_batch_without_translations_is_refused(backbone):
    with pytest.raises(ValueError, match="translations"):
        make(Supervised, backbone)(batch(0))
