"""A program that listens ends in one line and with the code of its signal."""

import signal
import subprocess
import sys
import textwrap

import pytest

CODE = """
    import os, signal, sys, time
    from neural_ngram.pipeline.interruption import INTERRUPTION
    signal.signal(signal.SIGINT, signal.{before})
    INTERRUPTION.listen()
    INTERRUPTION.cleans_up = {cleans_up}
    try:
        os.kill(os.getpid(), signal.{signal})
        time.sleep(0.2)
    finally:
        os.kill(os.getpid(), signal.SIGTERM)  # ignored from the first signal on
        print("cleaned up", INTERRUPTION.code)
"""


def ended(name: str, *, cleans_up: bool, before: str = "default_int_handler"):
    code = textwrap.dedent(CODE.format(signal=name, cleans_up=cleans_up, before=before))
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_it_cleans_up_and_tells_one_line(name: str, code: int):
    done = ended(name, cleans_up=True)
    assert (done.returncode, done.stdout) == (code, f"cleaned up {code}\n")
    assert done.stderr == "-c: interrupted; run the same command to continue\n"


def test_it_ends_at_once_while_there_is_nothing_to_clean_up():
    done = ended("SIGINT", cleans_up=False)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.count("\n") == 1


def test_a_signal_ignored_from_outside_stays_ignored():
    done = ended("SIGINT", cleans_up=False, before="SIG_IGN")
    assert done.returncode == 143  # the second signal was the first one heard


def test_importing_the_library_listens_to_nothing():
    import neural_ngram.pipeline.frame  # noqa: F401, PLC0415

    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


@pytest.mark.promise("reliability")
def test_whoever_is_done_bears_signals_until_the_process_is_gone():
    code = """
        import os, subprocess
        from neural_ngram.pipeline.interruption import INTERRUPTION
        INTERRUPTION.listen()
        {done}
        hail = f"for i in 1 2 3; do kill -INT {{os.getpid()}}; done; echo; " \\
            f"while kill -INT {{os.getpid()}}; do :; done"
        silent = subprocess.DEVNULL
        fallen = subprocess.Popen(["sh", "-c", hail], stdout=subprocess.PIPE, stderr=silent)
        fallen.stdout.readline()  # and then the interpreter is taken down under the same hail
    """
    for done, bears in (("INTERRUPTION.finish()", True), ("pass", False)):
        program = textwrap.dedent(code.format(done=done))
        ended = subprocess.run(
            [sys.executable, "-c", program], stderr=subprocess.DEVNULL, check=False
        )
        assert (ended.returncode == 0) == bears


def test_whoever_is_done_runs_its_exit_handlers_and_prints_all():
    code = """
        import atexit, sys
        from neural_ngram.pipeline.interruption import INTERRUPTION
        INTERRUPTION.listen()
        atexit.register(print, "handled")
        print("done", end=" ")
        INTERRUPTION.finish()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done handled\n", "")
