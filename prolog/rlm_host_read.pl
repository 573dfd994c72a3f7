:- encoding(utf8).
:- module(rlm_host_read,
          [ terms_read/3,         % +Text, +Module, -Items
            start/2,              % +Position, -Offset
            within/4,             % +Term, +Position, -Part, -Offset
            line_starts/2,        % +Text, -Starts
            place/4               % +Starts, +Offset, -Line, -Column
          ]).
:- use_module(library(terms), [term_size/2]).
:- use_module(library(lists), [member/2, nth1/3]).
:- use_module(rlm_tokens, [text_trouble/4, trouble_message/3]).

/** <module> Read a host's rules, term by term

Nothing is loaded here: no directive runs, no operator is made, no term is expanded, and a term that cannot
be read does not stop the reading. The size of the text and of its tokens, and its nesting, are bounded before
Prolog's own reader sees it (rlm_tokens).
*/

%   most_bytes(?Bytes), most_levels(?N), most_cells(?N): of a file; of a clause.
most_bytes(262_144).
most_levels(100).
most_cells(20_000).

%   most_tokens(?N): of a clause; one of the most cells has no more. most_digits(?N), most_quoted(?N): characters of a
%   number and of a quoted text.
most_tokens(50_000).
most_digits(1000).
most_quoted(65_536).

%!  terms_read(+Text:atom, +Module:atom, -Items:list) is det.
%
%   `term(Term, Position, Singletons)` for each term of the text, with positions as read_term/3 gives them
%   and `Name=Variable` for what occurs once, and `found(Offset, error, Message, Fix)` for what cannot be
%   one. Module gives the syntax.

terms_read(Text, Module, Items) :-
    (   too_big(Text, Finding)
    ->  Items = [Finding]
    ;   out_of_bounds(Text, Finding)
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

out_of_bounds(Text, found(Offset, error, Message, Fix)) :-
    most_levels(Levels),
    most_tokens(Tokens),
    most_digits(Digits),
    most_quoted(Quoted),
    text_trouble(Text, bounds(Levels, Tokens, Digits, Quoted), Offset, Trouble),
    trouble_message(Trouble, Message, Fix).

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
    read_options(Module, Position, Singletons, Options),
    read_term(Stream, Term, Options),
    (   Term == end_of_file
    ->  Item = end
    ;   Item = term(Term, Position, Singletons)
    ).

read_options(Module, Position, Singletons, Options) :-
    Options = [ module(Module),
                subterm_positions(Position),
                singletons(Singletons),
                character_escapes(true),
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
