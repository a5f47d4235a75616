"""Languages: one spelling for every tag, and what is known about each language.

Tags follow BCP-47 (RFC 5646). Script and region are written only where they tell two written languages apart, so that
``de_DE``, ``de-Latn``, ``deu`` and ``de`` are one language while ``pt-BR`` and ``pt-PT`` stay two.
"""

import functools
import re
from typing import NamedTuple


class Language(NamedTuple):
    """What is known of a language."""

    tag: str
    """BCP-47, normalised."""
    iso3: str
    """ISO 639-3 code (for Chinese and Norwegian the code of the written standard)."""
    name: str
    """English name."""
    script: str
    """ISO 15924 code of the script it is usually written in."""
    family: str
    """Language family; for Indo-European its branch."""
    region: str
    """ISO 3166 code of the region a tag without region is read as; empty where regions are kept."""


_TABLE = """
af afr Afrikaans Latn Germanic ZA
ak aka Akan Latn Atlantic-Congo GH
am amh Amharic Ethi Semitic ET
ar arb Arabic Arab Semitic EG
as asm Assamese Beng Indo-Aryan IN
ast ast Asturian Latn Romance ES
az azj Azerbaijani Latn Turkic AZ
ba bak Bashkir Cyrl Turkic RU
be bel Belarusian Cyrl Slavic BY
bew bew Betawi Latn Austronesian ID
bg bul Bulgarian Cyrl Slavic BG
bgn bgn Western_Balochi Arab Iranian PK
blo blo Anii Latn Atlantic-Congo BJ
bn ben Bengali Beng Indo-Aryan BD
bo bod Tibetan Tibt Sino-Tibetan CN
br bre Breton Latn Celtic FR
bs bos Bosnian Latn Slavic BA
ca cat Catalan Latn Romance ES
ccp ccp Chakma Cakm Indo-Aryan BD
ceb ceb Cebuano Latn Austronesian PH
chr chr Cherokee Cher Iroquoian US
ckb ckb Central_Kurdish Arab Iranian IQ
cs ces Czech Latn Slavic CZ
cv chv Chuvash Cyrl Turkic RU
cy cym Welsh Latn Celtic GB
da dan Danish Latn Germanic DK
de deu German Latn Germanic DE
doi doi Dogri Deva Indo-Aryan IN
dsb dsb Lower_Sorbian Latn Slavic DE
el ell Greek Grek Hellenic GR
en eng English Latn Germanic US
eo epo Esperanto Latn Constructed 001
es spa Spanish Latn Romance ES
et est Estonian Latn Uralic EE
eu eus Basque Latn Basque ES
fa pes Persian Arab Iranian IR
ff fuv Fula Latn Atlantic-Congo SN
fi fin Finnish Latn Uralic FI
fil fil Filipino Latn Austronesian PH
fo fao Faroese Latn Germanic FO
fr fra French Latn Romance FR
frr frr Northern_Frisian Latn Germanic DE
fy fry Western_Frisian Latn Germanic NL
ga gle Irish Latn Celtic IE
gd gla Scottish_Gaelic Latn Celtic GB
gl glg Galician Latn Romance ES
gu guj Gujarati Gujr Indo-Aryan IN
ha hau Hausa Latn Chadic NG
haw haw Hawaiian Latn Austronesian US
he heb Hebrew Hebr Semitic IL
hi hin Hindi Deva Indo-Aryan IN
hr hrv Croatian Latn Slavic HR
hsb hsb Upper_Sorbian Latn Slavic DE
ht hat Haitian_Creole Latn Romance HT
hu hun Hungarian Latn Uralic HU
hy hye Armenian Armn Armenian AM
ia ina Interlingua Latn Constructed 001
id ind Indonesian Latn Austronesian ID
ig ibo Igbo Latn Atlantic-Congo NG
is isl Icelandic Latn Germanic IS
it ita Italian Latn Romance IT
ja jpn Japanese Jpan Japonic JP
jv jav Javanese Latn Austronesian ID
ka kat Georgian Geor Kartvelian GE
kab kab Kabyle Latn Berber DZ
kk kaz Kazakh Cyrl Turkic KZ
kl kal Kalaallisut Latn Eskaleut GL
km khm Khmer Khmr Austroasiatic KH
kn kan Kannada Knda Dravidian IN
ko kor Korean Kore Koreanic KR
kok kok Konkani Deva Indo-Aryan IN
ku kmr Kurdish Latn Iranian TR
ky kir Kyrgyz Cyrl Turkic KG
la lat Latin Latn Italic VA
lb ltz Luxembourgish Latn Germanic LU
lij lij Ligurian Latn Romance IT
lo lao Lao Laoo Kra-Dai LA
lt lit Lithuanian Latn Baltic LT
lv lvs Latvian Latn Baltic LV
mai mai Maithili Deva Indo-Aryan IN
mg plt Malagasy Latn Austronesian MG
mi mri Maori Latn Austronesian NZ
mk mkd Macedonian Cyrl Slavic MK
ml mal Malayalam Mlym Dravidian IN
mn khk Mongolian Cyrl Mongolic MN
mni mni Manipuri Beng Sino-Tibetan IN
mr mar Marathi Deva Indo-Aryan IN
ms zsm Malay Latn Austronesian MY
mt mlt Maltese Latn Semitic MT
my mya Burmese Mymr Sino-Tibetan MM
nb nob Norwegian_Bokmål Latn Germanic NO
ne npi Nepali Deva Indo-Aryan NP
nl nld Dutch Latn Germanic NL
nn nno Norwegian_Nynorsk Latn Germanic NO
nso nso Northern_Sotho Latn Atlantic-Congo ZA
oc oci Occitan Latn Romance FR
om gaz Oromo Latn Cushitic ET
or ory Odia Orya Indo-Aryan IN
pa pan Punjabi Guru Indo-Aryan IN
pap pap Papiamento Latn Romance CW
pcm pcm Nigerian_Pidgin Latn Germanic NG
pl pol Polish Latn Slavic PL
ps pbt Pashto Arab Iranian AF
pt por Portuguese Latn Romance -
qu quz Quechua Latn Quechuan PE
quc quc K’iche’ Latn Mayan GT
rhg rhg Rohingya Rohg Indo-Aryan MM
rm roh Romansh Latn Romance CH
ro ron Romanian Latn Romance RO
ru rus Russian Cyrl Slavic RU
rw kin Kinyarwanda Latn Atlantic-Congo RW
sa san Sanskrit Deva Indo-Aryan IN
sat sat Santali Olck Austroasiatic IN
sc srd Sardinian Latn Romance IT
sd snd Sindhi Arab Indo-Aryan PK
se sme Northern_Sami Latn Uralic NO
shn shn Shan Mymr Kra-Dai MM
si sin Sinhala Sinh Indo-Aryan LK
sk slk Slovak Latn Slavic SK
sl slv Slovenian Latn Slavic SI
so som Somali Latn Cushitic SO
son son Songhay Latn Nilo-Saharan ML
sq als Albanian Latn Albanian AL
sr srp Serbian Cyrl Slavic RS
su sun Sundanese Latn Austronesian ID
sv swe Swedish Latn Germanic SE
sw swh Swahili Latn Atlantic-Congo TZ
syr syr Syriac Syrc Semitic IQ
ta tam Tamil Taml Dravidian IN
te tel Telugu Telu Dravidian IN
tg tgk Tajik Cyrl Iranian TJ
th tha Thai Thai Kra-Dai TH
ti tir Tigrinya Ethi Semitic ER
tk tuk Turkmen Latn Turkic TM
tlh tlh Klingon Latn Constructed 001
tn tsn Tswana Latn Atlantic-Congo ZA
to ton Tongan Latn Austronesian TO
tr tur Turkish Latn Turkic TR
tt tat Tatar Cyrl Turkic RU
ug uig Uyghur Arab Turkic CN
uk ukr Ukrainian Cyrl Slavic UA
ur urd Urdu Arab Indo-Aryan PK
uz uzn Uzbek Latn Turkic UZ
ve ven Venda Latn Atlantic-Congo ZA
vec vec Venetian Latn Romance IT
vi vie Vietnamese Latn Austroasiatic VN
wa wln Walloon Latn Romance BE
war war Waray Latn Austronesian PH
wo wol Wolof Latn Atlantic-Congo SN
xh xho Xhosa Latn Atlantic-Congo ZA
yi ydd Yiddish Hebr Germanic UA
yo yor Yoruba Latn Atlantic-Congo NG
yue yue Cantonese Hant Sinitic HK
zam zam Zapotec Latn Oto-Manguean MX
zgh zgh Standard_Amazigh Tfng Berber MA
zh zho Chinese Hans Sinitic CN
zu zul Zulu Latn Atlantic-Congo ZA
"""

