:- encoding(utf8).
:- module(rlm_negation_words,
          [ abbreviation/1, adds/1, adverb/1, adverbial/2, allowed/1, apart/2, article/1, aside/1,
            attribute/1, auxiliary/1, closed/1, closer/1, closes/2, content/1, cue/2, exemplifies/1,
            finite/1, generic/1, gerund/1, hopeless/1, idle/1, in_no_case/2, is/1, joins/1, limits/1,
            mark/2, negative/2, noun/1, object_pronoun/1, obliges/1, off/2, parted/2, partitive/1,
            polite_word/1, preferring_word/1, preposition/1, pronoun/2, quote/2, reminds/1, short/2,
            universal/1, use/3, use_phrase/2, verb/3, wishing/1, working_word/1
          ]).

/** <module> The words by which negations are read

A closed lexicon of English: which words begin a negation, which end a phrase, which verbs speak of tools. The
rules are in rlm_negation.pl and the files beside it; here are only tables.
*/

%   cue(?Word, ?Kind): a word that begins a rule of wish//4.
cue(not, not).              cue(never, never).          cue(no, no).
cue(none, none).            cue(nothing, none).         cue(neither, neither).
cue(nor, nor).              cue(without, without).      cue('w/o', without).
cue(except, except).        cue(excluding, except).     cue(besides, except).
cue(aside, except).         cue(save, except).          cue(than, than).
cue(but, but).              cue(instead, instead).      cue(rather, instead).
cue(opposed, instead).      cue(place, instead).        cue(lieu, instead).
cue(avoid, avoid).          cue(avoiding, avoid).       cue(skip, avoid).
cue(skipping, avoid).       cue(exclude, avoid).        cue(ignore, avoid).
cue(ignoring, avoid).       cue(disable, avoid).        cue(disabling, avoid).
cue(omit, avoid).           cue(omitting, avoid).       cue(deactivate, avoid).
cue(stop, stop).            cue(quit, stop).            cue(cease, stop).
cue(refrain, apart).        cue(abstain, apart).        cue(stay, apart).
cue(steer, apart).          cue(keep, apart).           cue(hands, apart).
cue(forget, apart).         cue(leave, apart).          cue(leaving, apart).
cue(turn, apart).           cue(switch, apart).         cue(shut, apart).
cue(apart, except).         cue(forbid, forbid).        cue(prohibit, forbid).
cue(forbidden, forbidden).  cue(prohibited, forbidden). cue(banned, forbidden).
cue(disallowed, forbidden). cue(verboten, forbidden).   cue(taboo, forbidden).
cue(limits, off).           cue('off-limits', off).     cue(bounds, off).
cue(avoided, avoided).      cue(ignored, avoided).      cue(skipped, avoided).
cue(excluded, avoided).     cue(disabled, avoided).     cue(omitted, avoided).
cue(if, condition).         cue(unless, condition).     cue(when, condition).
cue(whenever, condition).   cue(whether, condition).    cue(once, condition).
cue(that, relative).        cue(which, relative).       cue(who, relative).
cue(whose, relative).       cue(where, relative).       cue(why, question).

%   aside(?Kind): no text is read for these alone.
aside(condition). aside(relative). aside(question).

apart(refrain, [from]).     apart(abstain, [from]).     apart(stay, [away, from]).
apart(stay, [off]).         apart(stay, [clear, of]).   apart(steer, [clear, of]).
apart(keep, [away, from]).  apart(keep, [clear, of]).   apart(hands, [off]).
apart(forget, [about]).     apart(leave, [out]).        apart(leaving, [out]).
apart(turn, [off]).         apart(switch, [off]).       apart(shut, [off]).

parted(leave, out). parted(leave, alone). parted(leaving, out). parted(keep, out).
parted(turn, off).  parted(switch, off).  parted(shut, off).

%   off(?Word, ?Before)
off(limits, [off]). off('off-limits', []). off(bounds, [of, out]).

in_no_case(under, circumstances). in_no_case(on, account). in_no_case(in, case). in_no_case(in, event).
in_no_case(at, point).            in_no_case(at, time).

