import random
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest
from transformers import AutoTokenizer

from raysys.data.encoding import EmptyTextError, TextForm, trigrams
from raysys.data.tokenizer import encode, load_tokenizer, train_tokenizer
from raysys.errors import UserError

WORDS = {
    "Latin": "der rote Kreis über dem Quadrat étoile château žluťoučký kůň ağaç içinde büyük küçük",
    "Cyrillic": "красный круг над синим квадратом маленькая звезда и большой ёжик",
    "Greek": "κόκκινος κύκλος πάνω από το μπλε τετράγωνο μικρό αστέρι",
    "Devanagari": "लाल वृत्त नीले वर्ग के ऊपर छोटा तारा और बड़ी बिल्ली",
    "Bengali": "লাল বৃত্ত নীল বর্গক্ষেত্রের উপরে ছোট তারা",
    "Tamil": "சிவப்பு வட்டம் நீல சதுரத்தின் மேல் சிறிய நட்சத்திரம்",
    "Arabic": "دائرة حمراء فوق المربع الأزرق نجمة صغيرة",
    "Hebrew": "עיגול אדום מעל הריבוע הכחול כוכב קטן",
    "Thai": "วงกลมสีแดง เหนือ สี่เหลี่ยมสีน้ำเงิน ดาวดวงเล็ก",
    "Japanese": "赤い丸 青い四角の上に 小さな星 ガラスのネコ",
    "Chinese": "红色的圆 在蓝色方块上面 一颗小星星",
    "Korean": "빨간 원이 파란 사각형 위에 작은 별",
    "Georgian": "წითელი წრე ლურჯი კვადრატის ზემოთ",
    "Armenian": "կարմիր շրջան կապույտ քառակուսու վրա",
    "Amharic": "ቀይ ክብ ከሰማያዊ ካሬ በላይ",
}


def lines(per_script: int = 40) -> list[str]:
    draw = random.Random(0)
    return [" ".join(draw.choices(words.split(), k=draw.randint(1, 8))) for words in WORDS.values() for _ in range(per_script)]


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(lines(), 800)


def ids(tokenizer, text: str) -> list[int]:
    return encode(tokenizer, [text], TextForm(500)).input_ids[0].tolist()


def test_special_ids_and_template(tokenizer):
    assert tokenizer.convert_tokens_to_ids(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]) == [0, 1, 2, 3, 4]
    row = ids(tokenizer, "der rote Kreis")
    assert (row[0], row[-1]) == (2, 3)
    assert (tokenizer.pad_token_id, tokenizer.mask_token_id, tokenizer.model_max_length) == (0, 4, 50)


def test_reloaded_tokenizer_gives_the_same_ids_in_every_script(tokenizer, tmp_path):
    texts = lines() + [f"({a}): {b}!" for a, b in zip(lines(8), lines(8)[::-1], strict=True)] + ["123 456,7 % 🐈‍⬛ 🇨🇿", "Ω unseen ꙮ ጀ"]
    assert len(texts) > 700
    tokenizer.save_pretrained(tmp_path)
    before = encode(tokenizer, texts, TextForm(500))
    for again in (AutoTokenizer.from_pretrained(tmp_path), load_tokenizer(tmp_path)):
        after = encode(again, texts, TextForm(500))
        assert after.input_ids.equal(before.input_ids)
        assert after.attention_mask.equal(before.attention_mask)
        assert again(texts, padding=True, return_tensors="pt", truncation=False)["input_ids"].equal(before.input_ids)
        assert again.model_max_length == 50


def test_nothing_is_unknown_and_text_comes_back(tokenizer):
    for text in [*lines(3), "ꙮ🦄 ß", "x²"]:
        row = ids(tokenizer, text)
        assert tokenizer.unk_token_id not in row
        assert tokenizer.decode(row, skip_special_tokens=True) == unicodedata.normalize("NFKC", text)


def test_order_of_the_captions_does_not_matter(tokenizer):
    shuffled = lines()
    random.Random(7).shuffle(shuffled)
    again = train_tokenizer(iter(shuffled), 800)
    assert again.backend_tokenizer.to_str() == tokenizer.backend_tokenizer.to_str()


@pytest.mark.parametrize("text", lines(1), ids=list(WORDS))
def test_composed_and_decomposed_text_is_the_same(tokenizer, text):
    assert ids(tokenizer, unicodedata.normalize("NFD", text)) == ids(tokenizer, unicodedata.normalize("NFC", text))


@pytest.mark.parametrize(
    ("variant", "plain"),
    [
        ("\ufeffder rote Kreis", "der rote Kreis"),
        ("\u200fעיגול\u200e אדום\u202c", "עיגול אדום"),
        ("der\u00a0rote\u202fKreis", "der rote Kreis"),
        ("  der\u200b  rote\t\r\nKreis\x00 ", "der rote Kreis"),
        ("der ro\u00adte Kreis", "der rote Kreis"),
        ("ｶﾞﾗｽのﾈｺ", "ガラスのネコ"),
        ("\ufe8f\ufe8e\ufe8f", "باب"),
        ("小さな\u3000星", "小さな 星"),
        ("Ｋｒｅｉｓ", "Kreis"),
        ("❤\ufe0f", "❤"),
        ("\ud83d\udc08", "🐈"),
    ],
)
def test_what_looks_the_same_is_the_same(tokenizer, variant, plain):
    assert ids(tokenizer, variant) == ids(tokenizer, plain)


