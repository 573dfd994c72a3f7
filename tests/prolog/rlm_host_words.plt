:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module('../../prolog/rlm_host_read', []).
:- use_module('../../prolog/rlm_host_words', [uncharged/0]).
:- use_module(host_turns).

:- begin_tests(rlm_host_words).

%   charge(+Goal, -Outcome): how many characters it is charged, the sum of all its solutions, with its last answer.
charge(Goal, Answer, Charged-Answers) :-
    uncharged,
    findall(Answer, rlm_host_words:Goal, Answers),
    nb_getval(rlm_host_characters, Charged).

% What a rule makes is charged by its length, whether it is kept or not

charged_row(joined(ab, cde, C), C, 5-[abcde]).
charged_row(joined(A, B, ab), A-B, 6-[''-ab, a-b, ab-'']).
charged_row(joined(ab, B, abcd), B, 4-[cd]).
charged_row(joined(ab, B, xy), B, 0-[]).
charged_row(all_joined([ab, 1, "c"], C), C, 4-[ab1c]).
charged_row(all_joined([ab, cd], ', ', C), C, 6-['ab, cd']).
charged_row(all_joined(As, ',', 'a,b'), As, 3-[[a, b]]).
charged_row(all_joined([a|As], ',', 'a,b'), As, 3-[[b]]).
charged_row(part(abc, 1, 1, A, S), A-S, 1-[1-b]).
charged_row(part(abcab, B, _, 0, ab), B, 2-[3]).
charged_row(part(ab, _, 1, _, S), S, 2-[a, b]).
charged_row(atom_of(A, "abc"), A, 3-[abc]).
charged_row(atom_of(12, S), S, 2-["12"]).
charged_row(lower('ÄBC', L), L, 3-['äbc']).
charged_row(upper('äbc', U), U, 3-['ÄBC']).
charged_row(lower_string('ABC', S), S, 3-["abc"]).
charged_row(upper_string(abc, S), S, 3-["ABC"]).
charged_row(strings_joined(ab, "cd", S), S, 0-["abcd"]).
charged_row(strings_joined(A, B, "x"), A-B, 0-[""-"x", "x"-""]).
charged_row(at0(1, [a, b, c], X), X, 0-[b]).
charged_row(at1(1, [a, b, c], X), X, 0-[a]).

test(rule_what_is_made_is_charged, [forall(charged_row(Goal, Answer, Expected)), Charged == Expected]) :-
    charge(Goal, Answer, Charged).
test(rule_charges_add_up, Charged == 7) :-
    charge(lower(abc, _), x, _),
    ignore(rlm_host_words:upper(abcd, _)),
    nb_getval(rlm_host_characters, Charged).
test(rule_the_last_character_is_allowed, Left == 0) :-
    rlm_host_words:most_characters(Most),
    Before is Most - 3,
    nb_setval(rlm_host_characters, Before),
    rlm_host_words:charged(abc),
    nb_getval(rlm_host_characters, After),
    Left is Most - After,
    uncharged.
test(rule_one_character_more_is_not, [throws(error(resource_error(rlm_atoms(_)), _)), cleanup(uncharged)]) :-
    rlm_host_words:most_characters(Most),
    Before is Most - 2,
    nb_setval(rlm_host_characters, Before),
    rlm_host_words:charged(abc).

% Lengths: what is made stays short, and what is taken apart without knowing the part