%   short(?Contraction, ?Full)
short('don\'t', [do, not]).         short(dont, [do, not]).
short('do\'nt', [do, not]).         short(donot, [do, not]).            short('n\'t', [not]).
short('_not_', [not]).              short('_never_', [never]).
short('can\'t', [can, not]).        short(cant, [can, not]).         short(cannot, [can, not]).
short('won\'t', [will, not]).       short(wont, [will, not]).
short('mustn\'t', [must, not]).     short(mustnt, [must, not]).
short('shouldn\'t', [should, not]). short(shouldnt, [should, not]).
short('wouldn\'t', [would, not]).   short(wouldnt, [would, not]).
short('couldn\'t', [could, not]).   short(couldnt, [could, not]).
short('didn\'t', [did, not]).       short(didnt, [did, not]).
short('doesn\'t', [does, not]).     short(doesnt, [does, not]).
short('isn\'t', [is, not]).         short(isnt, [is, not]).
short('aren\'t', [are, not]).       short(arent, [are, not]).
short('wasn\'t', [was, not]).       short('weren\'t', [were, not]).
short('haven\'t', [have, not]).     short('hasn\'t', [has, not]).   short('hadn\'t', [had, not]).
short('needn\'t', [need, not]).     short('shan\'t', [shall, not]). short('mayn\'t', [may, not]).
short('ain\'t', [is, not]).
short('i\'d', [i, would]).          short('you\'d', [you, would]).  short('we\'d', [we, would]).
short('i\'m', [i, am]).             short('we\'re', [we, are]).     short('you\'re', [you, are]).
short('they\'re', [they, are]).     short('it\'s', [it, is]).       short('that\'s', [that, is]).
short('i\'ll', [i, will]).          short('we\'ll', [we, will]).    short('you\'ll', [you, will]).
short('i\'ve', [i, have]).          short('we\'ve', [we, have]).    short('you\'ve', [you, have]).

%   use(?Base, ?Gerund, ?Participle): a verb whose object is the tool.
use(use, using, used).                use(call, calling, called).           use(invoke, invoking, invoked).
use(run, running, run).               use(execute, executing, executed).    use(employ, employing, employed).
use(utilize, utilizing, utilized).    use(utilise, utilising, utilised).    use(touch, touching, touched).
use(try, trying, tried).              use(trigger, triggering, triggered).  use(enable, enabling, enabled).
use(activate, activating, activated). use(access, accessing, accessed).     use(consult, consulting, consulted).
use(involve, involving, involved).    use(leverage, leveraging, leveraged).

%   use_phrase(?First, ?Rest): the same in several words.
use_phrase(make, [use, of]).        use_phrase(making, [use, of]).
use_phrase(rely, [on]).             use_phrase(relying, [on]).
use_phrase(depend, [on]).           use_phrase(depending, [on]).
use_phrase(resort, [to]).           use_phrase(resorting, [to]).
use_phrase(fall, [back, on]).       use_phrase(falling, [back, on]).
use_phrase(reach, [for]).           use_phrase(reaching, [for]).
use_phrase(go, [near]).             use_phrase(go, [through]).
use_phrase(interact, [with]).        use_phrase(interacting, [with]).
use_phrase(work, [with]).           use_phrase(working, [with]).

%   verb(?Base, ?Gerund, ?Participle): verbs that names of tools begin with. Gerunds that are as often nouns
%   (*testing*, *logging*) are left out.

