"""A program that leaves what traces it can, and one that looks for them."""

LEAVES_TRACES = """
import builtins, math, os, random, sys
open("/tmp/trace", "w").write("x")
open("trace.py", "w").write("x")
open("numpy.py", "w").write("x = 1")
os.environ["TRACE"] = "x"
math.pi = 3
builtins.trace = sys.modules["trace"] = "x"
sys.setrecursionlimit(100)
random.seed(1)
os.umask(0)
if os.fork() == 0:
    import time, socket
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("\\0trace")
    listener.listen()
    time.sleep(20)
"""
FINDS_TRACES = """
import builtins, math, os, socket, sys
found = [name for name in ("/tmp/trace", "trace.py", "numpy.py") if os.path.exists(name)]
found += [name for name in ("TRACE",) if name in os.environ]
found += ["pi"] if math.pi == 3 else []
found += ["builtins"] if hasattr(builtins, "trace") else []
found += ["modules"] if "trace" in sys.modules else []
found += ["recursion"] if sys.getrecursionlimit() == 100 else []
found += ["umask"] if os.umask(0o77) == 0 else []
found += os.listdir("/tmp/work")
try:
    socket.socket(socket.AF_UNIX).connect("\\0trace")
    found.append("socket")
except OSError:
    pass
import numpy
found += ["numpy"] if hasattr(numpy, "x") else []
print(found)
"""
