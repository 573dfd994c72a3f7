:- encoding(utf8).
:- module(rlm_select,
          [ select/2,             % +Args, -Reply
            analyse/2             % +Args, -Analysis
          ]).
:- use_module(library(assoc), [empty_assoc/1, gen_assoc/3, get_assoc/3, list_to_assoc/2]).
:- use_module(library(lists), [append/2, append/3, list_to_set/2, member/2, reverse/2]).
:- use_module(library(ordsets), [list_to_ord_set/2, ord_memberchk/2, ord_subtract/3]).
:- use_module(rlm_admit, [admit_limited/5, admit_together/5, start/1]).
:- use_module(rlm_catalog, [catalog_module/2, catalog_ready/1, with_standing/3]).
:- use_module(rlm_closure, [by_number/2, nonviable/3, out/4, places/2, reachable/3]).
:- use_module(rlm_conflict, [decided_first/4]).
:- use_module(rlm_eligible, [eligible/3, policy/2]).
:- use_module(rlm_evidence, [analysis/5, evidence/5, reading/3]).
:- use_module(rlm_change, [wants_change/3]).
:- use_module(rlm_hidden, [hidden/7]).
:- use_module(rlm_host, [host_boosts/4, host_rules/3]).
:- use_module(rlm_named, [negated_units/3]).
:- use_module(rlm_origin, [hidden_numbers/2, view/5, view_row/3]).
:- use_module(rlm_reply, [error_reply/2, selection_reply/3]).
:- use_module(rlm_fairness, [ranked/7]).
:- use_module(rlm_servers, [lone_weak_hits/5, with_producers/5]).

