"""Texts for the tokenizer: every construct of Prolog's syntax that hides brackets or shows them, put together at random."""

from __future__ import annotations

import random

BOMB = 450
"""Brackets that are hidden in a quote or comment, or stand open: more than a C stack of 256 KB holds levels."""

NUMBERS = """0 7 00 007 01 1.00 1.0 0.5 10 16 36 37 1 000|1_000|1_ 000|1_/*c*/000|1_%c
000|1 000 000|0x1F|0xfF_0|0x_1|0o17|0o1 7|0b101|0b1 0|0b2|0x|16'FF|36'Zz|2'10|2'10 1|8'17|1'0|37'1|016'F|09'1|1r3|1R3|1r0
1.5NaN|1.0Inf|inf|1e10|1E5|1.0e10|1.0e+5|1e-5|1.e5|1e|12abc|1.|1..2|9999999999999999999999|1 0|1  0|1_|1__0|\u0663|\u0663_\u0663
-1|- 1|-0'a|+1|--1|1.0Infe5|1 0.5|1_0e5|0e0|0.0e0|10'9|3'2|1r3r4"""
CHARS = list(
    "abz019 .,;|!%$&*+-/<=>@\\^~:#?()[]{}'\"`_AZ\t\n\u00a0\u2003\u00e9\u0663\u5b57\u0301\u2028\u201c\u201d\u00ab"
)
ESCAPES = (
    [f"\\{c}" for c in "abfnrtvesc0xuUzq'\"`\\ \n\r\t.%(["]
    + [
        "\\x41\\",
        "\\x41",
        "\\x",
        "\\xg",
        "\\101\\",
        "\\101",
        "\\8",
        "\\u0041",
        "\\u41",
        "\\U00000041",
        "\\c  ",
        "\\c\n ",
        "\\\n  ",
    ]
    + ["\\xffffffff\\", "\\777777777\\", "\\\r\n", "\\\n\\", "\\\n'", '\\\n"', "\\c'", "\\x'", "\\1'", "\\\\"]
)
PIECES = (
    "a foo B _ _x X1 [] {} ! ; | || , . :- --> ?- -> :: := = \\= \\+ - + * ** ^ / // is mod rdiv dynamic table $ & @ # "
    "a: b.c a.b.c f( g( foo( X( ( [ { ) ] } _{ Tag{ point{ a:1 x:y [a|b] {a} (a) f(x) - - \\+\\+ :- a^b^c ... .( '[]' [](x) {}(x) "
    "f() a:(b) 'a'(x) \"s\" `c` \\ \\\\ ``` '' \"\" {| |} {|x||y|} [| {_| (| |] 0' /* */ */ /** **/ % %% /*/ \u00a0 \u5b57 \u00e9 \u201c\u201d \u2028"
).split(" ")


def number(random: random.Random) -> str:
    return random.choice(
        NUMBERS.replace("\n", "|").replace("%c|", "%c\n").split("|") if random.random() < 0.7 else NUMBERS.split(" ")
    )


def code(random: random.Random) -> str:
    return "0'" + random.choice([random.choice(CHARS), random.choice(ESCAPES), "''", "'", "||", "|", "\\x41\\", "\\x4"])


def quoted(random: random.Random, content: str | None = None) -> str:
    quote = random.choice("'''\"`")
    parts = [
        random.choice([random.choice(CHARS), random.choice(ESCAPES), quote * 2, number(random), random.choice(PIECES)])
        for _ in range(random.randrange(4))
    ]
    parts.insert(random.randrange(len(parts) + 1), content or "")
    text = "".join(parts)
    if random.random() < 0.7:  # such that it ends where it seems to end
        text = text.replace(quote, quote * 2) if random.random() < 0.8 else text.replace(quote, "\\" + quote)
    return quote + text + (quote if random.random() < 0.95 else "")


def comment(random: random.Random, content: str = "") -> str:
    text = "".join(random.choice([random.choice(CHARS), "/*", "*/", "*", "/"]) for _ in range(random.randrange(4)))
    if random.random() < 0.6:
        text = text.replace("*/", "").replace("/*", "")
    if random.random() < 0.3:
        return f"%{text.replace(chr(10), ' ')}{content}\n"
    nested = random.choice(["", "", "/* x */", "/*/", "*/*", "/**/"])
    return f"/*{text}{content}{nested}*/"


def bomb(random: random.Random, size: int = BOMB) -> str:
    opening = random.choice(["(", "[", "{", "f(", "_{a:", "[a,", "- (", "'a'(", "a-(", "{}(", "[](", "0-["])
    closing = {"(": ")", "[": "]", "{": "}"}
    ends = [closing[char] for char in opening if char in closing]
    last = {"{}(": ")", "[](": ")"}.get(opening, ends[-1])
    middle = random.choice(["a", "1", "X", "", "a'", "0'a"])
    return opening * size + middle + (last * size if random.random() < 0.9 else "")


