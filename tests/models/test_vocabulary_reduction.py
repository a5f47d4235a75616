"""Cut vocabularies: the same pieces, the same text when decoded, and what is kept always."""

from collections import Counter

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import AutoTokenizer, MBart50Tokenizer, PreTrainedTokenizerFast

from raysys.data.language_codes import MBART50_CODES, language_ids
from raysys.data.multilingual_tokenizer import train_multilingual_tokenizer
from raysys.errors import UserError
from raysys.models.vocabulary_reduction import load_kept, reduce_vocabulary

WORDS = {
    "en": "a small red circle above the green square dog cat runs jumps in park house tree whose quiet river",
    "de": "ein kleiner roter Kreis über dem grünen Quadrat Hund Katze läuft springt im Haus Baum dessen stiller Fluss",
    "ja": "小さな 赤い 丸 犬 猫 公園 走る 緑の 四角 静かな 川",
}


def sentences(language: str, count: int, seed: int) -> list[str]:
    words = WORDS[language].split()
    return [" ".join(words[(seed + 3 * row * place + place * place) % len(words)] for place in range(3 + row % 6)) for row in range(count)]


TEXTS = [*sentences("en", 60, 1), *sentences("de", 60, 2), *sentences("ja", 60, 3)]
WANTED = [*sentences("en", 25, 4), *sentences("ja", 25, 5), "qu 犬 ☃ a <mask> b", "  two   spaces ", "ﬁne"]


def unigram() -> PreTrainedTokenizerFast:
    """Built as mBART-50's: Unigram pieces, 52 language codes, a mask that takes the space before it; unknown signs are <unk>."""
    core = Tokenizer(models.Unigram())
    core.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    core.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    core.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    first = ["<s>", "<pad>", "</s>", "<unk>"]
    core.train_from_iterator(TEXTS, trainers.UnigramTrainer(vocab_size=220, special_tokens=first, unk_token="<unk>", show_progress=False))
    core.add_special_tokens([AddedToken(code, special=True, normalized=False) for code in MBART50_CODES.values()])
    core.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True, normalized=False)])
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        bos_token="<s>",
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        additional_special_tokens=list(MBART50_CODES.values()),
        mask_token=AddedToken("<mask>", lstrip=True, special=True),
    )


KINDS = {"unigram": unigram, "bpe": lambda: train_multilingual_tokenizer(TEXTS, ["en", "de", "ja"], 420, 80)}


@pytest.fixture(scope="module", params=KINDS)
def whole(request) -> PreTrainedTokenizerFast:
    return KINDS[request.param]()


def pieces(tokenizer: PreTrainedTokenizerFast, text: str) -> list[int]:
    return tokenizer.backend_tokenizer.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("cover", [1.0, 0.95, 0.7])
def test_texts_are_cut_as_before_and_decoded_to_the_same(whole, cover, tmp_path):
    found = reduce_vocabulary(whole, WANTED, cover)
    assert found.pieces_before == len(whole)
    assert found.pieces_after == len(found.tokenizer) == len(found.kept) < found.pieces_before
    assert found.kept == sorted(set(found.kept))
    names = whole.convert_ids_to_tokens(found.kept)
    assert names == found.tokenizer.convert_ids_to_tokens(list(range(len(names))))
    assert names[:4] == ["<s>", "<pad>", "</s>", "<unk>"]
    assert set(whole.all_special_tokens) == set(found.tokenizer.all_special_tokens) <= set(names)

    exact = 0
    for text in WANTED:
        before, after = pieces(whole, text), pieces(found.tokenizer, text)
        if set(before) <= set(found.kept):
            assert [found.kept[piece] for piece in after] == before
            exact += 1
        assert found.tokenizer.decode(after) == whole.decode(before), text
        assert found.tokenizer(text)["input_ids"] == [0, *after]
    assert exact == len(WANTED) if cover == 1.0 else exact < len(WANTED)

    counts = Counter(piece for text in WANTED for piece in pieces(whole, text) if piece != whole.mask_token_id)
    kept = sum(count for piece, count in counts.items() if piece in set(found.kept) and piece != whole.unk_token_id)
    assert found.cover == pytest.approx(kept / counts.total())
    assert found.cover >= cover or counts[whole.unk_token_id]

    found.save(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert load_kept(tmp_path) == found.kept
    assert [loaded(text)["input_ids"] for text in TEXTS] == [found.tokenizer(text)["input_ids"] for text in TEXTS]
    assert language_ids(loaded, ["ja", "de"]) == language_ids(found.tokenizer, ["ja", "de"])


def test_what_was_never_seen_is_unknown_to_unigram_and_bytes_to_ours():
    text = "Ωmega"
    assert 3 in pieces(reduce_vocabulary(unigram(), WANTED, 1.0).tokenizer, text)
    ours = reduce_vocabulary(KINDS["bpe"](), WANTED, 0.7).tokenizer
    assert 3 not in pieces(ours, text)
    assert ours.decode(pieces(ours, text)) == text


def test_the_class_of_mbart_50_is_read_and_its_languages_are_kept():
    vocabulary = [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0), ("▁", -2.0)]
    vocabulary += [
        (piece, -3.0 - number / 10) for number, piece in enumerate(["▁a", "▁dog", "▁run", "s", "▁ein", "▁Hund", "d", "o", "g", "xy"])
    ]
    whole = MBart50Tokenizer(vocab=vocabulary)
    found = reduce_vocabulary(whole, ["a dog runs"], 1.0)
    names = found.tokenizer.convert_ids_to_tokens(list(range(found.pieces_after)))
    used = {"▁a", "▁dog", "▁run", "s"}
    letters, lowest = {"▁", "d", "o", "g"}, {"xy"}
    assert set(names) == {"<s>", "<pad>", "</s>", "<unk>", "<mask>", *used, *letters, *lowest, *MBART50_CODES.values()}
    assert found.tokenizer("a dog runs").tokens() == ["<s>", "▁a", "▁dog", "▁run", "s"]
    rare = reduce_vocabulary(whole, ["dog"] * 20 + ["a"], 0.5).tokenizer
    assert rare("a").tokens() == ["<s>", "▁a"], "there is no smaller piece for its letter"
    assert "▁run" not in rare.get_vocab()
    ids = language_ids(found.tokenizer, list(MBART50_CODES))
    assert {tag: found.kept[number] for tag, number in ids.items()} == {
        tag: whole.lang_code_to_id[code] for tag, code in MBART50_CODES.items()
    }


def test_what_cannot_be_cut_is_named(whole):
    with pytest.raises(UserError, match="no texts"):
        reduce_vocabulary(whole, [], 1.0)
    words = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"<unk>": 0}, unk_token="<unk>")))
    with pytest.raises(UserError, match="of the kind WordLevel"):
        reduce_vocabulary(words, WANTED, 1.0)
    with pytest.raises(UserError, match="lacks the special tokens <s> <pad>"):
        reduce_vocabulary(PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE())), WANTED, 1.0)


def test_a_whole_tokenizer_has_no_list(tmp_path):
    assert load_kept(tmp_path) is None
