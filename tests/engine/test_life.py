"""Threads, event loops, Ctrl-C, forks and exits: the engine outlives them, or says why not."""

from __future__ import annotations

import sys

import pytest

from tests.engine.conftest import Run


def test_calls_from_many_threads_at_once(python: Run) -> None:
    done = python(
        """
        prolog = start()
        answers = []
        def work(me):
            for number in range(200):
                assert prolog.call("ping", [me, number]) == [me, number]
            answers.append(prolog.call("state")["thread"])
        threads = [threading.Thread(target=work, args=(me,)) for me in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(len(answers), len(set(answers)))
        """
    )
    assert done.stdout == "8 1\n"


def test_hundreds_of_short_lived_threads(python: Run) -> None:
    done = python(
        """
        prolog = start()
        def work(): prolog.call("ping", 1); kind(prolog.call, "wrong", "type")
        for _ in range(300):
            thread = threading.Thread(target=work); thread.start(); thread.join()
        import janus_swi
        print(janus_swi.query_once("findall(_T, thread_property(_T, status(running)), _L), length(_L, N)")["N"] < 6)
        """
    )
    assert done.stdout == "True\n"


def test_facts_of_the_engines_thread_are_kept_between_callers(python: Run) -> None:
    done = python(
        """
        prolog = start()
        def work(): print(prolog.call("remember", threading.current_thread().name))
        for name in "ab":
            thread = threading.Thread(target=work, name=name); thread.start(); thread.join()
        """
    )
    assert done.stdout.splitlines() == ["['a']", "['a', 'b']"]


@pytest.mark.parametrize("first", ["main", "worker"])
def test_whichever_thread_starts_it(python: Run, first: str) -> None:
    done = python(
        f"""
        def work(): print(start().call("ping", "worker"))
        def main(): print(start().call("ping", "main"))
        thread = threading.Thread(target=work)
        if {first!r} == "main": main()
        thread.start(); thread.join()
        if {first!r} != "main": main()
        assert kind(engine().call, "loop", timeout=0.2) == "timeout"
        print(engine().call("says"))
        """
    )
    assert sorted(done.stdout.splitlines()) == ["Grüße, 世界", "main", "worker"]


def test_many_threads_start_one_engine(python: Run) -> None:
    done = python(
        """
        engines = []
        threads = [threading.Thread(target=lambda: engines.append(engine())) for _ in range(16)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(len(engines), len({id(one) for one in engines}))
        """
    )
    assert done.stdout == "16 1\n"


def test_a_host_may_use_janus_itself(python: Run) -> None:
    done = python(
        """
        prolog = start()
        import janus_swi
        print(janus_swi.apply_once("user", "atom_length", "four"))
        print([row["X"] for row in janus_swi.query("member(X, [1, 2])")], prolog.call("ping", 3))
        """
    )
    assert done.stdout == "4\n[1, 2] 3\n"


def test_a_host_may_have_started_prolog_before(python: Run) -> None:
    done = python(
        """
        from rlm.symbolic import locate
        os.environ["SWI_HOME_DIR"] = str(locate.find().home)
        import janus_swi
        print(janus_swi.apply_once("user", "atom_length", "four"))
        prolog = start()
        print(prolog.call("ping", 3), kind(prolog.call, "loop", timeout=0.2), prolog.call("ping", 4))
        """
    )
    assert done.stdout == "4\n3 timeout 4\n"


def test_the_users_init_file_is_not_read(python: Run, tmp_path: object) -> None:
    done = python(
        f"""
        home = Path({str(tmp_path)!r}); folder = home / ".config" / "swi-prolog"; folder.mkdir(parents=True)
        (folder / "init.pl").write_text(":- set_prolog_flag(double_quotes, codes).\\n:- print(init_file_was_read).\\n")
        os.environ["HOME"] = str(home)
        print(start().call("ping", "quiet"))
        """
    )
    assert done.stdout == "quiet\n"


