"""Any thread may call, and start, the engine; a host may use Prolog beside it."""

from __future__ import annotations

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
        found = locate.find()
        os.environ["SWI_HOME_DIR"] = str(found.home)
        if found.janus is not None:  # the bundled Janus is on no path by itself
            sys.path.insert(0, str(found.janus.parent))
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
