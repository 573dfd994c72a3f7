:- encoding(utf8).
:- module(rlm_words,
          [ tokens/2,           % +Text, -Tokens
            fold/2,             % +Text, -Folded
            identifier_words/2, % +Identifier, -Words
            token_words/2,      % +Tokens, -Words
            terms/3,            % +Stemmer, +Text, -Terms
            words_terms/3,      % +Stemmer, +Words, -Terms
            stems/3,            % +Stemmer, +Words, -Stems
            joined_words/3,     % +Text, +Words, -Joined
            stemmer/1,          % ?Stemmer
            stop_word/1,        % ?Word
            forget_words/0
          ]).
:- set_prolog_flag(optimise, true).           % arithmetic in place; this file only
:- use_module(library(lists), [append/2, append/3, member/2, reverse/2]).
:- use_module(library(snowball), [snowball/3]).
:- use_module(rlm_letters,
              [ ascii/1, blank/1, capital/1, folded_text/2, letter_or_digit/1, lower_text/2, plain_text/2, small/1 ]).
:- use_module(rlm_stopwords, [stop_word/1]).

/** <module> From text to words

There is one tokenizer, for queries and for catalogs alike:

  1. *tokens*: words and punctuation as they stand, an identifier kept whole (`git_diff`, `github/issues`);
  2. *words*: identifiers split (`getUserProfile` is `get user profile`), case and accents folded;
  3. *terms*: words without stop words, stemmed; scripts without spaces become bigrams.

    ?- terms(english, 'getUserProfile reads profiles', Ts).
    Ts = [get, user, profil, read, profil].
*/

:- dynamic remembered/3.        % Stemmer, Chunk, Terms: what a chunk of text between blanks becomes

%!  stemmer(?Stemmer) is nondet.
%
%   The stemmers a catalog may choose; `none` leaves words as they are.

stemmer(none).
stemmer(S) :-
    member(S, [ danish, dutch, english, finnish, french, german, hungarian, italian, norwegian,
                porter, portuguese, romanian, russian, spanish, swedish, turkish ]).

                /*******************************
                *            FOLDING           *
                *******************************/

%!  fold(+Text, -Folded:atom) is det.
%
%   Case, accents, width and invisible characters make no difference.

fold(Text, Folded) :-
    folded_text(Text, Folded).

                /*******************************
                *            TOKENS            *
                *******************************/

%!  tokens(+Text, -Tokens:list) is det.
%
%   `w(Folded, Raw)` for a word or identifier, `p(Char)` for one punctuation character; blanks vanish,
%   a newline is `p('\n')`.

tokens(Text, Tokens) :-
    string_codes(Text, Codes),
    phrase(token_list(Tokens), Codes).

token_list(Tokens) -->
    [C],
    !,
    (   { word_code(C) }
    ->  word_tail(Tail),
        { atom_codes(Raw, [C|Tail]),
          fold(Raw, Folded0),
          straight(Folded0, Folded),
          Tokens = [w(Folded, Raw)|Rest] }
    ;   { invisible(C) }
    ->  { Tokens = Rest }
    ;   { char_code(Char, C),
          Tokens = [p(Char)|Rest] }
    ),
    token_list(Rest).
token_list([]) --> [].

word_tail([C|Tail]) -->
    [C],
    { word_code(C) },
    !,
    word_tail(Tail).
word_tail([J, C|Tail]) -->
    [J, C],
    { joint(J), word_code(C) },
    !,
    word_tail(Tail).
word_tail([V, C|Tail]) -->
    [V, C],
    { variant(V), C >= 0'0, C =< 0'9 },
    !,
    word_tail(Tail).
word_tail([]) --> [].

