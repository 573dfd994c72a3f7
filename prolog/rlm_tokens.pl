:- encoding(utf8).
:- module(rlm_tokens,
          [ text_trouble/4,       % +Text, +Bounds, -Offset, -Trouble
            trouble_message/3     % +Trouble, -Message, -Fix
          ]).

/** <module> Bound a Prolog text before Prolog reads it

SWI-Prolog's reader recurs in C for every bracket and multiplies long numbers digit by digit: a text of brackets ends the
process, a number of two million digits takes a minute. So a text from outside is split into tokens here first, in
linear time, and what goes beyond a bound never gets to the reader:

    ?- text_trouble("p([[[x]]]).", bounds(3, 100, 100, 100), Offset, Trouble).
    Offset = 4, Trouble = depth(3).

The reader works in two passes, and the passes do not always agree with each other. The first finds quotes, comments
and the end of a clause; there a quote after `0` or after a base is told by the characters before it, so that `1.0'a'`
has a character code `0'a` in it. The second splits what is left into tokens; there `1.0` is a number and `'a'` an atom.
Both are followed here (pl-read.c of 9.2: raw_read2(), get_token()). Where they part, the text is refused (`mixed`):
nothing but a slip or an attack looks like that.

What bounds the reader's recursion is the depth of brackets alone: chains of operators stand in a queue of its own.
*/

%!  text_trouble(+Text, +Bounds, -Offset, -Trouble) is semidet.
%
%   The first thing in Text that must not be read, and the number of characters before it. Fails where there is none.
%   Bounds is `bounds(Depth, Tokens, Number, Quoted)`: of open brackets; of tokens in a clause; of characters in a
%   number; of characters in a quoted text. Trouble is one of
%
%     - depth(Most), tokens(Most), number(Most), quoted(Most)
%     - quasi_quotation
%     - mixed: the reader's two passes do not agree on what a quote means
%     - nul: a character with the code 0
%     - digit: a digit other than 0-9 outside of quotes
%     - mark: a bracket or quote outside of ASCII, where the reader takes it for one (SWI-Prolog 10.1 and later)

