"""Training SkipThought: our networks beside the loop that one would write with :class:`torch.nn.GRU`, from the same weights."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from raysys.benchmarks.measure import ratio
from raysys.benchmarks.step import StepTimes, greatest_difference, plain_step, time_steps
from raysys.data.encoding import encode_texts, pad_rows
from raysys.data.tokenizer import SPECIALS
from raysys.data.word_tokenizer import train_word_tokenizer
from raysys.errors import UserError
from raysys.models.skip_thought import NeighbourDecoders, SentenceEncoder, Sentences, SkipThoughtSettings

PADDED, PACKED, OURS = "plain PyTorch, padded", "plain PyTorch, packed", "raysys"


@dataclass(frozen=True)
class Triples:
    """A batch of sentences with those before and after them."""

    this: Sentences
    previous: Sentences
    next: Sentences

    def __len__(self) -> int:
        return len(self.this[0])


class OurNetworks(nn.Module):
    """Encoder and decoders as the systems train them."""

    def __init__(self, settings: SkipThoughtSettings):
        super().__init__()
        self.encoder = SentenceEncoder(settings)
        self.decoders = NeighbourDecoders(settings, self.encoder.words)

    def forward(self, batch: Triples) -> dict[str, Tensor]:
        return {"loss": self.decoders(self.encoder(*batch.this), [batch.previous, batch.next])[0]}

    def losses(self, rows: dict[str, Tensor]) -> dict[str, Tensor]:
        """Mean over the sentences of both neighbours' negative log-likelihood."""
        return {"text": rows["loss"].mean()}

    def total(self, terms: dict[str, Tensor]) -> Tensor:
        """The only term."""
        return terms["text"]


class PlainNetworks(OurNetworks):
    """The same in plain PyTorch, with the weights of `ours`.

    Args:
        ours: whose weights it begins with.
        packed: leave padding out with what torch has for it; otherwise every network runs over the padded batch, and the loss alone
            leaves padding out.
    """

    def __init__(self, ours: OurNetworks, packed: bool):
        nn.Module.__init__(self)
        encoder, decoders = ours.encoder, ours.decoders
        self.packed = packed
        self.words = nn.Embedding.from_pretrained(encoder.words.weight.detach().clone(), freeze=False)
        self.reader = _torch_gru(encoder.reader.get_submodule("gru"))
        self.writers = nn.ModuleList([_torch_gru(decoders.previous), _torch_gru(decoders.next)])
        self.vocabulary = nn.Linear(decoders.previous.size, len(self.words.weight))
        self.vocabulary.load_state_dict(decoders.vocabulary.state_dict())

    def forward(self, batch: Triples) -> dict[str, Tensor]:
        vectors = self._read(*batch.this)
        parts = [self._written(writer, vectors, *part) for writer, part in zip(self.writers, (batch.previous, batch.next), strict=True)]
        return {"loss": torch.stack(parts).sum(dim=0)}

    def _read(self, ids: Tensor, mask: Tensor) -> Tensor:
        words, lengths = self.words(ids), mask.sum(dim=1)
        if self.packed:
            return self.reader(pack_padded_sequence(words, lengths.cpu(), batch_first=True, enforce_sorted=False))[1][0]
        states = self.reader(words)[0]
        return states[torch.arange(len(ids)), lengths - 1]

    def _written(self, writer: nn.Module, vectors: Tensor, ids: Tensor, mask: Tensor) -> Tensor:
        labels, present = ids[:, 1:], mask[:, 1:].bool()
        read = torch.cat([self.words(ids[:, :-1]), vectors[:, None].expand(-1, labels.shape[1], -1)], dim=2)
        if not self.packed:
            losses = F.cross_entropy(self.vocabulary(writer(read)[0]).transpose(1, 2), labels, reduction="none")
            return (losses * present).sum(dim=1)
        packed = pack_padded_sequence(read, present.sum(dim=1).cpu(), batch_first=True, enforce_sorted=False)
        rows = torch.arange(len(ids))[:, None].expand_as(labels)
        chosen, owners = (
            PackedSequence(*pack_padded_sequence(part, present.sum(dim=1).cpu(), True, False)).data for part in (labels, rows)
        )
        losses = F.cross_entropy(self.vocabulary(writer(packed)[0].data), chosen, reduction="none")
        return losses.new_zeros(len(ids)).index_add(0, owners, losses)


