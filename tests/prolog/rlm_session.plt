:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module('../../prolog/rlm_open', [close_session/1, open_session/1]).
:- use_module('../../prolog/rlm_session', []).
:- use_module('../../prolog/rlm_what_if', []).
:- use_module('../../prolog/rlm_session_read', [session_records/2]).
:- use_module(saved).

:- begin_tests(rlm_session).

%   asked(:Goal): with the session open.
asked(Goal) :- asked([], Goal).

asked(More, Goal) :-
    terms(More, Terms),
    saved(Terms, Text),
    in_file(Text, opened(Goal)).

opened(Goal, File) :-
    open_session(File),
    once(Goal).

lines(Goal, Lines) :-
    with_output_to(string(Text), rlm_what_if:Goal),
    split_string(Text, "\n", "", Lines0),
    append(Lines, [""], Lines0).

% What is printed

why_row(why(tool(git_diff)),
        ["tool:git_diff is active, in its short form:", "  - words of the text count 1.52 (git 2.29, changes as chang 0.99)"]).
why_row(why(big), ["tool:big is packed_out:", "  - words of the text count 0.70 (git 1.26)", "  - it needs 90 tokens, and 10 were free"]).
why_row(why(old), ["tool:old is rejected:", "  - the text says not to use it"]).
why_row(why(skill(house)), ["skill:house is active, in its full form:", "  - the host pinned it"]).
why_row(why_not(skill(house)), ["skill:house is active, in its full form:", "  - the host pinned it"]).
why_row(what_if(skill(house)), ["skill:house is chosen already"]).
why_row(what_if(deploy), ["tool:deploy would be chosen: grant money"]).
why_row(what_if(lamp), ["nothing that the host can change here shows tool:lamp: a rule of the host keeps it out: veto(lamp)"]).

test(rule_what_is_printed_of_a_session, [forall(why_row(Goal, Expected)), Lines == Expected]) :-
    asked(lines(Goal, Lines)).
test(rule_why_not_ends_with_what_would_change_it, Last == "tool:deploy would be chosen: grant money") :-
    asked(lines(why_not(deploy), Lines)),
    last(Lines, Last).

% The same as data

state_row(git_diff, active, [lexical]).
state_row(big, packed_out, [lexical, packed_out]).
state_row(deploy, rejected, [dependency_out, lexical]).
state_row(vault, hidden, [capability_missing, no_evidence]).
state_row(old, rejected, [negated]).
state_row(lamp, rejected, [vetoed]).
state_row(idle, hidden, [below_floor, intent]).
state_row(needy, hidden, [dependency_out, no_evidence]).
state_row(gone, hidden, [unavailable, no_evidence]).

test(rule_state_and_reasons_of_each_unit, [forall(state_row(Unit, State, Kinds)), Told == State-Kinds]) :-
    asked(rlm_session:explained(Unit, State0, Reasons)),
    findall(Kind, ( member(Reason, Reasons), get_dict(kind, Reason, Kind) ), Kinds0),
    Told = State0-Kinds0.
test(rule_a_reason_within_a_reason_is_one, C == money) :-
    asked(rlm_session:explained(deploy, _, Reasons)),
    once(( member(Reason, Reasons), get_dict(reason, Reason, Because), get_dict(capability, Because, C) )).
test(rule_what_is_active_has_a_form, Units == [skill(house), tool(git_diff)]) :-
    asked(findall(Unit, rlm_session:active(Unit), Units)).

change_row(git_diff, []).
change_row(deploy, [grant(money)]).
change_row(vault, [grant(money)]).
change_row(idle, [select('tool:idle')]).
change_row(lamp, none(vetoed)).
change_row(needy, none(dependency_out)).
change_row(gone, none(unavailable)).
change_row(old, [select('tool:old')]).

test(rule_what_would_show_a_unit, [forall(change_row(Unit, Expected)), Changes == Expected]) :-
    asked(rlm_what_if:what_if(Unit, Changes0)),
    ( Changes0 = none(Reason) -> Kind = Reason.kind, Changes = none(Kind) ; Changes = Changes0 ).
test(rule_nothing_that_a_terminal_obeys_is_printed, Line == "  - the text names it (\"a\\x1b\\[2J\")") :-
    asked([active('tool:esc', full, 1, [[[kind, name], [name, 'a\e[2J']]]),
           unit('tool:esc', [tool, 100, host, '', null, [false, false, true, true], [[], [], [], []], [esc], [], [],
                             [esc, '', '', '', '', '', '', '']])],
          lines(why(esc), [_, Line])).
