"""Running text: paragraphs, documents and sentences; nothing of the text is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.datasets.recipes import recipe_module

prose = recipe_module("common.prose")
lines = recipe_module("common.lines")


@pytest.mark.parametrize(
    ("language", "text", "sentences"),
    [
        ("en", '"I am well. He is too," said she. “Mr. A. B. Fox? Never.” So it was.',
         ['"I am well.', 'He is too," said she.', "“Mr. A. B. Fox?", "Never.”", "So it was."]),
        ("en", '"Stop!" cried he. "What?" It cost $3.50, e.g. at St. Paul. The end.',
         ['"Stop!" cried he.', '"What?"', "It cost $3.50, e.g. at St. Paul.", "The end."]),
        ("de", "Dr. Müller sagte: „Guten Tag! Wie geht es?“ Im 19. Jahrhundert, am 3. Mai, z. B. „Was?“, fragte sie. »Nein!« Er ging.",
         ["Dr. Müller sagte: „Guten Tag!", "Wie geht es?“", "Im 19. Jahrhundert, am 3. Mai, z. B. „Was?“, fragte sie.", "»Nein!«",
          "Er ging."]),
        ("en", "It was 19. Then it rained.", ["It was 19.", "Then it rained."]),
        ("ja", "これは本です。あれはペンです。", ["これは本です。", "あれはペンです。"]),
        ("zh-Hans", "你好。再见！", ["你好。", "再见！"]),
        ("ka", "ეს წიგნია. ის კალამია.", ["ეს წიგნია.", "ის კალამია."]),
        ("hi", "यह किताब है। वह कलम है।", ["यह किताब है।", "वह कलम है।"]),
        ("tlh", "Qapla. Heghlu.", ["Qapla.", "Heghlu."]),
        ("en", ' "" ', ['""']),
        ("en", "", []),
    ],
)  # fmt: skip
def test_sentences(language, text, sentences):
    assert prose.split(text, language) == sentences


@given(st.text(st.sampled_from("ab A.!?\"“”„»' 1。…\n\u3000é"), max_size=40), st.sampled_from(["en", "de", "ja", "fr"]))
def test_sentences_together_are_the_text(text, language):
    found = prose.split(text, language)
    assert "".join("".join(found).split()) == "".join(text.split())
    assert all(sentence == sentence.strip() and sentence for sentence in found)


def paragraphs(text: str) -> list[tuple[int, str]]:
    """(line, paragraph) and (line, "") for borders, of which several in a row are one."""
    found = [(passage.line, passage.text) for passage in prose.read_paragraphs(lines.Line(n, t) for n, t in enumerate(text.split("\n"), 1))]
    return [one for place, one in enumerate(found) if one[1] or (place and found[place - 1][1])]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One\n two.\n\nThree.", [(1, "One two."), (4, "Three.")]),
        ("One.\n\n\nTwo.", [(1, "One."), (4, ""), (4, "Two.")]),
        ("One.\n\n * * *\n\nTwo.", [(1, "One."), (3, ""), (5, "Two.")]),
        ("One.\n\nCHAPTER XII\n\nTwo.", [(1, "One."), (3, ""), (5, "Two.")]),
        ("One.\n\nChapter 2. The Wood\n\nTwo.", [(1, "One."), (3, ""), (5, "Two.")]),
        ("One.\n\n3. Kapitel\n\nZwei.", [(1, "One."), (3, ""), (5, "Zwei.")]),
        ("One.\n\nIV.\n\nTwo.", [(1, "One."), (3, ""), (5, "Two.")]),
        ("One.\n\n1. He came home.\n\nTwo.", [(1, "One."), (3, "1. He came home."), (5, "Two.")]),
        ("One.\n\nDear friend\n\nTwo.", [(1, "One."), (3, "Dear friend"), (5, "Two.")]),
        ("EMMA\n\nby Jane Austen\n\n\nEmma\ncame.", [(6, "Emma came.")]),
        ("_So_ it _was not_, snake_case_name.", [(1, "So it was not, snake_case_name.")]),
        ("", []),
    ],
)
def test_paragraphs_and_borders(text, expected):
    assert paragraphs(text) == expected
