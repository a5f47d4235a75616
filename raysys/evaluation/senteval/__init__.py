"""SentEval's classification tasks on frozen sentence vectors (Conneau and Kiela, *SentEval*, LREC 2018), from its own data layout."""

from raysys.evaluation.senteval.evaluate import TaskResult, run
from raysys.evaluation.senteval.significance import significance
from raysys.evaluation.senteval.tasks import PUBLISHED, TABLE, find_tasks

__all__ = ["PUBLISHED", "TABLE", "TaskResult", "find_tasks", "run", "significance"]
