"""Words and beginnings of words that are one token in the vocabularies of OpenAI's models.

Each of them is one token in ``cl100k_base`` and in ``o200k_base``, as it stands, capitalised, and after a space, and
at most two with a punctuation mark before it. Found by those vocabularies' own ranks; a test counts every one.
"""

from __future__ import annotations

SUFFIXES = ("s", "ed", "ing", "ly", "er")

STEMS = frozenset(
    """
    ab abb about abs ac acc access account ace ack act action actions activ activate activation active activity actor
    acts actually ad ada adam adapter add added adding addr address addresses adds adj adjust admin ads adv af aff ag
    again age agent ah ahead ai air aj ajax ak akt al alan ale alex alg ali alias align alignment alive all alle allen
    alloc allocate allocation allow allowed allows almost along als alt alter altern am amb among amount amy an ana anc
    and andre ang anim animal animated animation anime ann anne annotation another ans answers ant anth any ao ap api
    app appe append apple application applications apply appro approx apps apr ar arc arch are area areas arg args
    argument arguments ark arm arr array art as asc ash ask aspect assembly asset assets ast at ath atl atom atomic att
    attr au aud audit auf aug aus aut auth author auto autom autor aux av avg avoid aw award away aws ax axis ay az
    azure ba back backend backup bad bag bah bal ball ban band bang bank bar bars bas base based basic bat batch bay be
    beam bean bear beat bed been beer beh bei being bel bell below ben ber bern bes best bet beta better bi bias bid
    big bill billing bin binary bind binding bio bit bitmap bits biz bl black blank blend blo blob block blocking
    blocks blog blood blue blur bo board bob bold bon bond bone bonus book booking books bool boom boot border bot both
    bottom bound bounds bow box boxes boy br brain brand bre break bright bring brit bro bron bru brush bs bu bubble
    budget buf buff buffer bug build builder bundle bur burn bus business but button buttons buy buzz by ca cab cached
    cad cal calc call callback caller calling calls cam camp campo can cap caps capt caption capture car card cards
    care cars cart cas case cases cash cast cat catalog catch category cd ce cel cele cell cells cent center centre ch
    cha chain chair chan changed channels chapter char character characters charset chart charts chat che cheap check
    chem chi child chip cho chr christ chron chunk ci cipher circle cit city cl cla claim clar class classes classic
    classification clean clear cli click client cliente clients clin clip clock closure club cluster co cod codec codes
    coding coin col cold cole coll collect collection collections collision colon color colors columns com comb combat
    come comfort comic coming comm command commands comment comments commission commit common community como comp
    compare compet compile complex component components composition compression comput compute computer con cond conf
    config configuration configure conn connect connection connections cons const constants constraints construct
    construction constructor cont contact contacts container containers content contents contin continue contr contract
    contracts controller controllers controls conv conversation conversion convert converted converter cook cool coord
    cop copy cor core corn corp correct cors cos cost cou could count counter counts county coupon cour court cover cow
    cr cre cream create created cri crit cro crop crow crud crypto cs css csv cu cur current currently custom customer
    cut cy cycle da dal dam dan danger dao dar dark das dash dashboard dat date dates dating datos datum day days db de
    dec def defined deg del delay delivery dem demo den density dep der des desc description design desk dest
    destination det detail details detect dev di dialog dict dictionary did diff dig digest digit digital dim dimension
    dir dire direct direction directory dis disable disc disk disp display dist distribution div do doc dock docs
    document does dog dom domain don done door dos dot double down download dr drag draw drawer drawing dream drink
    drive driver drug dry dt du due dump dup dur duration during dynamic each ear earn east eat eb ec ed edit editor ef
    eff effect effective effects eight ein ek el ele elect electric elem element elements elf ell em emb embed emp en
    enable enabled enc encoding end ending endpoint eng engine enh ens ensure ent enter entity entr entre entry enum
    env environment ep eq equ equal equals equip equipment er err error es esc esp ess est esta este et eth ether eu ev
    eval even event events ever every ex exact exam example exc excel except exception exceptions exec execute
    execution exist existing exists exit exp expand expanded expect expected experimental expl export expr express
    expression ext extend extended extension extensions extract ey eye fa fab fac face facebook faces fact factor
    factory fail failure fair fal fall fan fans fant far farm fast fat father fax fe feature fed fee feed feel fel
    fetch few fi field fields fig fight figure fil file files fill film filter filters fin find finder finding fine
    finish fire first fish fit fitness five fix fixed fixture fl flag flags flash flat flex flight flip flo float
    floating floor flow flush fly fn fo fold folder follow fonts food foot footer for ford fore forest forget form
    format formation formats formatter former forms fort forum forward found foundation four fox fr fraction fragment
    framework fre fred free friendly friends from fs fu fuck full fun func function functional functions fund future ga
    gain gal gallery gam game games gap gar gas gate ge gear gem gen gender gene gener general generate generated
    generation generic geo ger get gets getter getting ghost gi gift git github give gl glass go god gold good goods
    got gov gr grab grad grade gradient gram gran grand grant graphic graphics gray gre great greater green grey grid
    gro groups grow gu guest gui guid guild gun ha hack had hair hal half hall ham han hand handle handler handles
    hands hang har hard hardware has hash hat having hay he head header headers heading healthy heap heat height hel
    hello help helper hen her here hero het hex hey hi high hint hip his hist histor history hit hits ho hol hold
    holder hom home hon hook hooks hop hope hor host hot hour hours hover how hp hu hub hum human hung hy ich icon
    icons id ide ideal ident identifier identity idle if ik il ill im img imm imp impl implement implementation import
    important imports in inc incoming incorrect increment ind index indexed inf inform information infos ing ini init
    inject inner input inputs ins inst install instant instruction instructions instrument int integer intel intent
    inter interaction interest interesting intern internal internet intersection intl into intro inv inventory invest
    io ion ip ir iron is iso iss it item items iter its ja jac jack jak jam jan jar je jer jet jets jo job jobs join
    joint jon jos joy js json ju jud jump jun jur just ka kal kar kat ke keep kel ken key keyboard keys keyword
    keywords kh ki kick kid kids kim kin kind king kir kit kn know known kom kon kr ky la lab label labels land lang
    las last lat late later latest latin launch law layer layers layout le lead leader leading lean learning least led
    lee leg legal len leo les less lesson let lets letter levels lex li lib library lic light lights lik like likes lim
    limit limited limits lin line linear lines link linked links linux list lista listen listener listing lists lit
    lite liter literal liv live living ln lo load loader loc local locale location locations lock locked locker log
    logger logging logic login logo logout logs lon long look looks loop lord los loss lost lot lots lov love low lower
    lt lu luck lux lv ly ma mac macro mad made mag mage magic mah mail main maint maker mal male man mana manager many
    map mapper mapping maps mar mark marker market marks mart mary mas mask mass master mat match matcher matches
    matching mate math matrix max may mb mc md me mean med median medium meg mel mem member members memo memory men
    menu mer merc mes mesh mess met meta metal meter method metric metrics metro mi mic micro mid middleware migration
    mil mill min mind mine mini mir mis misc miss missing mission mit mix mixed mo mob mobile mock mod modal mode model
    mods module mom moment mon monitor mono mont month moon mor more mos most mot mother motion motor mount mov move
    movement moves moving mp mr ms msg mt mu much mul mult multi multip multiple multiply mur mus music must mut
    mutable mutation mutex my na nam name named names nat nation national native nature nav naz nb nd ne near need neg
    neo net network never new news ng nh ni nic nice nick night nil nine nit no nom nombre nome non none nor norm
    normal nos not note notes nov now nr nu num number numer numeric nut nx ny ob obj object objective objects obs
    observ observable occ oct od odd of off offer offers offset oh oil ok ol old om on one only ont op open opening
    oper operation opp ops opt option options or oracle ord orden order ordered orders org organ organization orig
    origin orth os ot other others our out outer output outputs over overall overflow overlay overview owner pa pack
    packet pad pag page pager pages pagination paid paint pair pal pan pane panel paper par para param parameter
    parameters params parent park parm parser part particle partner parts party pas pass passed password past paste pat
    patch path paths patient pawn pay payload payment pe pear ped peer pel pen per perform period perm permission
    permissions pers persist persistent person pes pet pets pg ph phi phil phot photo photos php pi pic pick picker
    picture pieces pin ping pink pitch pix pixels pl placement plain plan plane plans plant plate platform play played
    player players playing plot plug plugin plugins plus po pod point pointer points pol poll poly pool pop popup por
    port portal ports pos pose position positions poss post postal posted poster posting posts pot pour pow power
    powered pr pre prec pred pref prefix premium pres present presentation press prev preview pri prim primary prime
    print printer printing prior priority priv private pro prob probe proc procedure process processing processor prod
    produ product production producto products prof profile profiles profit program project projection projects prom
    prop props prot proto prov provider providers ps psi pt ptr pu pub public publish publisher pull pure push put px
    py qi qt qty qu quad qual quant quantity quarter que query quest question qui quick quit quite quiz ra rad radi
    radio radius rail rails rain ram rand random rank rate rated rather rating raw ray re reach react reaction read
    reader reading ready real really realm reason rec received recent recommended record rect red redis ref refer reg
    reject rel released rem remark remarks ren render rent rep repair replacement reply repo report reports repository
    represent representation req request requests require required res reset resolution resolver resp rest ret retry
    return returned rev review reviews revision reward rh rich right rights ring risk river ro road rob robot rock
    rocket rod rol role roles roll rom roman room root ros rose rot rotate rotation round router row rows roy rp rpc rs
    ru rub ruby rule run runner runs rx sa sad sal salary sale sales salt sam same sample san sand sans sat saved
    saving say sc scan scar sch schedule scheduled scient score scr scripts scroll se sea seat sec section sections
    secure security see seed seen seg segment sel select selection self sell seller sem sen send sender sending sense
    sensor sent sep seq ser serialization serialized serv server servers session sessions set sets setter setting
    settings sh sha share she sheet shift ship shoot shop short shot show si sid side sig sign signal signed sil silver
    sim simulation sin sing single sink sit site sites six sk skill skills skin skip sky sl slash slider slot slots
    slow sm small smart sn snap snow so software sol sold solid solution solver som some son song songs soon sorry sort
    sorted sorting sound sounds sp span spawn spe spec specific speed spell spi spin spl split spo sport sports spot
    spr spread spring spy sq sql square sr src st stan star stat status std ste steam step ster stick stop str string
    strip su sub success such sum summer sun sup super supplier support supported sur sure survey sus sw swap switch sy
    sym syn sync syntax sys system systems sz ta tab table tables tabs tag tags tail talk tam tan tank tap tar target
    task tasks tau tax te team tech ted tek tel tele tell tem temp temporary ten tenant tensor ter term terr tes test
    tester testing tests tex text th than that the them then they thin this thr thread thus ti tick ticket tickets tier
    tile tiles tim time timer times tip tipo tips tit title titles tk to tok token tokens tom ton too tool tools top
    topic tor tot total touch tour tower town toy tr tra track trad trade trail train trait trans transition trap tre
    tree trees tri triangle trim trip tro trust try trying ts tu tuple tur turn tv tw twig twitter two tx txt ty typ
    type typed types ub uber uh ui uint ul ult um un una unable und under undo une uni uniform union unit units unity
    unix unlock uno unt up updated upload upon ups ur uri url us use used user users uses using usually ut utf util
    utility utils va vac val valid validate validation validators valor van var vari variable ve vi view viewer views
    vin vir vis visible vision vk vo void vol volt vs vu vue vy wa wait wal walk walker walking wall want war ware warm
    warn warning was wat watch water way we weak weather web wed week wei weight wel well wer were west wh what when
    while who whole why wi widget widgets wil wild will win wind window windows winner wins winter wire wis withdraw
    within without wizard wo won wood word words work worker workers workflow working works world would wow wr wrap
    wrapper writer wrong wy xi ya yang ye year years yes yet yo you your ze zen zend zh zip zoom
    """.split()
)
"""With each of ``SUFFIXES`` they are two tokens at most."""

