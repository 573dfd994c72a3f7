"""A hundred thousand calls leave nothing behind."""

from __future__ import annotations

from tests.engine.conftest import Run


def test_a_hundred_thousand_calls_without_growth(python: Run) -> None:
    done = python(
        """
        prolog = start()
        def resident():
            return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
        def some(first, calls):
            for number in range(first, first + calls):
                prolog.call("ping", {"text": f"passing text {number}", "values": [number, "x", 0.5]})
                if number % 50 == 0:
                    kind(prolog.call, "wrong", "type"); kind(prolog.call, "odd", "pair")
                    kind(prolog.call, "ping", {f"key{number}": number})
                if number % 1000 == 0:
                    kind(prolog.call, "odd", "surrogate"); kind(prolog.call, "loop", inferences=1000)
                    kind(prolog.call, "odd_key", number)
        some(0, 20_000)
        before, memory = prolog.call("state"), resident()
        some(20_000, 100_000)
        after, grown = prolog.call("state"), resident() - memory
        assert grown < 10_000, f"{grown} KB"
        assert after["atoms"] - before["atoms"] < 3_000, (before, after)
        assert after["texts"] == before["texts"], (before, after)
        """
    )
    assert done.stdout == ""


def test_atoms_that_rules_make_are_collected(python: Run) -> None:
    done = python(
        """
        prolog = start()
        before = prolog.call("state")["atoms"]
        for _ in range(5):
            prolog.call("atoms", 200_000)
        for _ in range(100):  # another collection may be under way
            kept = prolog.call("state")["atoms"] - before
            if kept < 1_000: break
            time.sleep(0.02)
        print(kept < 1_000)
        """
    )
    assert done.stdout == "True\n"


def test_a_thousand_timeouts_and_cancelled_awaits(python: Run) -> None:
    done = python(
        """
        import asyncio
        prolog = start()
        for _ in range(500):
            assert kind(prolog.call, "loop", timeout=0.001) == "timeout"
        async def main():
            for _ in range(500):
                task = asyncio.create_task(prolog.acall("loop"))
                await asyncio.sleep(0.001)
                task.cancel()
                try: await task
                except asyncio.CancelledError: pass
        asyncio.run(main())
        print(prolog.call("ping", "next"), prolog.call("state")["call"] > 0)
        print(len(threading.enumerate()) < 5)
        """
    )
    assert done.stdout == "next True\nTrue\n"