LANGUAGES: dict[str, Language] = {
    row[0]: Language(row[0], row[1], row[2].replace("_", " "), row[3], row[4], row[5].replace("-", ""))
    for row in (line.split() for line in _TABLE.strip().splitlines())
}
"""Language subtag → what is known of it."""

# Withdrawn codes, macrolanguages and names used by locale systems.
_ALIASES = {"iw": "he", "in": "id", "ji": "yi", "jw": "jv", "mo": "ro", "no": "nb", "nor": "nb", "tl": "fil", "tgl": "fil", "cmn": "zh"}
_ALIASES |= {"ara": "ar", "aze": "az", "fas": "fa", "kur": "ku", "lav": "lv", "mlg": "mg", "mon": "mn", "msa": "ms", "nep": "ne"}
_ALIASES |= {"ori": "or", "orm": "om", "pus": "ps", "sqi": "sq", "swa": "sw", "uzb": "uz", "yid": "yi", "ful": "ff", "que": "qu"}
# ISO 639-2 bibliographic codes.
_ALIASES |= {"ger": "de", "fre": "fr", "dut": "nl", "cze": "cs", "slo": "sk", "gre": "el", "chi": "zh", "rum": "ro", "per": "fa"}
_ALIASES |= {"arm": "hy", "geo": "ka", "ice": "is", "mac": "mk", "mao": "mi", "may": "ms", "bur": "my", "tib": "bo", "wel": "cy"}
_ALIASES |= {"alb": "sq", "baq": "eu"}
_ALIASES |= {language.iso3: language.tag for language in LANGUAGES.values()}

