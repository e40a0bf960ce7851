"""All optimizers, by the name that ``--optimizer`` takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module

from coda.data.examples import Example
from coda.errors import UsageError
from coda.optimize.config import CompileConfig
from coda.optimize.optimizers.auto import Auto
from coda.optimize.optimizers.demos import Bootstrap, Labeled, RandomSearch
from coda.optimize.optimizers.instructions import Copro, Gepa, Rules
from coda.optimize.optimizers.joint import Mipro, Simba, Together
from coda.optimize.optimizers.workbench import Optimizer

OPTIMIZERS: dict[str, Callable[[], Optimizer]] = {
    "auto": Auto,
    "labeled": Labeled,
    "bootstrap": Bootstrap,
    "random-search": RandomSearch,
    "copro": Copro,
    "mipro": Mipro,
    "simba": Simba,
    "gepa": Gepa,
    "infer-rules": Rules,
    "better-together": Together,
}


def optimizer(name: str) -> Optimizer:
    """The optimizer of this name.

    Raises:
        UsageError: There is none.
    """
    if name not in OPTIMIZERS:
        raise UsageError(f"There is no optimizer {name!r}. Take one of: {', '.join(OPTIMIZERS)}.")
    return OPTIMIZERS[name]()


def check_optimizer(config: CompileConfig, train: Sequence[Example]) -> None:
    """Make sure that the optimizer can run, before anything is spent.

    Raises:
        UsageError: A module that it needs is not installed, or the training problems are not enough for it.
    """
    chosen = optimizer(config.optimizer)
    for module in chosen.needs:
        try:
            import_module(module)
        except ImportError as error:
            raise UsageError(
                f"--optimizer {chosen.name} needs {module}, which is not installed. Nothing was spent. "
                "Install it with: pip install 'coda-conductor[optimizers]'"
            ) from error
    chosen.check(train[: config.train])