WORDS = frozenset(
    """
    above absolute abstract activities actual additional administr administrator adresse adult advanced advisor after
    agency alarm album alert alice alpha already also although always analysis analytics anchor android answer
    appointment aqu arena around asia aside async attribute attributes audio average await baby background badge
    balance banner basket battery battle because before begin benchmark benef berry between bird birth birthday body
    bomb boolean born boss bridge broadcast broken broker brown browse browser btn bucket built bulk bullet byte bytes
    cache cake calculate calendar called camera campaign cancel candidate cannot canvas cargo cascade categoria
    categories cause central cert certificate challenge change changes changing channel charge chief china chrome
    church cities civil cleanup clone close closed closing cloud cmd code coffee collapse column combine combo commerce
    commercial company comparison compatible compiler complete completed completion composer concept conexion
    conference confirm console constant constraint consumer contains context control cookie cookies copyright countries
    country course courses craft credentials credit criteria critical cross crypt ctrl cube culture currency cursor
    curve daily damage data database dataset default degree delta dependency desktop destroy device dia diamond dice
    die difference different dirty distance district draft drop dummy duplicate dyn earth ease easy echo edge educ
    either elite else email employee empty encode encoder encrypt enemy energy enterprise entities entries escape
    evaluate evaluation examples exchange exclusive executor exercise expense experience experiment expert explicit
    external extra extras fabric fade failed fake false family fatal fault favorite favorites features fecha female
    filename final finished firebase focus font foo force forge forgot formula foto fra frame frames frequency fresh
    friend front fuel fully gamma gateway generator gesture girl given global glyph google graph ground group gtk happy
    have health heart heavy hidden hide holiday horizontal hospital hotel house html http hunter hyper ice ign ignore
    image images immutable include included includes including income increase indicator individual industry info
    initial initialize inline insert inside instance instances instead integration interactive interface interfaces
    international interrupt interval invalid invite invoice invoke issue java javascript john journal judge jwt keeper
    kernel lake lambda lane language languages large lazy leaf league learn leave left length level license lie life
    little locator logged logical longitude lua machine major make makes making margin marshal massage material maybe
    media merchant merge message messages metadata meteor middle mirror money mongo mouse movie movies namespace nano
    natural navigate navigation navigator nested next nie node nodes noise north notify nova null office official
    offline often omega once online operator orange original outline outside override own package padding palette parse
    pattern pause pdf pedido pending percent percentage perfect performance perhaps phase phone phones phys physical
    physics pictures pie piece pipe pipeline pixel pizza place places playlist please pokemon policy polygon positive
    practice predicate predict preferences preferred prepare pretty previous price prices principal problem progress
    promise prompt proof properties property provide province proxy published purchase purple purpose python queries
    queue quote quotes race raise raised raises range rates ratio receiver recommend reference references refresh
    release reload rename repeat replace requires research resize resolve resource resources resume reverse rio route
    routes routine routing rules running runtime safe samples sampling save scalar scale scene scheduler schema scheme
    school scope scores screen screens script search secret sector sentence separator serial serialize serializer
    series serve service services seven shape shell sie sigma simple since size sizes sleep slice slide smith snapshot
    social socket soft something sometimes source sources south space spaces spark speaker special species speech
    sphere sprite stone suite surface svg sweet symbol take taken taking tcp template templates there timeline
    timestamp tiny today todo todos toggle torrent trace trial tube tutorial tweet unexpected unicode unique unknown
    unless unsafe unsupported update updates upgrade upper usage username usuario usuarios utilities validator value
    values variant vault via video videos viol virtual vote votes vous wake wallet warehouse wave weapon website
    welcome whatever wheel where whether which white wide width wie wifi wiki with wolf woman women worksheet workspace
    wrapped write writes writing written xml yellow yii youtube zero zone
    """.split()
)
