"""Tools that the executor and the graders use: programs written by a model run here, and nowhere else."""