verb(add, adding, added).                  verb(analyze, analyzing, analyzed).
verb(archive, archiving, archived).        verb(ask, asking, asked).
verb(browse, browsing, browsed).           verb(cancel, cancelling, cancelled).
verb(change, changing, changed).           verb(check, checking, checked).
verb(close, closing, closed).              verb(commit, committing, committed).
verb(compile, compiling, compiled).        verb(connect, connecting, connected).
verb(convert, converting, converted).      verb(copy, copying, copied).
verb(create, creating, created).           verb(delete, deleting, deleted).
verb(deploy, deploying, deployed).         verb(download, downloading, downloaded).
verb(edit, editing, edited).               verb(export, exporting, exported).
verb(extract, extracting, extracted).      verb(fetch, fetching, fetched).
verb(find, finding, found).                verb(generate, generating, generated).
verb(get, getting, gotten).                verb(give, giving, given).
verb(import, importing, imported).         verb(insert, inserting, inserted).
verb(install, installing, installed).      verb(launch, launching, launched).
verb(list, listing, listed).               verb(load, loading, loaded).
verb(look, looking, looked).               verb(make, making, made).
verb(merge, merging, merged).              verb(modify, modifying, modified).
verb(move, moving, moved).                 verb(notify, notifying, notified).
verb(open, opening, opened).               verb(overwrite, overwriting, overwritten).
verb(post, posting, posted).               verb(print, printing, printed).
verb(publish, publishing, published).      verb(pull, pulling, pulled).
verb(push, pushing, pushed).               verb(put, putting, put).
verb(query, querying, queried).            verb(read, reading, read).
verb(remove, removing, removed).           verb(rename, renaming, renamed).
verb(reply, replying, replied).            verb(request, requesting, requested).
verb(restart, restarting, restarted).      verb(schedule, scheduling, scheduled).
verb(search, searching, searched).         verb(send, sending, sent).
verb(set, setting, set).                   verb(share, sharing, shared).
verb(show, showing, shown).                verb(start, starting, started).
verb(submit, submitting, submitted).       verb(summarize, summarizing, summarized).
verb(summarise, summarising, summarised).  verb(tell, telling, told).
verb(translate, translating, translated).  verb(update, updating, updated).
verb(upload, uploading, uploaded).         verb(visit, visiting, visited).
verb(write, writing, written).

%   gerund(?Word) is semidet: an -ing that is a verb.
gerund(Word) :-
    atom(Word),
    sub_atom(Word, _, 3, 0, ing),
    \+ ing_noun(Word).

ing_noun(testing). ing_noun(logging). ing_noun(monitoring). ing_noun(scraping). ing_noun(parsing).
ing_noun(caching). ing_noun(streaming). ing_noun(mapping). ing_noun(rendering). ing_noun(routing).
ing_noun(hosting). ing_noun(billing). ing_noun(mailing). ing_noun(messaging). ing_noun(meeting).
ing_noun(indexing). ing_noun(embedding). ing_noun(debugging). ing_noun(linting). ing_noun(formatting).
ing_noun(profiling). ing_noun(tracing). ing_noun(reporting). ing_noun(pricing). ing_noun(string).
ing_noun(thing). ing_noun(something). ing_noun(anything). ing_noun(nothing). ing_noun(everything).
ing_noun(bing). ing_noun(ping). ing_noun(king). ing_noun(ring). ing_noun(spring). ing_noun(morning).
ing_noun(evening). ing_noun(building). ing_noun(engineering). ing_noun(marketing). ing_noun(trading).
ing_noun(banking). ing_noun(accounting). ing_noun(training). ing_noun(processing). ing_noun(drawing).
ing_noun(painting). ing_noun(clustering). ing_noun(ranking). ing_noun(imaging). ing_noun(modeling).
ing_noun(modelling). ing_noun(recording). ing_noun(warning). ing_noun(during). ing_noun(including).
ing_noun(excluding). ing_noun(thinking). ing_noun(reasoning). ing_noun(planning). ing_noun(programming).
ing_noun(scripting).

%   auxiliary(?Word): with `not` after it, a verb is negated.
auxiliary(do). auxiliary(does). auxiliary(did). auxiliary(must). auxiliary(should). auxiliary(shall).
auxiliary(may). auxiliary(might). auxiliary(can). auxiliary(could). auxiliary(will). auxiliary(would).
auxiliary(is). auxiliary(are). auxiliary(was). auxiliary(were). auxiliary(am). auxiliary(has).
auxiliary(have). auxiliary(had). auxiliary(need). auxiliary(ought).

is(is). is(are). is(am).

obliges(must). obliges(should). obliges(shall). obliges(may). obliges(can). obliges(will).