long(Length, Atom) :-
    length(Codes, Length),
    maplist(=(0'x), Codes),
    atom_codes(Atom, Codes).

limits(Most, Fits, Over) :-
    rlm_host_words:longest_atom(Most),
    long(Most, Fits),
    atom_concat(Fits, x, Over).

%   outcome(+Goal, -Outcome): `made` or the error's formal term.
outcome(Goal, Outcome) :-
    uncharged,
    catch(( once(rlm_host_words:Goal) -> Outcome = made ; Outcome = failed ), error(Formal, _), Outcome = Formal).

long_row(joined(Fits, '', _), made, Fits, _).
long_row(joined(Fits, x, _), long, Fits, _).
long_row(joined(_, x, Over), long, _, Over).
long_row(joined(_, x, Fits), made, Fits, _).
long_row(all_joined([Fits, ''], _), made, Fits, _).
long_row(all_joined([Fits, x], _), long, Fits, _).
long_row(all_joined(['', Fits], '', _), made, Fits, _).
long_row(all_joined([a, Fits], ',', _), long, Fits, _).
long_row(all_joined(_, ',', Over), long, _, Over).
long_row(part(Over, 0, 1, _, _), made, _, Over).
long_row(part(Over, 0, _, _, _), long, _, Over).
long_row(part(Over, _, _, _, x), made, _, Over).
long_row(part(Fits, 0, _, 0, _), made, Fits, _).
long_row(atom_of(_, Over), long, _, Over).
long_row(atom_of(_, Fits), made, Fits, _).
long_row(lower(Over, _), long, _, Over).
long_row(lower(Fits, _), made, Fits, _).
long_row(upper(Over, _), long, _, Over).

test(rule_a_rule_makes_no_long_atom, [forall(long_row(Goal, Expected, Fits, Over)), Told == Expected]) :-
    limits(Most, Fits, Over),
    outcome(Goal, Outcome),
    ( Outcome = domain_error(atom_of_at_most(Most), _) -> Told = long ; Told = Outcome ).
test(rule_a_rule_makes_no_long_string, A-B == made-domain_error(string_of_at_most(Most), Over)) :-
    rlm_host_words:longest_string(Most),
    Half is Most // 2,
    Rest is Most - Half,
    long(Half, First),
    long(Rest, Second),
    outcome(strings_joined(First, Second, _), A),
    atom_concat(Second, x, Third),
    outcome(strings_joined(First, Third, _), B),
    Over is Most + 1.
test(rule_numbers_have_64_bits, Outcomes == [made, made, long, long, made]) :-
    findall(Outcome,
            ( member(N, [9_223_372_036_854_775_807, -9_223_372_036_854_775_808, 9_223_372_036_854_775_808,
                         -9_223_372_036_854_775_809, 1.5]),
              outcome(bounded(N), Outcome0),
              ( Outcome0 == representation_error(int64_t) -> Outcome = long ; Outcome = Outcome0 ) ),
            Outcomes).
test(rule_a_list_without_end_is_an_error, [forall(member(At, [at0, at1])), Kind == type_error]) :-
    L = [a|L],
    Goal =.. [At, 7, L, _],
    outcome(Goal, Outcome),
    functor(Outcome, Kind, _).

% Words of a turn and its units

asked_row("says(T, 'review it')", [text-'please review it'], true).
asked_row("says(T, 'review it')", [text-'review, then it'], false).
asked_row("says(T, 'view')", [text-'please review it'], false).
asked_row("says(T, 'Review')", [text-'please review'], true).
asked_row("says(T, 'review it')", [text-'review\nit'], true).
asked_row("says(T, '!')", [text-'review!'], false).
asked_row("need(T, a)", [needs-[b, a]], true).
asked_row("need(T, c)", [needs-[b, a]], false).
asked_row("signal(T, repo, git)", [signals-[[repo, [hg, git]]]], true).
asked_row("signal(T, repo, git)", [signals-[[mood, [git]]]], false).
asked_row("mode(T, all_tools)", [mode-all_tools], true).
asked_row("mode(T, all_tools)", [], false).
asked_row("text(T, 'a b')", [text-'a b'], true).

test(rule_what_is_asked_of_a_turn, [forall(asked_row(Goal, Given, Expected)), Truth == Expected]) :-
    format(string(Text), "veto(tool(tag), T, no) :- ~s.", [Goal]),
    vetoed(Text, Given, Vetoed),
    ( Vetoed == [] -> Truth = false ; Truth = true ).

% Which units a rule is about, in the order of the catalog

unit_row("veto(tool(tag), _, no).", [tag]).
unit_row("veto(tool(ghost), _, no).", []).
unit_row("veto(tool(_), _, no).", [git_diff, deploy, tag, changelog]).
unit_row("veto(mcp_tool(postgres, _), _, no).", ['postgres/drop_table', 'postgres/query']).
unit_row("veto(mcp_tool(post, _), _, no).", []).
unit_row("veto(U, _, no) :- kind(U, mcp_tool), server(U, postgres).", ['postgres/drop_table', 'postgres/query']).
unit_row("veto(U, _, no) :- server(U, postgres), kind(U, tool).", []).
unit_row("veto(U, T, no) :- trust(T, U, stranger).", ['postgres/drop_table', 'postgres/query']).
unit_row("veto(U, T, no) :- trust(T, U, host), server(U, S), S == ''.", [git_diff, deploy, tag, changelog, checklist]).
unit_row("veto(U, T, no) :- priority(T, U, 200).", [checklist]).
unit_row("veto(U, _, no) :- name(U, N), N == query.", ['postgres/query']).
% a kind of another unit narrows nothing
unit_row("veto(U, T, no) :- priority(T, U, 200), kind(tool(deploy), tool).", [checklist]).
unit_row("veto(U, T, no) :- trust(T, U, host), kind(tool(deploy), tool), priority(T, U, 200).", [checklist]).
unit_row("veto(U, T, no) :- trust(T, U, host), server(mcp_tool(a, b), a), priority(T, U, 200).", [checklist]).
unit_row("veto(U, T, no) :- kind(U, skill), trust(T, tool(tag), host).", [checklist]).
unit_row("veto(U, T, no) :- kind(U, mcp_tool), trust(T, tool(tag), host).",
         ['postgres/drop_table', 'postgres/query', 'files/deep/read']).
unit_row("veto(U, T, no) :- kind(U, mcp_tool), kind(tool(tag), tool), server(U, postgres).",
         ['postgres/drop_table', 'postgres/query']).
% two kinds at once are none
unit_row("veto(U, _, no) :- kind(U, tool), kind(U, skill).", []).
unit_row("veto(U, _, no) :- kind(U, K), K == skill.", [checklist]).
% a goal lists the units where it is the unit; where it only mentions it, all are tried
unit_row("veto(U, _, no) :- member(U, [tool(tag), tool(ghost), tool(deploy)]).", [deploy, tag]).
unit_row("veto(U, _, no) :- U = tool(tag).", [tag]).
unit_row("veto(U, _, no) :- tool(tag) = U.", [tag]).
unit_row("veto(U, _, no) :- mine(U). mine(tool(tag)). mine(tool(ghost)).", [tag]).
unit_row("veto(U, _, no) :- X = [foo], X = [U].", []).
unit_row("veto(U, _, no) :- member(V, [foo]), V == U.", []).
unit_row("veto(U, _, no) :- mine(U). mine(U) :- kind(U, skill).", [checklist]).
% where nothing asks for the unit, all are meant
unit_row("veto(_, _, no) :- fail.", []).
unit_row("veto(_, T, no) :- mode(T, compiled).",
         [git_diff, deploy, tag, changelog, 'postgres/drop_table', 'postgres/query', 'files/deep/read', checklist]).
% what is said of a unit that is not there is not even looked at
unit_row("veto(tool(ghost), _, no) :- atom_length(abc, a).", []).

test(rule_the_units_of_a_rule, [forall(unit_row(Text, Expected)), Names == Expected]) :-
    vetoed(Text, [], Vetoed0),
    units(Units),
    findall(Name,
            ( member(Id-_, Units), memberchk(Id-_, Vetoed0), atomic_list_concat([_, Name], ':', Id) ),
            Names).
test(rule_the_answer_may_come_from_the_unit, Vetoed == ['mcp_tool:postgres/query'-postgres, 'mcp_tool:postgres/drop_table'-postgres]) :-
    vetoed("veto(U, T, S) :- trust(T, U, stranger), server(U, S).", [], Vetoed0),
    sort(0, @>=, Vetoed0, Vetoed).
test(rule_trust_is_asked_of_the_turn_of_the_head, NK == veto/3-instantiation) :-
    failing("veto(U, _, no) :- trust(_, U, host).", [], [], Name, Message),
    ( sub_atom(Message, _, _, _, instantiated) -> NK = Name-instantiation ; NK = Name-Message ).

error_row("veto(U, _, no) :- mine(U). mine(foo).", unit-foo).
error_row("veto(U, _, no) :- U = foo.", unit-foo).
error_row("veto(U, _, no) :- foo = U.", unit-foo).
error_row("veto(tool(tag), _, no) :- member(X, [foo]), kind(X, tool).", unit-foo).
error_row("veto(tool(tag), _, no) :- member(X, [7]), name(X, _).", unit-7).

test(rule_what_is_no_unit_is_an_error, [forall(error_row(Text, Type-Culprit)), Truth == true]) :-
    failing(Text, [], [], veto/3, Message),
    format(atom(Expected), 'policy.pl:1: Type error: `~w\' expected, found `~w\'', [Type, Culprit]),
    ( sub_atom(Message, 0, _, _, Expected) -> Truth = true ; Truth = Message ).

list_row([a|_], instantiation_error).
list_row(foo, type_error(list, foo)).
list_row([a, f(x)], type_error(atomic, f(x))).

test(rule_only_a_list_of_atoms_is_joined, [forall(list_row(List, Expected)), Outcome == Expected]) :-
    outcome(all_joined(List, _), Outcome).
test(rule_what_the_sandbox_refuses_is_told, Message-Rest == 'library(sandbox) refuses it: '-true) :-
    Module = rlm_host_words_test,
    assertz((Module:'$rule 1'(_, _, _) :- shell(ls))),
    rlm_host:unsafe(Module, rule(1, veto/3, 5), found(5, error, Whole, _)),
    abolish(Module:'$rule 1'/3),
    Message = 'library(sandbox) refuses it: ',
    ( sub_atom(Whole, 0, _, After, Message), After > 0 -> Rest = true ; Rest = Whole ).

blame_row(none, rules/0-'f.pl: why').
blame_row(rule(1, veto/3, 7), veto/3-'f.pl:7: why').

test(rule_the_rule_that_failed_is_named, [forall(blame_row(Rule, Expected)), Blamed == Expected]) :-
    catch(rlm_host:blame(Rule, 'f.pl', why), error(host_rule_failed(Name, Message), _), true),
    Blamed = Name-Message.

deep_row(a, 0, false).
deep_row(f(a), 1, false).
deep_row(f(a), 0, true).
deep_row(f(f(a)), 1, true).
deep_row([a, b, c], 1, false).
deep_row([[a]], 1, true).
deep_row((a, b, c), 1, false).
deep_row(((a, b), c), 1, true).

test(rule_levels_of_a_term, [forall(deep_row(Term, Levels, Expected)), Deep == Expected]) :-
    ( rlm_host_read:deeper(Term, Levels) -> Deep = true ; Deep = false ).

boost_row(2000, 2000).
boost_row(-2000, -2000).
boost_row(2001, refused).
boost_row(-2001, refused).

test(rule_a_computed_boost_is_of_two_words_at_most, [forall(boost_row(By, Expected)), Outcome == Expected]) :-
    Half is By // 2,
    Rest is By - Half,
    format(string(Text), "boost(tool(tag), _, By, up) :- By is ~d + ~d.", [Half, Rest]),
    catch(( boosted(Text, [], ['tool:tag'-5000], ['tool:tag'-Score-_]), Outcome is Score - 5000 ),
          error(host_rule_failed(boost/4, _), _), Outcome = refused).
test(rule_a_file_at_the_limit_is_read, Findings == []) :-
    rlm_host_read:most_bytes(Most),
    Dots is Most - 4,
    length(Codes, Dots),
    maplist(=(0'x), Codes),
    atom_codes(Long, [0'a, 0'., 10, 0'%|Codes]),
    ( rlm_host_read:too_big(Long, Finding) -> Findings = [Finding] ; Findings = [] ).
test(rule_a_file_over_the_limit_is_not_read, Message == 'a file of 262,145 bytes; at most 262,144') :-
    rlm_host_read:most_bytes(Most),
    Dots is Most + 1,
    length(Codes, Dots),
    maplist(=(0'x), Codes),
    atom_codes(Long, Codes),
    rlm_host_read:too_big(Long, found(_, _, Message, _)).

:- end_tests(rlm_host_words).
