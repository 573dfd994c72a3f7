:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module(library(lists), [last/2, member/2, reverse/2]).
:- use_module(library(pairs), [pairs_keys/2]).
:- use_module(library(readutil), [read_file_to_string/3]).
:- use_module('../../prolog/rlm_catalog').
:- use_module('../../prolog/rlm_host').
:- use_module(host_turns).

example(Text) :-
    module_property(plunit_rlm_host, file(File)),
    file_directory_name(File, Folder),
    atomic_list_concat([Folder, '/host/policy_example.pl'], Path),
    read_file_to_string(Path, Text, [encoding(utf8)]).

:- begin_tests(rlm_host).

                /*******************************
                *         A GOOD FILE          *
                *******************************/

test(example_loads, Count-Findings == 4-[]) :-
    example(Text),
    loaded(Text, Reply),
    Count = Reply.rules_count,
    Findings = Reply.findings.

test(example_on_a_quiet_turn, Decided == ['mcp_tool:postgres/drop_table'-'tables are dropped by hand']-[]) :-
    example(Text),
    decided(Text, [text-'review my change'], [], _, Vetoed, Needs),
    Decided = Vetoed-Needs.

test(example_with_everything,
     Vetoed-Needs-Ranked == [ 'mcp_tool:postgres/drop_table'-'no third parties in an incident: postgres',
                              'mcp_tool:postgres/query'-'no third parties in an incident: postgres' ]
                          - [ 'tool:deploy'-'skill:checklist' ]
                          - [ 'tool:tag'-800-[e(boost('a release'), 500)], 'tool:git_diff'-700-[] ]) :-
    example(Text),
    decided(Text, [ text-'Put the RELEASE into production', needs-[incident], signals-[[change, [approved]]] ],
            ['tool:git_diff'-700, 'tool:tag'-300], Ranked, Vetoed, Needs).

test(byte_order_mark, Count == 1) :-
    loaded("\uFEFFveto(tool(x), _, no).", Reply),
    Count = Reply.rules_count.

test(no_rules, Ranked-Rules == [c(1, 5, 5, [])]-rules([], [])) :-
    turn([rules-null], Args),
    host_boosts(no_module, Args, [c(1, 5, 5, [])], Ranked),
    host_rules(no_module, Args, Rules).

test(unknown_handle, error(existence_error(rules, 999_999))) :-
    turn([rules-999_999], Args),
    host_rules(no_module, Args, _).

test(forgotten, Forgotten == [@(true), @(false)]) :-
    rules_load(_{source: 'veto(tool(x), _, no).', name: p}, Reply),
    rules_forget(_{rules: Reply.rules}, First),
    rules_forget(_{rules: Reply.rules}, Second),
    Forgotten = [First.forgotten, Second.forgotten].

test(forgotten_leaves_no_module, Before == After) :-
    loaded("veto(tool(x), _, no) :- h. h.", _),
    findall(M, policy_module(M), Before),
    loaded("veto(tool(x), _, no) :- h. h.", _),
    loaded("nonsense(", _),
    findall(M, policy_module(M), After).

test(two_policies_side_by_side, Whys == [one, two]) :-
    units(Units),
    catalog(Units, Catalog, M),
    findall(Handle,
            ( member(Source, ['veto(tool(tag), _, W) :- w(W). w(one).', 'veto(tool(tag), _, W) :- w(W). w(two).']),
              rules_load(_{source: Source, name: p}, Reply),
              Handle = Reply.rules ),
            Handles),
    findall(Why,
            ( member(Handle, Handles),
              turn([rules-Handle], Args),
              host_rules(M, Args, rules([_-Why], [])) ),
            Whys),
    forall(member(Handle, Handles), rules_forget(_{rules: Handle}, _)),
    catalog_destroy(_{catalog: Catalog}, _).

policy_module(M) :-
    current_module(M),
    sub_atom(M, 0, _, _, rlm_policy_).

                /*******************************
                *             VETO             *
                *******************************/

test(veto_one, V == ['tool:tag'-no]) :-
    vetoed("veto(tool(tag), _, no).", [], V).
test(veto_server, V == ['mcp_tool:postgres/drop_table'-no, 'mcp_tool:postgres/query'-no]) :-
    vetoed("veto(mcp_tool(postgres, _), _, no).", [], V).
