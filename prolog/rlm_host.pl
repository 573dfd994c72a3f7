:- encoding(utf8).
:- module(rlm_host,
          [ rules_load/2,         % +Args, -Reply
            rules_forget/2,       % +Args, -Reply
            host_rules/3,         % +Module, +Args, -Rules
            host_boosts/4         % +Module, +Args, +Ranked0, -Ranked
          ]).
:- use_module(library(terms), [term_size/2]).
:- use_module(library(apply), [maplist/3]).
:- use_module(library(assoc), [get_assoc/3, list_to_assoc/2]).
:- use_module(library(error), [existence_error/2]).
:- use_module(library(lists), [append/3, member/2, sum_list/2]).
:- use_module(library(occurs), [sub_term/2]).
:- use_module(library(pairs), [group_pairs_by_key/2]).
:- use_module(library(sandbox), [safe_goal/1]).
:- use_module(rlm_catalog, [catalog_size/2]).
:- use_module(rlm_host_check, [checked/4]).
:- use_module(rlm_host_read, [line_starts/2, place/4, terms_read/3]).
:- use_module(rlm_host_words, [charged/1, ranged/3, turn/5, uncharged/0]).
:- use_module(rlm_rank, [best_first/3]).
:- use_module(rlm_unit, [unit_term/2]).

/** <module> A host's own rules

A host may add to the law, never take from it. Its policy is a Prolog file of ordinary clauses:

    % Nobody drops a table by accident.
    veto(mcp_tool(postgres, drop_table), Turn, 'tables are dropped by hand') :-
        \+ signal(Turn, change, approved).

    % Servers of third parties stay out of incidents.
    veto(Unit, Turn, Why) :-
        need(Turn, incident),
        kind(Unit, mcp_tool),
        trust(Turn, Unit, stranger),
        server(Unit, Server),
        string_concat("no third parties in an incident: ", Server, Why).

    % Who speaks of a release wants the release tools first.
    boost(tool(Name), Turn, 500, 'a release') :-
        says(Turn, release),
        release_tool(Name).

    % In production, deploying needs the checklist.
    requires(tool(deploy), Turn, skill(checklist)) :-
        says(Turn, production).

    release_tool(tag).
    release_tool(changelog).

`veto(Unit, Turn, Why)` keeps Unit out of a turn, whatever wants it. `boost(Unit, Turn, By, Why)` moves a
unit that the evidence found, within its tier: By is a whole number of thousandths from -2000 to 2000,
several boosts add up, a score does not fall below 0. `requires(Unit, Turn, Other)` adds a requirement for
this turn. Units are terms (rlm_unit). Each rule stands alone and says the same whatever the order of rules
or units; the same answer given twice counts once.

What a rule may ask of a turn and a unit:

| fact                         | true where                                                              |
|------------------------------|-------------------------------------------------------------------------|
| text(Turn, Text)             | Text is what the user wrote                                             |
| says(Turn, Phrase)           | the text holds these words side by side; case and accents do not matter |
| need(Turn, Need)             | the model said it needs this                                            |
| signal(Turn, Name, Value)    | the host gave this signal                                               |
| mode(Turn, Mode)             | `compiled` or `all_tools`                                               |
| kind(Unit, Kind), server(Unit, Server), name(Unit, Name) | what its id says; no server is `''`         |
| priority(Turn, Unit, P), trust(Turn, Unit, Trust) | what the catalog says; Trust is `host` or `stranger` |

Beside these it may call its own predicates, control constructs, findall/3, forall/2, comparison, plain
arithmetic, and predicates for lists, atoms and strings (rlm_host_words:word/3). Nothing else: the file is
never consulted, no directive runs, a goal that is not on the list is a finding with its line, and
library(sandbox) is asked as well.

## Cost

A rule that names its unit (`veto(tool(x), ...)`) is tried on that one. Otherwise goals that do not mention
the unit are asked once a turn; where they hold, the units come from a `member/2` or a table of facts that
follows, or else from the catalog, narrowed down by `kind/2`, `server/2` and `trust/3` that follow. So a rule
for all 100,000 units of a catalog costs nothing on a turn that is not its business, 20 ms where it asks for
a server, and two or three tenths of a second where it looks at every unit.

A compile may spend a million inferences on rules and a hundred more for each unit of the catalog. Its memory is
bounded by the stacks of the thread that asks and by the atoms that rules may make (rlm_host_words). A rule
that needs more, or that raises an error, fails the compile: what a host forbids must not come back because
its rule is broken.
*/

:- dynamic loaded/5.            % Handle, Module, File, Rules: list(rule(N, Name, Line)), Spoken

