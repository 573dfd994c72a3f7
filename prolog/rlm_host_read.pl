:- encoding(utf8).
:- module(rlm_host_read,
          [ terms_read/3,         % +Text, +Module, -Items
            start/2,              % +Position, -Offset
            within/4,             % +Term, +Position, -Part, -Offset
            nested/3,             % +Text, +Most, -Offset
            line_starts/2,        % +Text, -Starts
            place/4               % +Starts, +Offset, -Line, -Column
          ]).
:- use_module(library(terms), [term_size/2]).
:- use_module(library(lists), [member/2, nth1/3]).

/** <module> Read a host's rules, term by term

Nothing is loaded here: no directive runs, no operator is made, no term is expanded, and a term that cannot
be read does not stop the reading. Size and nesting are bounded before Prolog's own reader sees the text,
because it recurs in C.
*/

%   most_bytes(?Bytes), most_levels(?N), most_cells(?N): of a file; of a clause.
most_bytes(262_144).
most_levels(100).
most_cells(20_000).

%!  terms_read(+Text:atom, +Module:atom, -Items:list) is det.
%
%   `term(Term, Position, Singletons)` for each term of the text, with positions as read_term/3 gives them
%   and `Name=Variable` for what occurs once, and `found(Offset, error, Message, Fix)` for what cannot be
%   one. Module gives the syntax.

terms_read(Text, Module, Items) :-
    (   too_big(Text, Finding)
    ->  Items = [Finding]
    ;   too_deep(Text, Finding)
    ->  Items = [Finding]
    ;   setup_call_cleanup(
            open_string(Text, Stream),
            read_items(Stream, Module, Items),
            close(Stream))
    ).

too_big(Text, found(0, error, Message, 'split the policy, or move data out of it')) :-
    bytes(Text, Bytes),
    most_bytes(Most),
    Bytes > Most,
    format(atom(Message), 'a file of ~D bytes; at most ~D', [Bytes, Most]).

bytes(Text, Bytes) :-
    setup_call_cleanup(
        open_null_stream(Stream),
        ( set_stream(Stream, encoding(utf8)),
          write(Stream, Text),
          byte_count(Stream, Bytes) ),
        close(Stream)).

read_items(Stream, Module, Items) :-
    skip_blanks(Stream),
    character_count(Stream, Before),
    catch(read_item(Stream, Module, Item), error(syntax_error(Why), Where), Item = unreadable(Why, Where)),
    read_on(Item, Before, Stream, Module, Items).

skip_blanks(Stream) :-
    peek_char(Stream, Char),
    (   ( Char == '\uFEFF' ; char_type(Char, space) )
    ->  get_char(Stream, _),
        skip_blanks(Stream)
    ;   true
    ).

read_item(Stream, Module, Item) :-
    read_options(Module, Position, Singletons, Quotations, Options),
    read_term(Stream, Term, Options),
    (   Term == end_of_file
    ->  Item = end
    ;   Quotations = [_|_]
    ->  start(Position, Offset),
        Item = found(Offset, error, 'a quasi quotation', 'write an ordinary term')
    ;   Item = term(Term, Position, Singletons)
    ).

read_options(Module, Position, Singletons, Quotations, Options) :-
    Options = [ module(Module),
                subterm_positions(Position),
                singletons(Singletons),
                quasi_quotations(Quotations),
                double_quotes(string),
                back_quotes(codes),
                var_prefix(false),
                cycles(false),
                dotlists(false),
                syntax_errors(error)
              ].

read_on(end, _, _, _, Items) =>
    Items = [].
read_on(unreadable(Why, Where), Before, Stream, Module, Items) =>
    offset(Why, Where, Before, Offset),
    syntax_message(Why, Message),
    Items = [found(Offset, error, Message, '')|Rest],
    character_count(Stream, After),
    (   After > Before
    ->  read_items(Stream, Module, Rest)
    ;   Rest = []
    ).
read_on(term(Term, Position, Singletons), _, Stream, Module, Items) =>
    start(Position, Offset),
    (   measured(Term, Offset, Finding)
    ->  Items = [Finding|Rest]
    ;   Items = [term(Term, Position, Singletons)|Rest]
    ),
    read_items(Stream, Module, Rest).
read_on(Finding, _, Stream, Module, Items) =>
    Items = [Finding|Rest],
    read_items(Stream, Module, Rest).

%   offset(+Why, +Context, +Before, -Offset): where a syntax error is; after the last term if nobody knows.
offset(Why, Context, Before, Offset) :-
    (   Why \== end_of_file_in_block_comment,
        compound(Context),
        member(Context-Offset0, [stream(_, _, _, At)-At, file(_, _, _, At)-At, string(_, At)-At]),
        integer(Offset0)
    ->  Offset = Offset0
    ;   Offset = Before
    ).

