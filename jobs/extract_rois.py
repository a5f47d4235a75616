"""Add region features to the pictures of data sets, as models of vision and language read them.

    python jobs/extract_rois.py --data data/shapes --out data/shapes-rois --detector boxes
    python jobs/extract_rois.py --data data/tuxpaint/train --out data/tuxpaint-rois/train --features package:efficientnet-lite0
    python jobs/extract_rois.py --data s3://bucket/coco --out s3://bucket/coco-rois --detector PekingU/rtdetr_r50vd --gpu True

Writes each shard again under its name, with a member ``.rois.npz`` beside every picture (`features` float32 [n, D], `boxes` float32 [n, 4]:
left, top, right, bottom in pixels, `size` int32 [2]: width, height), on actors of Ray Data (`RAY_ADDRESS` for a cluster). The same command
goes on after an interruption, shard by shard. `--dry-run` says what it will do, how long it takes and what width the vectors have.
"""

import sys

from raysys.errors import run_program


def main() -> None:
    # Here, so that Ctrl-C is answered as everywhere while they are imported.
    from raysys.runs.extract_rois import ExtractRoisSettings, describe, extract
    from raysys.runs.region_actors import connect_ray
    from raysys.settings import from_command_line

    arguments = [argument for argument in sys.argv[1:] if argument != "--dry-run"]
    settings = from_command_line(
        ExtractRoisSettings, arguments, "extract_rois.py", "Add region features to pictures; --dry-run says what would be done."
    )
    if "--dry-run" in sys.argv:
        print("\n".join(describe(settings)))
        return
    if settings.workers != 0:
        connect_ray()
    try:
        copies = extract(settings, lambda line: print(line, flush=True))
    except KeyboardInterrupt:
        print("stopped; finished shards are kept: the same command goes on from there")
        raise
    print(f"look at it: python jobs/shards.py inspect {next(iter(copies))}")


if __name__ == "__main__":
    run_program(main)