%   most_inferences(?Base, ?Each): for all rules in one compile; for each unit of the catalog.
most_inferences(1_000_000, 100).

%   longest_reason(?Characters)
longest_reason(1000).

%   longest_message(?Characters): of an error in a rule.
longest_message(500).

%   most_findings(?N): more than anyone reads at once.
most_findings(100).

                /*******************************
                *            LOADING           *
                *******************************/

%!  rules_load(+Args:dict, -Reply:dict) is det.
%
%   `Args`: `source` (the text) and `name` (of the file, for messages). `Reply`: the handle `rules`, the
%   number of rules `rules_count`, and the warnings in `findings`; or `findings` alone, at least one of them
%   an error, and nothing is loaded. A finding has `line` and `column` (from 1), `level` (`error`,
%   `warning`), `message` and `fix` (may be empty).

rules_load(Args, Reply) :-
    flag(rlm_host, Last, Last + 1),
    Handle is Last + 1,
    atom_concat(rlm_policy_, Handle, P),
    set_module(P:class(temporary)),
    set_module(P:base(system)),
    line_starts(Args.source, Starts),
    terms_read(Args.source, P, Items),
    checked(Items, Clauses, Rules0, Findings0),
    add_clauses(P, Clauses, Rules0, Findings0, Findings1),
    worth_saying(Findings1, Findings2),
    maplist(finding(Starts), Findings2, Findings),
    (   refused(Findings1)
    ->  '$destroy_module'(P),
        Reply = _{findings: Findings}
    ;   maplist(rule_line(Starts), Rules0, Rules),
        speech(Clauses, Spoken),
        assertz(loaded(Handle, P, Args.name, Rules, Spoken)),
        length(Rules, Count),
        Reply = _{rules: Handle, rules_count: Count, findings: Findings}
    ).

refused(Findings) :-
    memberchk(found(_, error, _, _), Findings).

%   add_clauses(+P, +Clauses, +Rules, +Findings0, -Findings): into the module, where nothing speaks against it.
add_clauses(P, Clauses, Rules, Findings0, Findings) :-
    (   refused(Findings0)
    ->  Findings = Findings0
    ;   forall(member(Clause, Clauses), assertz(P:Clause)),
        findall(Finding, ( member(Rule, Rules), unsafe(P, Rule, Finding) ), Findings1),
        append(Findings0, Findings1, Findings)
    ).

%   unsafe(+P, +Rule, -Finding) is semidet: library(sandbox) finds in a rule what escaped us.
unsafe(P, rule(N, _, Offset), found(Offset, error, Message, 'leave that goal out')) :-
    rule_goal(N, _, _, _, Goal),
    catch(( safe_goal(P:Goal), fail ), Error, true),
    error_text(Error, Text),
    atom_concat('library(sandbox) refuses it: ', Text, Message).

rule_goal(N, Turn, I, Answer, Goal) :-
    atom_concat('$rule ', N, Name),
    compound_name_arguments(Goal, Name, [Turn, I, Answer]).

worth_saying(Findings0, Findings) :-
    most_findings(Most),
    length(Findings0, Count),
    (   Count =< Most
    ->  Findings = Findings0
    ;   findall(F, ( member(F, Findings0), F = found(_, error, _, _) ), Errors),
        length(Errors, ErrorCount),
        Kept is min(Most, ErrorCount),
        length(Findings, Kept),
        append(Findings, _, Errors)
    ).

finding(Starts, found(Offset, Level, Message, Fix), Finding) :-
    place(Starts, Offset, Line, Column),
    Finding = _{line: Line, column: Column, level: Level, message: Message, fix: Fix}.

rule_line(Starts, rule(N, Name, Offset), rule(N, Name, Line)) :-
    place(Starts, Offset, Line, _).

%   speech(+Clauses, -Spoken): whether a rule will ask for the words of the text.
speech(Clauses, Spoken) :-
    (   sub_term(Part, Clauses),
        nonvar(Part),
        Part = turn_says(_, _)
    ->  Spoken = true
    ;   Spoken = false
    ).

%!  rules_forget(+Args:dict, -Reply:dict) is det.
%
%   `Args`: the handle `rules`. Forgetting it again is no error.

rules_forget(Args, _{forgotten: Known}) :-
    (   retract(loaded(Args.rules, P, _, _, _))
    ->  '$destroy_module'(P),
        Known = @(true)
    ;   Known = @(false)
    ).

                /*******************************
                *            ASKING            *
                *******************************/