allowed(allowed). allowed(permitted). allowed(acceptable). allowed(okay). allowed(ok). allowed(welcome).
allowed(wanted). allowed(supposed).

%   finite(?Word): a predicate begins here, so what came before was its subject.
finite(is). finite(are). finite(was). finite(were). finite(am). finite(be). finite(been). finite(has).
finite(have). finite(had). finite(do). finite(does). finite(did). finite(can). finite(could). finite(will).
finite(would). finite(shall). finite(should). finite(may). finite(might). finite(must). finite(works).
finite(worked). finite(fails). finite(failed). finite(exists). finite(existed). finite(seems).
finite(seemed). finite(needs). finite(needed). finite(helps). finite(helped). finite(supports).
finite(supported). finite(breaks). finite(broke).

%   pronoun(?Word, ?Who)
pronoun(i, me).        pronoun(we, me).       pronoun(you, you).     pronoun(it, other).
pronoun(they, other).  pronoun(he, other).    pronoun(she, other).   pronoun(who, other).
pronoun(which, other). pronoun(that, other).  pronoun(this, other).  pronoun(these, other).
pronoun(those, other). pronoun(there, other). pronoun(one, other).

object_pronoun(it). object_pronoun(them). object_pronoun(me). object_pronoun(us). object_pronoun(him).
object_pronoun(her). object_pronoun(you). object_pronoun(anyone). object_pronoun(anybody).
object_pronoun(everyone). object_pronoun(so).

%   article(?Word): goes before a name and is no part of it.
article(the). article(a). article(an). article(any). article(all). article(my). article(your). article(our).
article(their). article(his). article(her). article(its). article(this). article(that). article(these).
article(those). article(some). article(every). article(each). article(either). article(both). article(such).
article(other). article(another). article(more).

partitive(any). partitive(all). partitive(some). partitive(one). partitive(each). partitive(either).
partitive(none). partitive(most). partitive(both).

%   universal(?Word): *all tools* but X.
universal(anything). universal(everything). universal(all). universal(any). universal(every).
universal(whatever). universal(anyone). universal(everyone). universal(nothing). universal(none).
universal(no).

preposition(about). preposition(above). preposition(across). preposition(after). preposition(against).
preposition(along). preposition(around). preposition(as). preposition(at). preposition(before).
preposition(behind). preposition(below). preposition(between). preposition(by). preposition(during).
preposition(for). preposition(from). preposition(in). preposition(inside). preposition(into).
preposition(near). preposition(on). preposition(onto). preposition(outside). preposition(over).
preposition(per). preposition(through). preposition(to). preposition(toward). preposition(towards).
preposition(under). preposition(until). preposition(upon). preposition(via). preposition(with).
preposition(within).

%   closed(?Word): no part of a name; a phrase ends before it.
closed(Word) :- preposition(Word).
closed(Word) :- auxiliary(Word).
closed(Word) :- finite(Word).
closed(Word) :- object_pronoun(Word).
closed(Word) :- function_word(Word).

