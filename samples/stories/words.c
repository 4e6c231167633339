// SPDX-License-Identifier: Apache-2.0
// The words, by what may be said of them. Notation: grammar.h.
#include "samples/stories/grammar.h"

static const struct story_list lists[] = {
    // Who.
    {"kin", "cousin brother sister uncle aunt grandfather grandmother father mother nephew niece "
            "neighbour twin teacher friend godmother godfather stepsister stepbrother"},
    {"kinfolk", "brother sister cousin uncle aunt nephew niece stepsister stepbrother"},
    {"jobs",
     "baker farmer miller teacher gardener shepherd fisherman tailor postman doctor cook "
     "sailor painter carpenter blacksmith weaver potter shopkeeper librarian gamekeeper "
     "beekeeper clockmaker cobbler milkmaid ferryman lighthouse_keeper woodcutter toymaker "
     "musician fiddler drummer piper singer dancer poet juggler clown magician conductor "
     "driver pilot captain builder plumber nurse barber butcher grocer florist jeweller "
     "hatter cheesemaker candlemaker basketmaker bookbinder printer goldsmith tinker pedlar "
     "merchant innkeeper waiter porter gatekeeper watchman nightwatchman bellringer roofer "
     "bricklayer stonemason thatcher ploughman goatherd stableboy groom saddler rider "
     "coachman chimney_sweep street_sweeper mapmaker explorer inventor professor scholar "
     "artist actor acrobat puppeteer storyteller king queen prince princess knight page mayor "
     "judge goatkeeper shipwright wheelwright locksmith glassblower swineherd cowherd "
     "woodcarver beadmaker ropemaker broommaker hatmaker lampmaker bagmaker puppetmaker "
     "violinist pianist trumpeter flautist organist cellist astronomer botanist zoologist "
     "geologist sculptor dentist optician pharmacist engineer electrician mechanic surveyor "
     "archivist curator translator reporter photographer secretary accountant auctioneer "
     "bargeman boatman oarsman cabin_boy deckhand diver skipper stoker signalman "
     "ticket_collector orchardist forester ranger huntsman falconer jockey ringmaster "
     "trapeze_artist tightrope_walker fortune_teller minstrel bard jester herald squire duke "
     "duchess count countess baron baroness emperor empress sultan"},

    // Animals, by how they live.
    {"beasts",
     "rabbit mouse fox bear kitten puppy squirrel hedgehog badger mole hare otter beaver deer "
     "lamb goat pony donkey pig calf hamster raccoon weasel ferret chipmunk fawn piglet foal "
     "monkey lion tiger elephant giraffe zebra camel panda koala kangaroo llama wombat lynx "
     "marmot dormouse shrew vole stoat wolf bison moose ox mule sheepdog poodle terrier "
     "spaniel tabby gazelle antelope leopard cheetah jaguar hippo rhino gorilla sloth "
     "armadillo anteater porcupine skunk mongoose meerkat lemur alpaca reindeer buffalo "
     "jackal hyena coyote dingo ibex chamois yak oryx impala caribou elk tapir okapi aardvark "
     "warthog boar hound greyhound bulldog dachshund collie husky retriever siamese_cat "
     "gerbil guinea_pig polecat pine_marten sable mink muskrat chinchilla bushbaby gibbon "
     "baboon chimpanzee orangutan wallaby possum platypus bandicoot ocelot puma panther "
     "cougar bobcat jerboa pika"},
    {"beast_acts",
     "nap dig run jump sniff play yawn dream sleep scamper nibble trot stretch graze snuffle "
     "prowl doze scratch munch gnaw burrow scurry snore growl grunt snort squeak bark purr "
     "browse bound gallop canter lope stalk pounce slink sprawl snuggle huddle rummage forage "
     "chew lap lick pant sprint romp frolic tumble wallow groom hibernate curl crouch creep "
     "prick sneak squeal whine whimper rustle scrabble roam roar scavenge nestle lounge amble "
     "lumber nuzzle nudge butt bray bleat whinny neigh moo meow howl yelp yap yowl bellow "
     "trumpet crunch gobble guzzle slurp snarl rear wag bristle scowl thump trample loll "
     "slumber"},
    {"birds",
     "owl robin duck hen sparrow swan goose crow blackbird wren pigeon dove magpie finch "
     "thrush starling swallow heron stork gull parrot woodpecker cuckoo lark nightingale "
     "rooster duckling raven hawk eagle jay puffin penguin pelican peacock turkey kingfisher "
     "canary gosling quail pheasant partridge falcon ostrich flamingo hummingbird seagull "
     "buzzard kestrel budgie toucan cockatoo albatross moorhen coot cygnet kite warbler "
     "osprey vulture condor bittern ibis spoonbill curlew sandpiper plover snipe godwit "
     "redshank oystercatcher cormorant gannet tern petrel razorbill guillemot mallard teal "
     "grebe goldfinch bullfinch chaffinch linnet siskin nuthatch treecreeper wagtail redstart "
     "blackcap whitethroat fieldfare waxwing jackdaw rook hoopoe oriole lyrebird macaw "
     "parakeet lovebird emu cassowary kiwi guinea_fowl turtle_dove bantam"},
    {"bird_acts",
     "sing hop chirp flap peck call dance sleep flutter glide circle perch swoop tweet "
     "twitter coo caw cluck quack honk hoot whistle preen nest roost soar hover warble trill "
     "chatter crow squawk screech strut waddle cheep gobble dive wheel flit dart pipe cackle "
     "trumpet scratch bob skim roam snatch mew scold jabber squabble brood fledge moult "
     "migrate flock dabble skitter"},
    {"bugs",
     "bee butterfly ant beetle ladybird spider cricket snail worm caterpillar moth dragonfly "
     "grasshopper firefly bumblebee wasp gnat slug centipede earwig woodlouse mayfly silkworm "
     "glow-worm cicada housefly hornet midge aphid flea louse locust mantis weevil tick "
     "millipede leech scorpion tarantula horsefly crane_fly hoverfly lacewing stag_beetle "
     "dung_beetle water_boatman pond_skater stick_insect"},
    {"bug_acts",
     "buzz crawl hum dance fly hop sleep creep march flit scuttle drone whirr wriggle tickle "
     "hover climb glimmer spin squirm inch zigzag zoom scurry swarm nibble gnaw burrow dangle "
     "pirouette waltz prance loiter"},
    {"fishes",
     "fish frog crab turtle trout toad seal newt salmon dolphin whale tadpole eel carp pike "
     "minnow lobster starfish octopus walrus shrimp goldfish stickleback jellyfish seahorse "
     "catfish herring sardine squid mussel oyster tuna cod haddock mackerel sole plaice "
     "flounder halibut perch roach tench bream sturgeon swordfish angelfish clownfish "
     "pufferfish anchovy prawn crayfish cockle winkle limpet clam cuttlefish manatee porpoise "
     "narwhal stingray shark turbot"},
    {"fish_acts",
     "swim splash float dive jump play hide bob paddle drift wriggle bubble leap glide wallow "
     "snooze flick flounder bask croak lurk plop surface dart circle shimmer spout ripple "
     "spawn gulp burble skim twist"},

    // Where.
    {"spots",
     "gate bridge well pond fence wall hedge bench stile signpost haystack old_oak mill "
     "stream path bush log stump rock barn shed fountain statue clock_tower post_box "
     "lamp_post corner crossroads ditch puddle woodpile chicken_coop beehive birdhouse "
     "scarecrow wheelbarrow ferry_landing boathouse jetty pier railway_line tunnel archway "
     "doorway staircase balcony veranda porch chimney rooftop waterfall rabbit_hole anthill "
     "molehill thicket clearing glade bramble_patch cabbage_patch cornfield hollow ridge "
     "gully brook ford dam spring cart_track culvert milestone windowsill hearth trough "
     "kennel pigsty paddock turnstile drawbridge moat rampart turret steeple belfry "
     "weathervane drainpipe gutter pavement kerb alley lane avenue boulevard roundabout "
     "footbridge causeway towpath lock weir estuary lagoon cove inlet headland dune marsh bog "
     "fen copse spinney grove heath knoll mound hillock ravine gorge crater cavern grotto "
     "burrow den lair nest_box compost_heap rockery trellis pergola gazebo sundial"},
    {"rooms", "kitchen bedroom attic hall parlour pantry cellar workshop nursery classroom study "
              "bathroom playroom corridor laundry cupboard loft ballroom"},
    {"buildings",
     "house cottage hut farm school shop church inn bakery mill tower castle palace stable "
     "barn shed theatre hospital museum library station cabin bungalow mansion tent igloo "
     "treehouse lighthouse factory post_office town_hall toy_shop bookshop sweet_shop bank "
     "hotel temple chapel cathedral fortress wigwam houseboat caravan bookstall kiosk "
     "pavilion bandstand greenhouse conservatory observatory planetarium aquarium dairy "
     "brewery smithy forge sawmill boathouse monastery convent abbey priory manor_house villa "
     "chalet hermitage shack hovel cowshed henhouse dovecote kennel granary silo warehouse "
     "workshop foundry laundry pharmacy clinic hostel guest_house tavern canteen cafeteria "
     "restaurant tearoom cinema opera_house circus_tent stadium skyscraper tower_block"},
    {"furniture",
     "bed table chair sofa cupboard shelf wardrobe chest desk stool rug cushion bench cradle "
     "drawer bookshelf armchair dresser curtain mattress carpet footstool trunk cabinet "
     "sideboard mirror washstand hammock dressing_table bedside_table bunk cot settee couch "
     "pouffe lampshade chandelier candlestick coat_stand umbrella_stand hatstand fireplace "
     "mantelpiece larder writing_desk music_stand grandfather_clock cuckoo_clock window_seat "
     "lectern"},

    // What things look like.
    {"looks",
     "red little blue shiny old wooden golden round green silver yellow new tiny big white "
     "pretty striped soft spotted painted bright woollen purple strange long pink smooth "
     "fancy orange small lovely velvet paper tin copper glass clay brass patched dusty curly "
     "crooked glittering plain checked dotted brown black grey violet scarlet crimson "
     "turquoise ivory amber pearly silken leather heavy light neat splendid handsome curious "
     "marvellous ancient antique faded battered polished carved embroidered handmade homemade "
     "feathery fluffy furry sparkling gleaming glossy dainty delicate elegant enormous magic "
     "magical wonderful special precious rare simple sturdy beautiful colourful "
     "rainbow-coloured magnificent spotless sparkly frayed tattered crumpled creased "
     "threadbare moth-eaten scorched rusted tarnished weathered varnished lacquered enamelled "
     "engraved gilded jewelled beaded tasselled fringed quilted knitted crocheted woven "
     "plaited pleated ruffled starched padded cushioned hollow slender oval square triangular "
     "diamond-shaped star-shaped heart-shaped mustard-yellow sky-blue grass-green snow-white "
     "jet-black cherry-red rose-pink lilac-coloured cream-coloured chequered speckled "
     "freckled mottled marbled transparent luminous"},
    {"materials",
     "wood wool paper clay straw tin glass silk stone leather silver gold copper cotton linen "
     "velvet brass iron marble cardboard felt wax ribbon rope string twigs bark reeds "
     "feathers shells bamboo cork rubber plastic tinfoil porcelain pewter bronze lead slate "
     "granite sandstone plaster chalk raffia hemp jute flax muslin gauze lace satin corduroy "
     "denim tweed flannel burlap moss acorns pebbles sequins beads buttons"},
    {"qualities",
     "pretty small bright shiny soft funny old strange round lovely fine tiny smooth neat odd "
     "rare plain tidy clean dusty rusty muddy sticky slippery wobbly fluffy furry silky "
     "velvety sparkly curly wavy bumpy lumpy knobbly crooked narrow thin thick slim plump "
     "light flat sharp hard stiff rough cheap dear strong weak sturdy elegant beautiful "
     "wonderful marvellous peculiar unusual colourful handsome graceful splendid magnificent "
     "interesting cheerful simple tight loose dull pale scruffy shabby hairy woolly prickly "
     "creaky squeaky glossy dainty nice new pointy frilly stripy spotty chunky sleek quaint "
     "quiet loud noisy bouncy squashy squishy fuzzy downy crinkly wrinkly crumpled rickety "
     "shaky flimsy brittle stubby stumpy lanky gangly jagged ragged scratchy itchy gritty "
     "grainy chalky powdery greasy oily waxy soapy foamy frothy bubbly grubby grimy murky "
     "smeary blotchy streaky patchy dingy drab gaudy showy flashy classy posh swanky snazzy "
     "natty dapper trim shapely comely homely lowly humble mighty weighty hefty burly brawny "
     "beefy flabby saggy baggy floppy droopy"},
    {"sizes",
     "big tall long wide old heavy high large great huge grand strong broad deep steep dark "
     "vast mighty lofty roomy bulky fat steady quiet slow lonely gloomy stately"},
    {"tastes",
     "sweet tasty crisp fresh juicy good warm crunchy rich spicy salty sour bitter creamy "
     "crumbly buttery sugary nutty fruity hot mild delicious plain sticky chewy dry peppery "
     "lemony minty honeyed syrupy smoky tangy zesty sharp savoury tender gooey runny stodgy "
     "doughy floury velvety bland wholesome"},
    {"skies",
     "sunny warm bright fine cold windy clear rainy foggy frosty snowy cloudy stormy breezy "
     "misty chilly icy grey dark calm cool hot wet dry mild fresh gloomy hazy drizzly muggy "
     "sultry balmy sticky thundery blustery gusty nippy parky raw bleak murky soggy damp "
     "moist slushy crisp dewy golden peaceful glorious"},

    // Small and large things that stories are full of.
    {"smalls",
     "button pebble feather acorn shell coin key leaf nut twig marble ribbon thimble needle "
     "pin bead cork thread stone seed petal spoon candle match nail screw bottle cup stamp "
     "envelope pencil crayon eraser ruler brush comb mirror ring bracelet brooch buckle "
     "shoelace glove mitten sock handkerchief purse parcel label ticket card domino whistle "
     "bell clothes_peg paper_clip teaspoon eggshell pine_cone chestnut conker walnut hazelnut "
     "peanut cherry_stone padlock earring locket tassel bobbin reel hairpin inkpot postcard "
     "magnet toothpick lid hook peg safety_pin paper_bag cotton_reel jam_jar_lid bottle_top "
     "chess_piece jigsaw_piece pawn dart arrow pea acorn_cup catkin sycamore_seed dandelion "
     "gooseberry rosehip sloe pip almond cashew pistachio raisin currant lentil bean "
     "peppercorn clove bay_leaf eggcup salt_cellar napkin_ring cufflink collar_stud sequin "
     "zip pompom tiddlywink shuttlecock golf_ball snail_shell sea_urchin starfish fossil "
     "crystal amber_bead ruby emerald sapphire pearl opal nugget"},
    {"counters", "marble coin button shell pebble nut stamp card bead pencil"},
    {"marks", "shadow footprint dewdrop raindrop snowflake icicle spark bubble sunbeam moonbeam "
              "cobweb puddle crumb toadstool mushroom clover thistle rainbow hoofprint pawprint "
              "mudpie snowball whirlpool ripple sandcastle dandelion_clock"},
    {"bigs",
     "house barn tree mountain ship whale elephant castle tower bridge haystack bus train "
     "church hill cloud cathedral windmill wardrobe lorry tractor wagon boulder giant palace "
     "pyramid steamboat crane oak forest island iceberg volcano dragon skyscraper lighthouse "
     "steam_engine airship cliff hippopotamus mammoth dinosaur brontosaurus rhinoceros "
     "fortress galleon barge warehouse stadium waterfall glacier meteor planet"},
    {"tools",
     "hammer rope ladder spade saw basket bucket broom rake needle net pole axe shovel "
     "pitchfork wheelbarrow hook crowbar screwdriver spanner chisel file pulley lever plank "
     "oar paddle lamp torch lantern whisk sieve hoe trowel watering_can paintbrush knife fork "
     "jug barrel sack crate box tub cart sledge raft stick fishing_rod clothes_line bell horn "
     "whistle mallet pickaxe sickle scythe dibber hosepipe sprinkler stepladder trolley "
     "pulley_block winch anchor tiller rudder poker ladle spatula corkscrew tin_opener "
     "nutcracker grater peeler colander funnel measuring_jug rolling_pin tape_measure "
     "spirit_level plumb_line protractor compass_point set_square stapler hole_punch "
     "paper_knife magnet feather_duster carpet_beater mangle clothes_horse"},
    {"woodworks",
     "stool boat table chair box cart bench shelf ladder fence gate hutch birdhouse toy_train "
     "wagon cradle bridge raft sledge picture_frame chest cupboard rocking_chair bookcase "
     "dolls_house swing see-saw treehouse wheelbarrow drum rocking_horse model_ship "
     "window_box signpost tray spinning_wheel kennel trellis barrel bucket oar wardrobe "
     "puppet_theatre stepladder easel desk lectern throne coffer crate hatstand bookshelf "
     "nesting_box rabbit_run dog_kennel hen_coop pergola arbour pier jetty stile turnstile "
     "canoe paddle mast rudder cartwheel spinning_top yo-yo whistle xylophone music_box "
     "chessboard domino_box skittle marionette rattle abacus clock_case barometer sundial "
     "weathervane windmill waterwheel pagoda summerhouse gazebo"},
    {"wood_acts",
     "build paint carve saw mend polish clean sand nail hammer glue varnish oil repair fix "
     "plane drill whittle construct assemble design measure scrub trim dust wax stencil "
     "engrave gild chisel whitewash dismantle lacquer stain prime gouge notch groove bevel "
     "splice brace prop dowel clamp screw bolt hinge panel board creosote sharpen hew fell "
     "lop split chop stack"},
    {"cloths",
     "scarf quilt blanket coat jacket bag hat flag curtain cushion doll kite tablecloth shawl "
     "cloak towel handkerchief pillow rug tent sail puppet tapestry nightshirt hammock cape "
     "doormat teddy apron banner sunshade bedspread eiderdown pillowcase bolster napkin "
     "tea_towel dishcloth flannel bathrobe dressing_gown nightcap bonnet poncho sarong kimono "
     "turban sash cummerbund gaiter legging sock stocking mitten muff bunting pennant "
     "streamer lampshade cosy teacosy knapsack satchel haversack purse wallet pincushion "
     "patchwork sampler"},
    {"cloth_acts",
     "sew knit fold mend wash patch cut weave stitch dye embroider iron hem darn pin crochet "
     "unfold unpick roll_up hang_up trim decorate stuff line pad tack starch shorten lengthen "
     "beat quilt smock pleat ruffle gather tuck baste bead braid knot fringe tassel felt card "
     "spin bleach rinse wring launder press smooth crease drape"},
    {"handles",
     "make carry finish clean paint mend wash buy sell admire lift drag push pull weigh study "
     "examine describe borrow lend move lower raise cover label store hide wrap unwrap "
     "improve restore inspect test copy choose order deliver unpack draw sketch invent return "
     "measure tidy straighten dust acquire collect arrange display decorate auction donate "
     "present exchange swap barter rent hire value price photograph varnish weigh_up balance "
     "steady lean prop tilt tip roll shove heave hoist haul tow tug drop catch throw toss "
     "juggle hug cuddle stroke pat tap knock ring rattle shake"},
    {"clothes",
     "hat coat scarf shirt dress boot shoe sock jacket cap mitten jumper skirt apron cloak "
     "belt bonnet glove waistcoat nightgown slipper sandal raincoat cardigan petticoat "
     "bow_tie collar cuff hood sweater blouse gown robe vest swimsuit uniform costume anorak "
     "duffel_coat overcoat mackintosh blazer tunic toga kilt pinafore romper frock ballgown "
     "tutu nightshirt pyjama_jacket dressing_gown bathrobe shawl stole muffler cravat tie bib "
     "sunhat beret bowler top_hat helmet tiara earmuff wellington clog moccasin trainer "
     "plimsoll stocking garter brace"},
    {"instruments",
     "drum flute fiddle trumpet bell guitar piano harp banjo horn whistle tambourine "
     "accordion cello clarinet trombone violin mandolin xylophone recorder bagpipe triangle "
     "mouth_organ ukulele gong lute tuba piccolo oboe bassoon saxophone cornet bugle "
     "euphonium french_horn viola double_bass zither lyre sitar balalaika dulcimer "
     "harpsichord organ concertina kazoo ocarina panpipe castanet maraca bongo kettledrum "
     "cymbal glockenspiel"},
    {"vehicles",
     "cart boat wagon train bus bicycle sledge tractor lorry coach ship canoe raft tram van "
     "ferry sailing_boat steamer barge carriage tricycle scooter balloon airship aeroplane "
     "helicopter submarine fire_engine milk_float rowing_boat yacht rocket motorbike "
     "wheelbarrow handcart dogcart hay_wagon sleigh stagecoach rickshaw sidecar moped minibus "
     "double-decker trolleybus streetcar locomotive handcar cable_car gondola dinghy "
     "catamaran schooner frigate tugboat paddle_steamer hovercraft houseboat lifeboat kayak "
     "punt glider seaplane airliner spaceship snowplough combine_harvester bulldozer digger "
     "crane dustcart ambulance taxi limousine caravan"},
    {"trees",
     "oak apple willow pine birch maple chestnut pear cherry elm beech plum fir hazel cedar "
     "walnut poplar palm olive fig lemon orange rowan hawthorn sycamore spruce larch alder "
     "cypress juniper acacia aspen baobab buckthorn catalpa cork_oak cottonwood dogwood ebony "
     "elder eucalyptus ginkgo hemlock holly hornbeam horse_chestnut ironwood laburnum laurel "
     "linden locust magnolia mahogany mangrove medlar mimosa monkey_puzzle mulberry myrtle "
     "redwood rosewood sequoia tamarind teak yew"},
    {"flowers",
     "daisy rose tulip poppy daffodil buttercup bluebell sunflower lily violet primrose "
     "snowdrop dandelion pansy foxglove marigold iris crocus lavender_bush hyacinth carnation "
     "geranium forget-me-not cornflower honeysuckle snapdragon peony orchid lupin cowslip "
     "harebell hollyhock dahlia aster lilac jasmine_bush cyclamen sweet_pea anemone begonia "
     "bergamot betony bindweed bluet bougainvillea bryony camellia campion candytuft catmint "
     "celandine chamomile chrysanthemum clematis columbine comfrey delphinium edelweiss "
     "evening_primrose fuchsia gardenia gentian gladiolus goldenrod heather_bell heliotrope "
     "hibiscus hydrangea larkspur lobelia love-in-a-mist mallow meadowsweet michaelmas_daisy "
     "morning_glory nasturtium nigella oxlip petunia phlox pimpernel poinsettia rhododendron "
     "scabious sorrel speedwell stock sweet_william thrift toadflax verbena vetch wallflower "
     "wisteria yarrow zinnia"},
    {"crops",
     "bean pumpkin carrot sunflower turnip cabbage pea onion potato tomato radish beetroot "
     "leek lettuce marrow melon strawberry raspberry cucumber parsnip gourd cauliflower "
     "pepper rhubarb_stalk artichoke"},
    {"produce",
     "apple pear plum carrot cherry strawberry potato tomato banana orange bean pea onion nut "
     "grape blueberry peach raspberry melon lemon cabbage pumpkin turnip cucumber mushroom "
     "radish apricot fig date walnut almond blackberry gooseberry cranberry currant pepper "
     "parsnip lettuce leek coconut pineapple mango kiwi lime pomegranate beetroot hazelnut "
     "artichoke marrow aubergine mulberry elderberry sweet_potato tangerine nectarine quince "
     "shallot sprout avocado broccoli_stem brussels_sprout chicory_head courgette endive "
     "fennel_bulb gherkin kohlrabi okra_pod radicchio swede yam clementine satsuma mandarin "
     "grapefruit passion_fruit papaya guava lychee persimmon damson greengage redcurrant "
     "blackcurrant loganberry bilberry huckleberry sultana prune cashew pecan pistachio "
     "brazil_nut olive caper"},
    {"produce_acts",
     "pick chop slice peel wash count mash gather grate dice pickle rinse weigh stew squash "
     "shred stack halve quarter core crush trim sort scrub pluck poach zest pit hull de-stone "
     "julienne blanch bottle preserve dry harvest market weigh_out bundle polish nip snip "
     "crop glean"},
    {"bakes",
     "cake pie bun cookie egg sandwich pancake muffin tart biscuit loaf dumpling waffle scone "
     "roll pretzel bagel sausage pudding toffee sweet gingerbread_man doughnut cupcake pasty "
     "omelette meatball crumpet flapjack jam_tart cheese_roll oatcake meringue macaroon "
     "brownie croissant crust fritter shortcake teacake fishcake wafer lollipop chocolate_bar "
     "honeycake baguette ciabatta focaccia brioche strudel turnover tartlet quiche flan "
     "gateau cheesecake fruitcake plumcake applecake nutcake cherrycake carrot_cake "
     "sponge_cake swiss_roll shortbread ginger_snap digestive cracker crispbread rusk "
     "breadstick bap cob muffin_top popover pikelet griddle_cake hotpot_pie pork_pie "
     "sausage_roll patty rissole croquette kebab burger hot_dog pizza taco spring_roll "
     "rice_ball blini"},
    {"bake_acts",
     "bake butter warm toast share taste eat glaze fry serve nibble sugar burn heat crumble "
     "frost decorate cool sell devour steam munch gobble salt season smell ice dust dredge "
     "brush prick score toss flip turn crimp fill stuff stack wrap unwrap guzzle gorge relish "
     "savour scoff nibble_at polish_off dunk"},
    {"liquids",
     "milk soup tea lemonade cocoa juice water custard stew broth cider cream porridge gravy "
     "buttermilk sauce syrup yoghurt coffee punch ginger_beer oatmeal cordial squash "
     "ginger_ale root_beer milkshake smoothie nectar sherbet chowder goulash bouillon "
     "gazpacho casserole curry bechamel mayonnaise vinegar olive_oil rosewater barley_water "
     "elderflower_water"},
    {"liquid_acts",
     "stir pour boil taste warm cool drink heat simmer sip serve strain spill season sample "
     "slurp thicken ladle swallow whisk sweeten gulp stir_up shake dilute sieve skim decant "
     "bottle freeze chill thin beat froth curdle reduce scald sip_at lap dribble splash"},
    {"drys",
     "flour sugar salt rice butter cheese honey jam bread cinnamon vanilla oats garlic "
     "spinach mustard treacle marmalade popcorn pastry dough marzipan fudge nutmeg celery "
     "parsley barley peppermint ginger pepper batter thyme mint nougat corn rye sago basil "
     "semolina tapioca couscous quinoa millet bulgur lentils cornflour yeast baking_powder "
     "gelatine icing castor_sugar demerara sea_salt paprika turmeric cumin coriander cardamom "
     "saffron oregano rosemary sage tarragon chives dill bay marjoram horseradish chutney "
     "peanut_butter lemon_curd lard margarine suet"},
    {"vessels",
     "basket bowl jar plate cup bag pot sack box tray barrel bucket hamper saucepan crock tin "
     "tub pail dish casserole crate bundle urn vase canteen vat cask keg trough tank bin hod "
     "pannier punnet trug hatbox shoebox matchbox toolbox lunchbox jewel_case envelope wallet "
     "satchel haversack"},
    {"jugs", "cup jug mug bottle pot glass teapot flask pitcher beaker kettle bucket pail bowl "
             "saucepan goblet tumbler tankard thermos urn cauldron churn ladle tureen"},
    {"jars",
     "jar bag tin bowl pot box sack spoon cup packet tub crock pinch pound handful spoonful "
     "sackful mountain heap barrel canister"},
    {"toys",
     "ball doll kite puzzle puppet train drum teddy top marble block balloon hoop yo-yo "
     "sledge swing see-saw slide rattle jigsaw whistle tin_soldier toy_boat rocking_horse "
     "skittle dolls_house kaleidoscope jack-in-the-box spinning_wheel pogo_stick stilt quoit "
     "frisbee boomerang catapult pea_shooter rubber_duck rag_doll glove_puppet shadow_puppet "
     "model_aeroplane toy_car clockwork_mouse robot rocket space_hopper sandpit "
     "climbing_frame trampoline roller_skate skateboard"},
    {"parts",
     "hand foot nose ear finger knee arm leg shoulder toe cheek chin elbow thumb tooth eye "
     "eyebrow ankle wrist heel lip paw tail wing whisker neck back tummy forehead eyelash "
     "eyelid jaw throat collarbone shoulder_blade forearm knuckle fingernail palm rib hip "
     "thigh calf shin kneecap instep toenail hoof claw beak feather_tip mane fin snout trunk "
     "antler"},
    {"weathers",
     "rain snow wind sun fog frost mist thunder hail storm drizzle breeze sunshine lightning "
     "sleet gale blizzard cloud rainbow shower dew hailstones sunbeams thunderclouds "
     "moonlight starlight twilight dawn dusk haze smog spray sea_breeze north_wind downpour "
     "cloudburst deluge whirlwind heatwave thaw slush hoarfrost"},
    {"baby_animals", "kitten lamb puppy duckling chick calf foal piglet cub fawn gosling kid "
                     "cygnet owlet leveret tadpole"},
};

const struct story_table story_words = {
    .lists = lists,
    .n_lists = sizeof lists / sizeof *lists,
};
