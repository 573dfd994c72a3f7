:- encoding(utf8).
:- module(rlm_token_number,
          [ number/6              % +Code, +Codes, +At0, +Previous, +Limit, -Number
          ]).
:- use_module(rlm_token_text, [blank/1, comment/4, in_word/1, line/4, symbols/4, weight/3]).

/** <module> Numbers, as Prolog's reader takes them

Integers in every radix and with groups of digits, character codes, rationals and floats. A quote after digits belongs
to the number for one of the reader's passes, and not always for the other (rlm_tokens).
*/

%!  number(+Code, +Codes, +At0, +Previous, +Limit, -Number) is det.
%
%   The number that begins with the digit Code; Codes and At0 are what follows it, Previous is the character before it,
%   and nothing is looked at beyond Limit. Number is `number(Rest, At, Read)`: Read are its characters, the last one
%   first, and Previous. Rest is `mixed` where the reader's passes part.

number(0'0, [0''|Cs], At0, Previous, Limit, Number), before_quote([0'0, Previous], Cs, code) =>
    At is At0 + 1,
    code(Cs, At, [0'', 0'0, Previous], Limit, Number).
number(0'0, [0''|_], At0, Previous, _, Number) =>
    Number = number(mixed, At0, [0'0, Previous]).
number(0'0, [Letter, D|Cs], At0, Previous, Limit, Number), base(Letter, Base), weight(D, Base, _) =>
    At is At0 + 1,
    digits([D|Cs], Base, At, Limit, [Letter, 0'0, Previous], Digits),
    done(Digits, Limit, Number).
number(C, Cs, At0, Previous, Limit, Number) =>
    digits(Cs, 10, At0, Limit, [C, Previous], Digits),
    decimal(Digits, Limit, Number).

base(0'b, 2).
base(0'o, 8).
base(0'x, 16).

%   digits(+Codes, +Base, +At0, +Limit, +Read0, -Digits): `digits(Rest, At, Read, Grouped)`; groups of digits are parted
%   by `_` and blanks or comments, and up to base 10 by one space.
digits(Cs, Base, At, Limit, Read, Digits) :-
    digits(Cs, Base, At, Limit, Read, false, Digits).

digits([C|Cs], Base, At0, Limit, Read, Grouped, Digits), weight(C, Base, _), At0 =< Limit =>
    At is At0 + 1,
    digits(Cs, Base, At, Limit, [C|Read], Grouped, Digits).
digits([0'_|Cs0], Base, At0, Limit, Read, _, Digits), At0 =< Limit, group(Cs0, Base, Cs, Skipped, Last) =>
    At is At0 + 1 + Skipped,
    digits(Cs, Base, At, Limit, [Last|Read], true, Digits).
digits([0'\s|Cs], Base, At0, Limit, Read, _, Digits), Base =< 10, At0 =< Limit, Cs = [C|_], weight(C, Base, _) =>
    At is At0 + 1,
    digits(Cs, Base, At, Limit, [0'\s|Read], true, Digits).
digits(Cs, _, At, _, Read, Grouped, Digits) =>
    Digits = digits(Cs, At, Read, Grouped).

%   group(+Codes, +Base, -Rest, -Skipped, -Last) is semidet: after `_` the next group of digits begins at Rest.
group(Cs, Base, Rest, Skipped, Last) :-
    layout(Cs, 0, Rest, Skipped),
    Rest = [C|_],
    weight(C, Base, _),
    ( Skipped =:= 0 -> Last = 0'_ ; Last = 0'\s ).

layout([C|Cs], At0, Rest, At), blank(C) =>
    At1 is At0 + 1,
    layout(Cs, At1, Rest, At).
layout([0'%|Cs], At0, Rest, At) =>
    At1 is At0 + 1,
    line(Cs, At1, Rest1, At2),
    layout(Rest1, At2, Rest, At).
layout([0'/, 0'*|Cs], At0, Rest, At) =>
    At1 is At0 + 2,
    comment(Cs, At1, Rest1, At2),
    layout(Rest1, At2, Rest, At).
layout(Cs, At0, Rest, At) =>
    Rest = Cs,
    At = At0.

%   decimal(+Digits, +Limit, -Number): what may follow the first digits of a number.
decimal(digits([0'r, D|Cs], At0, Read, _), Limit, Number), weight(D, 10, _) =>
    At is At0 + 1,
    digits([D|Cs], 10, At, Limit, [0'r|Read], Digits),
    done(Digits, Limit, Number).
decimal(digits([0'', D|Cs], At0, Read, false), Limit, Number), radix(Read, Base), weight(D, Base, _) =>
    (   before_quote(Read, [D|Cs], radix(Base))
    ->  At is At0 + 1,
        digits([D|Cs], Base, At, Limit, [0''|Read], Digits),
        done(Digits, Limit, Number)
    ;   Number = number(mixed, At0, Read)
    ).
decimal(digits([0'., D|Cs], At0, Read, false), Limit, Number), weight(D, 10, _) =>
    At is At0 + 1,
    plain_digits([D|Cs], At, Limit, [0'.|Read], Digits),
    exponent(Digits, Limit, Number).
decimal(Digits, Limit, Number), Digits = digits(_, _, _, false) =>
    exponent(Digits, Limit, Number).
decimal(Digits, Limit, Number) =>
    done(Digits, Limit, Number).

%   radix(+Read, -Base) is semidet: the whole number that was read is one from 2 to 36.
radix(Read, Base) :-
    append_previous(Read, Digits),
    catch(radix(Digits, 1, 0, Base), too_large, fail),
    Base > 1.

append_previous([_], []) :- !.
append_previous([C|Cs], [C|Ds]) :-
    append_previous(Cs, Ds).

radix([], _, Base, Base).
radix([C|Cs], Unit, Base0, Base) :-
    Base1 is Base0 + Unit * (C - 0'0),
    (   Base1 > 36
    ->  throw(too_large)
    ;   Unit1 is min(100, 10 * Unit)
    ),
    radix(Cs, Unit1, Base1, Base).

exponent(digits([E|Cs0], At0, Read0, _), Limit, Number),
    memberchk(E, [0'e, 0'E]),
    signed(Cs0, [E|Read0], Cs, Read, Length),
    Cs = [D|_],
    weight(D, 10, _) =>
    At is At0 + 1 + Length,
    plain_digits(Cs, At, Limit, Read, Digits),
    done(Digits, Limit, Number).
exponent(Digits, Limit, Number) =>
    done(Digits, Limit, Number).

signed([0'+|Cs], Read, Cs, [0'+|Read], 1) :- !.
signed([0'-|Cs], Read, Cs, [0'-|Read], 1) :- !.
signed(Cs, Read, Cs, Read, 0).

plain_digits([C|Cs], At0, Limit, Read, Digits), weight(C, 10, _), At0 =< Limit =>
    At is At0 + 1,
    plain_digits(Cs, At, Limit, [C|Read], Digits).
plain_digits(Cs, At, _, Read, Digits) =>
    Digits = digits(Cs, At, Read, false).

%   done(+Digits, +Limit, -Number): a quote right after a number begins an atom. The passes part where the first one
%   takes it for a part of the number.
done(digits(Rest, At, Read, _), Limit, Number), Rest = [0''|Cs], At =< Limit, \+ before_quote(Read, Cs, quote) =>
    Number = number(mixed, At, Read).
done(digits(Rest, At, Read, _), _, Number) =>
    Number = number(Rest, At, Read).

%   code(+Codes, +At, +Read, +Limit, -Number): after `0'`.
code([0'\\, C|Cs], At0, Read, Limit, Number) =>
    At is At0 + 2,
    code_digits(C, Cs, At, [C, 0'\\|Read], Digits),
    done(Digits, Limit, Number).
code([0'', 0''|Cs], At0, Read, Limit, Number) =>
    At is At0 + 2,
    done(digits(Cs, At, [0''|Read], false), Limit, Number).
code([0'|, 0'||Cs], At0, Read, Limit, Number) =>        % the bar of `[0'||T]`
    At is At0 + 2,
    done(digits(Cs, At, [0'||Read], false), Limit, Number).
code([C|Cs], At0, Read, Limit, Number), C > 0 =>
    At is At0 + 1,
    done(digits(Cs, At, [C|Read], false), Limit, Number).
code(Cs, At, Read, Limit, Number) =>
    done(digits(Cs, At, Read, false), Limit, Number).

%   code_digits(+Code, +Codes, +At, +Read, -Digits): `\x41\`, `\101\` and `\u0041`. The backslash at the end is a symbol
%   for the first pass, together with those that follow.
code_digits(0'x, Cs, At, Read, Digits) =>
    run(Cs, 16, At, Read, Digits0),
    backslash(Digits0, Digits).
code_digits(C, Cs, At, Read, Digits), weight(C, 8, _) =>
    run(Cs, 8, At, Read, Digits0),
    backslash(Digits0, Digits).
code_digits(_, Cs, At, Read, Digits) =>
    Digits = digits(Cs, At, Read, false).

run([C|Cs], Base, At0, Read, Digits), weight(C, Base, _) =>
    At is At0 + 1,
    run(Cs, Base, At, [C|Read], Digits).
run(Cs, _, At, Read, Digits) =>
    Digits = digits(Cs, At, Read, false).

backslash(digits([0'\\|Cs], At0, Read, _), Digits) =>
    At1 is At0 + 1,
    symbols(Cs, At1, Rest, At),
    Digits = digits(Rest, At, [0'\\|Read], false).
backslash(Digits0, Digits) =>
    Digits = Digits0.

%   before_quote(+Read, +Codes, -What): what the first pass takes `'` for, between Read (the last first) and Codes: the
%   `quote` of an atom, of a character `code`, or of a number in `radix(Base)`. It looks at two digits at most.
before_quote([D|Before0], Cs, What) :-
    (   weight(D, 10, One),
        (   Before0 = [E|Before],
            weight(E, 10, Ten)
        ->  Base is 10 * Ten + One
        ;   Before = Before0,
            Base = One
        ),
        \+ ( Before = [C|_], in_word(C) ),
        based(Base, Cs, What0)
    ->  What = What0
    ;   What = quote
    ).

based(0, _, What) =>
    What = code.
based(Base, [C|_], What), Base =< 36, weight(C, Base, _) =>
    What = radix(Base).
based(_, _, _) =>
    fail.
