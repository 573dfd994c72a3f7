:- encoding(utf8).
:- module(rlm_stopwords, [stop_word/1]).

/** <module> Words that say nothing about which unit is wanted

English function words, the letters that contractions leave behind, and the words of asking. A stop word is
never evidence, in a text or in a catalog.
*/

%!  stop_word(?Word) is nondet.

stop_word(a).
stop_word(am).
stop_word(an).
stop_word(and).
stop_word(are).
stop_word(aren).
stop_word(as).
stop_word(at).
stop_word(be).
stop_word(been).
stop_word(being).
stop_word(but).
stop_word(by).
stop_word(can).
stop_word(could).
stop_word(d).
stop_word(did).
stop_word(do).
stop_word(does).
stop_word(doesn).
stop_word(don).
stop_word(for).
stop_word(from).
stop_word(has).
stop_word(have).
stop_word(he).
stop_word(her).
stop_word(him).
stop_word(his).
stop_word(how).
stop_word(i).
stop_word(if).
stop_word(in).
stop_word(into).
stop_word(is).
stop_word(isn).
stop_word(it).
stop_word(its).
stop_word(ll).
stop_word(m).
stop_word(me).
stop_word(my).
stop_word(no).
stop_word(not).
stop_word(of).
stop_word(on).
stop_word(or).
stop_word(our).
stop_word(re).
stop_word(s).
stop_word(she).
stop_word(should).
stop_word(so).
stop_word(such).
stop_word(t).
stop_word(that).
stop_word(the).
stop_word(their).
stop_word(them).
stop_word(then).
stop_word(there).
stop_word(these).
stop_word(they).
stop_word(this).
stop_word(to).
stop_word(us).
stop_word(ve).
stop_word(was).
stop_word(wasn).
stop_word(we).
stop_word(what).
stop_word(when).
stop_word(where).
stop_word(which).
stop_word(who).
stop_word(will).
stop_word(with).
stop_word(won).
stop_word(would).
stop_word(you).
stop_word(your).
