import torch
from torch import nn

from raysys.training.live import LiveBytes

FLOAT = 4


def test_tensors_count_while_something_holds_them():
    before = torch.zeros(1000)
    with LiveBytes() as live:
        first = before + 1
        assert live.now == 1000 * FLOAT
        view = first[:10]
        before.add_(1)
        second = first.double()
        assert live.now == 1000 * (FLOAT + 8), "views and what existed before count nothing"
        del second
        assert live.now == 1000 * FLOAT
        del first
        assert live.now == 1000 * FLOAT, "the view still holds all of it"
        del view
        assert live.now == 0
        assert live.peak == 1000 * (FLOAT + 8)
        live.forget_peak()
        torch.empty(7, device="meta")
        assert live.peak == 0


def test_what_forward_keeps_is_what_autograd_saves():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(20, 30), nn.GELU(), nn.LayerNorm(30), nn.Linear(30, 5), nn.Softmax(-1))
    batch = torch.randn(8, 20)
    outside = {one.untyped_storage().data_ptr() for one in (batch, *network.parameters())}
    saved: dict[int, int] = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in outside:
            saved[storage.data_ptr()] = storage.nbytes()
        return tensor.detach()

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = network(batch)
    saved[output.untyped_storage().data_ptr()] = output.untyped_storage().nbytes()
    with LiveBytes() as live:
        again = network(batch)
        assert live.now == sum(saved.values())
        assert live.now > 8 * (30 + 30 + 5) * FLOAT
        again.sum().backward()
        again = None
        gradients = sum(parameter.numel() for parameter in network.parameters()) * FLOAT
        assert live.now == gradients