test(veto_server_by_fact, V == ['mcp_tool:postgres/drop_table'-no, 'mcp_tool:postgres/query'-no]) :-
    vetoed("veto(U, _, no) :- kind(U, mcp_tool), server(U, postgres).", [], V).
test(veto_long_server, V == ['mcp_tool:files/deep/read'-no]) :-
    vetoed("veto(U, _, no) :- kind(U, mcp_tool), server(U, 'files/deep').", [], V).
test(veto_server_is_no_prefix, V == []) :-
    vetoed("veto(U, _, no) :- kind(U, mcp_tool), server(U, files).", [], V).
test(veto_without_server, V == ['tool:changelog'-no, 'tool:deploy'-no, 'tool:git_diff'-no, 'tool:tag'-no]) :-
    vetoed("veto(tool(_), _, no).", [], V).
test(veto_by_name, V == ['mcp_tool:postgres/drop_table'-no]) :-
    vetoed("veto(U, _, no) :- name(U, N), sub_atom(N, 0, _, _, drop_).", [], V).
test(veto_all, Count == 8) :-
    vetoed("veto(_, _, no).", [], V),
    length(V, Count).
test(veto_by_trust, V == ['mcp_tool:postgres/drop_table'-no, 'mcp_tool:postgres/query'-no]) :-
    vetoed("veto(U, T, no) :- trust(T, U, stranger).", [], V).
test(veto_by_priority, V == ['skill:checklist'-no]) :-
    vetoed("veto(U, T, no) :- priority(T, U, P), P > 100.", [], V).
test(veto_from_facts, V == ['tool:deploy'-no, 'tool:tag'-no]) :-
    vetoed("veto(U, _, no) :- closed(U). closed(tool(tag)). closed(tool(deploy)). closed(tool(none)).", [], V).
test(veto_from_list, V == ['tool:deploy'-no, 'tool:tag'-no]) :-
    vetoed("veto(U, _, no) :- member(U, [tool(tag), tool(deploy)]).", [], V).
test(veto_by_unification, V == ['tool:deploy'-no, 'tool:tag'-no]) :-
    vetoed("veto(U, _, no) :- U = tool(N), memberchk(N, [tag, deploy]).", [], V).
test(veto_by_helper_rule, V == ['tool:tag'-no]) :-
    vetoed("veto(U, T, no) :- closed(T, U). closed(T, U) :- kind(U, tool), name(U, N), says(T, N).",
           [text-'tag it'], V).
test(negation_is_about_one_unit, Count == 6) :-
    vetoed("veto(U, _, no) :- \\+ server(U, postgres).", [], V),
    length(V, Count).
test(contradicting_facts, V == []) :-
    vetoed("veto(U, _, no) :- kind(U, tool), kind(U, skill).", [], V).
test(unit_that_is_not_there, V == []) :-
    vetoed("veto(tool(none), _, no). veto(mcp_tool(none, _), _, no).", [], V).
test(reason_as_string, V == ['tool:tag'-'no tags']) :-
    vetoed("veto(tool(tag), _, \"no tags\").", [], V).
test(reason_shows_the_unit, V == ['tool:deploy'-'not deploy', 'tool:tag'-'not tag']) :-
    vetoed("veto(tool(N), _, W) :- memberchk(N, [tag, deploy]), atom_concat('not ', N, W).", [], V).
test(two_reasons_in_file_order, V == ['tool:tag'-b, 'tool:tag'-a]) :-
    vetoed("veto(tool(tag), _, b). veto(tool(tag), _, a). veto(U, _, b) :- U = tool(tag).", [], V).

                /*******************************
                *             TURN             *
                *******************************/

test(says_folded) :-
    spoken('Bitte ÜBERNIMM das Café', 'ubernimm'),
    spoken('Bitte ÜBERNIMM das Café', 'Café').
test(says_phrase_across_lines) :-
    spoken('drop\nthe   table', 'drop the table').
test(says_inside_identifier) :-
    spoken('call dropTable now', 'drop table').
test(says_whole_words_only, fail) :-
    spoken('undeployed', deploy).
test(says_not_across_a_full_stop, fail) :-
    spoken('never drop. The table stays', 'drop the table').
test(says_string) :-
    spoken('read only', "read-only").
test(says_nothing_of_marks, fail) :-
    spoken('a ! b', '!').
test(says_to_the_end_of_a_long_text) :-
    length(Words, 30_000),
    maplist(=(word), Words),
    atomic_list_concat(Words, ' ', Many),
    atom_concat(Many, ' deploy', Text),
    spoken(Text, deploy).

