"""A look at a data set: counts, and a contact sheet of samples with their captions."""

import base64
import html
import io
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import PIL.Image
import PIL.ImageOps
import pyarrow.compute as pc

from raysys.shards.languages import language_name, script
from raysys.shards.layout import Layout
from raysys.shards.manifest import Manifest
from raysys.shards.reader import RawSample, try_read_samples
from raysys.shards.sample import Captions, SampleError
from raysys.storage import Storage

_THUMBNAIL = 240
"""Pixels of the longer side; larger pictures are made smaller."""
_SHOWN_AS_IS = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}
_CAPTIONS_SHOWN = 12


@dataclass(frozen=True)
class Summary:
    """What a data set holds."""

    folder: str
    shards: int
    samples: int
    bytes: int
    faults: dict[str, int]
    """Samples that cannot be used, by cause."""
    languages: dict[str, tuple[int, int]]
    """Tag → (samples, captions), the most frequent first."""
    alignment: dict[str, int]
    """Samples of each alignment."""
    formats: dict[str, int]
    """Images of each format; `none` for text-only samples, `unreadable` where no format was recognised."""
    sizes: tuple[int, int, int] | None
    """(least, median, greatest) longer side in pixels of the readable images."""
    pictures: int
    """Distinct images."""

    def lines(self) -> list[str]:
        """The summary as text for a terminal."""
        head = f"{self.folder}: {self.samples} samples in {self.shards} shards, {megabytes(self.bytes)}"
        images = ", ".join(f"{name} {count}" for name, count in self.formats.items())
        sides = f"; longer side {self.sizes[0]} to {self.sizes[2]} px, median {self.sizes[1]}" if self.sizes else ""
        lines = [head, f"  images: {images}; {self.pictures} distinct{sides}"]
        lines.append("  alignment: " + ", ".join(f"{name} {count}" for name, count in self.alignment.items()))
        if self.faults:
            causes = ", ".join(f"{cause} {count}" for cause, count in self.faults.items())
            lines.append(f"  {sum(self.faults.values())} samples have faults ({causes}): python jobs/shards.py validate {self.folder}")
        width = max([len(language_name(tag)) for tag in self.languages] + [8])
        lines.append(f"  {'language':{width}}  {'tag':12} {'samples':>9} {'captions':>9}")
        lines += [f"  {language_name(tag):{width}}  {tag:12} {n:9} {captions:9}" for tag, (n, captions) in self.languages.items()]
        return lines


