:- encoding(utf8).
:- module(rlm_select,
          [ select/2              % +Args, -Reply
          ]).
:- use_module(library(assoc), [empty_assoc/1, get_assoc/3]).
:- use_module(library(lists), [append/2, append/3, list_to_set/2, member/2, reverse/2]).
:- use_module(library(ordsets), [list_to_ord_set/2, ord_memberchk/2, ord_subtract/3, ord_union/3]).
:- use_module(rlm_admit, [admit_each/5, admit_limited/5, admit_together/5, start/1]).
:- use_module(rlm_catalog, [catalog_module/2, catalog_ready/1, with_standing/3]).
:- use_module(rlm_closure, [by_number/2, nonviable/3, places/2, reachable/3]).
:- use_module(rlm_conflict, [decided_first/3]).
:- use_module(rlm_eligible, [eligible/3, policy/2]).
:- use_module(rlm_evidence, [evidence/5, reading/3]).
:- use_module(rlm_host, [host_rules/5]).
:- use_module(rlm_named, [negated_units/3]).
:- use_module(rlm_origin, [view_row/3]).
:- use_module(rlm_reply, [error_reply/2, selection_reply/3]).
:- use_module(rlm_spare, [ranked/6]).

/** <module> The law

    evidence -> eligibility -> limit -> closure -> supersession -> conflicts -> classes

One pass over roots in a fixed order; nothing that was admitted is ever revoked:

  1. what the host pinned, all together;
  2. what the host selected for this compile, all together;
  3. what a session retains;
  4. what the evidence asks for, best first, up to the limit;
  5. in `all_tools`, every other eligible tool;
  6. what the units so far suggest, one level.

Each root comes with its closure or stays out whole, and whoever stays out is told the name of what was
there first. What the host wants together and cannot stand together is a configuration error, not a choice.
*/

%!  select(+Args:dict, -Reply:dict) is det.
%
%   One compile's decisions. `Args` has the host's policy and this turn's input as plain values; the reply
%   says what is active, in order, with tiers, classes and reasons, and what was turned away and why
%   (rlm_reply). A reply with `error` names a configuration that cannot be; one with `more` asks for the word
%   scores of all units, where the few that were given do not decide; one with `views` for those of the catalog without
%   somebody (`[Kind, Origin]`, rlm_origin).

select(Args, Reply) :-
    catalog_module(Args.catalog, M),
    with_standing(M, Args.standing, answer(M, Args, Reply)).

answer(M, Args, Reply) :-
    catalog_ready(M),
    catch(( decide(M, Args, Selection),
            selection_reply(M, Selection, Reply) ),
          Ball,
          undecided(Ball, Reply)).

%   undecided(+Ball, -Reply): what the host must mend, or `more` words that are wanted from outside.
undecided(misconfigured(Tier, Cause, Given, Roots), Reply) =>
    error_reply(misconfigured(Tier, Cause, Given, Roots), Reply).
undecided(more_words, Reply) =>
    Reply = _{more: @(true)}.
undecided(more_views(Views), Reply) =>
    findall([Kind, Origin], ( member(View, Views), view_row(View, Kind, Origin) ), Rows),
    Reply = _{views: Rows}.
undecided(Ball, _) =>
    throw(Ball).

decide(M, Args, selection(Args, Evidence, Ranked, Floors, Forbidden, World, Bad, State)) :-
    policy(Args, Policy),
    reading(M, Args.text, Reading),
    negated_units(M, Reading, Forbidden),
    evidence(M, all, Reading, Args, Evidence),
    judged(M, Args, Policy, Forbidden, Reading, Evidence, Ranked1, Floors, Rules),
    wanted(M, Args, Pinned, Selected, Premises),
    world(M, Args, Policy, Forbidden, Rules, Premises, Pinned, Selected, Host),
    append(Pinned, Selected, Wanted),
    nonviable(Host, Wanted, BadWanted),
    start(S0),
    admit_together(pinned, Pinned, given(Host, BadWanted), S0, S1),
    admit_together(selected, Selected, given(Host, BadWanted), S1, S2),
    retained(M, Args, Forbidden, Retained),
    without_spared(Host, Forbidden, Ranked1, Ranked),
    append(Wanted, Retained, Firm),
    widened(Host, Args.mode, Firm, Ranked, World),
    later(World, Args, Pinned, Selected, Ranked, Later),
    considered([Firm], Later, Considered),
    nonviable(World, Considered, Bad),
    Given = given(World, Bad),
    admit_each(retained, Retained, Given, S2, S3),
    admit_limited(Later, Args.limit, Given, S3, S4),
    suggested(World, S4, Suggested),
    considered([], Suggested, SuggestedIs),
    nonviable(World, SuggestedIs, BadSuggested),
    admit_limited(Suggested, 0, given(World, BadSuggested), S4, State).

