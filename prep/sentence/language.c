/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/sentence/sentences.h"

/* Short lists from general knowledge of each language; lower case, inner dots kept. */

#define LATIN                                                                                      \
    "p pp nr vol ed eds fig cf vs ca etc dr prof st mr mrs ms jr sr bros inc ltd co corp tel "

const struct sentence_language sentence_languages[] = {
    {"english", "en",
     LATIN "messrs mme mlle rev hon gen col maj capt lt cmdr sgt cpl adm gov sen rep pres supt "
           "ph.d m.d b.a m.a d.c u.s u.k u.n u.s.a e.g i.e viz al seq ibid op cit approx est dept "
           "univ assn ave blvd rd mt ft jan feb mar apr jun jul aug sept sep oct nov dec mon tue "
           "wed thu fri sat sun a.m p.m figs eq eqs sec ch chap app nos vols esq fr md phd pt "
           "dist min max misc attn ext gal oz lb lbs sq yr yrs hrs",
     "the this that these those he she it we they you i in on at by for from with of to a an and "
     "but or so if when while as after before since because although though however there here "
     "what who why how where which some many most all each every no not his her its our their my "
     "your one two then thus therefore also both such under over between during until",
     ""},
    {"german", "de",
     LATIN "bzw bspw usw usf z.b z.t u.a u.ä d.h o.ä i.d.r i.a u.u v.a v.chr n.chr evtl ggf ggfs "
           "vgl sog str hr fr abb abs anm art aufl bd bde bes betr bez dgl dipl dt ebd einschl "
           "engl entspr erg etw ev exkl geb gem gest hrsg inkl jh jhd jan feb mär apr jun jul aug "
           "sept okt nov dez kap lat mio mrd mind nachf od orig österr rd s.o s.u sep seit schw "
           "sen sept sog sp stellv tab teilw urspr verf verh verst vorm zit zt zzgl min max mag "
           "ing mo di mi do sa so ing phil med jur rer nat",
     "der die das ein eine einer eines einem einen er sie es wir ihr ich in im an am auf aus bei "
     "mit nach von vor zu zum zur und aber oder denn dann da wenn als weil dass ob wie was wer wo "
     "warum so auch nur noch nicht kein keine dies diese dieser dieses sein seine ihre unser alle "
     "man hier dort doch jedoch während durch für über unter seit bis",
     "januar jänner februar märz april mai juni juli august september oktober november dezember "
     "jahrhundert"},
    {"french", "fr",
     LATIN "m mm mme mmes mlle mlles me mgr art av bd boul chap coll dép env ex excl hab id "
           "ibid janv févr avr juil sept oct nov déc j.-c n.b p.ex p.-s r.-v s.a s.v.p suiv sté "
           "tél trad réf éd édit c.-à-d max min paragr op",
     "le la les un une des il elle ils elles on nous vous je tu ce cet cette ces son sa ses leur "
     "leurs mon ma mes notre votre dans en sur sous avec sans pour par de du à au aux et mais ou "
     "donc car ni or si quand lorsque comme que qui où après avant depuis pendant selon aussi "
     "ainsi cependant puis alors tout tous toutes chaque plusieurs certains",
     ""},
    {"spanish", "es",
     LATIN "sr sra sras sres srta d dña dª ud uds vd vds ee.uu a.c d.c p.ej ej art arts av avda "
           "cap caps cía c/ dep depto dto excmo fdo gral izq dcha lic núm núms pág págs pza "
           "ref s.a s.l sto sta tel teléf trad ing arq ene feb abr ago sept dic aprox máx mín "
           "admón",
     "el la los las un una unos unas él ella ellos ellas yo tú usted nosotros este esta estos "
     "estas ese esa eso esto su sus mi mis en con sin por para de del al a y e o u pero si no "
     "cuando como que quien donde después antes desde hasta según también así además sin aunque "
     "mientras entre sobre tras todo todos cada",
     ""},
    {"italian", "it",
     LATIN "sig sigg sig.ra dott dott.ssa avv ing arch geom on sen gen col ten cap art artt cfr "
           "ecc pag pagg es a.c d.c s.p.a s.r.l n.d.r v.le p.za p.zza c.so tel cell fig figg sec "
           "secc gen febbr mar apr magg giu lug ag sett ott nov dic rag on.le egr spett min max "
           "ss ndr",
     "il lo la i gli le un uno una egli lei lui essi noi voi loro io questo questa questi queste "
     "quello quella suo sua suoi mio in nel nella con senza per tra fra da dal dalla di del della "
     "dei a al alla e ed ma o se non quando come che chi dove dopo prima anche così inoltre però "
     "mentre secondo tutti tutto ogni su sul sulla",
     ""},
    {"portuguese", "pt",
     LATIN "sr sra srs sras srta dra drs d exmo exma v.exa v.ex.ª s.a ltda cia av r pç art arts "
           "cap caps pág págs ex p.ex a.c d.c séc n.º nº núm eng gen cel ten cap sgt jan fev "
           "abr mai jun jul ago set out nov dez tel aprox máx mín obs dept",
     "o a os as um uma uns umas ele ela eles elas eu nós você vocês este esta estes estas esse "
     "essa isso isto seu sua seus suas em no na nos nas com sem por pelo pela para de do da dos "
     "das ao à e mas ou se não quando como que quem onde depois antes desde até segundo também "
     "assim além embora enquanto entre sobre após todo todos cada",
     ""},
    {"dutch", "nl",
     LATIN "dhr mevr mej mw mgr ir ing ds bv bijv b.v n.v d.w.z m.a.w o.a i.p.v t.a.v t.o.v "
           "m.b.t e.d e.a a.u.b enz blz red vgl zgn zg resp incl excl max min afb art hfdst jl "
           "jr jan feb mrt apr aug sept okt nov dec nl num plm st str tel wo vr za zo ca evt excl",
     "de het een hij zij ze wij we jullie ik jij je dit dat deze die er hier daar in op aan bij "
     "met zonder voor van naar uit over onder tegen tijdens na en maar of want dus als toen omdat "
     "hoewel terwijl wat wie waar waarom hoe ook nog niet geen zijn haar hun ons onze mijn alle "
     "elk sommige veel",
     ""},
    {"swedish", "sv",
     LATIN "bl.a t.ex d.v.s dvs m.fl m.m o.d o.s.v osv s.k fr.o.m t.o.m f.d f.n f.ö e.d el eng "
           "ev ex exkl fig forts för förf inkl jfr kap kl kr lat max milj min mkr nuv obs red "
           "resp s.a.s sid st str tel tim uppl ung jan feb apr aug sept okt nov dec bl.a p.g.a",
     "det den de en ett han hon vi ni jag du man denna detta dessa i på av för med utan till från "
     "vid under över efter före mellan och men eller så om när då som att eftersom medan vad vem "
     "var varför hur också inte ingen hans hennes sin sitt sina deras vår mitt alla här där",
     ""},
    {"danish", "da",
     LATIN "bl.a f.eks d.v.s dvs m.fl m.m m.v o.l osv s.k f.kr e.kr ca cand stud mag phil jur "
           "adj afd alm ang bd bet civ dir el eng evt ex f fa fhv fmd fr fx gl gr hhv hr ifm ift "
           "incl inkl jf jvf kap kl kr lic max mia min mio ml mv nb nuv obs opr pct pga red ref "
           "sml sp stk str tlf udg vha jan feb apr aug sept okt nov dec s",
     "det den de en et han hun vi i jeg du man denne dette disse på af for med uden til fra ved "
     "under over efter før mellem og men eller så hvis når da som at fordi mens hvad hvem hvor "
     "hvorfor hvordan også ikke ingen hans hendes sin sit sine deres vores min alle her der",
     "januar februar marts april maj juni juli august september oktober november december "
     "århundrede"},
    {"norwegian", "no",
     LATIN "bl.a f.eks d.v.s dvs m.fl m.m o.l osv s.k f.kr e.kr ca adm alm ang avd bd cand dir "
           "eks ekskl el eng evt f fhv fr fork gl gnr hr iht ifm inkl jf kap kgl kl kr lic maks "
           "mill min mld mht mv nr obs oppr pga pkt red ref sen skr str stud tlf utg vgs jan feb "
           "apr aug sept okt nov des s",
     "det den de en ei et han hun vi jeg du man denne dette disse i på av for med uten til fra "
     "ved under over etter før mellom og men eller så hvis når da som at fordi mens hva hvem hvor "
     "hvorfor hvordan også ikke ingen hans hennes sin sitt sine deres vår min alle her der",
     "januar februar mars april mai juni juli august september oktober november desember "
     "århundre"},
    {"finnish", "fi",
     LATIN "esim jne ym yms mm ks vrt eli ent ts tms ao em eaa ekr jkr klo kpl mk milj mrd n n.s "
           "os par puh puhj s synt toim tri toht v vt vs ylim a.k.a huom ko lk lkm max min muk "
           "nk nyk oik pj prof rva hra nti joht",
     "se ne hän he me te minä sinä tämä nämä tuo ne kun jos mutta ja tai vaan että koska vaikka "
     "niin myös ei eivät on oli olivat kuten siis silti sitten siellä täällä missä mikä kuka "
     "miksi miten kaikki jokainen sekä ennen jälkeen kuitenkin",
     "tammikuuta helmikuuta maaliskuuta huhtikuuta toukokuuta kesäkuuta heinäkuuta elokuuta "
     "syyskuuta lokakuuta marraskuuta joulukuuta"},
    {"estonian", "et",
     LATIN "jne nt näit s.t st sh ld lk lp lgp hr pr prl a aa a.-l sünd surn m.a.j e.m.a kl krt "
           "kr tn pst mnt jpt jms vm vms vrd vt ingl pkt rbl saj skp tel tlk toim tv u umb v õp "
           "eesk abim",
     "see need tema ta nad me teie mina sina kui aga ja ning või et sest kuigi siis ka ei on oli "
     "olid nagu seal siin kus mis kes miks kuidas kõik iga enne pärast siiski",
     "jaanuar jaanuaril veebruar veebruaril märts märtsil aprill aprillil mai mail juuni juunil "
     "juuli juulil august augustil september septembril oktoober oktoobril november novembril "
     "detsember detsembril sajand sajandil"},
    {"czech", "cs",
     LATIN "tj tzv tzn apod atd aj např resp popř příp č čís str s sv mj zejm event hl tř nám ul "
           "ing mgr bc mudr judr phdr rndr paeddr doc csc dr.h.c gen plk pplk mjr kpt por npor "
           "sl odst písm obr tab kap roč vyd nakl red překl mil mld tis kč hod min max vč viz pol "
           "zn a.s s.r.o v.o.s k.s o.s př.n.l n.l",
     "ten ta to ti ty on ona ono oni my vy já v ve na z ze do od s se k ke o u po pro při za a "
     "ale nebo však když jestliže protože že aby jako který co kdo kde proč jak také ne není jsou "
     "byl byla bylo byli jeho její jejich náš můj všichni každý tady tam tak pak už podle mezi",
     "ledna února března dubna května června července srpna září října listopadu prosince století"},
    {"slovene", "sl",
     LATIN "itd ipd npr oz t.i t.j tj d.d d.o.o g ga gdč mag dipl ing inž univ sv ur str čl pribl "
           "preb prim gl tel tov ul št l leta pr.n.št n.št min max obl odst okr oddel ok os",
     "ta to ti te on ona ono oni mi vi jaz v na iz od do s z k o pri po za in a ampak toda pa ali "
     "če ko ker da kot ki kaj kdo kje zakaj kako tudi ne ni so je bil bila bilo bili njegov njen "
     "njihov naš moj vsi vsak tukaj tam tako potem že med",
     "januarja februarja marca aprila maja junija julija avgusta septembra oktobra novembra "
     "decembra januar februar marec april maj junij julij avgust september oktober november "
     "december stoletja"},
    {"polish", "pl",
     LATIN "np tj tzn tzw itd itp m.in godz ok pt ul al pl os św ks bp abp kard inż mgr hab lek "
           "dyr red gen płk ppłk mjr kpt por ppor sierż kpr szer prok adw art ust pkt par poz rys "
           "tab str s t r w n.e p.n.e zob por przyp wyd tłum oprac ur zm zł gr tys mln mld min "
           "max sp z.o.o a.d",
     "ten ta to ci te on ona ono oni my wy ja w we na z ze do od u o po przy za i a ale lub jednak "
     "gdy jeśli ponieważ że aby jak który co kto gdzie dlaczego także nie są był była było byli "
     "jego jej ich nasz mój wszyscy każdy tu tam tak potem już według między dla",
     ""},
    {"russian", "ru",
     "т е т.е т.д т.п т.к т.н и.о и д др пр см ср стр с г гг г-н г-жа р руб коп тыс млн млрд в вв "
     "н.э до ул д кв корп просп пр-т пер пл наб обл р-н гор пос дер ст рис табл гл разд п пп ч изд "
     "ред сост перев авт проф доц акад канд докт им св о-в инж ген полк мин макс час сек напр "
     "прим англ нем фр лат греч рус яз янв февр апр авг сент окт нояб дек тел кг км см мм",
     "это этот эта эти тот та те он она оно они мы вы я ты в во на из с со до от у о об по при за "
     "для к и а но или однако когда если потому что чтобы как который кто где почему также не нет "
     "был была было были его её их наш мой все каждый здесь там так потом уже после перед между "
     "под над",
     ""},
    {"greek", "el",
     "π.χ κ.λπ κλπ κ.ά κ.α κ.ο.κ δηλ βλ πρβλ σελ σ τόμ αρ αριθ άρθρ παρ εδ κεφ εκδ μτφρ επιμ μ.χ "
     "π.μ μ.μ κ κα κος δρ καθ αγ αι χλμ εκ δισ εκατ τηλ οδ λεωφ ν.δ π.δ ο.η.ε η.π.α α.ε ε.π.ε "
     "ιαν φεβ μαρ απρ ιουν ιουλ αυγ σεπτ οκτ νοε δεκ",
     "ο η το οι τα ένας μια ένα αυτός αυτή αυτό αυτοί εμείς εσείς εγώ σε στο στη στην στον στα "
     "από με χωρίς για προς και αλλά ή όμως όταν αν επειδή ότι πως όπως που τι ποιος πού γιατί "
     "επίσης δεν δε είναι ήταν όλοι κάθε εδώ εκεί έτσι τότε μετά πριν κατά μεταξύ",
     ""},
    {"turkish", "tr",
     LATIN "vb vs vd örn yy bkz krş s sf çev haz yay av doç yrd öğr gör arş dr mr müh alb yzb tğm "
           "cad sok sk mah apt blv bul no nu hz m.ö m.s i.ö i.s t.c a.ş ltd şti tic san gn gnkur "
           "gön kr kur ort sağ sn tls ing alm fr lat osm tar tel uzm zf",
     "bu şu o bunlar onlar biz siz ben sen bir her ve ama fakat ancak veya ya ki çünkü eğer gibi "
     "için ile ne kim nerede neden nasıl da de değil var yok onun bizim benim tüm bütün burada "
     "orada böyle sonra önce kadar göre arasında",
     "ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık yüzyıl"},
    {"malayalam", "ml", "ഡോ ശ്രീ ശ്രീമതി കി മീ കി.മീ സെ മി രൂ പ്രൊഫ അഡ്വ എം ആർ", "", ""},
    {"chinese", "zh", LATIN, "", ""},
    {"japanese", "ja", LATIN, "", ""},
    {"korean", "ko", LATIN, "", ""},
    {"hindi", "hi", "डॉ श्री प्रो पं कु सु रु कि.मी", "", ""},
    {"arabic", "ar", "د أ م ص ج هـ ق.م", "", ""},
    {.name = NULL},
};