text_trouble(Text, Bounds, Offset, Trouble) :-
    string_codes(Text, Codes),
    scan(Codes, 0, 0'\s, 0, clause(0, 0), Bounds, trouble(Offset, Trouble)).

%   scan(+Codes, +At, +Previous, +Depth, +Clause, +Bounds, -Found): the tokens from the At-th character on. Previous is
%   the last character before, or one of its class; Clause is `clause(Begin, Tokens)`: where it begins, and how many of
%   its tokens were seen. Found is `trouble(Offset, Trouble)` or `none`.
scan([], _, _, _, _, _, Found) =>
    Found = none.
scan([C|Cs], At, Previous, Depth, Clause, Bounds, Found) =>
    kind(C, Kind),
    Next is At + 1,
    scan(Kind, C, Cs, Next, Previous, Depth, Clause, Bounds, Found).

scan(blank, _, Cs, At, _, Depth, Clause0, Bounds, Found) =>
    between_tokens(Clause0, At, Clause),
    scan(Cs, At, 0'\s, Depth, Clause, Bounds, Found).
scan(word, _, Cs, At, _, Depth, Clause, Bounds, Found) =>
    word(Cs, At, Rest, Next),
    token(Rest, Next, 0'a, Depth, Clause, Bounds, Found).
scan(open, 0'{, [0'||_], At, _, _, _, _, Found) =>
    trouble(At, quasi_quotation, Found).
scan(open, C, Cs, At, _, Depth0, Clause, Bounds, Found) =>
    Depth is Depth0 + 1,
    Bounds = bounds(Most, _, _, _),
    (   Depth > Most
    ->  trouble(At, depth(Most), Found)
    ;   token(Cs, At, C, Depth, Clause, Bounds, Found)
    ).
scan(close, C, Cs, At, _, Depth0, Clause, Bounds, Found) =>
    Depth is max(0, Depth0 - 1),
    token(Cs, At, C, Depth, Clause, Bounds, Found).
scan(quote, C, Cs, At, _, Depth, Clause, Bounds, Found) =>
    Bounds = bounds(_, _, _, Most),
    Limit is At + Most + 1,
    quoted(Cs, C, At, Limit, Rest, Next),
    (   Next > Limit
    ->  trouble(At, quoted(Most), Found)
    ;   ( Rest == mixed ; Rest == nul )
    ->  Found = trouble(Next, Rest)
    ;   token(Rest, Next, C, Depth, Clause, Bounds, Found)
    ).
scan(digit, C, Cs, At, Previous, Depth, Clause, Bounds, Found) =>
    Bounds = bounds(_, _, Most, _),
    Limit is At - 1 + Most,
    number(C, Cs, At, Previous, Limit, number(Rest, Next, Codes)),
    (   Next > Limit
    ->  trouble(At, number(Most), Found)
    ;   Rest == mixed
    ->  Found = trouble(Next, mixed)
    ;   Codes = [Last|_],
        token(Rest, Next, Last, Depth, Clause, Bounds, Found)
    ).
scan(percent, _, Cs, At, _, Depth, Clause0, Bounds, Found) =>
    line(Cs, At, Rest, Next),
    between_tokens(Clause0, Next, Clause),
    scan(Rest, Next, 0'\s, Depth, Clause, Bounds, Found).
scan(slash, _, [0'*|Cs], At, _, Depth, Clause0, Bounds, Found) =>
    First is At + 1,
    comment(Cs, First, Rest, Next),
    between_tokens(Clause0, Next, Clause),
    scan(Rest, Next, 0'\s, Depth, Clause, Bounds, Found).
scan(dot, _, Cs, At, _, _, _, Bounds, Found), ends(Cs) =>
    scan(Cs, At, 0'\s, 0, clause(At, 0), Bounds, Found).
scan(bar, _, _, At, 0'|, _, _, _, Found) =>
    trouble(At, quasi_quotation, Found).
scan(refused(Why), _, _, At, _, _, _, _, Found) =>
    trouble(At, Why, Found).
scan(Kind, C, Cs, At, _, Depth, Clause, Bounds, Found), solo(Kind) =>
    token(Cs, At, C, Depth, Clause, Bounds, Found).
scan(_, C, Cs, At, _, Depth, Clause, Bounds, Found) =>
    symbols(Cs, At, Rest, Next),
    token(Rest, Next, C, Depth, Clause, Bounds, Found).

solo(solo).
solo(bar).

%   token(+Codes, +At, +Previous, +Depth, +Clause, +Bounds, -Found): what follows a token.
token(Cs, At, Previous, Depth, clause(Begin, Count0), Bounds, Found) :-
    Count is Count0 + 1,
    Bounds = bounds(_, Most, _, _),
    (   Count > Most
    ->  Found = trouble(Begin, tokens(Most))
    ;   scan(Cs, At, Previous, Depth, clause(Begin, Count), Bounds, Found)
    ).

%   between_tokens(+Clause0, +At, -Clause): a clause begins with its first token.
between_tokens(clause(_, 0), At, Clause) =>
    Clause = clause(At, 0).
between_tokens(Clause0, _, Clause) =>
    Clause = Clause0.

%   trouble(+After, +Trouble, -Found): with the character before After.
trouble(After, Trouble, trouble(Offset, Trouble)) :-
    Offset is After - 1.

%   ends(+Codes): a full stop before Codes ends a clause. (Blanks outside of ASCII end one too; where that is not told,
%   the brackets that are open stay open.)
ends([]).
ends([C|_]) :-
    ( C == 0'% -> true ; ascii_blank(C) ).

                /*******************************
                *          CHARACTERS          *
                *******************************/

%   kind(+Code, -Kind)
kind(C, Kind), mark(C, Kind0) =>
    Kind = Kind0.
kind(C, Kind), C < 128 =>
    (   code_type(C, csym)
    ->  Kind = word
    ;   code_type(C, prolog_symbol)
    ->  Kind = symbol
    ;   Kind = solo
    ).
kind(C, Kind) =>
    (   ( code_type(C, prolog_atom_start) ; code_type(C, prolog_var_start) )
    ->  Kind = word
    ;   blank(C)
    ->  Kind = blank
    ;   code_type(C, decimal(_))
    ->  Kind = refused(digit)
    ;   pairs_outside_ascii
    ->  Kind = refused(mark)
    ;   code_type(C, prolog_symbol)
    ->  Kind = symbol
    ;   Kind = solo
    ).

mark(0, refused(nul)).
mark(0'\t, blank).
mark(0'\n, blank).
mark(0'\v, blank).
mark(0'\f, blank).
mark(0'\r, blank).
mark(0'\s, blank).
mark(0'(, open).
mark(0'[, open).
mark(0'{, open).
mark(0'), close).
mark(0'], close).
mark(0'}, close).
mark(0'', quote).
mark(0'", quote).
mark(0'`, quote).
mark(0'%, percent).
mark(0'/, slash).
mark(0'., dot).
mark(0'|, bar).
mark(0'0, digit).
mark(0'1, digit).
mark(0'2, digit).
mark(0'3, digit).
mark(0'4, digit).
mark(0'5, digit).
mark(0'6, digit).
mark(0'7, digit).
mark(0'8, digit).
mark(0'9, digit).

ascii_blank(C) :-
    mark(C, blank).

%   blank(+Code): the reader may take it for one. More than it does is no harm: see number/6.
blank(C) :-
    (   C =< 0'\s
    ->  C > 0
    ;   C >= 127,
        ( C =< 160 -> true ; code_type(C, space) -> true ; separator(C) )
    ).

%   separator(?Code): of the Unicode categories Zs, Zl and Zp, whatever the C library says.
separator(C) :-
    memberchk(C, [0x1680, 0x180E, 0x2007, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000]).
separator(C) :-
    C >= 0x2000,
    C =< 0x200A.

in_word(C) :-
    code_type(C, prolog_identifier_continue).

%   pairs_outside_ascii: this reader takes brackets and quotes outside of ASCII for pairs.
:- if(catch(( term_string(T, "\u201Cx\u201D"), string(T) ), error(syntax_error(_), _), fail)).
pairs_outside_ascii.
:- else.
pairs_outside_ascii :-
    fail.
:- endif.

                /*******************************
                *       RUNS AND COMMENTS      *
                *******************************/

word([C|Cs], At0, Rest, At), in_word(C) =>
    At1 is At0 + 1,
    word(Cs, At1, Rest, At).
word(Cs, At0, Rest, At) =>
    Rest = Cs,
    At = At0.

symbols([C|Cs], At0, Rest, At), code_type(C, prolog_symbol), C =\= 0'` =>
    At1 is At0 + 1,
    symbols(Cs, At1, Rest, At).
symbols(Cs, At0, Rest, At) =>
    Rest = Cs,
    At = At0.

line([C|Cs], At0, Rest, At), C =\= 0'\n =>
    At1 is At0 + 1,
    line(Cs, At1, Rest, At).
line(Cs, At0, Rest, At) =>
    Rest = Cs,
    At = At0.

%   comment(+Codes, +At0, -Rest, -At): after `/*`. Comments nest, unless the flag `iso` is set; in both cases the first
%   character opens and closes nothing.
comment([], At0, Rest, At) =>
    Rest = [],
    At = At0.
comment([C|Cs], At0, Rest, At) =>
    ( current_prolog_flag(iso, true) -> Nests = false ; Nests = true ),
    At1 is At0 + 1,
    comment(Cs, C, 1, Nests, At1, Rest, At).

comment([0'*|Cs], 0'/, Level, Nests, At0, Rest, At) =>
    Level1 is Level + 1,
    At1 is At0 + 1,
    comment(Cs, 0'*, Level1, Nests, At1, Rest, At).
comment([0'/|Cs], 0'*, Level, Nests, At0, Rest, At) =>
    Level1 is Level - 1,
    At1 is At0 + 1,
    (   ( Level1 =:= 0 ; Nests == false )
    ->  Rest = Cs,
        At = At1
    ;   comment(Cs, 0'/, Level1, Nests, At1, Rest, At)
    ).
comment([C|Cs], _, Level, Nests, At0, Rest, At) =>
    At1 is At0 + 1,
    comment(Cs, C, Level, Nests, At1, Rest, At).
comment([], _, _, _, At0, Rest, At) =>
    Rest = [],
    At = At0.

                /*******************************
                *         QUOTED TEXT          *
                *******************************/

%   quoted(+Codes, +Quote, +At0, +Limit, -Rest, -At): after the first quote. Rest is `mixed` where the passes part, `nul`
%   before a character with the code 0, and nothing is looked at beyond Limit. A doubled quote goes on with the same text.
quoted([C|Cs], Quote, At0, Limit, Rest, At), At0 =< Limit =>
    At1 is At0 + 1,
    (   C == Quote
    ->  closed(Cs, Quote, At1, Limit, Rest, At)
    ;   C == 0'\\
    ->  escaped(Cs, Quote, At1, Limit, Rest, At)
    ;   C =:= 0
    ->  Rest = nul,
        At = At0
    ;   quoted(Cs, Quote, At1, Limit, Rest, At)
    ).
quoted(Cs, _, At0, _, Rest, At) =>
    Rest = Cs,
    At = At0.

closed([Quote|Cs], Quote, At0, Limit, Rest, At) =>
    At1 is At0 + 1,
    quoted(Cs, Quote, At1, Limit, Rest, At).
closed(Cs, _, At0, _, Rest, At) =>
    Rest = Cs,
    At = At0.

%   escaped(+Codes, +Quote, +At0, +Limit, -Rest, -At): after a backslash. At the end of a line the first pass skips one
%   character, whatever it is, and the second begins anew: they part where that is a backslash.
escaped([0'\n, 0'\\|_], _, At0, _, Rest, At) =>
    Rest = mixed,
    At is At0 + 1.
escaped([0'\n|Cs], Quote, At0, Limit, Rest, At) =>
    At1 is At0 + 1,
    one(Cs, Quote, At1, Limit, Rest, At).
escaped([0'x|Cs], Quote, At0, Limit, Rest, At) =>
    At1 is At0 + 1,
    escaped_digits(Cs, 16, Quote, At1, Limit, Rest, At).
escaped([C|Cs], Quote, At0, Limit, Rest, At), weight(C, 8, _) =>
    At1 is At0 + 1,
    escaped_digits(Cs, 8, Quote, At1, Limit, Rest, At).
escaped([0'c|Cs0], Quote, At0, Limit, Rest, At) =>
    At1 is At0 + 1,
    blanks(Cs0, At1, Cs, At2),
    quoted(Cs, Quote, At2, Limit, Rest, At).
escaped([C|Cs], Quote, At0, Limit, Rest, At), C > 0 =>
    At1 is At0 + 1,
    quoted(Cs, Quote, At1, Limit, Rest, At).
escaped(Cs, Quote, At0, Limit, Rest, At) =>
    quoted(Cs, Quote, At0, Limit, Rest, At).

escaped_digits([C|Cs], Base, Quote, At0, Limit, Rest, At), weight(C, Base, _) =>
    At1 is At0 + 1,
    escaped_digits(Cs, Base, Quote, At1, Limit, Rest, At).
escaped_digits(Cs, _, Quote, At0, Limit, Rest, At) =>
    one(Cs, Quote, At0, Limit, Rest, At).

%   one(+Codes, +Quote, +At0, +Limit, -Rest, -At): one character more is of the escape, unless it is the quote.
one([C|Cs], Quote, At0, Limit, Rest, At), C =\= Quote, C > 0 =>
    At1 is At0 + 1,
    quoted(Cs, Quote, At1, Limit, Rest, At).
one(Cs, Quote, At0, Limit, Rest, At) =>
    quoted(Cs, Quote, At0, Limit, Rest, At).

blanks([C|Cs], At0, Rest, At), blank(C) =>
    At1 is At0 + 1,
    blanks(Cs, At1, Rest, At).
blanks(Cs, At0, Rest, At) =>
    Rest = Cs,
    At = At0.

                /*******************************
                *           NUMBERS            *
                *******************************/

%   number(+Code, +Codes, +At0, +Previous, +Limit, -Number): the number that begins with the digit Code. Number is
%   `number(Rest, At, Read)`: Read are its characters, the last one first, and those before it. Rest is `mixed` where
%   the passes part.
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

%   weight(+Code, +Base, -Weight) is semidet.
weight(C, Base, Weight) :-
    (   C =< 0'9
    ->  C >= 0'0,
        Weight is C - 0'0
    ;   C =< 0'Z
    ->  C >= 0'A,
        Weight is C - 0'A + 10
    ;   C =< 0'z,
        C >= 0'a,
        Weight is C - 0'a + 10
    ),
    Weight < Base.

                /*******************************
                *           MESSAGES           *
                *******************************/

%!  trouble_message(+Trouble, -Message:atom, -Fix:atom) is det.

trouble_message(Trouble, Message, Fix) :-
    trouble(Trouble, Format, Arguments, Fix),
    format(atom(Message), Format, Arguments).

trouble(depth(Most), 'brackets nested deeper than ~D', [Most], 'close what was opened before').
trouble(tokens(Most), 'a clause of more than ~D words and signs', [Most], 'write several clauses').
trouble(number(Most), 'a number of more than ~D characters', [Most], 'write a shorter one, or a quoted text').
trouble(quoted(Most), 'a quoted text of more than ~D characters', [Most], 'write a shorter one').
trouble(quasi_quotation, 'a quasi quotation', [], 'write an ordinary term').
trouble(mixed, 'this quote can be read in two ways', [], 'put a space between a number and what follows').
trouble(nul, 'a character with the code 0', [], 'remove it').
trouble(digit, 'a digit other than 0-9', [], 'write 0-9, or put it into quotes').
trouble(mark, 'a sign outside of ASCII', [], 'put it into quotes').

:- det(trouble_message/3).
