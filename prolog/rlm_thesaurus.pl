:- encoding(utf8).
:- module(rlm_thesaurus,
          [ alike/1,              % ?Words
            synonyms/3            % +Stemmer, +Term, -Terms
          ]).
:- use_module(library(lists), [member/2]).
:- use_module(rlm_words, [stems/3]).

/** <module> Words that people use for one another

A small thesaurus of general English: who asks for a *picture* may mean an *image*, who wants to *purchase*
something wants to *buy* it. It was written by hand from common usage, for no catalog and no set of questions
in particular. A word may stand in several groups; being alike is not passed on from one group to the next.

A synonym counts less than the word itself (rlm_index:synonym_factor/1), and only where it is rare enough
to tell something. Other languages than English have no thesaurus.

    ?- synonyms(english, purchas, Ts).
    Ts = [acquir, buy, order, shop].
*/

%!  alike(?Words:list) is nondet.
%
%   One group.

% doing
alike([buy, purchase, shop, order, acquire]).
alike([sell, sale, vendor, merchant]).
alike([create, make, generate, produce, build, compose]).
alike([make, build, construct, assemble]).
alike([write, compose, draft, author]).
alike([edit, modify, change, update, alter, revise, adjust]).
alike([delete, remove, erase, clear, discard]).
alike([add, insert, append, include, attach]).
alike([find, search, locate, discover, look, lookup, seek]).
alike([fetch, retrieve, obtain, load, read]).
alike([send, transmit, deliver, dispatch, forward]).
alike([receive, accept, collect, inbox]).
alike([begin, start, launch, open, initiate]).
alike([end, stop, finish, close, terminate, cancel, quit]).
alike([repair, fix, mend, correct, debug, resolve]).
alike([examine, inspect, check, verify, validate, review]).
alike([analyze, analysis, examine, evaluate, assess, insight]).
alike([compare, comparison, contrast, versus, difference, differ]).
alike([measure, calculate, compute, estimate, count, determine]).
alike([convert, transform, translate, turn]).
alike([translate, translation, language, interpret, multilingual]).
alike([explain, describe, clarify, illustrate, explanation]).
alike([summarize, summary, condense, overview, digest, brief]).
alike([suggest, recommend, recommendation, suggestion, advise, propose]).
alike([advice, guidance, tip, counsel, recommendation]).
alike([idea, inspiration, brainstorm, concept, suggestion]).
alike([plan, schedule, organize, arrange, itinerary, agenda]).
alike([reserve, book, reservation, booking]).
alike([choose, select, pick, decide]).
alike([watch, view, see, stream]).
alike([listen, hear, audio, sound]).
alike([talk, speak, chat, converse, conversation, discuss]).
alike([call, phone, telephone, dial]).
alike([learn, study, practice, education, lesson]).
alike([teach, tutor, train, instruct, coach]).
alike([share, publish, post, distribute]).
alike([copy, duplicate, clone, replicate]).
alike([move, transfer, relocate, shift]).
alike([rename, name, title, label]).
alike([save, store, keep, archive, backup]).
alike([download, export, save]).
alike([upload, import, attach]).
alike([connect, link, join, integrate, attach]).
alike([split, divide, separate, partition]).
alike([merge, combine, join, unite, concatenate]).
alike([sort, rank, order, arrange]).
alike([filter, narrow, refine, exclude]).
alike([monitor, track, watch, observe, follow]).
alike([notify, alert, remind, notification, reminder, warn]).
alike([predict, forecast, prediction, anticipate, outlook]).
alike([improve, enhance, optimize, boost, upgrade]).
alike([reduce, lower, decrease, shrink, minimize]).
alike([increase, raise, grow, expand, boost]).
alike([protect, secure, defend, guard, safety]).
alike([hire, recruit, employ, staff]).
alike([rent, lease, rental, hire]).
alike([play, game, gaming, player]).
alike([draw, sketch, paint, drawing, painting, illustrate]).
alike([design, layout, style, pattern]).
alike([cook, cooking, recipe, kitchen, ingredient, bake]).
alike([eat, food, meal, dish, dining]).
alike([drink, beverage, cocktail, wine, coffee]).
alike([pay, payment, charge, checkout, transaction]).
alike([invest, investment, investor, portfolio, stock]).
alike([donate, charity, donation, nonprofit, volunteer]).
alike([travel, trip, journey, tour, vacation, holiday]).
alike([travel, tourist, tourism, destination, sightseeing, attraction]).
alike([visit, explore, tour, attraction]).
alike([drive, driving, driver, car]).
alike([fly, flight, airline, airport, plane, aircraft]).
alike([ship, shipping, delivery, shipment, parcel, freight]).
alike([list, show, display, enumerate, view]).
alike([run, execute, perform, operate]).
alike([test, exam, quiz, assessment]).
alike([solve, solution, answer, resolve]).
alike([ask, question, query, inquire]).
alike([extract, scrape, crawl, parse]).
alike([browse, navigate, surf, explore]).
alike([print, output, display]).
alike([lock, secure, close]).
alike([unlock, open, release]).
alike([fill, refill, fuel, top]).

