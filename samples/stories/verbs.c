// SPDX-License-Identifier: Apache-2.0
// What is done, and how: verbs, and words for people's ways and feelings. Notation: grammar.h.
#include "samples/stories/grammar.h"

static const struct story_list lists[] = {
    // What people do: play, care, craft, cook, keep house.
    {"acts",
     "play sing dance run jump laugh read swim climb hop skip walk whistle draw paint dream "
     "chat march twirl spin hum clap race wander skate paddle dig rest joke tumble slide "
     "swing bounce leap dash splash float fish camp hike garden bake cook sew knit juggle "
     "wave bow stretch nap doze snooze munch nibble snack picnic chant somersault drum strum "
     "rhyme count guess daydream doodle scribble sketch write spell sail row ski trot gallop "
     "scamper wiggle wriggle rock crawl hide explore forage tinker potter work practise "
     "exercise train wrestle listen gaze celebrate feast travel ramble roam stroll jog prance "
     "tiptoe yodel cackle whisper shout holler perform rehearse recite improvise pretend "
     "relax lounge sunbathe bathe shower wade plunge sledge cycle pedal canoe harvest plough "
     "weed plant hammer weave bargain trade barter gossip wonder chatter babble ponder swap "
     "saunter snuggle meander collect experiment volunteer study abseil amble applaud "
     "assemble backpack balance bargain_hunt beachcomb bellow bicycle birdwatch bicker "
     "blow_bubbles bob browse build burrow calculate canter carol cartwheel carve catnap "
     "charge clamber clown coast collaborate compose concentrate converse croon crochet "
     "dabble dally dart decorate delve deliberate detour dig_holes dillydally dine discover "
     "dive doff drift drowse embroider entertain exercise_daily experiment_boldly fantasise "
     "fiddle fish_for_trout flit flutter fold_paper forge frolic fumble gambol gabble giggle "
     "grapple gurgle haggle hasten hatch_plans hibernate hitchhike hobnob horse_around hurdle "
     "idle imagine improve invent investigate itch jabber jest jig jingle jive jostle judge "
     "kneel labour lasso laze lecture loll lope lumber magnify mime mimic mingle moonwalk "
     "mope mosey motor muse narrate navigate nestle nod_off observe orbit orienteer paraglide "
     "parade party patrol perambulate philosophise photograph pilot pirouette plan pose "
     "prattle presume prospect protest prowl putter puzzle quest quibble quilt quiver rally "
     "rappel rave reason recline recover reminisce research retire revise rollick romp rumble "
     "saddle_up scheme scooter scout scramble scrawl scrub sculpt serenade shamble shimmy "
     "shuttle skedaddle sketch_birds skip_rope skydive slumber snorkel snowboard soldier_on "
     "sort_stamps speculate spy squat squelch stargaze strategise strut stride struggle "
     "stumble succeed swagger swot tango tarry tattle theorise thrive toboggan toil totter "
     "tour tramp trample trek troop trundle tunnel unpack volley voyage waffle wait walk_dogs "
     "waltz warble water-ski whirl whittle woolgather yak yap yearn zigzag zoom"},
    {"joys",
     "laugh smile dance sing jump skip clap cheer hop grin giggle chuckle twirl beam whoop "
     "hum bounce leap rejoice shout whistle spin wave celebrate purr caper exult glow sparkle "
     "prance frolic gambol applaud yodel shriek squeal hoot warble trill pirouette somersault "
     "cartwheel waltz"},
    {"gestures",
     "nod smile bow wink wave laugh yawn grin blink chuckle shrug sniff cough stretch sneeze "
     "curtsy hiccup scratch whistle hum gesture beckon salute squint scowl gulp snort tut "
     "whisper swallow fidget wriggle kneel stretch_out stamp point"},
    {"frets",
     "cry sigh shiver frown grumble tremble weep shake sob blush pout sulk fidget moan groan "
     "sniffle hesitate stumble limp stagger dawdle loiter argue quarrel bicker squabble "
     "complain wail whimper mope brood doubt squirm stutter stammer gulp wince flinch shudder "
     "worry panic agonise bawl begrudge bewail blanch bleat blubber blunder bumble bungle "
     "carp cower cringe dawdle_about despair dither dread droop falter fib flag flail flop "
     "flounder flush fluster fret fume fuss gnash_teeth grieve gripe growl huff hurt lament "
     "languish lose_heart mourn nag quail quake quaver regret repent seethe shirk simper "
     "skulk slouch slump snap snivel squawk stall stew stray swelter swoon tire tiptoe_away "
     "totter tremor tut vacillate waver whinge wilt wobble yelp"},
    {"kindnesses",
     "help hug thank teach greet feed cheer kiss visit follow comfort guide welcome invite "
     "praise rescue protect trust tickle forgive admire encourage amuse surprise delight calm "
     "soothe warm guard support please charm cradle pat cuddle embrace treasure cherish nurse "
     "remind advise console applaud salute reward serve join accompany assist defend shelter "
     "entertain understand believe respect appreciate congratulate compliment adore befriend "
     "acknowledge aid assure attend beckon bolster brief chaperone christen cosset counsel "
     "defend_bravely enchant endorse enlighten enrich equip escort excuse flatter foster "
     "garland gladden heal honour host humour idolise include indulge inspire instruct "
     "introduce invigorate laud mentor mollify motivate nominate nourish nurture oblige "
     "pacify pamper pardon partner placate promote pet prize refresh regale reassure relieve "
     "remember restore revere revive satisfy shepherd shield steady strengthen succour "
     "sustain toast train tutor unburden uplift usher vindicate"},
    {"chores",
     "sweep_the_floor wash_the_dishes feed_the_hens water_the_flowers peel_the_carrots "
     "fetch_the_milk "
     "chop_the_wood collect_the_eggs milk_the_cow set_the_table dust_the_shelves mend_the_fence "
     "pick_the_apples rake_the_leaves carry_the_water light_the_lamps knead_the_dough "
     "brush_the_pony clean_the_windows fold_the_sheets hang_the_washing shell_the_peas "
     "polish_the_spoons stack_the_logs weed_the_garden wind_the_clock groom_the_horses "
     "scrub_the_pots stir_the_soup iron_the_shirts patch_the_trousers paint_the_gate "
     "shake_the_rugs empty_the_buckets scatter_the_seeds trim_the_hedge plant_the_beans "
     "oil_the_hinges bake_the_bread churn_the_butter card_the_wool spin_the_yarn shear_the_sheep "
     "herd_the_geese deliver_the_letters count_the_coins tidy_the_cupboard sort_the_buttons "
     "wrap_the_parcels sharpen_the_pencils fill_the_kettle close_the_shutters lock_the_shed "
     "unload_the_cart saddle_the_donkey bottle_the_plums grind_the_corn sift_the_flour "
     "mop_the_stairs beat_the_carpets darn_the_socks prune_the_roses gather_the_hay "
     "bundle_the_straw load_the_wagon clear_the_path shovel_the_snow rinse_the_jars"},
    {"falls",
     "fall break slip roll crack tumble drop snap spill topple tear split burst sink drift "
     "vanish disappear crumble collapse wobble shake rattle creak squeak stick jam leak tip "
     "bend crash clatter thud splinter shatter fade slide float scatter lurch sway quiver sag "
     "tilt capsize unravel jingle clink crackle fizzle pop bulge buckle bump careen cascade "
     "cave_in chip clang clank clunk come_loose come_undone crinkle crumple curdle decay "
     "deflate detach dissolve dribble erupt evaporate expand flake flip flop fray freeze "
     "grate gurgle heave implode jangle jolt keel_over lean list loosen melt misfire overflow "
     "overturn peel plummet plunge pucker ricochet rip ripple rust sail_away scrape seep "
     "shift shrink shrivel shudder sizzle skid slump smash smoulder snag soften sputter "
     "squash subside swell swerve swish tangle teeter thump tilt_over topple_over trickle "
     "tumble_down twang twist unfold unroll veer warp whirr wither"},
    {"shines",
     "shine glow twinkle sparkle flicker dance glitter gleam shimmer glimmer flash blaze burn "
     "dazzle glint glisten beam flare wink blink bedazzle flame flicker_on scintillate "
     "shimmer_softly glare smoulder coruscate radiate sputter kindle dawn"},
    {"lights",
     "star lamp lantern candle moonbeam firefly window bonfire torch campfire comet sunbeam "
     "lighthouse street_lamp ember firework spark night-light lightbulb headlamp miner_lamp "
     "flare beacon searchlight sparkler fairy_light paper_lantern chandelier glow-worm "
     "sunrise sunset comet_tail satellite planet nightlamp hurricane_lamp oil_lamp"},
    {"winds",
     "blow whistle sing roar whisper sigh dance hum howl moan whirl rush rustle hiss tug "
     "swirl gust puff bluster buffet chase flurry gallop gurgle keen moan_softly murmur purr "
     "race ruffle shriek storm sweep wail whimper"},
    {"rains",
     "fall drip splash dance drum tap patter pour trickle drizzle pelt dribble plop bounce "
     "cascade clatter hammer mist pound sheet shower soak spatter sprinkle swish teem tumble "
     "wash"},
    {"grows",
     "grow bloom sprout climb open swell flower blossom ripen spread unfold thrive flourish "
     "bend nod sway wither droop rustle blush bristle burgeon creep curl dangle multiply "
     "mature poke_up root rustle_softly scent seed shoot_up sparkle tower trail twine wind"},
    {"says",
     "say say say call cry whisper shout sing laugh add exclaim exclaim murmur chuckle giggle "
     "announce declare chirp mumble remark mutter squeak bellow croak boom hoot pipe_up "
     "breathe reply respond retort reason reflect recite report request reveal rejoice yell "
     "yawn hum gabble gasp groan growl grunt gurgle hiss howl lisp moan pant persist pipe "
     "prattle purr quip rasp reassure rumble simper snap sniff snort splutter stutter tease "
     "thunder trill warn wheeze"},
    {"asks", "ask ask wonder demand enquire whisper call"},
    {"goes",
     "walk run hurry skip march hop jump climb dance race wander dash stroll creep tiptoe "
     "trot crawl rush gallop plod trudge scamper ride stumble scramble stride bound cycle "
     "paddle row sail amble saunter limp totter waddle sneak jog hike swim roam zigzag barge "
     "blunder bolt bounce bowl bustle canter career clatter coast cruise dart dawdle drift "
     "flit flounce glide hasten hitchhike hobble hurtle lollop lope lumber meander mosey "
     "motor pace pad parade patter pelt pootle prance proceed promenade ramble sally scoot "
     "scurry scuttle shuffle sidle skate slip slither slog speed sprint stomp storm straggle "
     "streak stray strut swagger sweep toddle tootle traipse tramp trek trip troop trundle "
     "wade waft waltz wend whizz wind zip zoom"},
    {"looks_at",
     "look stare gaze smile point peek peer glance peep squint wink blink grin frown nod gape "
     "goggle leer peek_out peer_about scan scowl search spy gawp"},

    // What people are like and how they feel.
    {"traits",
     "kind brave clever gentle cheerful shy quiet happy proud merry curious honest patient "
     "careful lively wise bold bright calm polite silly busy sleepy strong quick nimble "
     "playful thoughtful helpful hopeful generous modest tidy sturdy witty neat daring plucky "
     "eager steady tender mild sweet funny dreamy cheeky stubborn messy clumsy noisy hungry "
     "greedy lazy grumpy hardy faithful graceful truthful thankful courteous sensible "
     "inventive talkative tireless fearless restless careless forgetful bashful boastful "
     "bossy fussy moody chatty hasty crafty cunning grand noble humble jolly accurate "
     "adventurous alert ambitious amiable amusing ardent articulate artful attentive austere "
     "awkward bouncy brainy brash breezy bubbly canny carefree charming chivalrous chirpy "
     "civil cordial crabby cranky creative credulous cuddly daft dapper dashing dauntless "
     "decent deft diligent dizzy dogged dopey dotty dour drowsy dutiful earnest easygoing "
     "elfin eloquent energetic fair feisty fidgety fiery flighty foxy frank frisky frosty "
     "frugal gallant gawky genial genteel giddy gifted gleeful glib good-natured gracious "
     "gritty gruff gullible handy hearty heroic hospitable imaginative impish impulsive "
     "industrious ingenious intrepid irritable jaunty jocular jokey jumpy keen knowing lanky "
     "lenient lighthearted likeable limber lofty mannerly mature meek mellow merciful "
     "methodical mischievous mirthful musical natty naughty neighbourly nosy observant "
     "obliging outgoing peppy perky pert placid plain-spoken pleasant pompous practical prim "
     "prudent punctual quaint quarrelsome quizzical rash reckless relaxed reliable "
     "resourceful robust rowdy saucy scatty scruffy serene shrewd sincere skilful sleek sly "
     "smart snappy sociable sober soft-hearted solemn spirited spontaneous sporty sprightly "
     "spunky stalwart staunch stern stout studious surly swift tactful tearful tenacious "
     "tetchy timid tolerant touchy tough trustful trusty unselfish upbeat valiant versatile "
     "vigilant vivacious wary waggish warm-hearted watchful whimsical wily winsome wistful "
     "zany zealous"},
    {"gladness",
     "happy proud glad merry warm calm cheerful lucky cosy hopeful thankful grateful joyful "
     "jolly safe light peaceful content delighted excited brave playful sunny rich bold "
     "strong pleased overjoyed blissful blithe bouncy breezy carefree chipper chirpy "
     "comforted elated enchanted exhilarated giddy gleeful jaunty jovial jubilant mellow "
     "mirthful perky radiant relaxed relieved rosy satisfied serene sprightly thrilled "
     "triumphant"},
    {"sadness",
     "sad cross lonely worried tired upset cold hungry scared gloomy weary sorry grumpy "
     "nervous anxious puzzled dizzy restless miserable glum unhappy helpless foolish shaky "
     "angry jealous bored thirsty sore homesick fretful sulky hopeless bitter confused "
     "frightened ashamed achy bleak blue chilly crestfallen dejected desolate despondent "
     "disappointed dismal doleful downcast drowsy dreary droopy edgy feeble flat forlorn "
     "frail friendless grouchy guilty itchy jumpy low melancholy moody mournful muddled needy "
     "peevish prickly queasy rotten rueful scratchy sheepish snappy soggy sombre sullen teary "
     "tense touchy troubled unlucky unwell wobbly woeful wretched"},
    {"manners",
     "soft quick slow quiet happy gentle loud careful sad proud kind brave polite sweet warm "
     "calm brisk eager merry cheerful bold shy glad sleepy hungry swift sudden neat tidy "
     "patient honest wise clever bright light tender rough firm hasty lazy busy clumsy "
     "nervous anxious angry cross grumpy gloomy dreamy silent smooth steady thoughtful "
     "hopeful joyful playful graceful thankful truthful peaceful fearful cautious curious "
     "serious generous furious noisy bitter breathless stubborn solemn grave stern mild "
     "modest secret thorough exact clear plain grand fond faithful frantic greedy idle "
     "jealous keen loyal nimble awkward boastful weary drowsy excited abrupt absent accurate "
     "agile airy alert amiable apt ardent artless attentive awful bashful bleak blind blithe "
     "brash brazen breezy broad candid casual ceaseless charming cheap chirpy civil close "
     "coarse cold complete cool cordial correct crazy crisp crude cryptic curt daft dainty "
     "decent deep deft delicate dense direct dizzy dogged doleful doubtful dour dutiful "
     "dramatic earnest elegant endless energetic even expert fair faint feeble fierce fitful "
     "flat fluent foolish formal frank free fretful frosty fussy gallant gawky genial giddy "
     "gleeful glib glum gracious grateful gruff guilty haughty hearty helpful helpless hoarse "
     "honourable hopeless huge humble icy impish intent jaunty jerky joyous just lame languid "
     "lavish legible lenient limp listless loose lovely lusty mad masterful meek mellow "
     "merciful mischievous moody mute mystic naive naughty nice noble numb odd open painful "
     "passionate perfect perky pert placid pleasant plump pointed pompous precise prim "
     "profound promising prudent punctual pure quaint rapid rash ready reckless regal regular "
     "relentless restful restless rich right roguish royal rude safe sane saucy scornful "
     "secure selfish sensible separate serene shaky sheepish shrewd shrill simple sincere "
     "skittish slack slick sloppy sluggish smart smug snug sober sore sound sour spiteful "
     "splendid square stark stealthy steep stiff stout strange strict strong sturdy sullen "
     "sure tactful tame tasteful tearful tedious tense thankless thick timid tireless total "
     "touching tranquil trim tuneful unhappy useful vague vain valiant vast vigorous vivid "
     "wary wasteful watchful weak wild willing winsome wistful witty woeful wonderful worthy "
     "wry youthful zealous"},
    {"helper_traits", "old wise tiny kind friendly clever grey plump gentle tall young jolly quiet "
                      "brown thin white shaggy speckled cheerful sleepy bearded lame lanky lonely "
                      "long-eared bushy-tailed bright-eyed soft-spoken"},
    {"virtues",
     "kindness courage patience honesty friendship laughter hope love trust wisdom joy truth "
     "practice sharing gentleness cheerfulness bravery cleverness luck music happiness "
     "thoughtfulness politeness forgiveness generosity curiosity imagination loyalty modesty "
     "gratitude helpfulness carefulness neatness calmness accuracy agility alertness ambition "
     "boldness brightness calm caution charity charm compassion confidence contentment "
     "cooperation courtesy craftsmanship creativity decency devotion dignity diligence "
     "discipline eagerness earnestness effort eloquence empathy endurance energy enthusiasm "
     "fairness faith fidelity finesse firmness flexibility foresight frankness freedom "
     "frugality generousness goodness goodwill grace hardiness harmony heroism homeliness "
     "humility humour idealism independence industry ingenuity initiative innocence insight "
     "inspiration integrity inventiveness justice kindliness knowledge learning lightness "
     "liveliness mercy merriment mindfulness nimbleness obedience openness optimism order "
     "originality peace perseverance playfulness pleasantness pluck poise precision "
     "promptness prudence punctuality purity quickness quietness readiness resolve respect "
     "reverence serenity silliness simplicity sincerity skill smartness softness steadiness "
     "strength swiftness sympathy tact tenderness thankfulness thrift tidiness tolerance "
     "toughness tranquillity understanding unity usefulness vigour warmth watchfulness "
     "wholeness willingness wit wonder zeal zest"},

    {"colours", "red blue green yellow white brown black orange purple pink grey golden silver "
                "violet scarlet crimson turquoise"},
};

const struct story_table story_deeds = {
    .lists = lists,
    .n_lists = sizeof lists / sizeof *lists,
};