def _torch_gru(ours: nn.Module) -> nn.GRU:
    """torch's GRU with the weights of `ours`; a condition becomes a part of its input."""
    weights = dict(ours.named_parameters())
    inputs = torch.cat([weights["weight_ih"], *([weights["weight_ch"]] if "weight_ch" in weights else [])], dim=1)
    network = nn.GRU(inputs.shape[1], weights["weight_hh"].shape[1], batch_first=True)
    network.load_state_dict(
        {f"{name}_l0": {**weights, "weight_ih": inputs}[name] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
    )
    return network


def made_up_sentences(count: int, words: int, most: int, seed: int = 0) -> list[list[int]]:
    """Ids of sentences: their lengths and the frequencies of their words are about those of novels (log-normal, Zipf's law).

    Args:
        count: of sentences.
        words: of the vocabulary, special tokens included.
        most: words of a sentence.
        seed: of the random numbers.
    """
    draw = random.Random(seed)
    ordinary = range(len(SPECIALS), words)
    weights = list(accumulate(1 / (rank + 3) for rank in range(len(ordinary))))
    lengths: list[int] = []
    while len(lengths) < count:
        length = round(draw.lognormvariate(2.4, 0.7))
        if 1 <= length <= most:
            lengths.append(length)
    return [[2, *draw.choices(ordinary, cum_weights=weights, k=length), 3] for length in lengths]


def sentences_of(path: str, words: int, most: int) -> list[list[int]]:
    """Ids of the sentences of a text file, one a line, in order; longer ones than `most` words are left out.

    Raises:
        UserError: the file cannot be read, or holds too little.
    """
    try:
        lines = [line for line in Path(path).read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read sentences from {path}: {error}") from None
    settings = SkipThoughtSettings(max_words=most, vocabulary_size=words)
    tokenizer = train_word_tokenizer(lines, words, settings.form.max_tokens)
    return [ids for ids, cut in encode_texts(tokenizer.backend_tokenizer, lines, settings.form) if not cut]


def bucketed(sentences: Sequence[list[int]], batch_size: int, batches: int, window: int = 32, seed: int = 0) -> Iterator[Triples]:
    """Batches of triples whose middle sentences are of like length: drawn a `window` of batches at a time, sorted, and shuffled.

    Raises:
        UserError: there are too few sentences for one batch.
    """
    draw = random.Random(seed)
    if len(sentences) < batch_size + 2:
        raise UserError(f"{len(sentences)} sentences are too few for a batch of {batch_size} and their neighbours")
    order: list[list[int]] = []
    for _ in range(batches):
        if not order:
            some = draw.sample(range(1, len(sentences) - 1), min(window * batch_size, len(sentences) - 2))
            some.sort(key=lambda number: len(sentences[number]))
            order = [some[first : first + batch_size] for first in range(0, len(some) - batch_size + 1, batch_size)]
            draw.shuffle(order)
        middle = order.pop()
        yield Triples(*(_padded([sentences[number + shift] for number in middle]) for shift in (0, -1, 1)))


def _padded(rows: Sequence[list[int]]) -> Sentences:
    ids, mask = pad_rows(rows, 0)
    return torch.from_numpy(ids), torch.from_numpy(mask)


def race(settings: SkipThoughtSettings, sentences: Sequence[list[int]], batch_size: int, steps: int) -> dict[str, StepTimes]:
    """Both plain loops and our networks, from the same weights, on the same batches, with the same optimizer, in turns.

    Args:
        settings: sizes; the encoder is a GRU.
        sentences: ids, in order.
        batch_size: sentences of a step.
        steps: of each contender; three more before the clock starts.
    """
    torch.manual_seed(0)
    ours = OurNetworks(settings)
    contenders = {PADDED: PlainNetworks(ours, packed=False), PACKED: PlainNetworks(ours, packed=True), OURS: ours}
    loops = {name: plain_step(network.train(), learning_rate=8e-4, clip=5.0) for name, network in contenders.items()}
    return time_steps(loops, bucketed(sentences, batch_size, steps + 3), warm_up=3)


def skip_thought_table(results: Mapping[str, StepTimes], batch_size: int) -> str:
    """A table for people: sentences per second by the median step, and the median ratio of speeds to the plain loop, step by step."""
    width = max(map(len, results))
    lines = [f"{'':{width}}  sentences/s  speed / plain  last loss"]
    for name, times in results.items():
        speed = ratio(results[PADDED].seconds, times.seconds)
        lines.append(f"{name:{width}}  {batch_size / times.median:11.1f}  {speed:13.2f}  {times.losses[-1]:9.4f}")
    lines.append(f"greatest relative difference of a loss from the plain loop's: {greatest_difference(results, PADDED):.1e}")
    return "\n".join(lines)
