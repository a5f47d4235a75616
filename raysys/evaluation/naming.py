"""What scores and reports know of a language; a label that is no language tag is its own name and of unknown script."""

from raysys.shards import languages


def language_name(tag: str) -> str:
    """English name, the tag itself where it is unknown or not a tag."""
    try:
        return languages.language_name(tag)
    except ValueError:
        return tag


def script(tag: str) -> str:
    """ISO 15924 code, `Zyyy` where it is unknown."""
    try:
        return languages.script(tag)
    except ValueError:
        return "Zyyy"


def family(tag: str) -> str:
    """Language family, `unknown` where it is."""
    try:
        return languages.family(tag)
    except ValueError:
        return "unknown"
