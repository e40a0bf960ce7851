"""How a problem is solved: the stages as DSPy modules, composed into one program, and the Engine behind them."""
