"""A program's prompts for use without DSPy and without this project, exact to the byte."""

from coda.optimize.prompts.formats import Format, render
from coda.optimize.prompts.prompt import Dialect, Message, Prompt, Slot, prompts_of

__all__ = ["Dialect", "Format", "Message", "Prompt", "Slot", "prompts_of", "render"]
