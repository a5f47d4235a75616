"""Code that travels with an export and works without raysys: each file needs only what its first lines import.

They are ordinary modules here, so that they are checked and tested as all others are. In an export, which is a folder and no package,
they import one another by the names that :func:`copy_into` gives them.
"""

import re
from pathlib import Path

import raysys.data.encoding as encoding

_HERE = Path(__file__).parent
_IMPORT = re.compile(r"from raysys\.(?:data|systems\.export\.standalone)\.(\w+) import")


def copy_into(folder: Path, *names: str, relative: bool = True) -> None:
    """Write modules into an export.

    Args:
        folder: where to.
        names: modules of this folder, or `encoding` (:mod:`raysys.data.encoding`).
        relative: import one another as members of a package do, which is how transformers and sentence-transformers load code; false:
            as files of one folder.
    """
    for name in names:
        source = Path(encoding.__file__) if name == "encoding" else _HERE / f"{name}.py"
        text = _IMPORT.sub(rf"from {'.' * relative}raysys_\1 import", source.read_text(encoding="utf-8"))
        (folder / f"raysys_{name}.py").write_text(text, encoding="utf-8")
