:- encoding(utf8).
:- module(rlm_host_check,
          [ checked/4             % +Items, -Clauses, -Rules, -Findings
          ]).
:- use_module(library(apply), [foldl/4, maplist/3, partition/4]).
:- use_module(library(assoc), [assoc_to_keys/2, empty_assoc/1, get_assoc/3, put_assoc/4]).
:- use_module(library(lists), [append/2, append/3, member/2, nth1/3]).
:- use_module(rlm_host_read, [start/2, within/4]).
:- use_module(rlm_host_words, [word/3]).
:- use_module(rlm_unit, [unit_kinds/1, unit_term/2]).

/** <module> What a host's rules may be, and what becomes of them

A file of rules is checked as a whole: every head, every goal that a body can reach, every term that could
never match. What is not expressly allowed is refused. A clause that passes becomes one of our own:

  - a helper keeps its name and arity; its goals call what rlm_host_words:word/3 says;
  - the N-th rule becomes `'$rule N'(Turn, I, Answer)` for the unit with number I. What its body asks
    about the turn alone is asked once, and what then narrows down the unit (its kind, server or trust, a
    list, a table of facts) chooses the units that the rest is tried on.
*/

%   rule_head(?Head, ?Kind, ?Unit, ?Turn, ?Answer)
rule_head(veto(Unit, Turn, Why), veto/3, Unit, Turn, Why).
rule_head(boost(Unit, Turn, By, Why), boost/4, Unit, Turn, By-Why).
rule_head(requires(Unit, Turn, Other), requires/3, Unit, Turn, Other).

%!  checked(+Items, -Clauses:list, -Rules:list, -Findings:list) is det.
%
%   Items as terms_read/3 gives them. `Clauses` are ready to be asserted; `Rules` has `rule(N, Kind, Offset)`
%   for each that may veto, boost or require; `Findings` has `found(Offset, Level, Message, Fix)`, and the
%   others mean nothing where one of them is an `error`.

checked(Items, Clauses, Rules, Findings) :-
    maplist(sorted_out, Items, Sorted),
    partition(is_clause, Sorted, Parsed, Found0),
    foldl(define, Parsed, none, _),
    empty_assoc(Empty),
    foldl(defined, Parsed, Empty, Defined),
    clauses(Parsed, 1, Defined, Clauses, Rules, Notes),
    partition(is_found, Notes, Found1, Uses),
    findall(F, unused(Parsed, Uses, F), Found2),
    findall(F, no_rule(Items, Rules, F), Found3),
    append([Found0, Found1, Found2, Found3], Unsorted),
    sort(Unsorted, Findings).
