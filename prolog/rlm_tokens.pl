:- encoding(utf8).
:- module(rlm_tokens,
          [ text_trouble/4,       % +Text, +Bounds, -Offset, -Trouble
            trouble_message/3     % +Trouble, -Message, -Fix
          ]).
:- use_module(rlm_token_number, [number/6]).
:- use_module(rlm_token_text, [ascii_blank/1, comment/4, kind/2, line/4, quoted/6, symbols/4, word/4]).

/** <module> Bound a Prolog text before Prolog reads it

SWI-Prolog's reader recurs in C for every bracket and multiplies long numbers digit by digit: a text of brackets ends
the process, a number of two million digits takes a minute. So a text from outside is split into tokens here first, in
linear time, and what goes beyond a bound never gets to the reader:

    ?- text_trouble("p([[[x]]]).", bounds(3, 100, 100, 100), Offset, Trouble).
    Offset = 4, Trouble = depth(3).

The reader works in two passes, and the passes do not always agree with each other. The first finds quotes, comments
and the end of a clause; there a quote after `0` or after a base is told by the characters before it, so that `1.0'a'`
has a character code `0'a` in it. The second splits what is left into tokens; there `1.0` is a number and `'a'` an atom.
Both are followed here, in rlm_token_text and rlm_token_number (pl-read.c of 9.2: raw_read2(), get_token()). Where they
part, the text is refused (`mixed`): nothing but a slip or an attack looks like that.

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
