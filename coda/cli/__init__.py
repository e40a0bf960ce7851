"""The command line. Each command's module is imported when it is called, so that ``coda --help`` answers at once."""

from __future__ import annotations

from cyclopts import App

from coda import __version__

app = App(
    name="coda",
    help="Compile a reasoning pipeline for your open model, measure it, and take the prompts with you.",
    version=__version__,
    version_flags=["--version"],
    result_action="return_value",
)
engine = App(name="engine", help="The Engines: fetch, list and serve the embedded one, look at profiles.")
data = App(name="data", help="The benchmarks: list them, look at problems, check a file.")

app.command("coda.cli.quickstart:quickstart", name="quickstart", help="Run the main job on the embedded Engine.")
app.command("coda.cli.solve:solve", name="solve", help="Solve one problem and watch the stages.")
app.command("coda.cli.evaluate:evaluate", name="eval", help="Measure a pipeline on a benchmark.")
app.command("coda.cli.verify:verify", name="verify", help="Grade recorded answers, and try ways to choose among them.")
app.command("coda.cli.compare:compare", name="compare", help="Compare runs problem by problem: better, or luck?")
app.command("coda.cli.gaps:gaps", name="gaps", help="Show where a run's right answers are found and lost.")
app.command("coda.cli.report:report", name="report", help="Write a report on runs: one page, Markdown and CSV.")
app.command("coda.cli.harvest:harvest", name="harvest", help="Write training sets from recorded runs.")
app.command("coda.cli.tracked:runs", name="runs", help="List tracked runs.")
app.command("coda.cli.tracked:ui", name="ui", help="Open MLflow on the tracked runs.")
app.command("coda.cli.compile:compile_", name="compile", help="Compile a pipeline for a model and a benchmark.")
app.command("coda.cli.export:export", name="export", help="Write a compiled pipeline's prompts for use anywhere.")
app.command("coda.cli.show:show", name="show", help="Show what a compiled pipeline holds and was measured at.")
app.command("coda.cli.preset:preset", name="preset", help="Print how much thought a problem gets, as settings to copy.")
app.command("coda.cli.diff:diff", name="diff", help="Show in what two compiled pipelines differ.")
app.command("coda.cli.register:register", name="register", help="Register a compiled pipeline in MLflow.")
app.command("coda.cli.exec:exec_", name="exec", help="Run one program in the sandbox.")
app.command("coda.cli.doctor:doctor", name="doctor", help="Show what works on this machine, and what is missing.")
app.command(engine)
app.command(data)

engine.command("coda.cli.engine:pull", name="pull", help="Fetch the embedded Engine's weights (98 MB).")
engine.command("coda.cli.engine:list_", name="list", help="List the weights that are here.")
engine.command("coda.cli.engine:serve", name="serve", help="Serve the embedded Engine over the OpenAI protocol.")
engine.command("coda.cli.engine:check", name="check", help="Ask a server what it supports, and propose a profile.")
engine.command("coda.cli.engine:profile", name="profile", help="Print the profile of a model.")

data.command("coda.cli.data:list_", name="list", help="List the benchmarks.")
data.command("coda.cli.data:show", name="show", help="Show a benchmark's problems.")
data.command("coda.cli.data:check", name="check", help="Check a benchmark or a file of your own, row by row.")


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and end the process with the designed exit status.

    0 done, 1 the run failed, 2 bad usage or input, 3 budget reached with partial results saved, 130 interrupted.
    """
    from coda.cli.console import run

    raise SystemExit(run(app, arguments))