% things of computers
alike([image, picture, photo, photograph, photography, graphic]).
alike([image, visual, illustration, artwork, icon]).
alike([video, movie, clip, film, footage]).
alike([movie, film, cinema, theater]).
alike([television, tv, show, series, episode]).
alike([website, site, webpage, web, page, url]).
alike([url, link, address, hyperlink]).
alike([internet, online, web, network]).
alike([document, file, pdf, paper, text]).
alike([folder, directory, path]).
alike([spreadsheet, excel, table, sheet]).
alike([presentation, slide, powerpoint, deck]).
alike([chart, graph, plot, diagram, visualization]).
alike([diagram, flowchart, mindmap, schema]).
alike([code, program, programming, software, script, developer]).
alike([app, application, software, program]).
alike([bug, error, issue, fault, defect]).
alike([database, data, dataset, sql]).
alike([statistic, data, figure, metric]).
alike([repository, repo, git, github]).
alike([password, credential, login, passphrase]).
alike([login, signin, authenticate, authentication]).
alike([account, profile, user]).
alike([computer, pc, laptop, desktop, device]).
alike([phone, mobile, smartphone, cellphone]).
alike([email, mail, message, inbox]).
alike([message, text, sms, chat]).
alike([tweet, twitter, post]).
alike([comment, reply, respond, response, feedback]).
alike([mention, tag, hashtag]).
alike([ticket, issue, request]).
alike([security, vulnerability, threat, hack, malware]).
alike([domain, hostname, dns]).
alike([search, engine, google]).
alike([ai, artificial, intelligence, machine]).
alike([prompt, instruction, template]).
alike([chatbot, bot, assistant, agent]).
alike([font, typography, typeface]).
alike([color, colour, palette, hue]).
alike([logo, brand, branding]).
alike([qr, barcode, code]).

% reading, writing, art
alike([book, novel, ebook, literature, reading]).
alike([author, writer, novelist]).
alike([story, tale, narrative, fiction]).
alike([poem, poetry, verse, rhyme]).
alike([article, blog, post, essay, news]).
alike([news, headline, journalism, current, press]).
alike([magazine, journal, periodical, publication]).
alike([research, study, paper, scientific, academic, scholar]).
alike([citation, reference, bibliography, cite]).
alike([dictionary, definition, meaning, define, vocabulary]).
alike([word, vocabulary, term, phrase]).
alike([grammar, spelling, proofread]).
alike([letter, note, correspondence]).
alike([resume, cv, curriculum]).
alike([content, copy, text, material]).
alike([quote, quotation, saying, proverb]).
alike([joke, humor, funny, comedy, laugh]).
alike([music, song, tune, track, melody]).
alike([lyric, song, verse]).
alike([playlist, album, music, spotify]).
alike([singer, musician, artist, band]).
alike([concert, event, festival, gig, show]).
alike([podcast, audio, episode, radio]).
alike([voice, speech, speak, narration]).
alike([transcript, transcribe, caption, subtitle]).
alike([art, artist, painting, museum, gallery]).
alike([game, chess, puzzle, trivia]).
alike([anime, manga, cartoon, comic]).
alike([character, hero, persona, role]).
alike([history, historical, past, ancient]).