def test_a_plain_c_locale(python: Run) -> None:
    done = python(
        """
        prolog = start()
        assert prolog.call("says") == "Gr\\u00fc\\u00dfe, \\u4e16\\u754c", ascii(prolog.call("says"))
        assert prolog.call("ping", "\\u00e9\\u4e2d\\U0001f600") == "\\u00e9\\u4e2d\\U0001f600"
        """,
        env={"LC_ALL": "C", "LANG": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
    )
    assert done.stdout == ""


# Event loops.


def test_awaited_calls_leave_the_loop_free(python: Run) -> None:
    done = python(
        """
        import asyncio
        prolog = start()
        async def main():
            ticks = 0
            async def tick():
                nonlocal ticks
                while True:
                    await asyncio.sleep(0.01); ticks += 1
            ticker = asyncio.create_task(tick())
            assert await asyncio.gather(*(prolog.acall("ping", n) for n in range(50))) == list(range(50))
            try:
                await prolog.acall("loop", timeout=0.5)
            except EngineError as error:
                print(error.kind)
            ticker.cancel()
            print(ticks > 10)
            try:
                await prolog.acall("wrong", "type")
            except EngineError as error:
                print(error.kind)
        asyncio.run(main())
        """
    )
    assert done.stdout.splitlines() == ["timeout", "True", "type_error"]


def test_cancelling_the_await_cancels_the_goal(python: Run) -> None:
    done = python(
        """
        import asyncio
        prolog = start()
        async def main():
            running = asyncio.create_task(prolog.acall("loop"))
            waiting = asyncio.create_task(prolog.acall("loop"))
            await asyncio.sleep(0.2)
            began = time.monotonic()
            for task in (waiting, running):
                task.cancel()
                try:
                    await task
                except asyncio.CancelledError:
                    print("cancelled")
            print(await prolog.acall("ping", "next"), time.monotonic() - began < 5)
        asyncio.run(main())
        """
    )
    assert done.stdout.splitlines() == ["cancelled", "cancelled", "next True"]


def test_anyio_scopes_end_the_goal(python: Run) -> None:
    done = python(
        """
        import anyio
        prolog = start()
        async def main():
            with anyio.move_on_after(0.2) as scope:
                await prolog.acall("loop")
            print(scope.cancelled_caught, await prolog.acall("ping", "next"))
        anyio.run(main)
        """
    )
    assert done.stdout == "True next\n"


def test_a_loop_that_is_gone_when_the_reply_comes(python: Run) -> None:
    done = python(
        """
        import asyncio
        prolog = start()
        async def leave():
            asyncio.ensure_future(prolog.acall("spin", 3_000_000))
            await asyncio.sleep(0)
        loop = asyncio.new_event_loop()
        loop.run_until_complete(leave())
        for task in asyncio.all_tasks(loop): task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        print(prolog.call("ping", "next"))
        """
    )
    assert done.stdout == "next\n"


# Ctrl-C.


def test_ctrl_c_stops_the_goal_and_the_engine_goes_on(python: Run) -> None:
    done = python(
        """
        prolog = start()
        for operation in ("loop", "grow", "stubborn", "loop"):
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                for _ in range(1000):
                    kind(prolog.call, operation)
            except KeyboardInterrupt:
                print(operation, prolog.call("ping", "next"))
        """
    )
    assert done.stdout.splitlines() == [f"{name} next" for name in ("loop", "grow", "stubborn", "loop")]


def test_a_storm_of_ctrl_c_between_and_during_calls(python: Run) -> None:
    done = python(
        """
        prolog = start()
        storm = threading.Thread(
            target=lambda: [(time.sleep(0.005), os.kill(os.getpid(), signal.SIGINT)) for _ in range(100)]
        )
        storm.start()
        caught = 0
        while storm.is_alive():
            try:
                while True:
                    kind(prolog.call, "ping", [1] * 100)
                    kind(prolog.call, "spin", 20_000)
                    kind(prolog.call, "wrong", "type")
            except KeyboardInterrupt:
                caught += 1
        for _ in range(20):
            try:
                assert prolog.call("ping", "calm") == "calm"
            except KeyboardInterrupt:
                caught += 1
        print(caught > 10)
        """
    )
    assert done.stdout == "True\n"


def test_ctrl_c_while_prolog_starts(python: Run) -> None:
    done = python(
        """
        for delay in (0.005, 0.02, 0.05, 0.1):
            pid = os.fork()
            if pid == 0:
                threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT)).start()
                for _ in range(3):
                    try:
                        prolog = engine()
                        time.sleep(0.2)
                        assert prolog.call("ping", "up") == "up"
                        os._exit(0)
                    except KeyboardInterrupt:
                        pass
                os._exit(9)
            assert os.waitpid(pid, 0)[1] == 0
        """
    )
    assert done.stdout == ""


# Forks and other processes.


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


# Exits.


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


if sys.platform == "win32":
    pytestmark = pytest.mark.skip(reason="POSIX signals and forks")
