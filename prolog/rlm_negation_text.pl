:- encoding(utf8).
:- module(rlm_negation_text,
          [ plain_tokens/2        % +Tokens, -Plain
          ]).
:- use_module(library(lists), [append/3]).
:- use_module(rlm_letters, [small/1]).
:- use_module(rlm_negation_words,
              [ abbreviation/1, article/1, closed/1, closes/2, cue/2, joins/1, mark/2, quote/2, short/2, use/3,
                verb/3
              ]).

/** <module> Plain words to look for negations in

Contractions in full; a quoted name as one token; quotations, code and quoted lines left out; line breaks
only where a sentence or an item of a list ends.

    ?- tokens("Don’t use “web search”.", Tokens), plain_tokens(Tokens, Plain).
    Plain = [do, not, use, name([web, search]), p(stop)].
*/

%!  plain_tokens(+Tokens:list, -Plain:list) is det.
%
%   The tokens of rlm_words:tokens/2 as folded words (atoms), `name(Words)` for what stands in quotes or
%   backticks, and `p(Mark)` for what divides them: `stop`, `item` (of a list, on its own line), `gap` (something
%   unread), or one of `,` `:` `(` `)`.

plain_tokens(Tokens, Plain) :-
    phrase(plain(p(stop), Plain), Tokens).

%   plain(+Previous, -Plain)//: Previous is the last plain token.
plain(Previous, Plain) -->
    (   [Token]
    ->  plain(Token, Previous, Here),
        { append(Here, Rest, Plain),
          latest(Here, Previous, Last) },
        plain(Last, Rest)
    ;   { Plain = [] }
    ).

latest([], Previous, Previous).
latest([T|Ts], _, Last) :-
    latest(Ts, T, Last).

plain(w(Word, _), _, Here) -->
    (   { short(Word, Full) }
    ->  { Here = Full }
    ;   { abbreviation(Word) }
    ->  full_stop,
        { Here = [Word] }
    ;   broken(Word, Full)
    ->  { Here = Full }
    ;   { Here = [Word] }
    ).
plain(p(Mark), Previous, Here) -->
    (   { Mark == '`' },
        [p('`'), p('`')]
    ->  fenced,
        { Here = [p(stop)] }
    ;   { quote(Mark, Kind),
          \+ ( Kind == single, possessive(Previous) ) },
        quoted(Kind, Mark, Here0)
    ->  { Here = Here0 }
    ;   { Mark == '\n' }
    ->  new_line(Previous, Here)
    ;   { Mark == '>', Previous == p(stop) }
    ->  line_rest,
        { Here = [p(stop)] }
    ;   { mark(Mark, Here0) }
    ->  ( { Mark == '.', dangling(Previous) }, word_ahead -> { Here = [] } ; { Here = Here0 } )
    ;   { Here = [p(gap)] }
    ).

%   broken(+Word, -Full)//: "don`t", and with other marks that are no apostrophe.
broken(Word, Full) -->
    [p(Mark), w(t, _)],
    { memberchk(Mark, ['`', '´', '′', '\'', '"']),
      atom_concat(Word, '\'t', Short),
      short(Short, Full) }.

full_stop --> ( [p('.')] -> [] ; [] ).

%   fenced//: code up to the closing fence, or to the end.
fenced -->
    (   [p('`'), p('`'), p('`')]
    ->  []
    ;   [_]
    ->  fenced
    ;   []
    ).

line_rest -->
    (   line_end
    ->  []
    ;   [_]
    ->  line_rest
    ;   []
    ).

%   possessive(+Previous) is semidet: the mark is that of *the users' files*.
possessive(Word) :- atom(Word), sub_atom(Word, _, 1, 0, s).

%   quoted(+Kind, +Open, -Here)//: a name of one or two words (in backticks: four), else a quotation: not read.
quoted(Kind, Open, Here) -->
    inside(Kind, Open, 200, Words),
    { length(Words, N),
      longest(Kind, Longest),
      (   N =:= 0
      ->  Here = []
      ;   N =< Longest
      ->  Here = [name(Words)]
      ;   Here = [p(gap)]
      ) }.

longest(double, 2).
longest(single, 2).
longest(code, 4).

%   inside(+Kind, +Open, +Bound, -Words)//: up to the closing mark, which must be near.
inside(Kind, Open, Bound, Words) -->
    [Token],
    (   { Token = p(Mark), closes(Kind, Mark) }
    ->  { Words = [] }
    ;   { Token \== p(Open),
          Bound > 0,
          Bound1 is Bound-1,
          (   Token = w(Word, _)
          ->  Words = [Word|Rest]
          ;   Words = Rest
          ) },
        inside(Kind, Open, Bound1, Rest)
    ).

%   new_line(+Previous, -Here)//: a line may end where a sentence does or in the middle of one.
new_line(Previous, Here) -->
    (   [p('\n')]
    ->  new_line(Previous, Here)
    ;   bullet
    ->  { Here = [p(item)] }
    ;   [p('>')]
    ->  line_rest,
        { Here = [p(stop)] }
    ;   { dangling(Previous) }
    ->  { Here = [] }
    ;   more_of_sentence
    ->  { Here = [] }
    ;   { Here = [p(stop)] }
    ).

bullet --> [p(Mark)], { memberchk(Mark, [-, *, +, '•', '–']) }.
bullet --> [w(Digits, _), p(Mark)], { memberchk(Mark, ['.', ')']), atom_number(Digits, N), integer(N) }.

more_of_sentence, [w(Word, Raw)] --> [w(Word, Raw)], { continues(Word, Raw) }.

word_ahead, [w(Word, Raw)] --> [w(Word, Raw)].

line_end, [p('\n')] --> [p('\n')].

continues(Word, Raw) :-
    sub_atom(Raw, 0, 1, _, First),
    char_code(First, Code),
    small(Code),
    \+ cue(Word, _),
    \+ closed(Word),
    \+ verb(Word, _, _),
    \+ use(Word, _, _).

%   dangling(+Token) is semidet: no sentence ends here.
dangling(p(',')).
dangling(Word) :- atom(Word), ( article(Word) ; use(Word, _, _) ; use(_, Word, _) ; joins(Word) ), !.
