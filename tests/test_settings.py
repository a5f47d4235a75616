"""Settings: from files and the command line, refused with a sentence where they are wrong."""

from typing import Literal

import pydantic
import pytest

from raysys.errors import UserError
from raysys.settings import Settings, dumps, from_command_line, from_mapping, load, loads


class Inner(Settings):
    """A part."""

    margin: float = pydantic.Field(0.4, lt=1)
    """Below 1."""
    kind: Literal["a", "b"] = "a"
    """Which."""


class Outer(Settings):
    """All."""

    steps: pydantic.PositiveInt = 100
    """How many."""
    names: tuple[str, ...] = ()
    """Of what."""
    tests: dict[str, str] = pydantic.Field(default_factory=dict)
    """Name and folder."""
    limit: int | None = None
    """None: no limit."""
    inner: Inner = Inner()
    """Within."""

    @pydantic.model_validator(mode="after")
    def _consistent(self) -> "Outer":
        if self.steps == 13:
            raise ValueError("13 brings bad luck")
        return self


@pytest.fixture
def file(tmp_path):
    def write(text: str) -> str:
        (tmp_path / "s.yaml").write_text(text)
        return str(tmp_path / "s.yaml")

    return write


def test_defaults_then_file_then_command_line(file):
    path = file("steps: 7\ninner: {margin: 0.1}\nnames: [x, y]\n")
    settings = from_command_line(Outer, ["--inner.kind", "b", "--config", path, "--steps", "9"], "p", "d.")
    assert settings == Outer(steps=9, names=("x", "y"), inner=Inner(margin=0.1, kind="b"))
    assert from_command_line(Outer, [f"--config={path}"], "p", "d.").steps == 7
    assert from_command_line(Outer, [], "p", "d.") == Outer()
    assert from_command_line(Outer, ["--names", "a", "b", "--limit", "3"], "p", "d.") == Outer(names=("a", "b"), limit=3)
    assert from_command_line(Outer, ["--config", file("")], "p", "d.") == Outer()


def test_settings_survive_yaml():
    settings = Outer(steps=3, names=("é", "写真"), tests={"seen": "x/y"}, inner=Inner(margin=0.25))
    assert loads(Outer, dumps(settings), "x") == settings
    assert "写真" in dumps(settings)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("step: 3", "s.yaml: unknown setting 'step'; did you mean 'steps'?"),
        ("inner: {margn: 3}", "s.yaml: unknown setting 'inner.margn'; did you mean 'inner.margin'?"),
        ("steps: many", "s.yaml: steps: Input should be a valid integer, unable to parse string as an integer (got 'many')"),
        ("steps: 0", "s.yaml: steps: Input should be greater than 0 (got 0)"),
        ("inner: {margin: 2}", "s.yaml: inner.margin: Input should be less than 1 (got 2)"),
        ("inner: {kind: c}", "s.yaml: inner.kind: Input should be 'a' or 'b' (got 'c')"),
        ("inner: 3", "s.yaml: inner: Input should be a valid dictionary or instance of Inner (got 3)"),
        ("steps: 13", "s.yaml: 13 brings bad luck"),
        ("- 1", "s.yaml: expected settings as 'key: value' lines, found list"),
        ("a: [", "s.yaml is not valid YAML: while parsing a flow node"),
        ("steps: 3\x00", "s.yaml is not valid YAML"),
    ],
)
def test_faults_of_a_file_in_one_line(file, text, message):
    with pytest.raises(UserError) as error:
        load(Outer, file(text))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(UserError, match=r"cannot read the settings file .*none\.yaml: No such file or directory"):
        load(Outer, tmp_path / "none.yaml")
    with pytest.raises(UserError, match=r"cannot read the settings file .*: Is a directory"):
        load(Outer, tmp_path)
    (tmp_path / "latin.yaml").write_bytes("names: [Stra\xdfe]".encode("latin-1"))
    with pytest.raises(UserError, match=r"the settings file .*latin\.yaml is not UTF-8 text"):
        load(Outer, tmp_path / "latin.yaml")
    with pytest.raises(UserError, match="--config needs the path of a settings file"):
        from_command_line(Outer, ["--config"], "p", "d.")


def test_faults_of_the_command_line(capsys):
    for arguments, message in [
        (["--steps", "13"], "command line: 13 brings bad luck"),
        (["--steps", "0"], "command line: steps: Input should be greater than 0 (got 0)"),
        (["--inner.margin", "2"], "command line: inner.margin: Input should be less than 1 (got 2.0)"),
    ]:
        with pytest.raises(UserError) as error:
            from_command_line(Outer, arguments, "p", "d.")
        assert str(error.value) == message
    assert capsys.readouterr().err == ""
    for arguments, message in [(["--inner.margn", "0.2"], "--inner.margin"), (["--steps", "many"], "--steps")]:
        with pytest.raises(SystemExit) as end:
            from_command_line(Outer, arguments, "p", "d.")
        assert end.value.code == 2
        assert message in capsys.readouterr().err


def test_help_shows_what_each_setting_means(capsys):
    with pytest.raises(SystemExit) as end:
        from_command_line(Outer, ["--help"], "p", "What it does.")
    assert end.value.code == 0
    text = capsys.readouterr().out
    for part in ("What it does.", "--config FILE.yaml", "--inner.margin", "Below 1.", "How many.", "(default: 100)"):
        assert part in text


def test_values_cannot_change_after_they_were_checked():
    with pytest.raises(pydantic.ValidationError):
        Outer().steps = -1
    with pytest.raises(UserError, match="somewhere: steps"):
        from_mapping(Outer, {"steps": None}, "somewhere")