%   judged(...): the ranking with the host's own rules; what they veto raises no floor for others.
judged(M, Args, Policy, Forbidden, Reading, Evidence, Ranked, Floors, Rules) :-
    ranked(M, usable(M, Policy, Forbidden), Reading, Evidence, Ranked0, Floors0),
    host_rules(M, Args, Ranked0, Ranked1, Rules),
    Rules = rules(Vetoed, _),
    findall(I, member(I-_, Vetoed), Is),
    list_to_ord_set(Is, Out),
    (   Out == []
    ->  Ranked = Ranked1,
        Floors = Floors0
    ;   ord_union(Forbidden, Out, Unusable),
        ranked(M, usable(M, Policy, Unusable), Reading, Evidence, Ranked2, Floors),
        host_rules(M, Args, Ranked2, Ranked, _)
    ).

                /*******************************
                *            ROOTS             *
                *******************************/

%   wanted(+M, +Args, -Pinned, -Selected, -Premises): the host's own roots, by priority and id, and what the
%   premises of admitted units add to their requirements (`I-Id`).
wanted(M, Args, Pinned, Selected, Premises) :-
    findall(I, ( M:pinned(I) ; admitted(M, Args, I, pinned, _) ), Pins),
    in_order(M, Pins, Pinned),
    places(Pins, PinPlaces),
    findall(I,
            ( ( member(Id, Args.selected),
                M:number(Id, I)
              ; admitted(M, Args, I, _, _)
              ),
              \+ get_assoc(I, PinPlaces, _) ),
            Chosen),
    in_order(M, Chosen, Selected),
    findall(I-Premise,
            ( admitted(M, Args, I, _, Ids),
              member(Premise, Ids) ),
            Premises).

admitted(M, Args, I, Class, Premises) :-
    member([Id, Class, Premises], Args.admitted),
    M:number(Id, I).

in_order(M, Is, Ordered) :-
    findall(k(Back, Id)-I,
            ( member(I, Is),
              M:unit(I, Id, _, Priority, _, _),
              Back is -Priority ),
            Keyed),
    sort(Keyed, Sorted),
    findall(I, member(_-I, Sorted), Ordered).

%   retained(+M, +Args, +Forbidden, -Retained): what the user's words forbid is kept no longer.
retained(M, Args, Forbidden, Retained) :-
    findall(I,
            ( member(Id, Args.retained),
              M:number(Id, I),
              \+ ord_memberchk(I, Forbidden) ),
            Retained).

%   later(+World, +Args, +Pinned, +Selected, +Ranked, -Roots): what the evidence asks for and, in `all_tools`,
%   the other eligible tools; superseders before what they supersede.
later(World, Args, Pinned, Selected, Ranked, Roots) :-
    append(Pinned, Selected, Wanted),
    places(Wanted, Places),
    World = world(M, _, _, _, _, _),
    findall(root(I, evidence, Exempt),
            ( member(c(I, _, _, Others), Ranked),
              \+ get_assoc(I, Places, _),
              exempt(M, Args.mode, I, Others, Exempt) ),
            Evidenced),
    others(Args.mode, World, Wanted, Ranked, Others),
    append(Evidenced, Others, Unordered),
    decided_first(World, Unordered, Roots).

%   The limit does not count what the text names, nor, in `all_tools`, tools.
exempt(M, Mode, I, Others, Exempt) :-
    (   memberchk(e(name(_), _), Others)
    ->  Exempt = true
    ;   Mode == all_tools,
        tool(M, I)
    ->  Exempt = true
    ;   Exempt = false
    ).

