"""One spelling for every language tag."""

import pytest

from raysys.shards.languages import LANGUAGES, family, language_name, normalise_language, script


@pytest.mark.parametrize(
    ("tag", "normal"),
    [
        ("de", "de"),
        ("DE", "de"),
        ("de_DE", "de"),
        ("de-Latn-DE", "de"),
        ("deu", "de"),
        ("ger", "de"),
        ("deu_Latn", "de"),
        ("de_AT", "de-AT"),
        ("zh", "zh-Hans"),
        ("zh_CN", "zh-Hans"),
        ("zh_CN.UTF-8", "zh-Hans"),
        ("zho_Hans", "zh-Hans"),
        ("zh-TW", "zh-Hant"),
        ("zh-hant-hk", "zh-Hant"),
        ("pt", "pt"),
        ("pt_BR", "pt-BR"),
        ("pt-pt", "pt-PT"),
        ("es-419", "es-419"),
        ("en_XX", "en-XX"),
        ("sr@latin", "sr-Latn"),
        ("sr_Cyrl_RS", "sr"),
        ("sh", "sr-Latn"),
        ("ca@valencia", "ca-valencia"),
        ("ca-valencia", "ca-valencia"),
        ("iw", "he"),
        ("in", "id"),
        ("no", "nb"),
        ("nb_NO", "nb"),
        ("nn", "nn"),
        ("tl", "fil"),
        ("yue-Hans", "yue-Hans"),
        ("xx", "xx"),
        (" ja ", "ja"),
    ],
)
def test_normal_form(tag, normal):
    assert normalise_language(tag) == normal
    assert normalise_language(normal) == normal


@pytest.mark.parametrize("tag", ["", "d", "german", "de DE", "und", "en-", "123", "de-x-y-z", "-", "de--AT"])
def test_no_language_tag(tag):
    with pytest.raises(ValueError, match="is not a language tag"):
        normalise_language(tag)


def test_the_table_is_consistent():
    assert len(LANGUAGES) >= 110
    for tag, language in LANGUAGES.items():
        assert normalise_language(tag).split("-")[0] == tag
        assert normalise_language(language.iso3).split("-")[0] == tag, language
        assert normalise_language(f"{tag}-{language.script}-{language.region or 'BR'}").split("-")[0] == tag
        assert len(language.script) == 4
        assert language.name
        assert language.family
    assert len({language.name for language in LANGUAGES.values()}) == len(LANGUAGES)


def test_what_is_known_of_languages():
    assert [language_name(tag) for tag in ("de", "pt_BR", "zh-TW", "sr@latin", "qqq")] == [
        "German",
        "Portuguese (Brazil)",
        "Chinese (Traditional)",
        "Serbian (Latin)",
        "qqq",
    ]
    assert [script(tag) for tag in ("ru", "hi", "ja", "zh", "sr-Latn", "ar", "qqq")] == [
        "Cyrl",
        "Deva",
        "Jpan",
        "Hans",
        "Latn",
        "Arab",
        "Zyyy",
    ]
    assert [family(tag) for tag in ("ru", "hi", "fi", "en-GB", "qqq")] == ["Slavic", "Indo-Aryan", "Uralic", "Germanic", "unknown"]
