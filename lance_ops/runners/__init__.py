"""Execute the tasks of a plan: in threads of this process, or by whatever else keeps the contract of `Runner`."""

from lance_ops.runners.in_threads import InThreads
from lance_ops.runners.job import Job, JobProgress, ReportProgress
from lance_ops.runners.runner import Runner, RunnerWithSlots

__all__ = ["InThreads", "Job", "JobProgress", "ReportProgress", "Runner", "RunnerWithSlots"]