/** <module> The law

    evidence -> eligibility -> limit -> closure -> supersession -> conflicts -> classes

One pass over roots in a fixed order; nothing that was admitted is ever revoked:

  1. what the host pinned, all together;
  2. what the host selected for this compile, all together;
  3. what a session or an agent retains;
  4. what the evidence asks for, best first, up to the limit, each with its producers behind it (rlm_servers);
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

decide(M, Args0, selection(Args, View, Evidence, Ranked, Floors, Forbidden, World, Told, State)) :-
    Read = read(Reading, Forbidden, Policy, Host, Lacking),
    read_turn(M, Args0, Read, View, Count, Pinned, Selected),
    with_wish(M, Reading, Args0, Args),
    evidence(M, View, Reading, Args, Evidence),
    ranked(M, View, Count, Reading, Evidence, Ranked0, Floors),
    host_boosts(M, Args, Ranked0, Ranked1),
    append(Pinned, Selected, Wanted),
    nonviable(Host, Wanted, BadWanted),
    start(S0),
    admit_together(pinned, Pinned, given(Host, BadWanted), S0, S1),
    admit_together(selected, Selected, given(Host, BadWanted), S1, S2),
    negated(M, Args.mode, Forbidden, Host, Wanted, S2, Negated),
    retained(M, Args, Forbidden, Retained),
    without_spared(Forbidden, Negated, Ranked1, Ranked),
    in_already(S2, Active),                 % what stands in for a wish stands on its own feet from here on
    append([Wanted, Active, Retained], Firm),
    turn(Reading, Evidence, Firm, Retained, Turn),
    lone_weak_hits(M, View, Turn, Ranked, Weak),
    without_weak(Weak, Ranked, Strong),
    widened(Host, Policy, Args.mode, Firm, Negated, Strong, World),
    later(World, Args, Wanted, Strong, Evidenced0),
    with_producers(M, View, Turn, Evidenced0, Evidenced),
    findall(root(I, retained, true), member(I, Retained), Kept),
    append(Kept, Evidenced, Later0),
    considered([Firm], Later0, Considered),
    append(Considered, Lacking, LookedAt),
    nonviable(World, LookedAt, Bad),
    decided_first(World, Bad, Later0, Later),
    Given = given(World, Bad),
    admit_limited(Later, Args.limit, Given, S2, S3),
    turned_away(Weak, S3, S4),
    suggested(World, S4, Suggested0),
    considered([], Suggested0, SuggestedIs),
    nonviable(World, SuggestedIs, BadSuggested),
    decided_first(World, BadSuggested, Suggested0, Suggested),
    admit_limited(Suggested, 0, given(World, BadSuggested), S4, State),
    told(World, Considered, Bad, Told).

%   with_wish(+M, +Reading, +Args0, -Args): whether a change may be wanted; asked only where some unit is known to read.
with_wish(M, Reading, Args0, Args) :-
    (   M:effect(_, read),
        \+ wants_change(M, Reading, Args0.needs)
    ->  Args = Args0.put(wants_change, false)
    ;   Args = Args0
    ).

%   turn(+Reading, +Evidence, +Firm, +Retained, -Turn): as rlm_servers takes it.
turn(reading(Tokens, _, _), evidence(_, _, Weights, _, _), Firm, Retained, turn(Tokens, Weights, Firm, Retained)).

without_weak([], Ranked0, Ranked) =>
    Ranked = Ranked0.
without_weak(Weak, Ranked0, Ranked) =>
    findall(C, ( member(C, Ranked0), arg(1, C, I), \+ memberchk(I-_, Weak) ), Ranked).

%   turned_away(+Weak, +State0, -State): what something else brings in is not left out.
turned_away(Weak, state(Admitted, Active, Rejected0), state(Admitted, Active, Rejected)) :-
    findall(r(I, [lone_weak_hit(Server)]), member(I-Server, Weak), Left),
    append(Left, Rejected0, Rejected).

%   in_already(+State, -Is): the units that were admitted, in that order.
in_already(state(Admitted, _, _), Is) :-
    findall(I, member(a(I, _, _), Admitted), Is0),
    reverse(Is0, Is).

%   told(+World, +Considered, +Bad, -Told): the reasons that are told of units that are not viable. What keeps a unit
%   out itself is told of every unit in the same way, candidate or not; here only of those that stood for admission.
told(World, Considered, Bad, Told) :-
    list_to_ord_set(Considered, Stood),
    findall(I-Reasons,
            ( gen_assoc(I, Bad, Reasons),
              (   ord_memberchk(I, Stood)
              ->  true
              ;   out(World, t, I, [])
              ) ),
            Pairs),
    list_to_assoc(Pairs, Told).

%   read_turn(+M, +Args, -Read, -View, -Count, -Pinned, -Selected): what is known before any evidence is looked at: the
%   text's words, what it forbids, what the host wants and may want, and the units that cannot be shown (Count of them).
read_turn(M, Args, read(Reading, Forbidden, Policy, Host, Lacking), View, Count, Pinned, Selected) :-
    policy(Args, Policy),
    reading(M, Args.text, Reading),
    negated_units(M, Reading, Forbidden),
    host_rules(M, Args, Rules),
    wanted(M, Args, Pinned, Selected, Premises),
    host_world(M, Policy, Rules, Premises, Pinned, Selected, Host),
    append(Pinned, Selected, Wanted),
    start(None),
    negated(M, Args.mode, Forbidden, Host, Wanted, None, Negated),
    with_negated(Host, Negated, World),
    hidden(World, M, Policy, Forbidden, Hidden, Count, Lacking),
    view(M, all, Hidden, Count, View).

%!  analyse(+Args:dict, -Analysis:dict) is det.
%
%   What a scorer outside needs to count the words of a turn (rlm_evidence:analysis/5), and the numbers of the units
%   that cannot be shown (`hidden`), which make no word common.

analyse(Args, Analysis) :-
    catalog_module(Args.catalog, M),
    with_standing(M, Args.standing, analysed(M, Args, Analysis)).

analysed(M, Args, Analysis) :-
    catalog_ready(M),
    read_turn(M, Args, read(Reading, _, _, _, _), View, _, _, _),
    analysis(M, View, Reading, Args, Analysis0),
    hidden_numbers(View, Hidden),
    Analysis = Analysis0.put(hidden, Hidden).

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

%   later(+World, +Args, +Wanted, +Ranked, -Roots): what the evidence asks for and, in `all_tools`,
%   the other eligible tools.
later(World, Args, Wanted, Ranked, Roots) :-
    places(Wanted, Places),
    World = world(M, _, _, _, _, _),
    findall(root(I, evidence, Exempt),
            ( member(c(I, _, _, Others), Ranked),
              \+ get_assoc(I, Places, _),
              exempt(M, Args.mode, I, Others, Exempt) ),
            Evidenced),
    others(Args.mode, World, Wanted, Ranked, Others),
    append(Evidenced, Others, Roots).

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
    findall(root(J, suggested, true), member(J, Js), Suggested).

                /*******************************
                *            WORLD             *
                *******************************/