%!  host_rules(+Module, +Args:dict, -Rules) is det.
%
%   What the rules `Args.rules` say of this turn (`text`, `needs`, `signals`, `mode`): `rules(Vetoed, Needs)`, `I-Why`
%   for every unit of the catalog that is vetoed, and `I-Id` for what a unit requires for this turn, by the units' ids.
%   Where `Args.rules` is `null` there are none.
%
%   @error existence_error(rules, Handle)
%   @error host_rule_failed(Name/Arity, Message) where a rule raises, answers nonsense or needs too much

host_rules(_, Args, Rules), Args.rules == null =>
    Rules = rules([], []).
host_rules(M, Args, Rules) =>
    rules_of(M, Args, Each, Policy),
    bounded(answers(Each, Policy), Policy, answers(Vetoes, Requirements)),
    distinct(Vetoes, Vetoed),
    distinct(Requirements, Needs),
    Rules = rules(Vetoed, Needs).

%!  host_boosts(+Module, +Args:dict, +Ranked0, -Ranked) is det.
%
%   Ranked is Ranked0 with the boosts of the rules, each also in a unit's evidence as `e(boost(Why), By)`, best first
%   again. These are rules of their own, with as many inferences as host_rules/3 has.
%
%   @error as host_rules/3

host_boosts(_, Args, Ranked0, Ranked), Args.rules == null =>
    Ranked = Ranked0.
host_boosts(M, Args, Ranked0, Ranked) =>
    rules_of(M, Args, Each, Policy),
    (   memberchk(rule(_, boost/4, _), Each)
    ->  Policy = policy(_, P, File, Turn),
        ranged(Turn, Ranked0, RankedTurn),
        bounded(boosts(Each, policy(M, P, File, RankedTurn)), Policy, Boosts),
        boosted(Boosts, M, Ranked0, Ranked)
    ;   Ranked = Ranked0
    ).

rules_of(M, Args, Each, policy(M, P, File, Turn)) :-
    Handle = Args.rules,
    (   loaded(Handle, P, File, Each, Spoken)
    ->  true
    ;   existence_error(rules, Handle)
    ),
    turn(M, Args, Spoken, all, Turn).

%   bounded(:Question, +Policy, -Answers): call(Question, At, Answers) within the inferences that there are.
bounded(Question, Policy, Answers) :-
    Policy = policy(M, _, File, _),
    most_inferences(Base, Extra),
    catalog_size(M, Size),
    Limit is Base + Extra * Size,
    At = at(none),
    uncharged,
    call_with_inference_limit(call(Question, At, Answers), Limit, Outcome),
    (   Outcome == inference_limit_exceeded
    ->  arg(1, At, Rule),
        format(atom(Text), 'the rules needed more than ~D inferences; this one was at it', [Limit]),
        blame(Rule, File, Text)
    ;   true
    ).

answers(Rules, Policy, At, answers(Vetoes, Requirements)) :-
    given(veto/3, Rules, Policy, At, Vetoes),
    given(requires/3, Rules, Policy, At, Requirements).

boosts(Rules, Policy, At, Boosts) :-
    given(boost/4, Rules, Policy, At, Boosts).

%   given(+Name, +Rules, +Policy, +At, -Answers): `k(Id, N, I)-Answer`, by unit and then by rule.
given(Name, Rules, Policy, At, Answers) :-
    Policy = policy(M, _, _, _),
    findall(k(Id, N, I)-Answer,
            ( member(Rule, Rules),
              Rule = rule(N, Name, _),
              nb_setarg(1, At, Rule),
              asked(Rule, Policy, I, Answer),
              M:unit(I, Id, _, _, _, _) ),
            Answers0),
    sort(Answers0, Answers).

asked(Rule, policy(_, P, File, Turn), I, Answer) :-
    Rule = rule(N, Name, _),
    rule_goal(N, Turn, I, Answer0, Goal),
    catch(P:Goal, error(Formal, _), failed(Rule, File, Formal)),
    sensible(Name, Answer0, Rule, File, Answer).

failed(Rule, File, Formal) :-
    error_text(error(Formal, none), Text),
    blame(Rule, File, Text).

%   error_text(+Error, -Text): what went wrong, without the context that only we understand.
error_text(error(resource_error(rlm_atoms(Most)), _), Text) =>
    format(atom(Text), 'the rules made atoms of more than ~D characters together', [Most]).
error_text(error(resource_error(_), _), Text) =>
    Text = 'not enough memory'.
error_text(error(Formal, _), Text) =>
    message_text(error(Formal, _), Text).
error_text(Error, Text) =>
    message_text(Error, Text).