% money and work
alike([money, cash, fund, finance, financial]).
alike([finance, financial, economy, economic, bank, banking]).
alike([stock, share, equity, market, trading]).
alike([crypto, cryptocurrency, bitcoin, blockchain, token]).
alike([nft, token, collectible]).
alike([currency, exchange, dollar, euro, forex]).
alike([price, cost, expense, fee, rate]).
alike([cheap, affordable, inexpensive, bargain, budget]).
alike([discount, coupon, deal, promotion, offer, voucher]).
alike([shop, store, retailer, shopping, mall, ecommerce]).
alike([product, item, goods, merchandise]).
alike([gift, present, souvenir]).
alike([tax, taxation, income]).
alike([loan, mortgage, credit, debt, lend]).
alike([insurance, policy, coverage, insure]).
alike([invoice, bill, receipt]).
alike([budget, spending, expense]).
alike([salary, wage, income, pay]).
alike([job, career, employment, work, occupation, vacancy]).
alike([company, business, firm, enterprise, corporation, organization]).
alike([startup, entrepreneur, business, founder]).
alike([customer, client, consumer, buyer]).
alike([market, marketing, advertising, campaign, promote]).
alike([advertisement, ad, advertising, commercial]).
alike([meeting, appointment, conference]).
alike([calendar, schedule, date, agenda]).
alike([task, todo, chore, assignment]).
alike([project, task, plan]).
alike([team, group, crew, colleague]).
alike([law, legal, lawyer, attorney, court, legislation]).
alike([patent, trademark, invention, copyright]).
alike([contract, agreement, deal]).
alike([government, policy, politics, political, parliament]).
alike([election, vote, poll, ballot]).
alike([seo, keyword, ranking, traffic]).

% places and moving
alike([house, home, apartment, property, residence, flat]).
alike([property, estate, realty, housing, real]).
alike([hotel, accommodation, lodging, hostel, stay]).
alike([restaurant, dining, cafe, eatery, diner]).
alike([car, vehicle, automobile, auto]).
alike([engine, motor, ignition]).
alike([fuel, gas, gasoline, petrol, tank]).
alike([tire, tyre, wheel]).
alike([train, rail, railway, subway, metro]).
alike([bus, transit, transport, transportation]).
alike([taxi, cab, ride, uber]).
alike([bike, bicycle, cycling]).
alike([boat, ship, vessel, cruise]).
alike([road, street, route, traffic]).
alike([route, direction, navigation, path, map]).
alike([map, geography, geographic, location]).
alike([place, location, spot, site, venue]).
alike([city, town, municipality, urban]).
alike([country, nation, state]).
alike([nearby, near, close, local, around]).
alike([distance, far, mile, kilometer, away]).
alike([zip, postal, postcode, zipcode]).
alike([airport, terminal, flight]).
alike([passport, visa, immigration]).
alike([passenger, traveler, traveller]).
alike([luggage, baggage, suitcase]).
alike([weather, forecast, temperature, rain, climate]).
alike([air, pollution, quality]).
alike([nature, environment, ecology, wildlife]).
alike([park, garden, outdoor]).
alike([beach, coast, sea, ocean]).
alike([mountain, hiking, trail, climb]).
alike([space, astronomy, planet, nasa, star]).
alike([earthquake, disaster, emergency, flood]).

% people and health
alike([health, medical, medicine, healthcare, clinical]).
alike([doctor, physician, hospital, clinic, medical]).
alike([disease, illness, condition, disorder, symptom]).
alike([drug, medication, medicine, pharmacy, prescription]).
alike([therapy, therapist, mental, psychology, counseling]).
alike([fitness, exercise, workout, gym, training]).
alike([diet, nutrition, nutritional, calorie, healthy]).
alike([weight, fat, diet]).
alike([sleep, rest, relax, meditation]).
alike([yoga, meditation, mindfulness]).
alike([stress, anxiety, depression]).
alike([baby, child, kid, infant]).
alike([child, kid, children, family, parent, parenting]).
alike([woman, women, female]).
alike([man, men, male]).
alike([friend, companion, buddy]).
alike([partner, relationship, dating, romance]).
alike([wedding, marriage, bride]).
alike([person, people, individual, human]).
alike([pet, animal, dog, cat, veterinary]).
alike([beauty, cosmetic, makeup, skincare, skin]).
alike([hair, haircut, hairstyle]).
alike([clothes, clothing, fashion, apparel, outfit, wear]).
alike([shoe, sneaker, footwear]).
alike([student, pupil, learner]).
alike([school, university, college, education]).
alike([course, class, curriculum, lesson, training]).
alike([teacher, tutor, instructor, professor]).
alike([religion, bible, church, spiritual, faith]).
alike([astrology, horoscope, zodiac, tarot]).
alike([dream, sleep, vision]).

