:- encoding(utf8).
:- module(rlm_token_text,
          [ kind/2,               % +Code, -Kind
            ascii_blank/1,        % +Code
            blank/1,              % +Code
            in_word/1,            % +Code
            weight/3,             % +Code, +Base, -Weight
            word/4,               % +Codes, +At0, -Rest, -At
            symbols/4,            % +Codes, +At0, -Rest, -At
            line/4,               % +Codes, +At0, -Rest, -At
            comment/4,            % +Codes, +At0, -Rest, -At
            quoted/6              % +Codes, +Quote, +At0, +Limit, -Rest, -At
          ]).

/** <module> Characters, runs and quoted texts, as Prolog's reader takes them

The parts of rlm_tokens that read no number. Each run is read from `Codes`, of which the first stands at `At0` in the
text, and leaves `Rest`, of which the first stands at `At`:

    ?- string_codes("bc + 1", Codes), word(Codes, 1, Rest, At).
    At = 3.
*/

                /*******************************
                *          CHARACTERS          *
                *******************************/

%!  kind(+Code, -Kind) is det.
%
%   The kind of token that begins with the character: `word`, `symbol`, `solo`, `open`, `close`, `quote`, `digit`,
%   `percent`, `slash`, `dot`, `bar`, or no token: `blank`, `refused(Trouble)`.

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

%!  ascii_blank(+Code) is semidet.

ascii_blank(C) :-
    mark(C, blank).

%!  blank(+Code) is semidet.
%
%   The reader may take it for a blank. More than it does is no harm: see rlm_token_number:number/6.

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

%!  in_word(+Code) is semidet.
%
%   A word goes on with this character.

in_word(C) :-
    code_type(C, prolog_identifier_continue).

%   pairs_outside_ascii: this reader takes brackets and quotes outside of ASCII for pairs.
:- if(catch(( term_string(T, "\u201Cx\u201D"), string(T) ), error(syntax_error(_), _), fail)).
pairs_outside_ascii.
:- else.
pairs_outside_ascii :-
    fail.
:- endif.

%!  weight(+Code, +Base, -Weight) is semidet.
%
%   What a digit of this base is worth.

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
                *       RUNS AND COMMENTS      *
                *******************************/

%!  word(+Codes, +At0, -Rest, -At) is det.
%!  symbols(+Codes, +At0, -Rest, -At) is det.
%!  line(+Codes, +At0, -Rest, -At) is det.
%
%   The rest of a word, of a run of symbols, and of a line without its end.

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

%!  comment(+Codes, +At0, -Rest, -At) is det.
%
%   After `/*`. Comments nest, unless the flag `iso` is set; in both cases the first character opens and closes nothing.

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

%!  quoted(+Codes, +Quote, +At0, +Limit, -Rest, -At) is det.
%
%   After the first quote. Rest is `mixed` where the reader's passes part, `nul` before a character with the code 0, and
%   nothing is looked at beyond Limit. A doubled quote goes on with the same text.

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
