:- encoding(utf8).
:- module(rlm_what_if,
          [ why_not/1,            % +Unit
            what_if/1,            % +Unit
            what_if/2             % ?Unit, -Changes
          ]).
:- use_module(library(lists), [append/3, member/2]).
:- use_module(rlm_catalog, [catalog_change/2, catalog_create/2, catalog_destroy/2]).
:- use_module(rlm_changes, [changes/4]).
:- use_module(rlm_explain, [sentence/2]).
:- use_module(rlm_open, [current_session/1, record/1]).
:- use_module(rlm_session, [line/2, looked_up/5, printed_about/2, question/1, unit_asked/2, unit_dict/3, why/1]).
:- use_module(rlm_unit, [unit_term/2]).

/** <module> The changes of the host that would show a unit

Each answer was tried: the units of the session are selected again with the policy changed.

    ?- why_not(tool(slack)).
    ?- what_if(tool(slack), Changes).
    Changes = [undeny('tool:slack')].
*/

%!  why_not(+Unit) is nondet.
%
%   Print why a unit is not shown, and what the host would have to change.

why_not(Unit) :-
    printed_about(Unit, Id),
    unit_term(Id, Term),
    why(Term),
    looked_up(Id, State, _, _, _),
    (   State == active
    ->  true
    ;   what_if(Term)
    ).

%!  what_if(+Unit) is nondet.
%
%   Print what the host would have to change for a unit to be chosen by the rules. (Tokens are not counted
%   here: a budget is judged by Python's `view.what_if`.)

what_if(Unit) :-
    printed_about(Unit, Id),
    changes_for(Id, Changes),
    (   Changes = none(Reason)
    ->  sentence(Reason, Sentence),
        line("nothing that the host can change here shows ~w: ~w", [Id, Sentence])
    ;   Changes == []
    ->  line("~w is chosen already", [Id])
    ;   findall(Text, ( member(Change, Changes), change_text(Change, Text) ), Texts),
        atomic_list_concat(Texts, ', and ', Listed),
        line("~w would be chosen: ~w", [Id, Listed])
    ).

change_text(Change, Text) :-
    Change =.. [What, Value],
    atomic_list_concat([What, ' ', Value], Text).

%!  what_if(?Unit, -Changes) is nondet.
%
%   At most four changes `grant(Capability)`, `undeny(Id)`, `enable(Id)` or `select(Id)`, in the order in which
%   they were found, tried by selecting again and irreducible; `none(Reason)` where there are none. The host's own
%   rules are not here: what they vetoed then, they veto.

what_if(Unit, Changes) :-
    unit_asked(Unit, Id),
    changes_for(Id, Changes).

changes_for(Id, Changes) :-
    (   vetoed_beneath([Id], [], Reason)
    ->  Changes = none(Reason)
    ;   question(Question),
        record(session(_, _, Stemmer)),
        session_catalog(Handle),
        findall(C, ( record(unit(_, [_, _, host, _, C|_])), C \== null ), Own),
        changes(Id, Question.put(_{catalog: Handle, stemmer: Stemmer, own_capabilities: Own, admitted: [], retained: []}),
                session_facts, Changes)
    ).

session_facts(Id, Unit) :-
    record(unit(Id, Facts)),
    unit_dict(Id, Facts, Unit).

%   vetoed_beneath(+Ids, +Seen, -Reason) is semidet: a rule vetoes one of Ids or something that it requires.
vetoed_beneath([Id|Ids], Seen, Reason) :-
    (   memberchk(Id, Seen)
    ->  vetoed_beneath(Ids, Seen, Reason)
    ;   record(vetoed(Id, Rule))
    ->  Veto = _{kind: vetoed, rule: Rule},
        (   Seen == []
        ->  Reason = Veto
        ;   Reason = _{kind: dependency_out, unit: Id, reason: Veto}
        )
    ;   record(unit(Id, Facts)),
        unit_dict(Id, Facts, Unit)
    ->  append(Ids, Unit.requires, Next),
        vetoed_beneath(Next, [Id|Seen], Reason)
    ;   vetoed_beneath(Ids, [Id|Seen], Reason)
    ).

:- dynamic built/2.             % Session, Handle: a catalog of the session's units

%   session_catalog(-Handle) is det: built for the first question and kept as long as the session is open.
session_catalog(Handle) :-
    current_session(Session),
    built(Session, Handle),
    !.
session_catalog(Handle) :-
    current_session(Session),
    record(session(_, _, Stemmer)),
    catalog_create(_{stemmer: Stemmer}, Created),
    Handle = Created.catalog,
    findall(Unit, ( record(unit(Id, Facts)), unit_dict(Id, Facts, Unit) ), Units),
    catch(catalog_change(_{catalog: Handle, remove: [], units: Units}, _),
          Error,
          ( catalog_destroy(_{catalog: Handle}, _), throw(Error) )),
    assertz(built(Session, Handle)).

:- multifile rlm_open:closed/1.

rlm_open:closed(Session) :-
    forall(retract(rlm_what_if:built(Session, Handle)), catalog_destroy(_{catalog: Handle}, _)).