% science, sport, time, and how things are
alike([science, scientific, scientist]).
alike([math, mathematics, arithmetic, algebra, calculator]).
alike([equation, formula, expression]).
alike([number, numeric, integer, digit]).
alike([average, mean, median]).
alike([square, root, power]).
alike([area, surface, size]).
alike([chemistry, chemical, molecule, compound]).
alike([physics, physical, force, energy]).
alike([biology, gene, genetic, dna, protein]).
alike([plant, flower, garden, gardening]).
alike([sport, athletic, game, match, league]).
alike([football, soccer, match]).
alike([basketball, nba]).
alike([team, club, squad]).
alike([score, result, outcome]).
alike([winner, champion, win, victory]).
alike([prize, award, reward]).
alike([lottery, bet, gamble, betting, casino]).
alike([time, hour, clock, timezone]).
alike([today, now, current, present]).
alike([date, day, calendar]).
alike([year, annual, yearly]).
alike([month, monthly]).
alike([latest, recent, current, newest, new, update]).
alike([popular, trending, famous, trend, hot]).
alike([best, top, leading, finest]).
alike([fast, quick, rapid, speed]).
alike([large, big, huge, size]).
alike([small, little, tiny, mini]).
alike([free, complimentary, gratis]).
alike([random, arbitrary, shuffle]).
alike([personal, custom, customize, personalized, tailored]).
alike([information, info, detail, fact, data, knowledge]).
alike([fact, trivia, knowledge]).
alike([review, rating, opinion, feedback]).
alike([opinion, view, perspective, sentiment]).
alike([sentiment, emotion, feeling, mood]).
alike([event, occasion, happening]).
alike([party, celebration, birthday]).
alike([goal, objective, target, aim]).
alike([method, way, approach, technique, strategy]).
alike([guide, tutorial, manual, instruction]).
alike([example, sample, instance]).
alike([type, kind, category, sort]).
alike([content, inside, within]).
alike([line, row, record]).
alike([difference, diff, compare, delta]).
alike([temperature, heat, cold, warm, climate]).
alike([light, lamp, brightness, headlight]).
alike([door, gate, entrance]).
alike([press, push, tap]).
alike([electricity, energy, power, electric]).
alike([water, liquid, moisture]).
alike([job, task, work]).
alike([technology, tech, digital, innovation]).
alike([tool, utility, instrument]).
alike([support, assistance, service, aid]).
alike([contact, phone, address, email]).
alike([identity, identification, id, verify]).
alike([name, username, identifier]).
alike([history, log, record, past]).
alike([status, state, condition]).
alike([balance, fund, account]).
alike([watchlist, favorite, bookmark]).

