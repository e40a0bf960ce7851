"""The part of the sandbox that runs inside it: standard library only, and read by the program that it confines.

    template   the process that is started once, preloads libraries, and forks a job for each program
    warmup     what the template computes ahead
    confine    what a job does before it lets a program run: namespaces, capabilities, limits, system calls
    syscalls   the system-call filter
    script     a whole program, run for what it prints
    serve      a program whose functions are called from outside
    judge      the tests that call them, in another job with another verdict channel
    link       how the tests ask the program
    remote     what the tests see of the program's objects: proxies
    asserts    tests taken apart, so that a failure says what was expected and what came
    plain      values as they cross from one job to the other: data, never objects

Nothing here is secret, and nothing here is trusted once a program runs beside it, except the judge's job.
"""
