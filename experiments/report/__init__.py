"""Reports: runs as one page that opens from the disk, and as Markdown and CSV (docs/reports.md)."""

from coda.experiments.report.contents import Contents, gather
from coda.experiments.report.runs import Run, find_runs
from coda.experiments.report.write import Written, write_report

__all__ = ["Contents", "Run", "Written", "find_runs", "gather", "write_report"]
