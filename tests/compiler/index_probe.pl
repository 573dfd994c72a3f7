:- encoding(utf8).
:- module(index_probe, [ rarities/2, least/2 ]).
:- use_module('../../prolog/rlm_bridge', []).
:- use_module('../../prolog/rlm_index', [least_rarity/1, rarity/3]).
:- use_module(library(lists), [member/2]).

/** <module> Numbers of the index, for the tests of what counts them elsewhere */

:- multifile rlm_bridge:operation/2.

rlm_bridge:operation(probe_rarities, index_probe:rarities).
rlm_bridge:operation(probe_least_rarity, index_probe:least).

%   `Args`: pairs [Size, Frequency].
rarities(Args, Rarities) :-
    findall(Rarity, ( member([Size, Frequency], Args), rarity(Size, Frequency, Rarity) ), Rarities).

least(_, Least) :-
    least_rarity(Least).