def summarise(manifest: Manifest) -> Summary:
    """Counts over a manifest."""
    table = manifest.table
    captions = manifest.captions()
    formats: Counter[str] = Counter()
    for name, identity in zip(table["image_format"].to_pylist(), table["image_id"].to_pylist(), strict=True):
        formats[name or ("unreadable" if identity else "none")] += 1
    sides = np.maximum(table["width"].to_numpy(), table["height"].to_numpy())
    sides = np.sort(sides[sides > 0])
    identities = table["image_id"].to_numpy()
    return Summary(
        folder=manifest.folder,
        shards=len(manifest.shards),
        samples=len(manifest),
        bytes=sum(manifest.shards.values()),
        faults=manifest.causes(),
        languages={tag: (count, captions[tag]) for tag, count in manifest.languages().items()},
        alignment=dict(Counter(table["alignment"].to_pylist()).most_common()),
        formats=dict(formats.most_common()),
        sizes=(int(sides[0]), int(sides[len(sides) // 2]), int(sides[-1])) if len(sides) else None,
        pictures=len(np.unique(identities[identities != 0])),
    )


def megabytes(count: int) -> str:
    """Bytes for a person."""
    return f"{count / 1e6:.1f} MB" if count < 1e9 else f"{count / 1e9:.2f} GB"


def choose(manifest: Manifest, count: int) -> list[int]:
    """Rows of up to `count` samples, spread over the data set, every language shown in turn; the same for the same data."""
    offsets = pc.list_value_length(manifest.table["languages"]).to_numpy()
    owners = np.repeat(np.arange(len(manifest)), np.where(np.isnan(offsets), 0, offsets).astype(np.int64))
    tags = np.array(pc.list_flatten(manifest.table["languages"]).to_pylist(), dtype=object)
    chosen: dict[int, None] = {}
    order = np.random.default_rng(0).permutation(len(owners))
    queues = [owners[order][tags[order] == tag].tolist() for tag in manifest.languages()]
    while any(queues) and len(chosen) < count:
        for queue in queues:
            while queue and queue[0] in chosen:
                queue.pop(0)
            if queue and len(chosen) < count:
                chosen[queue.pop(0)] = None
    rest = (row for row in np.random.default_rng(0).permutation(len(manifest)).tolist() if row not in chosen)
    while len(chosen) < min(count, len(manifest)):  # data sets with samples that have no caption
        chosen[next(rest)] = None
    return sorted(chosen)


def contact_sheet(storage: Storage, manifests: Iterable[Manifest], count: int) -> str:
    """One HTML page, pictures and all, with counts and `count` samples of every data set."""
    sections = []
    for manifest in manifests:
        samples = try_read_samples(storage, manifest, choose(manifest, count))
        sections.append(_section(summarise(manifest), samples, manifest.layout))
    return _PAGE.replace("{style}", _STYLE).replace("{sections}", "\n".join(sections))


def _section(summary: Summary, samples: list[RawSample | SampleError], layout: Layout) -> str:
    most = max([captions for _, captions in summary.languages.values()] + [1])
    bars = "\n".join(
        f'<tr><td>{html.escape(language_name(tag))}<td><code>{html.escape(tag)}</code><td>{html.escape(script(tag))}<td class="n">{n:,}'
        f'<td class="n">{captions:,}<td class="bar"><i style="width:{100 * captions / most:.1f}%"></i>'
        for tag, (n, captions) in summary.languages.items()
    )
    facts = [
        (f"{summary.samples:,}", "samples"),
        (f"{len(summary.languages)}", "languages"),
        (f"{sum(captions for _, captions in summary.languages.values()):,}", "captions"),
        (f"{summary.pictures:,}", "distinct pictures"),
        (f"{summary.shards}", "shards"),
        (megabytes(summary.bytes), "in all"),
        (", ".join(f"{name} {n:,}" for name, n in summary.formats.items()), "image formats"),
        (", ".join(f"{name} {n:,}" for name, n in summary.alignment.items()), "alignment"),
    ]
    if summary.sizes:
        facts.append((f"{summary.sizes[0]} – {summary.sizes[1]} – {summary.sizes[2]} px", "longer side: least, median, greatest"))
    if summary.faults:
        facts.append((f"{sum(summary.faults.values()):,}", "samples with faults"))
    told = "".join(f"<div><b>{html.escape(value)}</b><span>{name}</span></div>" for value, name in facts)
    cards = "\n".join(_card(sample, layout) for sample in samples)
    return f"""<section><h2>{html.escape(summary.folder)}</h2><div class="facts">{told}</div>
<details{" open" if len(summary.languages) <= 16 else ""}><summary>Languages</summary><table><thead>
<tr><th>Language<th>Tag<th>Script<th class="n">Samples<th class="n">Captions<th></thead><tbody>{bars}</tbody></table></details>
<div class="cards">{cards}</div></section>"""


def _card(sample: RawSample | SampleError, layout: Layout) -> str:
    if isinstance(sample, SampleError):
        reason = html.escape(str(sample))
        return f'<figure><div class="none fault">unreadable</div><figcaption><p class="fault">{reason}</p></figcaption></figure>'
    place = f"{sample.shard} · {sample.key}"
    try:
        text = layout.read(sample.members)
        lines = _caption_lines(text)
        if (group := text.extra.get("group")) is not None:
            place += f" · group {group}"
    except SampleError as error:
        lines = f'<p class="fault">{html.escape(error.reason)}</p>'
    picture = _picture(sample, layout)
    return f"<figure>{picture}<figcaption>{lines}<small>{html.escape(place)}</small></figcaption></figure>"


def _caption_lines(text: Captions) -> str:
    pairs = [(tag, caption) for tag, captions in text.captions.items() for caption in captions]
    lines = [
        f'<p><code title="{html.escape(language_name(tag))}">{html.escape(tag)}</code> <span lang="{html.escape(tag)}" dir="auto">'
        f"{html.escape(caption)}</span></p>"
        for tag, caption in pairs
    ]
    if len(lines) > _CAPTIONS_SHOWN:
        rest = "".join(lines[_CAPTIONS_SHOWN:])
        lines[_CAPTIONS_SHOWN:] = [f"<details><summary>{len(pairs) - _CAPTIONS_SHOWN} more captions</summary>{rest}</details>"]
    return "".join(lines)


def _picture(sample: RawSample, layout: Layout) -> str:
    extension = layout.image_extension(sample.members)
    if extension is None:
        return '<div class="none">no image</div>'
    data = sample.members[extension]
    try:
        image = PIL.Image.open(io.BytesIO(data))
        kind = _SHOWN_AS_IS.get(image.format or "")
        image.load()
        if kind is None or max(image.size) > _THUMBNAIL or len(data) > 100_000:
            upright = PIL.ImageOps.exif_transpose(image)
            upright.thumbnail((_THUMBNAIL, _THUMBNAIL))
            buffer = io.BytesIO()
            upright.convert("RGBA").save(buffer, "WEBP", quality=85)
            data, kind = buffer.getvalue(), "image/webp"
    except Exception as error:  # a sheet shows what is wrong instead of ending
        return f'<div class="none fault">{html.escape(" ".join(str(error).split()) or type(error).__name__)}</div>'
    return f'<div class="image"><img loading="lazy" alt="" src="data:{kind};base64,{base64.b64encode(data).decode()}"></div>'


_STYLE = """
:root { --ink: #1d232b; --soft: #667180; --line: #e3e7ec; --page: #f6f7f9; --card: #fff; --tint: #3566c8; --fault: #b3261e }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e7eaee; --soft: #98a2b0; --line: #2c333d; --page: #12161b; --card: #1b2027; --tint: #7ea6ff; --fault: #ff8a80 } }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 2rem 1.5rem 4rem; max-width: 1500px; background: var(--page); color: var(--ink);
  font: 15px/1.45 system-ui, "Segoe UI", "Noto Sans", sans-serif }
h1 { font-size: 1.5rem; margin: 0 0 .25rem } h2 { font-size: 1.1rem; margin: 2.5rem 0 .8rem; overflow-wrap: anywhere }
.facts { display: flex; flex-wrap: wrap; gap: .6rem 2rem; margin-bottom: 1rem }
.facts b { display: block; font-size: 1.1rem; font-weight: 600 } .facts span, small, .lead { color: var(--soft); font-size: .8rem }
summary { cursor: pointer; color: var(--soft); font-size: .85rem }
table { border-collapse: collapse; margin: .5rem 0 1rem; font-size: .85rem }
th { text-align: start; color: var(--soft); font-weight: 500 } td, th { padding: .15rem .9rem .15rem 0 }
.n { text-align: end; font-variant-numeric: tabular-nums }
.bar { width: 16rem } .bar i { display: block; height: .55rem; border-radius: 3px; background: var(--tint); opacity: .75 }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(220px, 1fr)); gap: 1rem; margin-top: 1rem }
figure { margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: 10px; overflow: hidden;
  display: flex; flex-direction: column }
.image, .none { height: 190px; display: grid; place-items: center; background: #fff; border-bottom: 1px solid var(--line) }
.image img { max-width: 100%; max-height: 190px; padding: 10px; object-fit: contain }
.none { color: #667180; font-size: .8rem; padding: 1rem }
figcaption { padding: .7rem .8rem; display: flex; flex-direction: column; gap: .25rem; flex: 1 }
figcaption p { margin: 0; display: flex; gap: .5rem; align-items: baseline } figcaption p span { flex: 1; overflow-wrap: anywhere }
code { font: .72rem ui-monospace, monospace; color: var(--tint); white-space: nowrap }
small { margin-top: auto; padding-top: .4rem; font-size: .7rem; overflow-wrap: anywhere } .fault { color: var(--fault) }
"""

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Contact sheet</title><style>{style}</style></head>
<body><h1>Contact sheet</h1><p class="lead">Samples spread over each data set, every language shown in turn.</p>
{sections}</body></html>
"""