spoken(Text, Phrase) :-
    format(string(Rule), "veto(tool(tag), T, no) :- says(T, ~q).", [Phrase]),
    vetoed(Rule, [text-Text], [_]).

test(text, V == ['tool:tag'-'hello there']) :-
    vetoed("veto(tool(tag), T, W) :- text(T, W).", [text-'hello there'], V).
test(mode, V == ['tool:tag'-all_tools]) :-
    vetoed("veto(tool(tag), T, M) :- mode(T, M).", [mode-all_tools], V).
test(needs_in_their_own_order, V == ['tool:tag'-a]) :-
    vetoed("veto(tool(tag), T, N) :- once(need(T, N)).", [needs-[b, a, c]], V).
test(signals_in_their_own_order, V == ['tool:tag'-'a:x']) :-
    vetoed("veto(tool(tag), T, W) :- once(signal(T, N, V)), atomic_list_concat([N, ':', V], W).",
           [signals-[[b, [c]], [a, [y, x]]]], V).

                /*******************************
                *       BOOST, REQUIRES        *
                *******************************/

test(boost_moves, R == ['tool:tag'-700-[e(boost(up), 500)], 'tool:git_diff'-600-[]]) :-
    boosted("boost(tool(tag), _, 500, up).", [], ['tool:git_diff'-600, 'tool:tag'-200], R).
test(boosts_add_up, R == ['tool:git_diff'-600-[], 'tool:tag'-400-[e(boost(up), 500), e(boost(down), -300)]]) :-
    boosted("boost(tool(tag), _, 500, up). boost(tool(_), _, -300, down) :- fail. boost(tool(tag), _, -300, down).",
            [], ['tool:git_diff'-600, 'tool:tag'-200], R).
test(same_boost_twice_counts_once, R == ['tool:tag'-300-[e(boost(up), 100)]]) :-
    boosted("boost(tool(tag), T, 100, up) :- signal(T, _, _). boost(U, _, 100, up) :- U = tool(tag).",
            [signals-[[a, [x, y]]]], ['tool:tag'-200], R).
test(boost_not_below_zero, R == ['tool:git_diff'-100-[], 'tool:tag'-0-[e(boost(down), -2000)]]) :-
    boosted("boost(tool(tag), _, -2000, down).", [], ['tool:tag'-200, 'tool:git_diff'-100], R).
test(ties_by_priority_then_id, Ids == ['skill:checklist', 'tool:changelog', 'tool:deploy', 'tool:tag']) :-
    boosted("boost(tool(_), _, 100, up).", [],
            ['skill:checklist'-300, 'tool:tag'-200, 'tool:deploy'-200, 'tool:changelog'-200], R),
    findall(Id, member(Id-_-_, R), Ids).
test(boost_reaches_evidence_only, R == ['tool:tag'-200-[]]) :-
    boosted("boost(tool(deploy), _, 2000, up). boost(skill(_), _, 2000, up).", [], ['tool:tag'-200], R).
test(boost_by_fact_of_unit, R == ['tool:tag'-201-[e(boost(up), 1)], 'skill:checklist'-200-[]]) :-
    boosted("boost(U, T, By, up) :- kind(U, tool), priority(T, U, P), By is P - 99.", [],
            ['skill:checklist'-200, 'tool:tag'-200], R).

test(requires, N == ['tool:deploy'-'skill:checklist']) :-
    needed("requires(tool(deploy), _, skill(checklist)).", [], N).
test(requires_what_is_not_there, N == ['tool:deploy'-'tool:none']) :-
    needed("requires(tool(deploy), _, tool(none)).", [], N).
test(nothing_is_required_for_what_is_not_there, N == []) :-
    needed("requires(tool(none), _, tool(deploy)).", [], N).
