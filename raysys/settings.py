"""Settings: typed, documented, validated; from YAML files and command-line overrides.

Each component defines its own settings class beside itself, derived from :class:`Settings`; every field carries a one-line
docstring, which is what `--help` shows. :func:`from_command_line` reads ``--config file.yaml`` and then overrides such as
``--training.steps 200``.
"""

import contextlib
import difflib
import io
import sys
from pathlib import Path
from typing import Any, TypeVar

import pydantic
import tyro
import yaml

from raysys.errors import UserError


class Settings(pydantic.BaseModel):
    """Base of all settings: unknown keys are refused, values cannot be changed after they were checked."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


AnySettings = TypeVar("AnySettings", bound=Settings)


def from_mapping(cls: type[AnySettings], values: dict[str, Any], source: str) -> AnySettings:
    """Validate `values` as `cls`.

    Raises:
        UserError: names the key, what is wrong with it, the nearest known key where it is unknown, and `source`.
    """
    try:
        return cls.model_validate(values)
    except pydantic.ValidationError as error:
        raise UserError("; ".join(_explain(cls, fault, source) for fault in error.errors()[:3])) from None


def _explain(cls: type[Settings], fault: Any, source: str) -> str:
    path = [str(part) for part in fault["loc"]]
    key = ".".join(path)
    if fault["type"] != "extra_forbidden":
        message = fault["msg"].removeprefix("Value error, ")
        # A whole group of settings tells a person nothing, and may hold a secret.
        given = "" if isinstance(fault["input"], dict) else f" (got {fault['input']!r})"
        return f"{source}: {key}: {message}{given}" if path else f"{source}: {message}"
    near = difflib.get_close_matches(key, _known_keys(cls), n=1, cutoff=0.0)
    return f"{source}: unknown setting {key!r}; did you mean {near[0]!r}?"


def _known_keys(cls: type[Settings], prefix: str = "") -> list[str]:
    keys = []
    for name, field in cls.model_fields.items():
        keys.append(prefix + name)
        if isinstance(field.annotation, type) and issubclass(field.annotation, Settings):
            keys += _known_keys(field.annotation, f"{prefix}{name}.")
    return keys


def load(cls: type[AnySettings], path: str | Path) -> AnySettings:
    """Read a YAML file as `cls`. Raises UserError for a missing file, bad YAML, unknown keys and wrong types."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot read the settings file {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"the settings file {path} is not UTF-8 text") from None
    return loads(cls, text, str(path))


def loads(cls: type[AnySettings], text: str, source: str) -> AnySettings:
    """Read YAML text as `cls`; `source` is how errors call it."""
    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UserError(f"{source} is not valid YAML: {' '.join(str(error).split())}") from None
    if values is None:
        values = {}
    if not isinstance(values, dict):
        raise UserError(f"{source}: expected settings as 'key: value' lines, found {type(values).__name__}")
    return from_mapping(cls, values, source)


def dumps(settings: Settings) -> str:
    """YAML text that :func:`loads` reads back to equal settings."""
    return yaml.safe_dump(settings.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def from_command_line(cls: type[AnySettings], arguments: list[str], program: str, description: str) -> AnySettings:
    """Settings from ``--config FILE`` (optional) and command-line overrides.

    A misspelt option ends the process with code 2 and the nearest known option (tyro's doing); a fault in the file or in
    a value raises UserError.
    """
    arguments = list(arguments)
    default: AnySettings | None = None
    for position, argument in enumerate(arguments):
        if argument == "--config" or argument.startswith("--config="):
            file = argument.partition("=")[2]
            used = 1
            if not file:
                if position + 1 == len(arguments):
                    raise UserError("--config needs the path of a settings file, such as jobs/configs/shapes.yaml")
                file, used = arguments[position + 1], 2
            default = load(cls, file)
            del arguments[position : position + used]
            break
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return tyro.cli(
                cls,
                prog=program,
                description=description + " Settings come from --config FILE.yaml first, then from these options.",
                default=default if default is not None else tyro.MISSING_NONPROP,
                args=arguments,
                config=(tyro.conf.AvoidSubcommands, tyro.conf.FlagConversionOff),
            )
    except SystemExit as end:
        # tyro shows a value that the settings refuse as pydantic's own text, over many lines.
        error = _validation_error(end)
        if error is None:
            print(said.getvalue(), file=sys.stderr, end="")
            raise
    within = _place_of(cls, error.title)
    raise UserError("; ".join(_explain(cls, {**fault, "loc": (*within, *fault["loc"])}, "command line") for fault in error.errors()[:3]))


def _validation_error(error: BaseException | None) -> pydantic.ValidationError | None:
    """The validation that an error stems from."""
    while error is not None and not isinstance(error, pydantic.ValidationError):
        error = error.__cause__ or error.__context__
    return error


def _place_of(cls: type[Settings], title: str) -> tuple[str, ...]:
    """Where in `cls` the settings class called `title` is used; empty for `cls` itself."""
    for name, field in cls.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, Settings):
            if inner.__name__ == title:
                return (name,)
            if place := _place_of(inner, title):
                return (name, *place)
    return ()