syntax_message(Why, Message) :-
    '$messages':translate_message(error(syntax_error(Why), _), Lines, []),
    with_output_to(string(Text), print_message_lines(current_output, '', Lines)),
    normalize_space(atom(Message), Text).

                /*******************************
                *            BOUNDS            *
                *******************************/

measured(Term, Offset, found(Offset, error, Message, Fix)) :-
    most_cells(MostCells),
    most_levels(Most),
    (   term_size(Term, Cells),
        Cells > MostCells
    ->  format(atom(Message), 'a clause of ~D cells; at most ~D', [Cells, MostCells]),
        Fix = 'write several clauses'
    ;   deeper(Term, Most)
    ->  format(atom(Message), 'a term nested deeper than ~d', [Most]),
        Fix = 'give the inner part a predicate of its own'
    ).

%   deeper(+Term, +Levels): the last argument of an operator or list cell stands on the level of its term.
deeper(Term, Levels) :-
    compound(Term),
    (   Levels =:= 0
    ->  true
    ;   compound_name_arguments(Term, Name, Arguments),
        Inner is Levels - 1,
        (   spine(Name, Arguments, First, Last)
        ->  ( deeper(First, Inner) -> true ; deeper(Last, Levels) )
        ;   member(Argument, Arguments),
            deeper(Argument, Inner)
        ->  true
        )
    ).

spine(',', [First, Last], First, Last).
spine(;, [First, Last], First, Last).
spine('[|]', [First, Last], First, Last).

too_deep(Text, found(Offset, error, Message, 'close what was opened before')) :-
    most_levels(Most),
    nested(Text, Most, Offset),
    format(atom(Message), 'brackets nested deeper than ~d', [Most]).

%!  nested(+Text, +Most, -Offset) is semidet.
%
%   Brackets are nested deeper than Most, at Offset for the first time. Quotes and comments are skipped; an end of
%   clause closes all.