function_word(called). function_word(named). function_word(used). function_word(involved).
function_word(invoked). function_word(first). function_word(right). function_word(immediately).
function_word(initially). function_word(already). function_word(later). function_word(soon).
function_word(often). function_word(sometimes). function_word(anywhere). function_word(everywhere).
function_word(elsewhere). function_word(whatsoever). function_word(sorry). function_word(and).
function_word(or). function_word(nor). function_word(but). function_word(if). function_word(unless).
function_word(whether). function_word(because). function_word(since). function_word(while).
function_word(when). function_word(whenever). function_word(where). function_word(wherever).
function_word(although). function_word(though). function_word(than). function_word(then). function_word(so).
function_word(of). function_word(i). function_word(we). function_word(they). function_word(he).
function_word(she). function_word(who). function_word(whom). function_word(whose). function_word(which).
function_word(what). function_word(why). function_word(how). function_word(there). function_word(here).
function_word(mine). function_word(yours). function_word(not). function_word(no). function_word(never).
function_word(none). function_word(nothing). function_word(neither). function_word(without).
function_word('w/o'). function_word(except). function_word(excluding). function_word(besides).
function_word(instead). function_word(rather). function_word(avoid). function_word(only).
function_word(just). function_word(anything). function_word(everything). function_word(something).
function_word(somebody). function_word(someone). function_word(nobody). function_word(whatever).
function_word(use). function_word(using). function_word(utilize). function_word(utilizing).
function_word(utilise). function_word(utilising). function_word(please). function_word(thanks).
function_word(thank). function_word(again). function_word(anymore). function_word(ever).
function_word(even). function_word(also). function_word(too). function_word(yet). function_word(still).
function_word(now). function_word(today). function_word(tonight). function_word(tomorrow).
function_word(anyway). function_word(otherwise). function_word(however). function_word(therefore).
function_word(altogether). function_word(entirely). function_word(completely). function_word(directly).
function_word(unnecessarily). function_word(unfortunately). function_word(alone). function_word(off).
function_word(out). function_word(up). function_word(down). function_word(away). function_word(apart).
function_word(aside). function_word(allowed). function_word(forbidden). function_word(prohibited).
function_word(banned). function_word(disallowed). function_word(permitted). function_word(being).
function_word(been). function_word(let). function_word('let\'s'). function_word(lets).
function_word('and/or'). function_word(hence). function_word(thus). function_word(maybe).
function_word(perhaps). function_word(like). function_word(including). function_word('e.g').
function_word(eg). function_word('i.e'). function_word(namely). function_word(especially).
function_word(particularly). function_word(once). function_word(until). function_word(till).
function_word(despite). function_word(plus). function_word(versus). function_word(vs). function_word(etc).
function_word(ok). function_word(okay). function_word(cheers).

%   adverb(?Word): may stand between *not* and its verb.
adverb(ever). adverb(even). adverb(please). adverb(really). adverb(again). adverb(actually). adverb(now).
adverb(yet). adverb(also). adverb(accidentally). adverb(currently). adverb(strictly). adverb(absolutely).
adverb(totally). adverb(completely). adverb(generally). adverb(dare).

adverbial(under, [any, circumstances]).  adverbial(under, [no, circumstances]).
adverbial(in, [any, case]).              adverbial(at, [any, point]).
adverbial(for, [any, reason]).           adverbial(at, [all]).

%   idle(?Word): nothing is forbidden by *no problem*, *not sure*, *do not forget*.
idle(problem). idle(problems). idle(worries). idle(worry). idle(idea). idle(doubt). idle(matter).
idle(time). idle(chance). idle(way). idle(rush). idle(hurry). idle(need). idle(reason). idle(question).
idle(exception). idle(fail). idle(delay). idle(hesitation). idle(sure). idle(possible). idle(certain).
idle(yet). idle(really). idle(quite). idle(enough). idle(available). idle(found). idle(working).
idle(necessarily). idle(necessary). idle(bad). idle(good). idle(forget). idle(hesitate). idle(know).
idle(think). idle(mind). idle(understand). idle(remember). idle(see). idle(have). idle(work). idle(care).
idle(got). idle(seem). idle(mean). idle(contain). idle(exist). idle(stop). idle(be). idle(all). idle(every).
idle(neglect).

%   attribute(?Word): *files without extension* says what they are like.
attribute(extension). attribute(extensions). attribute(comments). attribute(comment). attribute(errors).
attribute(error). attribute(warnings). attribute(title). attribute(name). attribute(header).
attribute(headers). attribute(spaces). attribute(success). attribute(exceptions). attribute(output).

%   limits(?Word): *do not use X unless ...*
limits(unless). limits(without). limits('w/o'). limits(before). limits(unnecessarily). limits(excessively).
limits(blindly). limits(repeatedly). limits(twice). limits(only). limits(just).

exemplifies(like). exemplifies(including). exemplifies('e.g'). exemplifies(eg). exemplifies('i.e').
exemplifies(namely). exemplifies(especially). exemplifies(particularly).

%   generic(?Word): only says what kind of thing is meant.
generic(tool). generic(tools). generic(command). generic(commands). generic(function). generic(functions).
generic(service). generic(services). generic(server). generic(servers). generic(skill). generic(skills).
generic(plugin). generic(plugins). generic(api). generic(apis). generic(mcp).

