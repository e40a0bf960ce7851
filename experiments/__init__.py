"""Compare many programs: baselines, studies, tracking and reports."""