nested(Text, Most, Offset) :-
    string_codes(Text, Codes),
    deep(Codes, 0, 0'\s, 0, Most, Offset).

%   deep(+Codes, +At, +Previous, +Depth, +Most, -Offset) is semidet.
deep([C|Cs], At, Previous, Depth, Most, Offset) :-
    At1 is At + 1,
    code_class(C, Class),
    deep(Class, C, Cs, At1, Previous, Depth, Most, Offset).

deep(open, C, Cs, At, _, Depth0, Most, Offset) =>
    Depth is Depth0 + 1,
    (   Depth > Most
    ->  Offset is At - 1
    ;   deep(Cs, At, C, Depth, Most, Offset)
    ).
deep(close, C, Cs, At, _, Depth0, Most, Offset) =>
    Depth is max(0, Depth0 - 1),
    deep(Cs, At, C, Depth, Most, Offset).
deep(quote, C, Cs, At, Previous, Depth, Most, Offset) =>
    (   C == 0'',
        Previous == zero
    ->  character(Cs, At, Rest, At1)
    ;   quoted(Cs, C, At, Rest, At1)
    ),
    deep(Rest, At1, 0'a, Depth, Most, Offset).
deep(percent, _, Cs, At, _, Depth, Most, Offset) =>
    line(Cs, At, Rest, At1),
    deep(Rest, At1, 0'\n, Depth, Most, Offset).
deep(symbol, 0'/, [0'*|Cs], At, Previous, Depth, Most, Offset), \+ code_class(Previous, symbol) =>
    At1 is At + 1,
    comment(Cs, At1, Rest, At2),
    deep(Rest, At2, 0'\s, Depth, Most, Offset).
deep(symbol, 0'., Cs, At, Previous, Depth0, Most, Offset) =>
    (   \+ code_class(Previous, symbol),
        Cs = [Next|_],
        code_type(Next, space)
    ->  Depth = 0
    ;   Depth = Depth0
    ),
    deep(Cs, At, 0'., Depth, Most, Offset).
deep(other, 0'0, Cs, At, Previous, Depth, Most, Offset), \+ code_type(Previous, csym) =>
    deep(Cs, At, zero, Depth, Most, Offset).
deep(_, C, Cs, At, _, Depth, Most, Offset) =>
    deep(Cs, At, C, Depth, Most, Offset).

code_class(zero, Class) =>
    Class = other.
code_class(0'(, Class) => Class = open.
code_class(0'[, Class) => Class = open.
code_class(0'{, Class) => Class = open.
code_class(0'), Class) => Class = close.
code_class(0'], Class) => Class = close.
code_class(0'}, Class) => Class = close.
code_class(0'', Class) => Class = quote.
code_class(0'", Class) => Class = quote.
code_class(0'`, Class) => Class = quote.
code_class(0'%, Class) => Class = percent.
code_class(C, Class), code_type(C, prolog_symbol) =>
    Class = symbol.
code_class(_, Class) =>
    Class = other.

quoted([], _, At, [], At).
quoted([C|Cs], Quote, At0, Rest, At) :-
    At1 is At0 + 1,
    (   C == Quote
    ->  Rest = Cs,
        At = At1
    ;   C == 0'\\,
        Cs = [_|Escaped]
    ->  At2 is At1 + 1,
        quoted(Escaped, Quote, At2, Rest, At)
    ;   quoted(Cs, Quote, At1, Rest, At)
    ).

%   character(+Codes, +At0, -Rest, -At): after 0' stands one character, `\` and one, or two quotes.
character([0'\\, _|Rest], At0, Rest, At) :-
    !,
    At is At0 + 2.
character([0'', 0''|Rest], At0, Rest, At) :-
    !,
    At is At0 + 2.
character([_|Rest], At0, Rest, At) :-
    !,
    At is At0 + 1.
character([], At, [], At).

line([], At, [], At).
line([C|Cs], At0, Rest, At) :-
    At1 is At0 + 1,
    (   C == 0'\n
    ->  Rest = Cs,
        At = At1
    ;   line(Cs, At1, Rest, At)
    ).

comment([], At, [], At).
comment([0'*, 0'/|Rest], At0, Rest, At) :-
    !,
    At is At0 + 2.
comment([_|Cs], At0, Rest, At) :-
    At1 is At0 + 1,
    comment(Cs, At1, Rest, At).

                /*******************************
                *            PLACES            *
                *******************************/

%!  start(+Position, -Offset) is det.
%
%   Where a term begins, as a number of characters before it.

start(From-_, Offset) =>
    Offset = From.
start(Position, Offset) =>
    arg(1, Position, Offset0),
    (   integer(Offset0)
    ->  Offset = Offset0
    ;   Offset = 0
    ).

%!  within(+Term, +Position, -Part, -Offset) is multi.
%
%   Term and every term in it, with the place where it begins.

within(Term, Position, Term, Offset) :-
    start(Position, Offset).
within(Term, parentheses_term_position(_, _, Position), Part, Offset) :-
    within(Term, Position, Part, Offset).
within(Term, term_position(_, _, _, _, Positions), Part, Offset) :-
    nth1(N, Positions, Position),
    arg(N, Term, Argument),
    within(Argument, Position, Part, Offset).
within({Term}, brace_term_position(_, _, Position), Part, Offset) :-
    within(Term, Position, Part, Offset).
within(List, list_position(_, _, Positions, TailPosition), Part, Offset) :-
    within_list(Positions, TailPosition, List, Part, Offset).

within_list([Position|Positions], Tail, [Term|Terms], Part, Offset) :-
    (   within(Term, Position, Part, Offset)
    ;   within_list(Positions, Tail, Terms, Part, Offset)
    ).
within_list([], Position, Term, Part, Offset) :-
    Position \== none,
    within(Term, Position, Part, Offset).

%!  line_starts(+Text, -Starts) is det.
%
%   `starts(0, ...)`: how many characters stand before each line.

line_starts(Text, Starts) :-
    split_string(Text, "\n", "", Lines),
    offsets(Lines, 0, Offsets),
    compound_name_arguments(Starts, starts, Offsets).

offsets([], _, []).
offsets([Line|Lines], Offset, [Offset|Offsets]) :-
    string_length(Line, Length),
    Next is Offset + Length + 1,
    offsets(Lines, Next, Offsets).

%!  place(+Starts, +Offset, -Line, -Column) is det.
%
%   Both count from 1; Column counts characters.

place(Starts, Offset, Line, Column) :-
    functor(Starts, _, Last),
    last_before(1, Last, Starts, Offset, Line),
    arg(Line, Starts, Start),
    Column is Offset - Start + 1.

%   last_before(+Low, +High, +Starts, +Offset, -Line): by halves; Low is never beyond Offset.
last_before(Line, Line, _, _, Line0) =>
    Line0 = Line.
last_before(Low, High, Starts, Offset, Line) =>
    Middle is (Low + High + 1) // 2,
    arg(Middle, Starts, Start),
    (   Start =< Offset
    ->  last_before(Middle, High, Starts, Offset, Line)
    ;   Below is Middle - 1,
        last_before(Low, Below, Starts, Offset, Line)
    ).

:- det(terms_read/3).
:- det(start/2).
:- det(line_starts/2).
:- det(place/4).
