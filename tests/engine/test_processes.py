"""Forks, worker processes and exits: the engine ends in peace, or says what to do instead."""

from __future__ import annotations

import pytest

from tests.engine.conftest import Run


def test_a_forked_child_is_told_to_spawn(python: Run) -> None:
    done = python(
        """
        prolog = start()
        pid = os.fork()
        if pid == 0:
            for attempt in (prolog.call, prolog.post, lambda *_: engine()):
                try:
                    attempt("ping", 1)
                except EngineError as error:
                    assert error.kind == "forked" and "spawn" in error.message
                else:
                    os._exit(2)
            sys.exit(5)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), prolog.call("ping", "parent"))
        """
    )
    assert done.stdout == "5 parent\n"


def test_a_fork_while_a_goal_runs(python: Run) -> None:
    done = python(
        """
        prolog = start()
        busy = threading.Thread(target=kind, args=(prolog.call, "loop"), kwargs={"timeout": 1.0}); busy.start()
        time.sleep(0.2)
        pid = os.fork()
        if pid == 0:
            os._exit(0 if kind(prolog.call, "ping", 1) == "forked" else 2)
        print(os.waitpid(pid, 0)[1]); busy.join(); print(prolog.call("ping", "parent"))
        """
    )
    assert done.stdout == "0\nparent\n"


def test_a_fork_before_the_first_use_is_fine(python: Run) -> None:
    done = python(
        """
        pid = os.fork()
        if pid == 0:
            assert engine().call("ping", "child") == "child"
            sys.exit(0)
        print(os.waitpid(pid, 0)[1], engine().call("ping", "parent"))
        """
    )
    assert done.stdout == "0 parent\n"


def test_a_fork_while_another_thread_starts_the_engine(python: Run) -> None:
    done = python(
        """
        starter = threading.Thread(target=engine); starter.start()
        time.sleep(0.03)
        pid = os.fork()
        if pid == 0:
            outcome = kind(engine)
            os._exit(0 if outcome == "forked" or outcome[0] == "no error" else 2)
        print(os.waitpid(pid, 0)[1]); starter.join(); print(engine().call("ping", "parent"))
        """
    )
    assert done.stdout == "0\nparent\n"


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_worker_processes(python: Run, tmp_path: object, method: str) -> None:
    done = python(
        f"""
        folder = {str(tmp_path)!r}
        Path(folder, "work.py").write_text(
            "from rlm.symbolic.engine import engine\\n"
            "def ping(n): return engine().call('ping', n)\\n"
            "def wrong(n): return engine().call('no_such', n)\\n"
        )
        sys.path.insert(0, folder); os.environ["PYTHONPATH"] += os.pathsep + folder
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor
        import work
        print(engine().call("ping", 0))
        with ProcessPoolExecutor(2, multiprocessing.get_context({method!r})) as pool:
            try:
                print(list(pool.map(work.ping, range(4))))
                pool.submit(work.wrong, 1).result()
            except EngineError as error:
                print(error.kind, error.detail.get("operation"))
        """
    )
    expected = {"spawn": ["0", "[0, 1, 2, 3]", "unknown_operation no_such"], "fork": ["0", "forked None"]}
    assert done.stdout.splitlines() == expected[method]


@pytest.mark.parametrize("operation", ["loop", "stubborn", "grow"])
@pytest.mark.parametrize("daemon", [True, False])
def test_exit_while_a_goal_runs(python: Run, operation: str, daemon: bool) -> None:
    timeout = "60" if daemon else "0.5"
    done = python(
        f"""
        prolog = start()
        def work():
            while {daemon} or not leaving.is_set():
                outcome = kind(prolog.call, {operation!r}, timeout={timeout})
                if outcome in ("cancelled", "stopped"): break
        leaving = threading.Event()
        threading.Thread(target=work, daemon={daemon}).start()
        time.sleep(0.3)
        leaving.set()
        print("leaving", flush=True)
        sys.exit(7)
        """,
        code=7,
    )
    assert done.stdout == "leaving\n"


def test_exit_right_after_the_start_and_after_an_error(python: Run) -> None:
    python("engine()")
    python("kind(start().call, 'wrong', 'type')")
    python("engine().post('ping', 1)")
    python("raise SystemExit(3)", code=3)
    done = python("start(); raise ValueError('mine')", code=1, quiet=False)
    assert done.stderr.strip().endswith("ValueError: mine")


def test_exit_while_prolog_starts(python: Run) -> None:
    python(
        """
        threading.Thread(target=engine, daemon=True).start()
        time.sleep(0.1)
        """
    )


def test_exit_with_jobs_in_the_queue(python: Run) -> None:
    python(
        """
        prolog = start()
        for _ in range(20):
            threading.Thread(target=kind, args=(prolog.call, "loop"), daemon=True).start()
        prolog.post("loop")
        time.sleep(0.2)
        """
    )


def test_after_the_engine_stopped_calls_say_so(python: Run) -> None:
    done = python(
        """
        import atexit
        atexit.register(lambda: print(kind(engine().call, "ping", 1)))
        print(engine().call("ping", 1))
        """
    )
    assert done.stdout == "1\nstopped\n"


def test_a_finalizer_that_runs_in_the_engines_thread_does_not_hang(python: Run) -> None:
    done = python(
        """
        prolog = start()
        class Late:
            def __del__(self): outcomes.append(kind(prolog.call, "ping", 1)); prolog.post("remember", "late")
        outcomes = []
        job_args = [Late()]
        original = prolog._owner._apply
        def apply(*args):
            job_args.clear()
            return original(*args)
        prolog._owner._apply = apply
        print(prolog.call("ping", "here"), outcomes, prolog.call("remember", "now"))
        """
    )
    assert done.stdout == "here ['reentrant'] ['late', 'now']\n"


def test_no_object_of_janus_leaves(python: Run) -> None:
    done = python(
        """
        import gc
        prolog = start()
        for which in ("type", "unbound", "huge", "cyclic"): kind(prolog.call, "wrong", which)
        for which in ("pair", "stream", "variable", "surrogate"): kind(prolog.call, "odd", which)
        kind(prolog.call, "aborts"); kind(prolog.call, "loop", timeout=0.1); prolog.call("ping", 1)
        gc.collect()
        import janus_swi
        print([thing for thing in gc.get_objects() if isinstance(thing, (janus_swi.Term, janus_swi.PrologError))])
        """
    )
    assert done.stdout == "[]\n"