%   host_world(...): what rlm_closure needs to know of the host's wishes, put together. What the host's wishes require
%   can be stood in for by what the host wants too, or else by any unit that may be shown, by priority and id: whether a
%   wish comes true is for no text to say.
host_world(M, Policy, rules(Vetoed, Needs), Premises, Pinned, Selected, World) :-
    append(Premises, Needs, Pairs0),
    sort(Pairs0, Pairs),
    by_number(Pairs, Extra),
    by_number(Vetoed, Vetoes),
    append(Pinned, Selected, Wanted),
    findall(I, M:above(I, _), Superseders0),
    in_order(M, Superseders0, Superseders),
    append(Wanted, Superseders, Standing),
    places(Standing, Candidates),
    World = world(M, Policy, Extra, [], Vetoes, Candidates).

with_negated(world(M, Policy, Extra, _, Vetoes, Candidates), Negated, World) :-
    World = world(M, Policy, Extra, Negated, Vetoes, Candidates).

%   without_spared(+Forbidden, +Negated, +Ranked0, -Ranked): what the host's wishes spare from the user's words
%   may come along where it is needed; being named in a negation is no evidence for it.
without_spared([], _, Ranked0, Ranked) =>
    Ranked = Ranked0.
without_spared(Forbidden, Negated, Ranked0, Ranked) =>
    ord_subtract(Forbidden, Negated, Spared),
    findall(C, ( member(C, Ranked0), arg(1, C, I), \+ ord_memberchk(I, Spared) ), Ranked).

%   widened(+Host, +Policy, +Mode, +Firm, +Negated, +Ranked, -World): what stands on its own feet, in order: it matters
%   only where something may stand in for something else.
widened(world(M, _, Extra, _, Vetoed, _), Policy, Mode, Firm, Negated, Ranked, World) :-
    (   M:above(_, _)
    ->  findall(I, member(c(I, _, _, _), Ranked), Evidenced),
        findall(I, ( Mode == all_tools, tool(M, I), eligible(M, Policy, I) ), Tools),
        in_order(M, Tools, Ordered),
        append([Firm, Evidenced, Ordered], Standing),
        places(Standing, Candidates)
    ;   empty_assoc(Candidates)
    ),
    World = world(M, Policy, Extra, Negated, Vetoed, Candidates).

%   negated(+M, +Mode, +Forbidden, +Host, +Wanted, +State, -Negated): what the user's words forbid never reaches what
%   the host pinned or selected, nor what that needs, nor what came in for it; in `all_tools` it reaches no tool.
negated(_, _, [], _, _, _, Negated) =>
    Negated = [].
negated(M, Mode, Forbidden, Host, Wanted, state(_, Active, _), Negated) =>
    reachable(Host, Wanted, Protected),
    ord_subtract(Forbidden, Protected, Exposed),
    findall(I,
            ( member(I, Exposed),
              \+ get_assoc(I, Active, _),
              \+ ( Mode == all_tools, tool(M, I) ) ),
            Negated0),
    list_to_ord_set(Negated0, Negated).