def piece(random: random.Random) -> str:
    kind = random.random()
    if kind < 0.3:
        return number(random)
    if kind < 0.4:
        return code(random)
    if kind < 0.55:
        return quoted(random)
    if kind < 0.62:
        return comment(random)
    if kind < 0.7:
        return random.choice(CHARS)
    return random.choice(PIECES)


def wild(random: random.Random) -> str:
    """Pieces side by side, with a bomb in the open, in a quote or in a comment."""
    parts = [piece(random) + random.choice(["", "", " "]) for _ in range(random.randrange(1, 7))]
    kind = random.random()
    if kind < 0.5:
        hidden = bomb(random)
        if kind < 0.15:
            hidden = quoted(random, hidden)
        elif kind < 0.2:
            hidden = comment(random, hidden)
        parts.insert(random.randrange(len(parts) + 1), hidden)
    if random.random() < 0.5:
        parts += [random.choice(["'", "'a'", '"', "`", "*/"])]
    if random.random() < 0.3:
        parts.insert(random.randrange(len(parts) + 1), random.choice([". ", ".\n", ".%\n", ".\u00a0", ".\u2003"]))
    return "".join(parts) + random.choice([".", ".", " .", ".\n", "\n.\n", ""])


def term(random: random.Random, levels: int) -> str:
    """A term that can mostly be read."""
    kind = random.random()
    if levels == 0 or kind < 0.35:
        leaf = random.random()
        if leaf < 0.4:
            return number(random)
        if leaf < 0.5:
            return code(random)
        if leaf < 0.7:
            return quoted(random)
        return random.choice(["a", "X", "_", "[]", "{}", "'[]'", "foo", "\u5b57", "[ ]", "{ }"])
    gap = random.choice(["", "", " ", comment(random) if random.random() < 0.3 else " "])
    inner = [term(random, levels - 1) for _ in range(random.randrange(1, 4))]
    if kind < 0.5:
        return f"{random.choice(['f', chr(39) + 'a b' + chr(39), 'foo', '-', '[]', '{}'])}({f',{gap}'.join(inner)})"
    if kind < 0.6:
        return f"[{','.join(inner)}{gap}]"
    if kind < 0.65:
        return f"({gap}{inner[0]})"
    if kind < 0.7:
        return f"{{{inner[0]}{gap}}}"
    if kind < 0.75:
        return f"{random.choice(['_', 'T', 'tag'])}{{{','.join(f'k{n}: {one}' for n, one in enumerate(inner))}}}"
    if kind < 0.85:
        return f"{random.choice(['- ', chr(92) + '+ ', '- - ', '@ '])}{inner[0]}"
    return random.choice([" + ", "-", ",", " :- ", " ^ ", "=", " - ", ":"]).join(inner)


def orderly(random: random.Random) -> str:
    return "".join(
        f"{term(random, random.randrange(5))}{random.choice(['', ' '])}.\n" for _ in range(random.randrange(1, 3))
    )


def parted(random: random.Random) -> str:
    """A text that hides its bomb from a tokenizer which loses step with the reader at one construct."""
    quote = random.choice("'''\"`")
    marks = [quote, quote, f"{quote}a{quote}", quote * 2, " ", "b", ".\n", ".\n", "*/", "/*", "%", "0", "\n", "\\"]

    def some(most: int) -> str:
        return "".join(random.choice(marks) for _ in range(random.randrange(most)))

    heads = [
        lambda: number(random) + quote + random.choice(["", "a", "1", "0", "F"]),
        lambda: f"0'{random.choice('ab01')}0'{random.choice([quote, 'a'])}",
        lambda: random.choice(["1.0", "00", "016", "0'0", "0'a0", "1 0", "1_ 0", "1e+0", "1"]) + quote,
        lambda: code(random),
        lambda: quote + some(3) + random.choice(ESCAPES) + some(3) + quote,
        lambda: quote + "\\\n" + random.choice(["\\", " \\", "", " "]) + quote,
        lambda: comment(random, quote) if random.random() < 0.5 else f"/* /* */ {quote} */",
    ]
    glue = random.choice(["-", ",", "- ", "", f"{quote}-", f"{quote},", f"{quote} - "])
    behind = f"{some(3)}{random.choice([quote, '', ''])}"
    return f"{random.choice(heads)()}{some(4)}{glue}{bomb(random)}{behind}{random.choice(['', ' ', '.'])}\n{some(5)}.\n{some(3)}"


def text(random: random.Random) -> str:
    kind = random.random()
    return wild(random) if kind < 0.35 else parted(random) if kind < 0.75 else orderly(random)