% more of daily life
alike([help, assist, support, aid, guide]).
alike([interview, candidate, recruiter, hiring]).
alike([career, resume, job, skill]).
alike([skill, ability, talent, competence]).
alike([manage, manager, management, administer, handle]).
alike([leader, leadership, chief, executive]).
alike([develop, development, developer, build]).
alike([deploy, deployment, release, publish, host]).
alike([server, host, hosting, cloud]).
alike([domain, website, hosting]).
alike([language, english, french, spanish, german, chinese]).
alike([pronounce, pronunciation, accent, phonetic]).
alike([flashcard, memorize, vocabulary, study]).
alike([essay, paper, thesis, homework]).
alike([homework, assignment, exercise]).
alike([math, geometry, calculus, trigonometry]).
alike([calculate, calculation, calculator, compute, math]).
alike([convert, conversion, unit]).
alike([hotel, room, booking, reservation]).
alike([flight, airfare, airline, ticket]).
alike([ticket, admission, event, concert]).
alike([vacation, holiday, resort, getaway]).
alike([itinerary, trip, travel, route]).
alike([cuisine, dish, food, recipe, restaurant]).
alike([vegetarian, vegan, diet]).
alike([grocery, supermarket, food, shopping]).
alike([snack, dessert, cake, sweet, chocolate]).
alike([wine, beer, alcohol, liquor, spirit]).
alike([restaurant, reservation, table, dining]).
alike([fashion, style, trend, outfit]).
alike([decorate, decoration, interior, decor, furniture]).
alike([furniture, sofa, chair, table]).
alike([appliance, device, machine, gadget]).
alike([gadget, electronic, device, tech]).
alike([price, cheap, discount, deal, compare]).
alike([compare, price, shopping, deal]).
alike([property, rent, buy, mortgage, listing]).
alike([realtor, broker, agent]).
alike([company, startup, funding, investor]).
alike([stock, ticker, quote, price]).
alike([dividend, earnings, profit, revenue, income]).
alike([profit, revenue, earnings, sales]).
alike([economy, inflation, gdp, economic]).
alike([crypto, wallet, coin, bitcoin, ethereum, defi]).
alike([trade, trading, trader, broker, exchange]).
alike([bank, banking, account, deposit]).
alike([credit, card, debit]).
alike([court, judge, case, trial, lawsuit, legal]).
alike([lawyer, attorney, solicitor, counsel]).
alike([regulation, rule, compliance, law, legislation]).
alike([bill, legislation, act, law]).
alike([police, crime, criminal]).
alike([scam, fraud, phishing, fake, suspicious]).
alike([safe, secure, trustworthy, trust, reliable]).
alike([verify, authenticate, confirm, validate]).
alike([privacy, confidential, private, policy]).
alike([policy, term, rule, agreement]).
alike([video, youtube, channel, stream, watch]).
alike([video, subtitle, caption, transcript]).
alike([picture, draw, generate, art, image]).
alike([photo, camera, photographer]).
alike([music, artist, genre, listen, spotify]).
alike([playlist, song, track, recommend]).
alike([movie, actor, director, watch, cinema]).
alike([show, series, season, episode]).
alike([book, author, title, publisher, read]).
alike([read, reader, reading, book]).
alike([library, collection, archive, catalog]).
alike([paper, arxiv, article, journal, publication, scholar]).
alike([research, researcher, investigate, explore]).
alike([news, report, story, event, update]).
alike([podcast, show, listen, episode]).
alike([social, media, facebook, instagram, twitter]).
alike([follow, follower, fan, subscriber]).
alike([influencer, creator, celebrity]).
alike([celebrity, famous, star, actor]).
alike([blog, content, writing, article]).
alike([slogan, tagline, headline, copywriting]).
alike([copywriting, copy, advertising, marketing]).
alike([email, newsletter, campaign, outreach]).
alike([contact, lead, prospect, customer]).
alike([sale, sales, lead, crm]).
alike([survey, questionnaire, poll, form]).
alike([form, field, submit, fill]).
alike([workflow, automate, automation, process, integrate]).
alike([automate, automatic, schedule]).
alike([note, memo, notebook, remember]).
alike([remember, memory, recall, save]).
alike([remind, reminder, alarm, schedule]).
alike([meeting, call, video, zoom]).
alike([team, collaborate, collaboration, together]).
alike([document, pdf, chat, question]).
alike([pdf, extract, summarize, document]).
alike([website, scrape, crawl, extract, content]).
alike([link, url, shorten, website]).
alike([code, snippet, function, library]).
alike([developer, api, sdk, documentation]).
alike([documentation, docs, manual, reference]).
alike([api, endpoint, interface, service]).
alike([query, sql, database]).
alike([data, analytics, analysis, report, insight]).
alike([chart, visualize, visualization, data]).
alike([dashboard, report, metric, kpi]).
alike([cheat, hint, clue, tip]).
alike([puzzle, riddle, crossword, sudoku, wordle]).
alike([adventure, quest, story, game]).
alike([roleplay, character, adventure]).
alike([card, deck, magic]).
alike([sports, team, score, fixture, standings]).
alike([baseball, hockey, tennis, cricket, golf]).
alike([race, racing, marathon, run]).
alike([workout, exercise, routine, muscle, fitness]).
alike([calorie, nutrition, food, diet]).
alike([recipe, ingredient, cook, meal]).
alike([doctor, specialist, appointment, clinic]).
alike([symptom, diagnose, diagnosis, disease]).
alike([pain, ache, injury, hurt]).
alike([pregnancy, pregnant, birth, baby]).
alike([trial, clinical, study, experiment]).
alike([mental, emotional, wellbeing, wellness, health]).
alike([quote, motivation, inspire, inspirational, motivate]).
alike([prayer, bible, verse, scripture, quran]).
alike([zodiac, birth, chart, astrology]).
alike([weather, wind, humidity, sunny, snow, storm]).
alike([climate, carbon, emission, sustainability, environment]).
alike([recycle, waste, trash, garbage]).
alike([energy, solar, electricity, renewable]).
alike([farm, agriculture, crop, farmer]).
alike([animal, species, wildlife, bird]).
alike([dog, puppy, breed, pet]).
alike([star, galaxy, planet, universe]).
alike([satellite, orbit, space]).
alike([map, address, coordinate, latitude, longitude]).
alike([coordinate, latitude, longitude, gps]).
alike([timezone, time, utc, local]).
alike([holiday, festival, celebration, christmas]).
alike([birthday, anniversary, celebrate, party]).
alike([gift, surprise, present, idea]).
alike([family, relative, ancestor, genealogy]).
alike([love, romantic, relationship, dating]).
alike([joke, meme, fun, entertain, entertainment]).
alike([entertainment, fun, movie, show]).
alike([magic, fortune, tarot, divination]).
alike([number, phone, call, dial]).
alike([ip, address, network]).
alike([model, machine, learning, ai]).
alike([prompt, chatgpt, midjourney, generate]).
alike([avatar, portrait, face]).
alike([voice, speech, text, audio, speak]).
alike([emoji, emoticon, sticker]).
alike([symbol, sign, icon]).
alike([abbreviation, acronym, short]).
alike([synonym, antonym, thesaurus, word]).
alike([name, baby, brand, title]).
alike([address, postal, street, location]).
alike([delivery, courier, track, parcel, package]).
alike([package, parcel, box, bundle]).
alike([vehicle, vin, car, truck]).
alike([truck, lorry, van]).
alike([charge, charger, charging, battery]).
alike([parking, park, garage]).
alike([accident, crash, collision]).
alike([emergency, urgent, rescue, help]).
alike([refund, return, reimburse, cancel]).
alike([subscription, subscribe, membership, plan]).
alike([member, membership, join]).
alike([vote, voting, elect, poll]).
alike([war, military, army, conflict]).
alike([philosophy, ethics, moral, wisdom]).
alike([psychology, personality, behavior, mind]).
alike([habit, routine, productivity, goal]).
alike([productivity, efficient, focus, time]).
alike([learn, course, tutorial, class, online]).
alike([scholarship, university, admission, college]).
alike([certificate, certification, diploma, degree]).