others(compiled, _, _, _, Others) =>
    Others = [].
others(all_tools, World, Wanted, Ranked, Others) =>
    World = world(M, Policy, _, _, _, _),
    findall(I, member(c(I, _, _, _), Ranked), Evidenced),
    append(Wanted, Evidenced, Known0),
    list_to_ord_set(Known0, Known),
    findall(I, tool(M, I), Tools0),
    list_to_ord_set(Tools0, Tools),
    ord_subtract(Tools, Known, Unknown),
    findall(I, ( member(I, Unknown), eligible(M, Policy, I) ), Is),
    in_order(M, Is, Ordered),
    findall(root(I, all_tools, true), member(I, Ordered), Others).

tool(M, I) :-
    M:unit(I, _, Kind, _, _, _),
    memberchk(Kind, [tool, mcp_tool]).

considered(Lists, Later, Considered) :-
    append(Lists, Firsts),
    findall(I, member(root(I, _, _), Later), Is),
    append(Firsts, Is, Considered).

suggested(World, state(Admitted, Active, _), Suggested) :-
    World = world(M, _, _, _, _, _),
    reverse(Admitted, Ordered),
    findall(J,
            ( member(a(I, _, _), Ordered),
              M:suggests(I, Id),
              M:number(Id, J),
              \+ get_assoc(J, Active, _) ),
            Js0),
    list_to_set(Js0, Js),
    findall(root(J, suggested, true), member(J, Js), Roots),
    decided_first(World, Roots, Suggested).

                /*******************************
                *            WORLD             *
                *******************************/

%   world(...): what rlm_closure needs to know, put together. What the host wants can be stood in for by what
%   the host wants, and by nothing that a text brings in.
world(M, Args, Policy, Forbidden, rules(Vetoed, Needs), Premises, Pinned, Selected, World) :-
    append(Premises, Needs, Pairs),
    by_number(Pairs, Extra),
    by_number(Vetoed, Vetoes),
    append(Pinned, Selected, Wanted),
    negated(M, Args.mode, Forbidden, Extra, Wanted, Negated),
    places(Wanted, Candidates),
    World = world(M, Policy, Extra, Negated, Vetoes, Candidates).

%   without_spared(+Host, +Forbidden, +Ranked0, -Ranked): what the host's wishes spare from the user's words
%   may come along where it is needed; being named in a negation is no evidence for it.
without_spared(_, [], Ranked0, Ranked) =>
    Ranked = Ranked0.
without_spared(world(_, _, _, Negated, _, _), Forbidden, Ranked0, Ranked) =>
    ord_subtract(Forbidden, Negated, Spared),
    findall(C, ( member(C, Ranked0), arg(1, C, I), \+ ord_memberchk(I, Spared) ), Ranked).

%   widened(+Host, +Mode, +Firm, +Ranked, -World): who stands on its own feet, in order: it matters only where
%   something may stand in for something else.
widened(world(M, Policy, Extra, Negated, Vetoed, _), Mode, Firm, Ranked, World) :-
    (   M:above(_, _)
    ->  findall(I, member(c(I, _, _, _), Ranked), Evidenced),
        findall(I, ( Mode == all_tools, tool(M, I), eligible(M, Policy, I) ), Tools),
        in_order(M, Tools, Ordered),
        append([Firm, Evidenced, Ordered], Standing),
        places(Standing, Candidates)
    ;   empty_assoc(Candidates)
    ),
    World = world(M, Policy, Extra, Negated, Vetoed, Candidates).

usable(M, Policy, Forbidden, I) :-
    eligible(M, Policy, I),
    \+ ord_memberchk(I, Forbidden).

%   What the user's words forbid never reaches what the host pinned or selected, nor what that needs; in
%   `all_tools` it reaches no tool.
negated(_, _, [], _, _, Negated) =>
    Negated = [].
negated(M, Mode, Forbidden, Extra, Wanted, Negated) =>
    reachable(world(M, none, Extra, [], none, none), Wanted, Protected),
    ord_subtract(Forbidden, Protected, Exposed),
    findall(I,
            ( member(I, Exposed),
              \+ ( Mode == all_tools, tool(M, I) ) ),
            Negated0),
    list_to_ord_set(Negated0, Negated).
