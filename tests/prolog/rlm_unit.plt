:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module('../../prolog/rlm_unit').

:- begin_tests(rlm_unit).

test(plain, Term == tool(git_diff)) :-
    unit_term('tool:git_diff', Term).
test(server, Term == mcp_tool(github, create_issue)) :-
    unit_term('mcp_tool:github/create_issue', Term).
test(last_slash, Term == tool('a/b', c)) :-
    unit_term('tool:a/b/c', Term).
test(two_slashes_side_by_side, Term == tool('a/', b)) :-
    unit_term('tool:a//b', Term).
test(colon_in_name, Term == tool('a:b')) :-
    unit_term('tool:a:b', Term).
test(number_stays_text, Term == tool('42')) :-
    unit_term('tool:42', Term).
test(not_ascii, Term == skill('Überblick', 'été')) :-
    unit_term('skill:Überblick/été', Term).

test(back, Id == 'tool:git_diff') :-
    unit_term(Id, tool(git_diff)).
test(back_with_server, Id == 'tool:a/b/c') :-
    unit_term(Id, tool('a/b', c)).
test(both_given) :-
    unit_term('tool:a', tool(a)).
test(both_given_and_different, fail) :-
    unit_term('tool:a', tool(b)).
test(pattern, Name == diff) :-
    unit_term('mcp_tool:git/diff', mcp_tool(git, Name)).
test(pattern_of_another_kind, fail) :-
    unit_term('mcp_tool:git/diff', tool(_)).

test(round_trip, Again == Ids) :-
    Ids = [ 'instruction:x', 'skill:a/b', 'tool:a/b/c/d', 'mcp_server:git', 'mcp_tool:a//b', 'mcp_prompt:p',
            'resource:file/x.txt', 'tool:a.b:c' ],
    findall(Id, ( member(Id0, Ids), unit_term(Id0, Term), unit_term(Id, Term) ), Again).

test(one_term_for_an_id, fail) :-
    unit_term(_, tool('a/b')).
test(slash_in_name_after_server, fail) :-
    unit_term(_, tool(a, 'b/c')).
test(empty_server, fail) :-
    unit_term(_, tool('', c)).
test(empty_name, fail) :-
    unit_term(_, tool('')).
test(unknown_kind, fail) :-
    unit_term(_, gadget(a)).
test(three_parts, fail) :-
    unit_term(_, tool(a, b, c)).
test(name_is_a_string, fail) :-
    unit_term(_, tool("a")).
test(name_is_open, fail) :-
    unit_term(_, tool(_)).
test(term_is_an_atom, fail) :-
    unit_term(_, tool).
test(term_is_a_dict, fail) :-
    unit_term(_, _{a: 1}).

test(nothing_given, throws(error(instantiation_error, _))) :-
    unit_term(_, _).
test(no_kind, error(type_error(unit_id, git_diff))) :-
    unit_term(git_diff, _).
test(id_of_unknown_kind, error(type_error(unit_id, 'gadget:x'))) :-
    unit_term('gadget:x', _).
test(id_without_name, error(type_error(unit_id, 'tool:'))) :-
    unit_term('tool:', _).
test(id_without_server, error(type_error(unit_id, 'tool:/x'))) :-
    unit_term('tool:/x', _).
test(id_without_name_after_server, error(type_error(unit_id, 'tool:x/'))) :-
    unit_term('tool:x/', _).
test(id_is_a_string, error(type_error(unit_id, "tool:x"))) :-
    unit_term("tool:x", _).

test(kind, Kind == mcp_tool) :-
    unit_kind('mcp_tool:a/b', Kind).
test(its_server, Server == 'a/b') :-
    unit_server('tool:a/b/c', Server).
test(no_server, Server == '') :-
    unit_server('tool:c', Server).
test(name, Name == c) :-
    unit_name('tool:a/b/c', Name).
test(all_kinds, Count == 7) :-
    unit_kinds(Kinds),
    length(Kinds, Count).

:- end_tests(rlm_unit).