%!  synonyms(+Stemmer, +Term, -Terms:list) is det.
%
%   The terms that stand with a term in some group; none where the stemmer is not that of English.

synonyms(Stemmer, Term, Terms) :-
    (   english(Stemmer)
    ->  ready(Stemmer),
        ( known(Stemmer, Term, Found) -> Terms = Found ; Terms = [] )
    ;   Terms = []
    ).

english(english).
english(porter).

:- dynamic
    ready_for/1,                % Stemmer
    known/3.                    % Stemmer, Term, Terms

%   ready(+Stemmer): the groups by stem, worked out once.
ready(Stemmer) :-
    (   ready_for(Stemmer)
    ->  true
    ;   findall(T-U,
                ( alike(Words),
                  stems(Stemmer, Words, Stems),
                  member(T, Stems),
                  member(U, Stems),
                  U \== T ),
                Pairs0),
        sort(Pairs0, Pairs),
        learn(Pairs, Stemmer),
        assertz(ready_for(Stemmer))
    ).

learn([], _).
learn([T-U|Pairs], Stemmer) :-
    taken(Pairs, T, Us, Rest),
    assertz(known(Stemmer, T, [U|Us])),
    learn(Rest, Stemmer).

taken([T-U|Pairs], T, [U|Us], Rest) :-
    !,
    taken(Pairs, T, Us, Rest).
taken(Rest, _, [], Rest).