_MODIFIER_SCRIPTS = {"latin": "Latn", "cyrillic": "Cyrl", "devanagari": "Deva", "arabic": "Arab"}
_TRADITIONAL_REGIONS = ("TW", "HK", "MO")
_REGION_NAMES = {
    "001": "world", "419": "Latin America", "AR": "Argentina", "AT": "Austria", "AU": "Australia", "BA": "Bosnia and Herzegovina",
    "BE": "Belgium", "BJ": "Benin", "BR": "Brazil", "CA": "Canada", "CH": "Switzerland", "FI": "Finland", "GB": "United Kingdom",
    "HK": "Hong Kong", "IE": "Ireland", "IN": "India", "KE": "Kenya", "MX": "Mexico", "NE": "Niger", "NZ": "New Zealand", "PK":
    "Pakistan", "PT": "Portugal", "SA": "Saudi Arabia", "TW": "Taiwan", "US": "United States", "ZA": "South Africa",
}  # fmt: skip
_SCRIPT_NAMES = {"Latn": "Latin", "Cyrl": "Cyrillic", "Arab": "Arabic", "Deva": "Devanagari", "Hans": "Simplified", "Hant": "Traditional"}
_SCRIPT_NAMES |= {"Adlm": "Adlam", "Guru": "Gurmukhi", "Beng": "Bengali", "Mong": "Mongolian", "Mtei": "Meetei Mayek"}