message_text(Error, Text) :-
    longest_message(Most),
    (   acyclic_term(Error),
        term_size(Error, Cells),
        Cells < Most
    ->  '$messages':translate_message(Error, Lines, []),
        with_output_to(string(Said), print_message_lines(current_output, '', Lines))
    ;   ( Error = error(Formal, _) -> true ; Formal = Error ),
        format(string(Said), '~W', [Formal, [quoted(true), max_depth(6)]])
    ),
    normalize_space(atom(Text0), Said),
    atom_length(Text0, Length),
    (   Length =< Most
    ->  Text = Text0
    ;   sub_atom(Text0, 0, Most, _, Head),
        atom_concat(Head, '...', Text)
    ).

%   sensible(+Name, +Answer0, +Rule, +File, -Answer): what a rule may answer.
sensible(veto/3, Why0, Rule, File, Why) =>
    reason(Why0, Rule, File, Why).
sensible(boost/4, By-Why0, Rule, File, Answer) =>
    (   integer(By),
        By >= -2000,
        By =< 2000
    ->  reason(Why0, Rule, File, Why),
        Answer = By-Why
    ;   nonsense('a boost is a whole number from -2000 to 2000, not ~W', By, Rule, File)
    ).
sensible(requires/3, Other, Rule, File, Id) =>
    (   ground(Other),
        unit_term(Id0, Other)
    ->  Id = Id0
    ;   nonsense('a unit is required as a term such as tool(name), not as ~W', Other, Rule, File)
    ).

reason(Why0, Rule, File, Why) :-
    longest_reason(Most),
    (   ( atom(Why0) ; string(Why0) ),
        atom_length(Why0, Length),
        Length =< Most
    ->  made(Why0, Rule, File, Why)
    ;   nonsense('a reason is an atom or a string of at most 1,000 characters, not ~W', Why0, Rule, File)
    ).

made(Why0, _, _, Why), atom(Why0) =>
    Why = Why0.
made(Why0, Rule, File, Why) =>
    atom_string(Why, Why0),
    catch(charged(Why), error(Formal, _), failed(Rule, File, Formal)).

nonsense(Format, Value, Rule, File) :-
    format(atom(Text), Format, [Value, [quoted(true), max_depth(6)]]),
    blame(Rule, File, Text).

%   blame(+Rule, +File, +Text): fail closed, and say which rule it was.
blame(rule(_, Name, Line), File, Text) =>
    format(atom(Message), '~w:~d: ~w', [File, Line, Text]),
    throw(error(host_rule_failed(Name, Message), _)).
blame(none, File, Text) =>
    format(atom(Message), '~w: ~w', [File, Text]),
    throw(error(host_rule_failed(rules/0, Message), _)).

:- multifile prolog:error_message//1.

prolog:error_message(host_rule_failed(Name/Arity, Message)) -->
    [ '~w (in ~w/~w)'-[Message, Name, Arity] ].

%   distinct(+Answers, -Pairs): `I-Answer`; what two rules say alike is said once, in the words' first place.
distinct(Answers, Pairs) :-
    distinct(Answers, none, [], Pairs).

distinct([], _, _, []).
distinct([k(_, _, I)-Answer|Answers], Last, Seen, Pairs) :-
    (   I == Last
    ->  Said = Seen
    ;   Said = []
    ),
    (   memberchk(Answer, Said)
    ->  Pairs = More
    ;   Pairs = [I-Answer|More]
    ),
    distinct(Answers, I, [Answer|Said], More).

                /*******************************
                *            BOOSTS            *
                *******************************/

%   boosted(+Boosts, +M, +Ranked0, -Ranked): in the order of rlm_rank:best_first/3.
boosted([], _, Ranked0, Ranked) =>
    Ranked = Ranked0.
boosted(Boosts, M, Ranked0, Ranked) =>
    distinct(Boosts, Pairs0),
    sort(1, @=<, Pairs0, Pairs),
    group_pairs_by_key(Pairs, Groups),
    list_to_assoc(Groups, Each),
    findall(C, ( member(C0, Ranked0), boost(C0, Each, C) ), Cs),
    best_first(M, Cs, Ranked).

boost(c(I, Score0, Lexical, Others0), Each, C) :-
    (   get_assoc(I, Each, Boosts)
    ->  findall(e(boost(Why), By), member(By-Why, Boosts), Es),
        findall(By, member(By-_, Boosts), Bys),
        sum_list(Bys, Sum),
        Score is max(0, Score0 + Sum),
        append(Others0, Es, Others),
        C = c(I, Score, Lexical, Others)
    ;   C = c(I, Score0, Lexical, Others0)
    ).

:- det(rules_load/2).
:- det(rules_forget/2).
:- det(host_rules/3).
:- det(host_boosts/4).