test(requires_its_server, N == [ 'mcp_tool:files/deep/read'-'mcp_server:files/deep',
                                 'mcp_tool:postgres/drop_table'-'mcp_server:postgres',
                                 'mcp_tool:postgres/query'-'mcp_server:postgres' ]) :-
    needed("requires(mcp_tool(S, _), _, O) :- server_unit(S, O).
            server_unit('files/deep', mcp_server(files, deep)).
            server_unit(postgres, mcp_server(postgres)).", [], N).

test(order_of_registration_shows_nowhere, Forwards == Backwards) :-
    Rules = "veto(U, T, W) :- trust(T, U, W). boost(U, T, P, up) :- kind(U, tool), priority(T, U, P).
             requires(tool(_), _, U) :- needed(U). needed(tool(tag)). needed(skill(checklist)).",
    units(Units),
    reverse(Units, Reversed),
    Scores = ['tool:tag'-200, 'tool:deploy'-200],
    decided_on(Units, Rules, [], Scores, R1, V1, N1),
    decided_on(Reversed, Rules, [], Scores, R2, V2, N2),
    Forwards = R1-V1-N1,
    Backwards = R2-V2-N2.

                /*******************************
                *     WHAT A RULE MAY CALL     *
                *******************************/

test(builtins, V == ['tool:tag'-'b-a,3,xy']) :-
    vetoed("veto(tool(tag), _, W) :-
                findall(X, ( member(X, [a, b, c]), X \\== c ), Xs),
                forall(member(Y, Xs), atom(Y)),
                reverse(Xs, Ys),
                atomic_list_concat(Ys, -, A),
                length([p, q, r], L),
                ( L =:= 3 -> Z = xy ; Z = none ),
                ( member(_, []) *-> fail ; true ),
                once(between(1, 9, One)), One == 1,
                ignore(fail),
                \\+ memberchk(z, Xs),
                nth1(1, Xs, a),
                msort([b, a], [a, b]),
                upcase_atom(abc, 'ABC'),
                sub_atom(hello, B, 1, _, e), B < 2,
                sub_string(\"hello\", 0, 2, _, \"he\"),
                max(1, 2) =:= 2,
                atomic_list_concat([A, L, Z], ',', W).", [], V).
test(cut_in_a_helper, V == ['tool:tag'-first]) :-
    vetoed("veto(tool(tag), _, W) :- w(W). w(first) :- !. w(second).", [], V).
test(recursion, V == ['tool:tag'-no]) :-
    vetoed("veto(tool(tag), _, no) :- even(10). even(0). even(N) :- N > 0, M is N - 2, even(M).", [], V).
test(helpers_may_be_called_like_ours, V == ['tool:tag'-no]) :-
    vetoed("veto(tool(tag), T, no) :- turn_says(T). turn_says(_). listed(_) :- turn_says(_).", [], V).

                /*******************************
                *            ATTACKS           *
                *******************************/

test(directive, P == [2-1]) :-
    refused(['veto(tool(x), _, no).', ':- shell(ls).'], P).
test(initialization, P == [1-1]) :-
    refused([':- initialization(halt).', 'veto(tool(x), _, no).'], P).
test(encoding, P == [1-1]) :-
    refused([':- encoding(utf8).', 'veto(tool(x), _, no).'], P).
test(module_directive, P == [1-1]) :-
    refused([':- module(m, [veto/3]).', 'veto(tool(x), _, no).'], P).
test(query, P == [1-1]) :-
    refused(['?- shell(ls).', 'veto(tool(x), _, no).'], P).
test(op, P-After == [1-1, 2-26]-false) :-
    refused([':- op(700, xfx, ===>).', 'veto(tool(x), _, no) :- a ===> b.'], P),
    ( current_op(_, _, ===>) -> After = true ; After = false ).
test(grammar, P == [1-1]) :-
    refused(['a --> b.'], P).
test(single_sided, P == [1-1]) :-
    refused(['a(X) => b(X).'], P).
test(qualified_head, P == [1-1, 2-1]) :-
    refused(['user:veto(_, _, _).', 'system:foo(_) :- true.'], P).
test(term_expansion, P == [1-1]) :-
    refused(['term_expansion(_, []).', 'veto(tool(x), _, no).'], P).
test(goal_expansion, P == [2-1]) :-
    refused(['veto(tool(x), _, no).', 'goal_expansion(_, shell(ls)).'], P).
test(redefines_append, P == [1-1]) :-
    refused(['append(_, _, _).', 'veto(tool(x), _, no) :- append([], [], _).'], P).
test(redefines_text, P == [1-1]) :-
    refused(['text(_, hello).', 'veto(tool(x), _, no).'], P).
test(redefines_comma, P == [1-1]) :-
    refused(['(a, b) :- true.', 'veto(tool(x), _, no).'], P).
test(redefines_system_predicate, P == [1-1]) :-
    refused(['print_message(_, _).', 'veto(tool(x), _, no).'], P).

test(forbidden_goal, [forall(forbidden(Goal)), Lines == [3]]) :-
    refused(['veto(tool(x), T, no) :-', '    says(T, a),', Goal, '.'], Places),
    pairs_keys(Places, Lines0),
    sort(Lines0, Lines).

forbidden('    assertz(a)').
forbidden('    asserta(a)').
forbidden('    retract(a)').
forbidden('    retractall(veto(_, _, _))').
forbidden('    shell(ls)').
forbidden('    open(f, write, _)').
forbidden('    consult(f)').
forbidden('    load_files(f, [])').
forbidden('    use_module(library(process))').
forbidden('    halt').
forbidden('    halt(1)').
forbidden('    read(_)').
forbidden('    write(a)').
forbidden('    nb_setval(a, b)').
forbidden('    b_setval(a, b)').
forbidden('    flag(a, _, 1)').
forbidden('    call(shell(ls))').
forbidden('    call(shell, ls)').
forbidden('    apply(shell, [ls])').
forbidden('    not(shell(ls))').
forbidden('    _ =.. [shell, ls]').
forbidden('    functor(_, shell, 1)').
forbidden('    term_to_atom(_, \'shell(ls)\')').
forbidden('    catch(shell(ls), _, true)').
forbidden('    throw(x)').
forbidden('    format("~@", [shell(ls)])').
forbidden('    format(atom(_), "~w", [a])').
forbidden('    with_output_to(string(_), write(a))').
forbidden('    thread_create(true)').
forbidden('    getenv(a, _)').
forbidden('    setof(X, member(X, [a]), _)').
forbidden('    maplist(shell, [ls])').
forbidden('    forall(member(X, [ls]), shell(X))').
forbidden('    findall(_, shell(ls), _)').
forbidden('    \\+ shell(ls)').
forbidden('    ( true ; shell(ls) )').
forbidden('    ( true -> ( fail ; once(shell(ls)) ) ; true )').
forbidden('    ( true *-> ignore(shell(ls)) ; true )').
forbidden('    system:shell(ls)').
forbidden('    lists:append(_, _, _)').
forbidden('    rlm_catalog:catalog(_, _, _)').
forbidden('    _:shell(ls)').
forbidden('    X = shell(ls), X').
forbidden('    X = shell(ls), \\+ X').
forbidden('    findall(_, X, X)').
forbidden('    42').
forbidden('    "string"').
forbidden('    [f]').
forbidden('    {f}').
forbidden('    a ^ b').
forbidden('    @(a, user)').
forbidden('    get_time(_)').
forbidden('    random(_)').
forbidden('    !').
forbidden('    veto(_, _, _)').
forbidden('    X is random(5), X > 2').
forbidden('    X is cputime, X > 2').
forbidden('    X is 9 ** 9, X > 2').
forbidden('    X is 1 << 9, X > 2').
forbidden('    X is "a" + 0, X > 2').
forbidden('    2 > foo').
forbidden('    undefined_here(1)').

test(in_a_helper, P == [2-9]) :-
    refused(['veto(tool(x), _, no) :- a.', 'a :- b, shell(ls).', 'b.'], P).
test(every_finding_at_once, P == [1-25, 2-1, 3-25, 4-1]) :-
    refused(['veto(tool(x), _, no) :- shell(a).', ':- shell(b).', 'veto(tool(x), _, no) :- shell(c).', 'a b.'], P0),
    findall(L-C, ( member(L-C0, P0), ( L == 4 -> C = 1 ; C = C0 ) ), P).

test(syntax_error, P == [3-9]) :-
    refused(['% one', 'veto(tool(x), _, no).', 'veto(a :- b c.', 'veto(tool(y), _, no).'], [3-_]),
    P = [3-9].
test(reading_goes_on_after_a_syntax_error, Lines == [2, 4]) :-
    refused(['veto(tool(x), _, no).', 'a b.', 'c.', ':- d.'], Places),
    pairs_keys(Places, Lines).
test(open_quote, Lines == [2]) :-
    refused(['veto(tool(x), _, no).', 'veto(tool(y), _, \'no).'], Places),
    pairs_keys(Places, Lines).
test(open_comment, Lines == [2]) :-
    refused(['veto(tool(x), _, no).', '/* and then'], Places),
    pairs_keys(Places, Lines).
test(no_full_stop, Lines == [2]) :-
    refused(['veto(tool(x), _, no).', 'veto(tool(y), _, no)'], Places),
    pairs_keys(Places, Lines).
test(dict, P == [1-25]) :-
    refused(['veto(tool(x), _, no) :- _{a: 1} = _.'], P).
test(dict_call, P == [1-29]) :-
    refused(['veto(tool(x), T, no) :- X = T.a, X == b.'], P).
test(dollar, P == [1-29]) :-
    refused(['veto(tool(x), T, no) :- T = \'$turn\'(M, _, _, _, _, _, _), atom(M).'], P).
test(quasi_quotation, P == [1-22]) :-
    refused(['veto(tool(x), _, no, {|html||<a>|}).'], [1-_]),
    P = [1-22].
test(variable_clause, P == [1-1]) :-
    refused(['X.'], P).
test(number_clause, P == [1-1]) :-
    refused(['42.'], P).
test(string_clause, P == [1-1]) :-
    refused(['"veto".'], P).

test(deep_brackets, P == [2-101]) :-
    nested('(', ')', 100_000, Deep),
    refused(['veto(tool(x), _, no).', Deep], P).
test(deep_brackets_behind_quotes, P == [3-101]) :-
    nested('[', ']', 50_000, Deep),
    refused(['veto(tool(x), _, \'((( "\').  % (((', 'a(0\'(, "\\")", 0\'\\(). /* ( */', Deep], P).
test(deep_operators, P == [2-1]) :-
    nested('- ', '', 100_000, Deep),
    refused(['veto(tool(x), _, no).', Deep], P).
test(deep_operators_in_a_small_clause, P-M == [2-1]-'a term nested deeper than 100') :-
    nested('- ', '', 500, Deep),
    refused(['veto(tool(x), _, no).', Deep], P),
    complaint(Deep, M, _).
test(brackets_in_quotes_are_no_nesting) :-
    length(Open, 200),
    maplist(=('('), Open),
    atomic_list_concat(Open, Brackets),
    format(string(Text), "veto(tool(x), _, '~w').  % ~w~n", [Brackets, Brackets]),
    loaded(Text, Reply),
    get_dict(rules, Reply, _).
test(ids_of_a_long_list_are_no_nesting, V == ['tool:tag'-no]) :-
    findall(tool(N), ( between(1, 300, I), atom_concat(t, I, N) ), Tools),
    format(string(Text), "veto(U, _, no) :- member(U, ~q).", [[tool(tag)|Tools]]),
    vetoed(Text, [], V).
test(many_conjuncts_are_no_nesting, Count == 1) :-
    length(Goals, 2000),
    maplist(=('says(T, a)'), Goals),
    atomic_list_concat(Goals, ', ', Body),
    format(string(Text), "veto(tool(x), T, no) :- ~w.~n", [Body]),
    loaded(Text, Reply),
    Count = Reply.rules_count.
test(big_clause, P == [2-1]) :-
    length(Items, 30_000),
    maplist(=(a), Items),
    atomic_list_concat(Items, ',', Text),
    format(atom(Clause), 'f([~w]).', [Text]),
    refused(['veto(tool(x), _, no).', Clause], P).
test(big_file, P == [1-1]) :-
    length(Lines, 20_000),
    maplist(=('veto(tool(x), _, no).'), Lines),
    refused(Lines, P).
test(big_file_in_bytes, P == [1-1]) :-
    length(Chars, 140_000),
    maplist(=('é'), Chars),
    atomic_list_concat(Chars, Text),
    refused(['veto(tool(x), _, no).', '% ', Text], P).

nested(Open, Close, N, Text) :-
    length(Opens, N),
    maplist(=(Open), Opens),
    length(Closes, N),
    maplist(=(Close), Closes),
    append([Opens, [a], Closes, ['.']], Parts),
    atomic_list_concat(Parts, Text).

                /*******************************
                *           MISTAKES           *
                *******************************/

test(wrong_arity, MF == 'veto/2 where veto/3 is asked'-true) :-
    complaint("veto(tool(x), no).", M, Fix),
    ( sub_atom(Fix, 0, _, _, 'write veto(') -> MF = M-true ; MF = M-Fix ).
test(unit_as_id, Fix == 'did you mean tool(git_diff)?') :-
    complaint("veto('tool:git_diff', _, no).", _, Fix).
test(unit_as_string, Fix == 'did you mean mcp_tool(github,create)?') :-
    complaint("veto(\"mcp_tool:github/create\", _, no).", _, Fix).
test(unit_with_slash, Fix == 'did you mean tool(a,b)?') :-
    complaint("veto(tool('a/b'), _, no).", _, Fix).
test(unit_with_string, Fix == 'did you mean tool(x)?') :-
    complaint("veto(tool(\"x\"), _, no).", _, Fix).
test(required_no_unit, M == 'foo is no unit') :-
    complaint("requires(tool(x), _, foo).", M, _).
test(turn_written_out, M == 'a turn is seen through its facts only') :-
    complaint("veto(tool(x), turn, no).", M, _).
test(boost_out_of_range, M == '2001 is no boost') :-
    complaint("boost(tool(x), _, 2001, up).", M, _).
test(boost_by_fraction, M == '0.5 is no boost') :-
    complaint("boost(tool(x), _, 0.5, up).", M, _).
test(reason_is_no_text, M == 'f(x) is no reason') :-
    complaint("veto(tool(x), _, f(x)).", M, _).
test(unknown_kind, Fix == 'did you mean tool?') :-
    complaint("veto(U, _, no) :- kind(U, tol).", _, Fix).
test(string_for_a_name, Fix == 'write github') :-
    complaint("veto(U, _, no) :- server(U, \"github\").", _, Fix).
test(unknown_mode, Fix == 'one of: compiled, all_tools') :-
    complaint("veto(tool(x), T, no) :- mode(T, secret).", _, Fix).
test(misspelt_word, MF == 'there is no sayz/2'-'did you mean says/2?') :-
    complaint("veto(tool(x), T, no) :- sayz(T, a).", M, F),
    MF = M-F.
test(helper_of_another_arity, Fix == 'did you mean helper/2?') :-
    complaint("veto(tool(x), T, no) :- helper(T), helper(T, T). helper(_, _).", _, Fix).

test(singleton, W == ['Untit occurs only once']) :-
    warned("veto(Unit, _, no) :- Unit = tool(x).\nboost(Untit, _, 5, up).", W).
test(unused_helper, W == ['h/1 is never used']) :-
    warned("veto(tool(x), _, no). h(a). h(b) :- h(a).", W).
test(no_rule, W == ['nothing here decides anything']) :-
    warned("% soon", W).
test(findings_have_it_all, F =@= _{line: 2, column: 13, level: error, message: 'a rule may not call shell/1',
                                   fix: 'rules decide from the facts of a turn; they read, write and remember nothing'}) :-
    loaded("veto(tool(x), _, no) :- a.\na :- true,  shell(ls).", Reply),
    Reply.findings = [F].
test(not_more_than_a_hundred, Count == 100) :-
    length(Lines, 150),
    maplist(=(':- a.'), Lines),
    refused(Lines, Places),
    length(Places, Count).

                /*******************************
                *      WHAT FAILS LATER        *
                *******************************/

test(infinite_loop, NM == veto/3-true) :-
    failing("boost(tool(x), _, 1, no).\nveto(tool(tag), _, no) :- a.\na :- a.", [], [], Name, M),
    ( sub_atom(M, 0, _, _, 'policy.pl:2: the rules needed more than 1,000,800 inferences') -> NM = Name-true ; NM = M ).
test(infinite_between, Name == veto/3) :-
    failing("veto(tool(tag), _, no) :- between(1, inf, N), N < 0.", [], [], Name, _).
test(one_limit_for_all, Name == requires/3) :-
    Text = "veto(tool(tag), _, no) :- spend. boost(tool(tag), _, 1, w) :- spend.
            requires(tool(tag), _, tool(deploy)) :- spend.
            spend :- \\+ ( between(1, 600000, _), fail ).",
    failing(Text, [], ['tool:tag'-100], Name, _).
test(too_much_memory, M == 'policy.pl:1: not enough memory') :-
    failing("veto(tool(tag), _, no) :- length(L, 200000000), L = [].", [], [], _, M).
test(list_without_end, M == 'policy.pl:1: type_error(list,[a,a,a,a|...])') :-
    failing("veto(tool(tag), _, no) :- L = [a|L], nth1(1000000000000, L, _).", [], [], _, M).
test(term_without_end, Name == veto/3) :-
    failing("veto(tool(tag), _, W) :- W = f(W).", [], [], Name, _).
test(its_message_is_short) :-
    length(Words, 500),
    maplist(=(word), Words),
    atomic_list_concat(Words, ' ', Text),
    failing("veto(tool(tag), _, no) :- length(L, 4000), L > 1.", [], [], _, Long),
    failing("veto(tool(tag), T, no) :- text(T, X), atom_length(a, X).", [text-Text], [], _, Longer),
    atom_length(Long, L1),
    L1 < 700,
    atom_length(Longer, L2),
    L2 < 700.
test(numbers_stay_small, M == 'policy.pl:1: Cannot represent due to `int64_t\'') :-
    failing("veto(tool(tag), _, no) :- grow(3). grow(X) :- Y is X * X, grow(Y).", [], [], _, M).
test(expressions_are_no_values, M == 'policy.pl:1: Type error: `number\' expected, found `1+1\' (a compound)') :-
    failing("veto(tool(tag), _, no) :- E = 1 + 1, X is E, X > 1.", [], [], _, M).
test(atoms_stay_short, Name == veto/3) :-
    failing("veto(tool(tag), _, no) :- grow(aaaa). grow(X) :- atom_concat(X, X, Y), grow(Y).", [], [], Name, _).
test(no_goal_from_data, M == 'policy.pl:1: Type error: `number\' expected, found `shell(ls)\' (a compound)') :-
    failing("veto(tool(tag), _, no) :- E = shell(ls), E > 1.", [], [], _, M).
test(type_error, M == 'policy.pl:2: Type error: `integer\' expected, found `a\' (an atom)') :-
    failing("\nveto(tool(tag), _, no) :- atom_length(abc, a).", [], [], _, M).
test(unbound_unit, Name == veto/3) :-
    failing("veto(tool(tag), _, no) :- kind(_, tool).", [], [], Name, _).
test(listed_no_unit, M == 'policy.pl:1: Type error: `unit\' expected, found `tag\' (an atom)') :-
    failing("veto(U, _, no) :- member(U, [tag]).", [], [], _, M).
test(listed_any, M == 'policy.pl:1: Type error: `unit\' expected, found `any\' (an atom)') :-
    failing("veto(U, _, no) :- member(U, [any]).", [], [], _, M).
test(reason_unbound, NM == veto/3-true) :-
    failing("veto(tool(tag), _, _).", [], [], Name, M),
    ( sub_atom(M, 0, _, _, 'policy.pl:1: a reason is') -> NM = Name-true ; NM = M ).
test(reason_too_long, Name == veto/3) :-
    length(Words, 500),
    maplist(=(word), Words),
    atomic_list_concat(Words, ' ', Text),
    failing("veto(tool(tag), T, W) :- text(T, W).", [text-Text], [], Name, _).
test(boost_computed_out_of_range, NM == boost/4-'policy.pl:1: a boost is a whole number from -2000 to 2000, not 10000') :-
    failing("boost(tool(tag), T, By, up) :- priority(T, tool(tag), P), By is P * 100.", [], ['tool:tag'-1], Name, M),
    NM = Name-M.
test(boost_computed_fraction, Name == boost/4) :-
    failing("boost(tool(tag), _, By, up) :- By is 1 / 2.0.", [], ['tool:tag'-1], Name, _).
test(required_no_unit_term,
     NM == requires/3-'policy.pl:2: a unit is required as a term such as tool(name), not as \'tool:x\'') :-
    failing("\nrequires(tool(tag), _, O) :- O = 'tool:x'.", [], [], Name, M),
    NM = Name-M.
test(its_message, Message == "policy.pl:1: why (in veto/3)") :-
    message_to_codes_of(error(host_rule_failed(veto/3, 'policy.pl:1: why'), _), Message).

message_to_codes_of(Error, Text) :-
    '$messages':translate_message(Error, Lines, []),
    with_output_to(string(Text0), print_message_lines(current_output, '', Lines)),
    split_string(Text0, "", "\n ", [Text]).

test(nothing_swallows_a_cancellation, throws(rlm_error(cancelled, 7))) :-
    thread_self(Me),
    thread_create(( sleep(0.05), thread_signal(Me, throw(rlm_error(cancelled, 7))) ), Thread),
    call_cleanup(
        decided("veto(tool(tag), _, no) :- a. a :- length(L, 1000000), msort(L, _), a.", [], [], _, _, _),
        thread_join(Thread, _)).

:- end_tests(rlm_host).