@functools.lru_cache(maxsize=4096)
def normalise_language(tag: str) -> str:
    """The one spelling of a language tag used everywhere, in BCP-47.

    Accepts BCP-47 (``zh-Hans-CN``), locale names (``zh_CN.UTF-8``, ``sr@latin``), ISO 639-2 and 639-3 codes (``deu``,
    ``deu_Latn``) and withdrawn codes (``iw``). A script or region that a plain tag already implies is left out
    (``de_DE`` → ``de``); Chinese always names its script (``zh_CN`` → ``zh-Hans``, ``zh-TW`` → ``zh-Hant``).

    Raises:
        ValueError: `tag` has not the form of a language tag.
    """
    text, _, modifier = tag.strip().partition("@")
    parts = list(re.split(r"[-_]", text.partition(".")[0]))
    language = parts[0].lower()
    if not re.fullmatch(r"[a-z]{2,3}", language) or language == "und":
        raise ValueError(f"{tag!r} is not a language tag such as 'de', 'pt-BR' or 'zh-Hans'")
    script = region = ""
    variants: list[str] = []
    for part in parts[1:]:
        if re.fullmatch(r"[A-Za-z]{4}", part) and not (script or region or variants):
            script = part.title()
        elif re.fullmatch(r"[A-Za-z]{2}|[0-9]{3}", part) and not (region or variants):
            region = part.upper()
        elif re.fullmatch(r"[A-Za-z0-9]{5,8}|[0-9][A-Za-z0-9]{3}", part):
            variants.append(part.lower())
        else:
            raise ValueError(f"{tag!r} is not a language tag such as 'de', 'pt-BR' or 'zh-Hans': {part!r} has no meaning in one")
    if modifier:
        script = script or _MODIFIER_SCRIPTS.get(modifier.lower(), "")
        if not script and re.fullmatch(r"[A-Za-z0-9]{5,8}", modifier) and modifier.lower() != "euro":
            variants.append(modifier.lower())
    if language == "sh":
        language, script = "sr", script or "Latn"
    language = _ALIASES.get(language, language)
    return "-".join(part for part in _reduced(language, script, region) + tuple(variants) if part)


def _reduced(language: str, script: str, region: str) -> tuple[str, str, str]:
    """Leave out script and region where the language alone implies them."""
    if language == "zh":
        script = script or ("Hant" if region in _TRADITIONAL_REGIONS else "Hans")
        return language, script, "" if region in ("CN", "SG", "MY", *_TRADITIONAL_REGIONS) else region
    known = LANGUAGES.get(language)
    if known is None:
        return language, script, region
    return language, "" if script == known.script else script, "" if region == known.region else region


def _split(tag: str) -> tuple[Language | None, str, str]:
    """(what is known of the language, explicit script, region) of any tag."""
    parts = normalise_language(tag).split("-")
    script = next((part for part in parts[1:] if re.fullmatch(r"[A-Z][a-z]{3}", part)), "")
    region = next((part for part in parts[1:] if re.fullmatch(r"[A-Z]{2}|[0-9]{3}", part)), "")
    return LANGUAGES.get(parts[0]), script, region


def language_name(tag: str) -> str:
    """English name, such as ``German``, ``Portuguese (Brazil)``, ``Chinese (Simplified)``; the tag itself where unknown."""
    known, script_code, region = _split(tag)
    if known is None:
        return normalise_language(tag)
    details = [_SCRIPT_NAMES.get(script_code, script_code), _REGION_NAMES.get(region, region)]
    details += [variant.capitalize() for variant in normalise_language(tag).split("-")[1 + bool(script_code) + bool(region) :]]
    detail = ", ".join(part for part in details if part)
    return f"{known.name} ({detail})" if detail else known.name


def script(tag: str) -> str:
    """ISO 15924 code of the script captions in this language are written in; ``Zyyy`` (undetermined) where unknown."""
    known, explicit, _ = _split(tag)
    return explicit or (known.script if known else "Zyyy")


def family(tag: str) -> str:
    """Language family (branch for Indo-European), such as ``Slavic`` or ``Turkic``; ``unknown`` where it is not listed."""
    known, _, _ = _split(tag)
    return known.family if known else "unknown"
