"""Which row of the batch stands as an example of another picture: s⁻ and i⁻."""

import torch
from torch import Tensor


@torch.no_grad()
def negative_rows(image_ids: Tensor, draws: Tensor) -> Tensor:
    """For each row one that shows another picture, all of these being as likely: int64 [N].

    A function of what it is given alone: workers that hold the same rows choose the same negatives. Time and memory are for the rows,
    not for their pairs.

    Args:
        image_ids: int64 [N]; equal numbers mean the same picture, 0 a row without one, which gets no negative and is nobody's.
        draws: float [N] in [0, 1), uniform: which of its candidates a row gets.

    Returns:
        −1 where there is no candidate.
    """
    pictured = image_ids.nonzero()[:, 0]
    ids, order = torch.sort(image_ids[pictured], stable=True)
    # In the order of their pictures a row's candidates are all rows but one run, that of its own picture.
    own_from, own_to = (torch.searchsorted(ids, image_ids[pictured], right=right) for right in (False, True))
    candidates = len(ids) - (own_to - own_from)
    place = (draws[pictured].double() * candidates).long().minimum(candidates - 1)
    place = torch.where(place >= own_from, place + own_to - own_from, place)
    found = candidates > 0
    negatives = torch.full_like(image_ids, -1)
    negatives[pictured[found]] = pictured[order[place[found]]]
    return negatives
