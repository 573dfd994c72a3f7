:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module('../../prolog/rlm_catalog').
:- use_module('../../prolog/rlm_frozen').
:- use_module(units).

:- begin_tests(rlm_frozen).

some(['tool:a'-[description('stone bridge'), requires(['tool:b'])], 'tool:b'-[description(stone), priority(7)]]).

%   frozen(+Handle, -Args): the parts of a catalog in temporary files, as arguments for catalog_thaw/2.
frozen(Handle, File, Lists) :-
    tmp_file(facts, Facts),
    tmp_file(postings, Postings),
    tmp_file(vectors, Vectors),
    catalog_freeze(_{catalog: Handle, facts: Facts, postings: Postings, vectors: Vectors}, Lists),
    tmp_file(whole, File),
    setup_call_cleanup(
        open(File, write, Out, [type(binary)]),
        forall(member(Part, [Facts, Postings, Vectors]),
               setup_call_cleanup(open(Part, read, In, [type(binary)]), copy_stream_data(In, Out), close(In))),
        close(Out)),
    size_file(Facts, Second),
    size_file(Postings, More),
    Third is Second + More,
    nb_setval(rlm_offsets, [0, Second, Third]).

thawed(File, Lists, Handle) :-
    nb_getval(rlm_offsets, [First, Second, Third]),
    catalog_create(_{stemmer: english}, Reply),
    Handle = Reply.catalog,
    catalog_thaw(_{ catalog: Handle, path: File, facts: [First, Lists.facts],
                    postings: [Second, Lists.postings], vectors: [Third, Lists.vectors] }, _).

facts(Handle, Heads, Facts) :-
    catalog_module(Handle, M),
    findall(Head, ( member(Head, Heads), M:Head ), Facts0),
    msort(Facts0, Facts).

all_heads([unit(_, _, _, _, _, _), requires(_, _), key(_, _, _), posting(_, _, _, _), vector(_, _), next(_), size(_)]).

back(Before, After, Old) :-
    all_heads(Heads),
    frozen(Old, File, Lists),
    facts(Old, Heads, Before),
    thawed(File, Lists, New),
    facts(New, Heads, After),
    catalog_destroy(_{catalog: New}, _).

test(what_is_frozen_comes_back, Before == After) :-
    some(Units),
    once(with_units(Units, back(Before, After))),
    Before = [_|_].

unread(Unread, Left, Old) :-
    frozen(Old, File, Lists),
    thawed(File, Lists, New),
    catalog_module(New, M),
    findall(Part, M:unread(Part, _, _, _), Unread),
    once(M:posting(_, _, _, _)),
    findall(Part, M:unread(Part, _, _, _), Left),
    catalog_destroy(_{catalog: New}, _).

test(postings_are_read_at_the_first_need, Unread-Left == [postings, vectors]-[vectors]) :-
    some(Units),
    once(with_units(Units, unread(Unread, Left))).

:- end_tests(rlm_frozen).