test(rule_no_session_is_told, error(existence_error(rlm_session, _))) :-
    forall(close_session(_), true),
    rlm_session:explained(git_diff, _, _).

% What is no session

%   refusal(+Text, -What): why Text is none, without the name of its file.
refusal(Text, What) :-
    in_file(Text, refused(What)).

refused(What, File) :-
    catch(( session_records(File, Records), length(Records, Count), What = records(Count) ),
          error(domain_error(rlm_session, What0), _),
          without(File, What0, What)).

without(File, What0, What) :-
    What0 =.. [Name|Args0],
    exclude(==(File), Args0, Args),
    What =.. [Name|Args].

small(Terms) :- Terms = [session(3, abc, english), floor(300), negated('tool:a'), end].

changed_row(Terms, records(3)) :- small(Terms).
changed_row([session(2, abc, english), end], version(2, 3)).
changed_row([session(x, abc, english), end], version(x, 3)).
changed_row([floor(300), end], format).
changed_row([end], format).
changed_row([], format).
changed_row([session(3, abc, english), floor(300)], cut(2)).
changed_row([session(3, abc, english), session(3, abc, english), end], line(2)).
changed_row([session(3, abc, english), unknown(300), end], line(2)).
changed_row([session(3, abc, english), floor(300, 1), end], line(2)).
changed_row([session(3, abc, english), floor(f(x)), end], line(2)).
changed_row([session(3, abc, english), floor([[f(x)]]), end], line(2)).
changed_row([session(3, abc, english), floor(_), end], line(2)).
changed_row([session(3, abc, english), floor, end], line(2)).
changed_row([session(3, abc, english), 300, end], line(2)).
changed_row([session(3, abc, english), negated(12), end], line(2)).
changed_row([session(3, abc, english), negated('a\eb'), end], line(2)).
changed_row([session(3, abc, english), input(text, 'a\eb'), end], records(2)).
changed_row([session(3, abc, english), end, floor(300)], line(3)).
changed_row([session(3, abc, english), floor(Deep), end], records(2)) :- nested(16, Deep).
changed_row([session(3, abc, english), floor(Deep), end], line(2)) :- nested(17, Deep).

nested(0, a) :- !.
nested(N, [Inner]) :- N1 is N - 1, nested(N1, Inner).

test(rule_what_is_no_session_is_refused, [forall(changed_row(Terms, Expected)), What == Expected]) :-
    saved(Terms, Text),
    refusal(Text, What).

%   text_row(?From, ?To, ?What): the text of small/1 with From replaced by To.
text_row("floor(300)", "floor(301)", changed(2)).
text_row("english", "german", changed(1)).
text_row("negated", "\nnegated", records(3)).
text_row("negated", " \t\r\nnegated", records(3)).
text_row("negated", "x\nnegated", changed(3)).
text_row("session(3", "session(4", version(4, 3)).
text_row("session(3", "sessi(3", format).

test(rule_a_line_that_was_changed_is_told, [forall(text_row(From, To, Expected)), What == Expected]) :-
    small(Terms),
    saved(Terms, Text0),
    atomic_list_concat(Parts, From, Text0),
    atomic_list_concat(Parts, To, Text),
    refusal(Text, What).

end_row("\n \n", records(3)).
end_row("", records(3)).
end_row("x\n", line(5)).
end_row("\nx", line(6)).

test(rule_nothing_follows_the_end, [forall(end_row(More, Expected)), What == Expected]) :-
    small(Terms),
    saved(Terms, Text0),
    string_concat(Text0, More, Text),
    refusal(Text, What).
test(rule_without_a_line_end_at_the_end, What == records(3)) :-
    small(Terms),
    saved(Terms, Text0),
    sub_string(Text0, 0, _, 1, Text),
    refusal(Text, What).
test(rule_a_nul_is_never_saved, What == changed(2)) :-
    small(Terms),
    saved(Terms, Text0),
    atomic_list_concat(Parts, "300", Text0),
    atomic_list_concat(Parts, "3\u000000", Text),
    refusal(Text, What).
test(rule_no_file, error(existence_error(rlm_session_file, '/no/such.rlm'))) :- session_records('/no/such.rlm', _).
test(rule_no_session_by_its_name, error(domain_error(rlm_session, suffix('/tmp/x.pl')))) :- session_records('/tmp/x.pl', _).

:- end_tests(rlm_session).