%   word_code(+Code): letters, digits, marks, and the underscore of identifiers.
word_code(0'_) :- !.
word_code(C) :- letter_or_digit(C), !.
word_code(C) :- C > 127, mark(C).

%   Joiners belong to the word they stand in.
mark(C) :- C >= 0x300, C =< 0x36f, !.
mark(C) :- C >= 0x900, C =< 0xdff, C =\= 0x964, C =\= 0x965, !.
mark(C) :- C >= 0xe31, C =< 0xe4e, !.
mark(0x200d).
mark(0x200c).
mark(0xad).
mark(0x200b).
mark(0x2060).

%   A name with its number: `search@2`, `search#2`.
variant(0'@).
variant(0'#).

joint(0'-).
joint(0'.).
joint(0'/).
joint(0''').
joint(0x2019).
joint(0x2018).
joint(0x02bc).
joint(0xff07).

invisible(C) :- C \== 0'\n, blank(C), !.
invisible(0xfeff).
invisible(0x200b).
invisible(0x2060).

straight(Word0, Word) :-
    atom_codes(Word0, Codes0),
    (   ascii(Codes0)
    ->  Word = Word0
    ;   straight_codes(Codes0, Codes),
        atom_codes(Word, Codes)
    ).

straight_codes([], []).
straight_codes([C0|Cs0], [C|Cs]) :-
    (   memberchk(C0, [0x2018, 0x2019, 0x2bc])
    ->  C = 0''
    ;   C = C0
    ),
    straight_codes(Cs0, Cs).

                /*******************************
                *             WORDS            *
                *******************************/

%!  identifier_words(+Identifier, -Words:list(atom)) is det.
%
%   The folded words of an identifier or of any text: split at everything that is no letter or digit and
%   where lower case meets upper case. A name's trailing `@2` or `#2` (a variant) is no word of it.

identifier_words(Identifier, Words) :-
    (   string_codes(Identifier, Codes0),
        printable(Codes0)
    ->  split_string(Identifier, " \t\r\n!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", "", Parts),
        parts_words(Parts, Words)
    ;   plain_text(Identifier, Plain),
        atom_codes(Plain, Codes),
        phrase(words(Words0), Codes),
        append(Words0, Words)
    ).

%   printable(+Codes): ASCII without control characters other than blanks.
printable([]).
printable([C|Cs]) :-
    C < 127,
    ( C >= 32 -> true ; memberchk(C, [0'\t, 0'\n, 0'\r]) ),
    printable(Cs).

%   parts_words(+Parts, -Words): most parts are one word; what mixes cases is looked at letter by letter.
parts_words([], []).
parts_words([Part|Parts], Words) :-
    (   Part == ""
    ->  Words = Rest
    ;   string_codes(Part, Codes),
        case_of(Codes, Case),
        part_words(Case, Part, Codes, Words, Rest)
    ),
    parts_words(Parts, Rest).

part_words(small, Part, _, Words, Rest) =>
    atom_string(Word, Part),
    Words = [Word|Rest].
part_words(one, Part, _, Words, Rest) =>
    lower_text(Part, Word),
    Words = [Word|Rest].
part_words(mixed, _, Codes, Words, Rest) =>
    slow_words(Codes, Words, Rest).

%   case_of(+Codes, -Case): `small` letters only; `one` word: a capital first, or no small letter; else `mixed`.
case_of(Codes, Case) :-
    (   no_capital(Codes)
    ->  Case = small
    ;   Codes = [C|Cs],
        ( upper(C), no_capital(Cs) -> true ; no_small(Codes) )
    ->  Case = one
    ;   Case = mixed
    ).

no_capital([]).
no_capital([C|Cs]) :-
    ( C < 0'A -> true ; C > 0'Z ),
    no_capital(Cs).

no_small([]).
no_small([C|Cs]) :-
    ( C < 0'a -> true ; C > 0'z ),
    no_small(Cs).

slow_words(Codes, Words, Rest) :-
    phrase(words(Lists), Codes),
    append(Lists, Slow),
    append(Slow, Rest, Words).

%!  token_words(+Tokens, -Words:list) is det.
%
%   The split words of tokens, in order, with `|` wherever punctuation ends a sequence.

token_words([], []).
token_words([w(_, Raw)|Tokens], Words) :-
    identifier_words(Raw, Ws),
    append(Ws, Rest, Words),
    token_words(Tokens, Rest).
token_words([p(_)|Tokens], ['|'|Words]) :-
    token_words(Tokens, Words).

%   words(-Lists): one list of words for each run of letters and digits.
words(Lists) -->
    [C],
    !,
    (   { letter_or_digit(C) }
    ->  run(C, Run),
        { run_words(Run, Words),
          Lists = [Words|Rest] }
    ;   { Lists = Rest }
    ),
    words(Rest).
words([]) --> [].

run(C, [C|Run]) -->
    [D],
    { letter_or_digit(D) },
    !,
    run(D, Run).
run(C, [C]) --> [].

%   run_words(+Codes, -Words): one run of letters and digits, split by case and by script.
run_words(Codes, Words) :-
    (   Codes = [C|Cs],
        pieces(Cs, C, [C], Pieces)
    ->  findall(Word, ( member(Piece, Pieces), piece_word(Piece, Word) ), Words)
    ;   Words = []
    ).

piece_word(Codes, Word) :-
    Codes = [C|_],
    (   dense(C)
    ->  dense_word(Codes, Word)
    ;   atom_codes(Cased, Codes),
        folded_text(Cased, Word)
    ).

%   Scripts written without spaces: a run is seen as its overlapping pairs.
dense_word([C], Word) :-
    !,
    char_code(Word, C).
dense_word(Codes, Word) :-
    append(_, [A, B|_], Codes),
    atom_codes(Word, [A, B]).

%   pieces(+Codes, +Previous, +Reversed, -Pieces)
pieces([], _, Piece0, [Piece]) :-
    reverse(Piece0, Piece).
pieces([C|Cs], P, Piece0, Pieces) :-
    (   splits(P, C, Cs)
    ->  reverse(Piece0, Piece),
        Pieces = [Piece|Rest],
        pieces(Cs, C, [C], Rest)
    ;   pieces(Cs, C, [C|Piece0], Pieces)
    ).

%   splits(+Previous, +Code, +Next): a word ends between Previous and Code.
splits(P, C, Next) :-
    (   C < 128, P < 128
    ->  upper(C),
        (   lower_or_digit(P)
        ->  true
        ;   upper(P),
            Next = [N|_],
            lower(N)
        )
    ;   dense(P), \+ dense(C)
    ->  true
    ;   dense(C), \+ dense(P)
    ->  true
    ;   capital(C),
        small(P)
    ).

upper(C) :- C >= 0'A, C =< 0'Z.
lower(C) :- C >= 0'a, C =< 0'z.
lower_or_digit(C) :- lower(C), !.
lower_or_digit(C) :- C >= 0'0, C =< 0'9.

dense(C) :- C >= 0x2e80, C =< 0x9fff, !.        % Han, kana
dense(C) :- C >= 0xac00, C =< 0xd7af, !.        % Hangul
dense(C) :- C >= 0xf900, C =< 0xfaff, !.        % Han, compatibility
dense(C) :- C >= 0x20000, C =< 0x3ffff, !.      % Han, rare
dense(C) :- C >= 0x0e00, C =< 0x0eff, !.        % Thai, Lao
dense(C) :- C >= 0x1000, C =< 0x109f, !.        % Myanmar
dense(C) :- C >= 0x1780, C =< 0x17ff.           % Khmer

                /*******************************
                *             TERMS            *
                *******************************/

%!  terms(+Stemmer, +Text, -Terms:list(atom)) is det.
%
%   The index terms of a text, in order, repeated as often as they occur.

terms(Stemmer, Text, Terms) :-
    atomic_list_concat(Chunks, ' ', Text),
    chunks_terms(Chunks, Stemmer, Terms).

chunks_terms([], _, []).
chunks_terms([Chunk|Chunks], Stemmer, Terms) :-
    chunk_terms(Chunk, Stemmer, Here),
    append(Here, Rest, Terms),
    chunks_terms(Chunks, Stemmer, Rest).

chunk_terms(Chunk, Stemmer, Terms) :-
    (   remembered(Chunk, Stemmer, Terms0)
    ->  Terms = Terms0
    ;   identifier_words(Chunk, Words),
        joined_words(Chunk, Words, Joined),
        append(Words, Joined, All),
        words_terms(Stemmer, All, Terms),
        remember(Chunk, Stemmer, Terms)
    ).

%!  joined_words(+Text, +Words, -Joined:list(atom)) is det.
%
%   What case splits is also one word: `GitHub` is `git`, `hub` and `github`. `Words` are those of the text;
%   there is nothing to join where no letter stands in upper case behind another one.

joined_words(Text, Words, Joined) :-
    (   Words = [_, _|_],
        plain_text(Text, Plain),
        atom_codes(Plain, Codes),
        inner_capital(Codes)
    ->  folded_text(Plain, Lower),
        identifier_words(Lower, Whole),
        findall(W, ( member(W, Whole), \+ memberchk(W, Words) ), Joined)
    ;   Joined = []
    ).

inner_capital([A, B|Codes]) :-
    (   letter_or_digit(A),
        capital(B)
    ->  true
    ;   inner_capital([B|Codes])
    ).

%!  words_terms(+Stemmer, +Words, -Terms) is det.
%
%   Words without stop words, stemmed; breaks (`|`) vanish.

words_terms(_, [], Terms) =>
    Terms = [].
words_terms(Stemmer, [Word|Words], Terms) =>
    (   ( stop_word(Word) ; Word == '|' )
    ->  Terms = Rest
    ;   stem(Stemmer, Word, Term),
        Terms = [Term|Rest]
    ),
    words_terms(Stemmer, Words, Rest).

%!  stems(+Stemmer, +Words, -Stems) is det.
%
%   Words stemmed, stop words included.

stems(_, [], Stems) =>
    Stems = [].
stems(Stemmer, [Word|Words], Stems) =>
    Stems = [Stem|Rest],
    stem(Stemmer, Word, Stem),
    stems(Stemmer, Words, Rest).

stem(none, Word, Term) =>
    Term = Word.
stem(Stemmer, Word, Term) =>
    (   catch(snowball(Stemmer, Word, Stem), _, fail)
    ->  atom_string(Term, Stem)
    ;   Term = Word
    ).

%   Chunks repeat: what each becomes is kept, up to a bound, and forgotten all at once.
remember(Key, Stemmer, Terms) :-
    atom_length(Key, Length),
    (   Length > 64
    ->  true
    ;   flag(rlm_remembered, N, N + 1),
        (   N >= 300_000
        ->  forget_words
        ;   true
        ),
        assertz(remembered(Key, Stemmer, Terms))
    ).

%!  forget_words is det.
%
%   Drop the memory of chunks.

forget_words :-
    flag(rlm_remembered, _, 0),
    retractall(remembered(_, _, _)).