%   closer(?Word): may follow a phrase that is a clause of its own: *no X please*.
closer(but). closer(please). closer(for). closer(because). closer(as). closer(so). closer(since).
closer(here). closer(thanks). closer(instead). closer(and). closer(or). closer(at). closer(today).
closer(now). closer(anymore). closer(either). closer(though). closer(unless). closer(if). closer(when).
closer(then). closer(use). closer(using). closer(this). closer(allowed). closer(permitted).

negator(not). negator(never). negator(no). negator(nothing). negator(none). negator(nobody).
negator(neither). negator(nor). negator(impossible). negator(hardly). negator(unable).
negator(useless). negator(hard). negator(difficult).

%   negative(?Word, ?Kind): turns a second negation round.
negative(Word, _) :- negator(Word).
negative(Word, except) :- avoids(Word).

avoids(without). avoids(avoid). avoids(avoiding). avoids(stop). avoids(refrain).

%   hopeless(?Word): *without X nothing works*
hopeless(impossible). hopeless(nothing). hopeless(nobody). hopeless(unable). hopeless(useless).
hopeless(fails). hopeless(breaks). hopeless(broken). hopeless(hard). hopeless(difficult).

%   working_word(?Word): *it works without X*
working_word(work). working_word(works). working_word(worked). working_word(working). working_word(runs).
working_word(even). working_word(possible).

preferring_word(rather). preferring_word(sooner).

polite_word(prefer). polite_word(appreciate). polite_word(rather). polite_word(wish). polite_word(grateful).
polite_word(happier). polite_word(better). polite_word(great). polite_word(nice).

%   wishing(?Word): *I want you to skip X*.
wishing(want). wishing(like). wishing(need). wishing(prefer). wishing(try). wishing(sure).
wishing(remember). wishing(you). wishing(please). wishing(have). wishing(asked). wishing(told).
wishing(forget). wishing(hesitate). wishing(trying). wishing(wish).

%   content(?Word): *make sure that*: what follows is what is meant.
content(sure). content(ensure). content(said). content(say). content(want). content(wish). content(prefer).
content(note). content(remember). content(so). content(important). content(told). content(insist).
content(demand). content(mind). content(aware). content(assume). content(require). content(given).

%   abbreviation(?Word): its full stop ends no sentence.
abbreviation('e.g'). abbreviation('i.e'). abbreviation(etc). abbreviation(eg). abbreviation(vs).

%   quote(?Mark, ?Kind), closes(?Kind, ?Mark)
quote('"', double). quote('“', double). quote('„', double). quote('«', double).
quote('‘', single). quote('\'', single). quote('`', code).

closes(double, '"'). closes(double, '”'). closes(double, '“'). closes(double, '»').
closes(single, '’'). closes(single, '\''). closes(code, '`').

%   mark(?Mark, ?Plain)
mark('.', [p(stop)]). mark('!', [p(stop)]). mark('?', [p(stop)]). mark(';', [p(stop)]). mark('…', [p(stop)]).
mark('—', [p(stop)]). mark('–', [p(stop)]). mark(-, [p(stop)]).
mark(',', [p(',')]).  mark(':', [p(':')]).  mark('(', [p('(')]).  mark(')', [p(')')]).
mark(&, [and]).       mark(/, [or]).
mark(*, []).          mark('_', []).        mark(@, []).          mark('"', []).          mark('“', []).
mark('”', []).        mark('\'', []).       mark('’', []).        mark('‘', []).          mark('`', []).

%   noun(+Token) is semidet: may be part of a name.
noun(Word) :- atom(Word), \+ closed(Word), \+ article(Word).

%   joins(?Word): no sentence ends after it.
joins(and). joins(or). joins(nor). joins(not). joins(of). joins(without). joins(avoid).

%   adds(?Word): *besides X, use Y* may want both.
adds(besides). adds(apart). adds(aside).

%   reminds(?Word): *do not forget to skip X* wants it skipped.
reminds(forget). reminds(hesitate). reminds(fail).
