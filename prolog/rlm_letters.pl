:- encoding(utf8).
:- module(rlm_letters,
          [ letter_or_digit/1,    % +Code
            capital/1,            % +Code
            small/1,              % +Code
            blank/1,              % +Code
            lower_text/2,         % +Text, -Lower
            upper_text/2,         % +Text, -Upper
            folded_text/2,        % +Text, -Folded
            plain_text/2,         % +Text, -Plain
            ascii/1               % +Codes
          ]).
:- set_prolog_flag(optimise, true).           % arithmetic in place; this file only
:- use_module(library(apply), [maplist/3]).
:- use_module(library(unicode), [unicode_map/3, unicode_property/2]).

/** <module> Letters, whatever the locale

What is a letter, and which letter is the small one of another, is asked of the Unicode data of library(unicode), never
of the C library: code_type/2, downcase_atom/2 and string_lower/2 answer by the locale of the process, and know ASCII
only where that locale is not there. ASCII is decided here, in Prolog: in a Turkish locale even `I` has another small
letter.

    ?- folded_text('ΟΔΟΣ Straße Ärger ＡＢＣ', F).
    F = 'οδοσ strasse arger abc'.
*/

%!  letter_or_digit(+Code) is semidet.
%
%   Letters, digits and marks of all scripts.

letter_or_digit(C), C < 128 =>
    ( C >= 0'a, C =< 0'z -> true ; C >= 0'A, C =< 0'Z -> true ; C >= 0'0, C =< 0'9 ).
letter_or_digit(C) =>
    (   category(C, Category)
    ->  lettered(Category)
    ;   \+ picture(C)
    ).

lettered('Ll'). lettered('Lu'). lettered('Lt'). lettered('Lm'). lettered('Lo').
lettered('Nd'). lettered('Nl').
lettered('Mn'). lettered('Mc').

%   category(+Code, -Category) is semidet: fails for codes that are younger than the data of the library.
category(C, Category) :-
    C =\= 0x1e9e,
    \+ between(0xd800, 0xdfff, C),
    unicode_property(C, category(Category0)),
    !,
    Category = Category0.
category(0x1e9e, 'Lu').

%   picture(+Code): blocks where a code that is not known is no letter: symbols, private use, pictures.
picture(C) :- C < 0xa0, !.
picture(C) :- C >= 0x2000, C =< 0x2bff, !.
picture(C) :- C >= 0xd800, C =< 0xf8ff, !.
picture(C) :- C >= 0xfe00, C =< 0xfe0f, !.
picture(C) :- C >= 0xfff0, C =< 0xffff, !.
picture(C) :- C >= 0x1f000, C =< 0x1faff, !.
picture(C) :- C >= 0xe0000.

%!  capital(+Code) is semidet.
%!  small(+Code) is semidet.

capital(C), C < 128 =>
    C >= 0'A, C =< 0'Z.
capital(C) =>
    category(C, Category),
    ( Category == 'Lu' -> true ; Category == 'Lt' ).

small(C), C < 128 =>
    C >= 0'a, C =< 0'z.
small(C) =>
    category(C, 'Ll').

%!  blank(+Code) is semidet.
%
%   Spaces of all widths, tabs and line ends.

blank(C), C < 128 =>
    ( C =:= 32 -> true ; C >= 9, C =< 13 ).
blank(C) =>
    (   C =:= 0x85
    ->  true
    ;   category(C, Category),
        memberchk(Category, ['Zs', 'Zl', 'Zp'])
    ).

%!  lower_text(+Text, -Lower:atom) is det.
%!  upper_text(+Text, -Upper:atom) is det.
%
%   Letter by letter.

lower_text(Text, Lower) :-
    string_codes(Text, Codes0),
    maplist(lower_code, Codes0, Codes),
    atom_codes(Lower, Codes).

upper_text(Text, Upper) :-
    string_codes(Text, Codes0),
    maplist(upper_code, Codes0, Codes),
    atom_codes(Upper, Codes).

lower_code(C0, C), C0 < 128 =>
    ( C0 >= 0'A, C0 =< 0'Z -> C is C0 + 32 ; C = C0 ).
lower_code(0x1e9e, C) =>
    C = 0xdf.
lower_code(C0, C) =>
    ( mapped(C0, lowercase_mapping(C1)) -> C = C1 ; C = C0 ).

upper_code(C0, C), C0 < 128 =>
    ( C0 >= 0'a, C0 =< 0'z -> C is C0 - 32 ; C = C0 ).
upper_code(C0, C) =>
    ( mapped(C0, uppercase_mapping(C1)) -> C = C1 ; C = C0 ).

mapped(C, Mapping) :-
    category(C, _),
    unicode_property(C, Mapping),
    !.

%!  folded_text(+Text, -Folded:atom) is det.
%
%   As plain_text/2, and in small letters that all forms of a word share: `ß` is `ss`, a final sigma a sigma.

folded_text(Text, Folded) :-
    string_codes(Text, Codes),
    (   ascii(Codes)
    ->  (   member_capital(Codes)
        ->  lower_text(Text, Folded)
        ;   atom_string(Folded, Text)
        )
    ;   plain_text(Text, Plain),
        lower_text(Plain, Lower),
        mapped_text(Lower, [casefold], Folded)
    ).

member_capital([C|Cs]) :-
    (   C >= 0'A, C =< 0'Z
    ->  true
    ;   member_capital(Cs)
    ).

%!  plain_text(+Text, -Plain:atom) is det.
%
%   As `Text`, but for compatibility forms, accents and invisible characters.

plain_text(Text, Plain) :-
    string_codes(Text, Codes),
    (   ascii(Codes)
    ->  atom_string(Plain, Text)
    ;   mapped_text(Text, [compat, compose, stripmark, ignore], Plain)
    ).

%   mapped_text(+Text, +Options, -Mapped): unicode_map/3 ends the process where nothing of a text is left, so there is
%   always a `|` at its end.
mapped_text(Text, Options, Mapped) :-
    (   atomic_list_concat([Text, '|'], Guarded),
        catch(unicode_map(Guarded, Mapped0, Options), error(_, _), fail)
    ->  sub_atom(Mapped0, 0, _, 1, Mapped)
    ;   atom_string(Mapped, Text)             % it holds a code that is no character
    ).

%!  ascii(+Codes) is semidet.

ascii([]).
ascii([C|Cs]) :-
    C < 128,
    ascii(Cs).