def test_a_word_has_the_same_pieces_everywhere(tokenizer):
    first, inside = ids(tokenizer, "Kreis"), ids(tokenizer, "der Kreis")
    assert inside[-len(first) + 1 :] == first[1:]


def test_indic_words_stay_whole():
    words = ["बिल्ली", "छोटी"]
    small = train_tokenizer([" ".join(words)] * 5, 400)
    assert [len(ids(small, word)) for word in words] == [3, 3]


def test_lone_surrogates_do_not_stop_the_run(tokenizer):
    assert ids(tokenizer, "Kreis \ud800") == ids(tokenizer, "Kreis \ufffd")
    assert len(train_tokenizer(["a \udfff b"], 300)) <= 300


def test_padding_and_truncation(tokenizer):
    texts = ["Kreis", "der rote Kreis " * 30, "étoile " * 30]
    tokens = encode(tokenizer, texts, TextForm(10))
    assert tokens.input_ids.shape == tokens.attention_mask.shape == (3, 10)
    assert tokens.truncated == 2
    length = int(tokens.attention_mask[0].sum())
    assert tokens.attention_mask[0].tolist() == [1] * length + [0] * (10 - length)
    assert tokens.input_ids[0, length:].tolist() == [0] * (10 - length)
    assert tokens.input_ids[1:, -1].tolist() == [3, 3]
    assert tokens.input_ids[1, :9].tolist() == ids(tokenizer, texts[1])[:9]
    assert encode(tokenizer, ["Kreis", "rote"], TextForm(10)).input_ids.shape[1] < 10
    with pytest.raises(ValueError, match="max_tokens 2"):
        encode(tokenizer, texts, TextForm(2))


def test_no_texts_give_no_rows(tokenizer):
    assert encode(tokenizer, [], TextForm(10)).input_ids.shape == (0, 0)


@pytest.mark.parametrize("text", ["", "   ", "\u00a0\u3000", "\u200b\u200f\ufeff", "\n\x00"])
def test_empty_texts_are_named(tokenizer, text):
    with pytest.raises(EmptyTextError, match="text 1 is empty") as caught:
        encode(tokenizer, ["Kreis", text], TextForm(10))
    assert caught.value.index == 1


def test_threads_share_one_tokenizer(tokenizer):
    texts, expected = lines(5), encode(tokenizer, lines(5), TextForm(12))
    with ThreadPoolExecutor(4) as threads:
        lengths = [12, 30] * 20
        results = list(threads.map(lambda length: encode(tokenizer, texts, TextForm(length)), lengths))
    assert all(result.input_ids.equal(expected.input_ids) for result, length in zip(results, lengths, strict=True) if length == 12)


def test_few_captions_give_a_small_vocabulary():
    assert 261 <= len(train_tokenizer(["one circle", "two circles"], 30_000)) < 300


def test_what_cannot_be_trained_or_loaded_is_said(tmp_path):
    with pytest.raises(UserError, match="no captions"):
        train_tokenizer([], 500)
    with pytest.raises(UserError, match="260 is too small: 261"):
        train_tokenizer(["a"], 260)
    with pytest.raises(UserError, match=r"tokenizer\.json is missing"):
        load_tokenizer(tmp_path)


def test_trigrams_of_marked_words():
    assert trigrams("Ein Ei") == ["<ei", "ein", "in>", "<ei", "ei>"]
    assert trigrams("a 木") == ["<a>", "<木>"]
    assert trigrams("") == []


def test_trigrams_follow_the_word_pieces_and_are_shared_by_like_words(tokenizer):
    form = TextForm(10, trigram_buckets=5000, max_trigrams=6)
    words = ["Kreis", "Kreise", "KREIS", "K\u200breis", "Haus"]
    plain, tokens = encode(tokenizer, words, TextForm(10)), encode(tokenizer, words, form)
    found = []
    for pieces, has_piece, ids, has_id in zip(plain.input_ids, plain.attention_mask, tokens.input_ids, tokens.attention_mask, strict=True):
        pieces, ids = pieces[has_piece.bool()].tolist(), ids[has_id.bool()].tolist()
        assert ids[: len(pieces)] == pieces
        assert all(len(tokenizer) <= number < len(tokenizer) + 5000 for number in ids[len(pieces) :])
        found.append(ids[len(pieces) :])
    kreis, kreise, capitals, invisible, haus = found
    assert len(kreis) == 5
    assert kreis == capitals == invisible
    assert kreise[:4] == kreis[:4]
    assert not set(kreis) & set(haus)
    assert len(encode(tokenizer, ["Kreise und Quadrate"], form).input_ids[0]) <= form.longest
