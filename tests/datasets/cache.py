"""Where the real archives are kept: the same cache `make train` uses, so that each is fetched once."""

from pathlib import Path

CACHE = Path(__file__).parents[2] / "data" / ".cache"
