:- encoding(utf8).
:- module(index_probe, [ rarities/2, constants/2 ]).
:- use_module('../../prolog/rlm_bridge', []).
:- use_module('../../prolog/rlm_index', [least_rarity/1, rarity/3, known_least/1, synonym_factor/2, synonym_rarity/1]).
:- use_module('../../prolog/rlm_evidence', [intent_least/1, need_share/1]).
:- use_module(library(lists), [member/2]).

/** <module> Numbers of the index, for the tests of what counts them elsewhere */

:- multifile rlm_bridge:operation/2.

rlm_bridge:operation(probe_rarities, index_probe:rarities).
rlm_bridge:operation(probe_constants, index_probe:constants).

%   `Args`: pairs [Size, Frequency].
rarities(Args, Rarities) :-
    findall(Rarity, ( member([Size, Frequency], Args), rarity(Size, Frequency, Rarity) ), Rarities).

constants(_, [Least, Known, Unknown, Enough, Rarity, Intent, Need]) :-
    least_rarity(Least),
    synonym_factor(known, Known),
    synonym_factor(unknown, Unknown),
    known_least(Enough),
    synonym_rarity(Rarity),
    intent_least(Intent),
    need_share(Need).
