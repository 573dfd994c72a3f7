:- encoding(utf8).
:- module(rlm_stopwords, [stop_word/1]).

/** <module> Words that say nothing about which unit is wanted

English function words, the letters that contractions leave behind, and the words of asking. A stop word is
never evidence, in a text or in a catalog.
*/

%!  stop_word(?Word) is nondet.

stop_word(a). stop_word(able). stop_word(about). stop_word(after). stop_word(again). stop_word(ain).
stop_word(all). stop_word(also). stop_word(although). stop_word(always). stop_word(am). stop_word(an).
stop_word(and). stop_word(any). stop_word(anyone). stop_word(anything). stop_word(are). stop_word(aren).
stop_word(as). stop_word(ask). stop_word(assist). stop_word(at). stop_word(be). stop_word(because).
stop_word(been). stop_word(before). stop_word(being). stop_word(between). stop_word(both). stop_word(but).
stop_word(by). stop_word(can). stop_word(could). stop_word(couldn). stop_word(d). stop_word(did).
stop_word(didn). stop_word(do). stop_word(does). stop_word(doesn). stop_word(doing). stop_word(don).
stop_word(during). stop_word(each). stop_word(either). stop_word(else). stop_word(ever). stop_word(every).
stop_word(few). stop_word(for). stop_word(from). stop_word(get). stop_word(gets). stop_word(getting).
stop_word(give). stop_word(go). stop_word(going). stop_word(got). stop_word(had). stop_word(hadn).
stop_word(has). stop_word(hasn). stop_word(have). stop_word(haven). stop_word(having). stop_word(he).
stop_word(hello). stop_word(help). stop_word(helps). stop_word(her). stop_word(here). stop_word(hers).
stop_word(herself). stop_word(hey). stop_word(hi). stop_word(him). stop_word(himself). stop_word(his).
stop_word(how). stop_word(i). stop_word(if). stop_word(in). stop_word(interested). stop_word(into).
stop_word(is). stop_word(isn). stop_word(it). stop_word(its). stop_word(itself). stop_word(just).
stop_word(kindly). stop_word(know). stop_word(let). stop_word(lets). stop_word(like). stop_word(ll).
stop_word(looking). stop_word(love). stop_word(m). stop_word(many). stop_word(may). stop_word(me).
stop_word(might). stop_word(mine). stop_word(more). stop_word(most). stop_word(much). stop_word(must).
stop_word(my). stop_word(myself). stop_word(need). stop_word(needed). stop_word(needs). stop_word(neither).
stop_word(no). stop_word(nor). stop_word(not). stop_word(now). stop_word(of). stop_word(on). stop_word(once).
stop_word(one). stop_word(only). stop_word(or). stop_word(other). stop_word(others). stop_word(otherwise).
stop_word(ought). stop_word(our). stop_word(ours). stop_word(ourselves). stop_word(own). stop_word(per).
stop_word(please). stop_word(quite). stop_word(rather). stop_word(re). stop_word(s). stop_word(same).
stop_word(shall). stop_word(she). stop_word(should). stop_word(shouldn). stop_word(show). stop_word(since).
stop_word(so). stop_word(some). stop_word(somehow). stop_word(someone). stop_word(something).
stop_word(still). stop_word(such). stop_word(sure). stop_word(t). stop_word(tell). stop_word(than).
stop_word(thank). stop_word(thanks). stop_word(that). stop_word(the). stop_word(their). stop_word(theirs).
stop_word(them). stop_word(themselves). stop_word(then). stop_word(there). stop_word(these). stop_word(they).
stop_word(this). stop_word(those). stop_word(though). stop_word(through). stop_word(thus). stop_word(to).
stop_word(too). stop_word(toward). stop_word(towards). stop_word(unless). stop_word(until). stop_word(upon).
stop_word(us). stop_word(ve). stop_word(very). stop_word(via). stop_word(want). stop_word(wanted).
stop_word(wants). stop_word(was). stop_word(wasn). stop_word(we). stop_word(were). stop_word(weren).
stop_word(what). stop_word(when). stop_word(where). stop_word(whether). stop_word(which). stop_word(while).
stop_word(who). stop_word(whom). stop_word(whose). stop_word(why). stop_word(will). stop_word(wish).
stop_word(with). stop_word(within). stop_word(without). stop_word(won). stop_word(wonder).
stop_word(wondering). stop_word(would). stop_word(wouldn). stop_word(yes). stop_word(yet). stop_word(you).
stop_word(your). stop_word(yours). stop_word(yourself). stop_word(yourselves).
