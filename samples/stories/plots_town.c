// SPDX-License-Identifier: Apache-2.0
// What happens among friends and neighbours: the beats that plots.c strings together.
#include "samples/stories/grammar.h"

static const struct story_rule rules[] = {
    // Two friends fall out and make it up.
    RULE("quarrel_title", "", "", "{hero} and {pal}\n", "The quarrel about the {treasure}\n"),
    RULE("quarrel_both",
         "^[one_day] {hero} and {pal} found @ {look} {treasure} [near]. <^it is mine,> "
         "[hero_said]. <^no, it is mine,> [pal_said].",
         "{pal} had a new {treasure}. <^may I {treasure.1}?> [hero_asked]. <^no,> [pal_said], <you "
         "will break it.>",
         "^[one_day] {hero} borrowed the {look} {treasure} of {pal}, and it [falls:ed]. <^you "
         "broke my {treasure}!> [pal_said].",
         "^there was only one {look} {treasure}, but there were two who wanted to {treasure.1}: "
         "{hero} and {pal}.",
         "{hero} and {pal} wanted to [acts], but {hero} wanted to {treasure.1} first. <^it is "
         "always you who is first,> [pal_said]."),
    RULE("quarrel_angry",
         "^they [frets:ed] and they shouted. ^then {hero} went home by the {spot}, and {pal} went "
         "home by the {spot2}.",
         "<^you are the [traits:est] {hero.2} I know!> [pal_said]. <^and you are [traits:er] than "
         "@ [beasts]!> [hero_said]. ^both were [sad_it].",
         "^they pulled until it [falls:ed]. ^now nobody could {treasure.1}. [felt_sad]",
         "<^I shall never [acts] with you again,> [hero_said]. <^and I shall never [acts] with "
         "you,> [pal_said].",
         "^one word led to another. {pal} [goes:ed] away, and {hero} [frets:ed]."),
    RULE("quarrel_alone",
         "{hero} tried to [acts] alone. ^it was no fun. {pal} tried to [acts] alone. ^it was no "
         "fun either. [nature]",
         "^on {weekday} {hero} [acts:ed] all by [himself]. ^on [weekdays] [he] counted {#n} "
         "[smalls:s]. ^it was a long, [sadness] week.",
         "<^why are you so [sadness]?> [elder_asked]. {hero} told [ehim]. <^[lesson_now],> "
         "[elder_said].",
         "^@ {helpertrait} {helper} saw [him] sitting [near]. <^who has lost a friend?> "
         "[helper_asked]. <^I have,> [hero_said]. <^then go and look for [phim].>",
         "{hero} looked at the {treasure}. ^it was not as [qualities] as before. [nature] <^I miss "
         "{pal},> [hero_said]."),
    RULE("lesson_now", "{lesson}", "you know what to do", "a sorry heart should not wait",
         "go and say it"),
    RULE("quarrel_sorry",
         "^so {hero} [goes:ed] to {pal}. <^I am sorry,> [hero_said]. <^I am sorry too,> "
         "[pal_said]. ^from then on they took turns with the {treasure}.",
         "^at the {spot} they met. ^both said <sorry> at the same time, and both laughed. ^they "
         "shared {#n} [foods:s], and {hero} let {pal} {treasure.1} first.",
         "{hero} made @ [made] and took it to {pal}. <^will you forgive me?> [hero_asked]. <^yes,> "
         "[pal_said], <if you [acts] with me.>",
         "^they mended the {treasure} together with @ [tools] and some [materials]. ^it was "
         "[qualities:er] than before. [felt_glad]",
         "<^you may have it,> said {hero} to {pal}. <^no, you may have it,> [pal_said]. ^in the "
         "end they gave the {treasure} to the {job}, who had none."),

    // A noise in the night.
    RULE("night_title", "", "", "The {noise} in the night\n", "{hero} in the dark\n"),
    RULE("night_hear",
         "^one night {hero} could not sleep. ^there was @ {noise}, first soft, then loud.",
         "^it was {#t} o'clock at night when {hero} heard @ {noise}. ^the {noise} came from the "
         "[rooms].",
         "^the moon [shines:ed] through the window. ^suddenly there was @ {noise}. <^what is "
         "that?> [hero_asked].",
         "^one [night_weather] night the wind [winds:ed] and the rain [rains:ed]. ^and then {hero} "
         "heard it: @ {noise}!",
         "{hero} woke up in the middle of the night. ^everyone was asleep. ^but what was that "
         "{noise}?"),
    RULE("night_weather", "stormy", "windy", "rainy", "cold", "dark", "foggy"),
    RULE("night_fear",
         "<^perhaps it is a dragon,> [hero_said]. ^[his] [parts:s] began to shake. [felt_sad]",
         "^[he] hid under the [clothes:s]. ^[he] hid under the [furniture]. ^but the {noise} went "
         "on.",
         "^was it @ [beasts]? ^was it a giant? ^was it @ [beasts] as big as @ [bigs]? [felt_sad]",
         "^[he] counted to {#n+m}, but the {noise} did not stop. ^[he] thought of [foods:s], but "
         "the {noise} did not stop.",
         "<^I am as brave as a lion,> [hero_said] to [himself]. ^but lions have no [clothes:s] to "
         "hide under."),
    RULE("night_call",
         "<^come quickly!> [hero_said]. ^[his] {elder} came with @ [lamp]. <^let us look "
         "together,> [elder_said]. ^they [goes:ed] to the [rooms] and looked [indoors].",
         "{hero} took @ [lamp] and [his] {treasure}. <{refrain}> [he] whispered, and [he] "
         "[goes:ed] down the stairs, {#n} steps and {#m} steps more.",
         "{pal}, who was staying the night, woke up too. <^we are two,> [pal_said], <and the "
         "{noise} is only one.> ^they [goes:ed] to the door and looked out.",
         "<^@ {noise} is only @ {noise},> [hero_said]. ^[he] put on @ [colours] [clothes] and "
         "[goes:ed] [manners:ly] towards it.",
         "<^who is there?> [hero_asked]. ^nobody answered. ^so [he] lit @ [lamp] and looked "
         "[indoors] and [indoors]."),
    RULE("lamp", "lantern", "lamp", "candle", "torch"),
    RULE("night_found",
         "^and what was it? ^it was only the {noise.1}! {hero} laughed. ^[then] [he] slept until "
         "the sun came up.",
         "<^look,> [hero_said], <it is the {noise.1}!> ^they laughed until they were tired.",
         "^there was no dragon and no giant. ^there was the {noise.1}, and that was all. "
         "[felt_glad]",
         "^it was the {noise.1}. <^good night, {noise},> [hero_said], and then [he] was not afraid "
         "any more.",
         "<^so it was you!> [hero_said]. ^for there it was, the {noise.1}. ^after that {hero} "
         "liked the {noise} and could not sleep without it."),

    // A race, and something better than winning.
    RULE("race_title", "", "", "The great race of {town}\n", "{hero} against {rival}\n"),
    RULE("race_call",
         "^[one_day] the {job} of {town} called: <^who is the fastest from the {spot} to the "
         "{spot2}? ^the prize is @ {look} {treasure}!>",
         "^on {weekday} there was a race from the {spot} to the {spot2}. ^the winner would get "
         "{#n} [foods:s] and @ {look} {treasure}.",
         "^every [seasons] {town} held a race to the {spot2}. ^{#n} [beasts:s], {#m} [birds:s] and "
         "{hero} wanted to run.",
         "<^tomorrow is the great race,> said the {job} [one_day]. <^who is first at the {spot2} "
         "may keep this {look} {treasure}.>"),
    RULE("race_boast",
         "<^I shall win,> said {rival} the {palbeast}. <^nobody [goes:z] [manner_er] than I.> "
         "{hero} said nothing.",
         "{rival} was the [traits:est] runner of all. <^you [goes] like @ [bugs],> [rhe] said to "
         "{hero}. <^we shall see,> [hero_said].",
         "<^can @ {hero.2} like you run?> asked {rival}. {hero} only [gestures:ed]. <{refrain}> "
         "[he] said to [himself].",
         "{rival} had new shoes, and {hero} had old ones. <^shoes do not run,> [elder_said], <feet "
         "do.>"),
    RULE("race_run",
         "<^one, two, three, go!> cried the {job}. {rival} [goes:ed] ahead, past the {spot3}. "
         "{hero} [goes:ed] behind. <{refrain}>",
         "^the {instrument} sounded, and off they went. {rival} [goes:ed], the [beasts] [goes:ed], "
         "and {hero} [goes:ed] last of all. [nature]",
         "^off they ran! ^at the {spot3} {hero} was {#n} steps behind. ^at the [buildings] [he] "
         "was only {#n-1} steps behind. <{refrain}>",
         "^first {rival} was ahead, then @ [land_animal], then {hero}, then {rival} again. "
         "^everyone [joys:ed] and called their names."),
    RULE("race_stop",
         "^then {rival} slipped [near] and hurt [rhis] [parts]. <^go on and win,> [rhe] said. ^but "
         "{hero} stopped and helped [rhim] up.",
         "^near the {spot3} sat @ little {helper} that had lost its way. {rival} ran past. {hero} "
         "stopped. <^climb on my back,> [hero_said].",
         "^suddenly {rival} stood still. ^there was @ {obstacle}. <^I cannot {obstacle.1},> [rhe] "
         "said. <^let us {obstacle.2},> [hero_said]. ^and they {obstacle.2:ed}.",
         "^but what was that? {rival} sat [near] and [frets:ed]. <^I have lost my [clothes],> "
         "[rhe] said. {hero} gave [rhim] one and waited."),
    RULE("race_end",
         "^side by side they came to the {spot2}. ^the {job} gave one half of the prize to {hero} "
         "and one half to {rival}.",
         "{hero} came last, but everyone cheered. ^the {job} gave [him] the {treasure}. <^for the "
         "[traits:est] heart in {town},> said the {job}.",
         "^they crossed the line together. <^you are [traits:er] than I thought,> said {rival}. "
         "^from that day on they ran together every {weekday}.",
         "<^who has won?> asked the {job}. <^both of us,> said {rival} and took {hero} by the "
         "hand. [felt_glad]"),

    // A riddle.
    RULE("riddle_title", "", "", "The riddle of the {helper}\n", "{hero} guesses\n"),
    RULE("riddle_ask",
         "^[near] sat @ {helpertrait} {helper} who would let nobody pass. <^answer me this,> "
         "[helper_said]. <^what {riddle}?>",
         "^[one_day] the {job} put up a sign: <^who can tell me what {riddle}? ^the prize is @ "
         "{look} {treasure}.> ^even the {helper} came to guess.",
         "<^I know a riddle,> [elder_said] [one_day]. <^what {riddle}?> {hero}, {pal} and the "
         "{helper} thought hard.",
         "^at the {spot} {hero} met @ {helpertrait} {helper}. <^nobody has ever guessed my "
         "riddle,> [helper_said]. <^what {riddle}?>",
         "^on the door of the [buildings] were the words: what {riddle}? <^read it to me,> said @ "
         "{helpertrait} {helper}, and {hero} did."),
    RULE(
        "riddle_wrong",
        "<^is it @ [smalls]?> [hero_asked]. <^wrong,> [helper_said]. <^think again. ^it {riddle}.>",
        "<^it is @ [bigs],> [hero_said]. <^no, no, no,> said the {helper} and [gestures:ed].",
        "<^@ [land_animal]?> [hero_asked]. ^the {helper} laughed. <^@ [land_animal]? ^no!>",
        "{hero} guessed {#n} times. ^it was not @ [tools], not @ [clothes] and not @ [bakes]. ^it "
        "{riddle}."),
    RULE("riddle_again",
         "{pal} guessed too. <^@ [tools]! ^@ [vessels]! ^@ [furniture]!> ^but it was none of "
         "these. [talk]",
         "^they asked the {job2}. <^it must be @ {instrument},> said the {job2}. ^but it was not @ "
         "{instrument}.",
         "{hero} walked up and down and thought. ^[he] thought in the [daytimes], and [he] thought "
         "in the [daytimes]. [nature]",
         "<^I shall sleep on it,> [hero_said]. ^[he] dreamt of [bigs:s] and [smalls:s], but not of "
         "the answer."),
    RULE("riddle_right",
         "^then {hero} saw something [near] and laughed. <^it is @ {riddle.1}! ^@ {riddle.1} "
         "{riddle}.> <^[praise]!> [helper_said].",
         "<^I have it!> [hero_said] at last. <^@ {riddle.1} {riddle}!> ^the {helper} "
         "[gestures:ed]. <^you are the [traits:est] {hero.2} of all,> [helper_said].",
         "^at night, in bed, {hero} suddenly sat up. <^@ {riddle.1}!> [he] cried. <^only @ "
         "{riddle.1} {riddle}.> ^and that was right.",
         "{pal} and {hero} said it at the same time: <^@ {riddle.1}!> <^right,> [helper_said]. "
         "<^two heads think better than one.>"),

    // A chain of swaps.
    RULE("trade_title", "", "", "{hero} makes a swap\n", "^@ {small} for @ {treasure}\n"),
    RULE("trade_want", "{hero} wanted @ {look} {treasure}, but all [he] had was @ {small}.",
         "^in the window of the shop there was @ {look} {treasure}. ^it cost {#n+m} coins, and "
         "{hero} had only @ {small}.",
         "<^if only I had @ {look} {treasure},> [hero_said], <then I could {treasure.1}.> ^but "
         "[he] had nothing but @ {small}.",
         "^[one_day] {hero} found @ {small} [near]. <^who knows what it is good for,> "
         "[elder_said]."),
    RULE("trade_first",
         "^[he] met the {job}, who was looking for @ {small}. <^I will give you @ {tool} for it,> "
         "said the {job}. ^so {hero} gave away the {small} and got @ {tool}.",
         "<^just what I need!> said the {job}. <^my {made} has lost its {small}. ^take this "
         "{tool}.> ^so now {hero} had @ {tool}.",
         "^[near] the {job} was [handles:ing] @ {made}. <^lend me your {small},> said the {job}, "
         "<and this {tool} is yours.>",
         "<^will you swap?> asked the {job}. <^your {small} for my {tool}?> {hero} [gestures:ed], "
         "and so they did."),
    RULE("trade_second",
         "^with the {tool} [he] [goes:ed] on. ^the {job2} needed @ {tool}, and gave [him] {#n} "
         "{food:s} for it.",
         "<^what a fine {tool}!> said the {job2}. <^will you take {#n} {food:s} for it?> {hero} "
         "did. [nature]",
         "^the {job2} could not [chores] without @ {tool}. {hero} [kindnesses:ed] the {job2}, and "
         "got {#n} {food:s} as thanks.",
         "^the {tool} was [too_much] for {hero}, but it was just right for the {job2}. <^here are "
         "{#n} {food:s},> said the {job2}."),
    RULE("trade_done",
         "^at the {spot} sat @ hungry {helper}. <^I have @ {treasure} that I do not want,> "
         "[helper_said], <but I want those {food:s}.> ^and so the {small} had turned into @ "
         "{treasure}!",
         "<^I love {food:s}!> cried the {job3}. <^I have not eaten since {weekday}. ^take my "
         "{look} {treasure}.> ^that is how @ {small} became @ {tool}, the {tool} became {#n} "
         "{food:s}, and the {food:s} became @ {treasure}.",
         "^[soon] [he] met @ {helpertrait} {helper}. <^@ {treasure} for {#n} {food:s}?> "
         "[helper_asked]. <^yes, please!> [hero_said]. [felt_glad]",
         "^then @ {helpertrait} {helper} came by and was hungry. {hero} gave away all the {food:s} "
         "and asked for nothing. ^the next morning @ {look} {treasure} lay on the stairs."),

    // A present made by hand.
    RULE("gift_title", "", "", "A present for {pal}\n", "The {made}\n"),
    RULE("gift_day",
         "^it was {#n} days before the birthday of {pal}. <^what shall I give [phim]?> "
         "[hero_asked].",
         "^on {weekday} {pal} would be {#n} years old, and {hero} had no present.",
         "{pal} was ill and had to stay in bed. <^I shall give [phim] something,> [hero_said].",
         "<^what do you wish for?> {hero} asked {pal}. <^I wish for @ {made},> [pal_said]."),
    RULE("gift_think",
         "^@ {treasure} cost too much. ^@ [clothes] was [too_much]. ^@ [toys]? {pal} had one "
         "already. [talk]",
         "<^you have two hands,> [elder_said]. <^why do you not make @ {made}?>",
         "^[he] asked the {job}. <^make @ {made},> said the {job}. ^[he] asked the {job2}. <^make "
         "@ {made},> said the {job2} too.",
         "{hero} had {#n} coins, but @ {made} cost {#n+m}. <^{#m} coins too few,> said the {job}."),
    RULE("gift_make",
         "^so {hero} took {#n} [smalls:s], @ [tools] and some [materials]. ^[he] worked [all_day]. "
         "^first the {made} [falls:ed], but [he] began again.",
         "^[he] worked at the {made} [all_day]. <{refrain}> [he] sang while [he] was [handles:ing] "
         "it.",
         "^the {job} lent [him] @ [tools], and @ {helpertrait} {helper} brought some [materials]. "
         "^together they worked until the {made} was ready.",
         "^[his] {elder} showed [him] how to [wood_acts] and how to [cloth_acts]. ^on {weekday} "
         "the {made} was ready. ^it was [colours] and [colours], with @ [smalls] on top.",
         "^on [weekdays] [he] [handles:ed] it, on [weekdays] [he] [handles:ed] it again, and on "
         "{weekday} the {made} was [qualities] and [qualities]."),
    RULE("gift_give",
         "<^this is for you,> [hero_said]. {pal} looked at the {made} and [joys:ed]. <^it is the "
         "[qualities:est] {made} in the world!>",
         "{pal} opened the box. <^@ {made}!> [pal_said]. <^did you make it yourself?> <^yes,> said "
         "{hero} and [joys:ed].",
         "^there were {#m} presents on the table, but {pal} liked the {made} best of all. <^it is "
         "[qualities:er] than everything else,> [pal_said].",
         "<^close your eyes,> [hero_said]. {pal} did. ^when [phe] opened them, there was the "
         "{made}. <^[praise]!> [pal_said]."),

    // A stranger becomes a friend.
    RULE("newcomer_title", "", "", "The new {palbeast}\n", "{pal} comes to {town}\n"),
    RULE("newcomer_meet", "^[one_day] a new {palbeast} came to {town}. ^[phis] name was {pal}.",
         "^[one_day] there was somebody new [near]: @ {palbeast} called {pal}, who came from the "
         "{place2}.",
         "^[one_day] @ [vehicles] stopped by the {spot}, and out came @ {palbeast} with @ {look} "
         "{treasure}. <^I am {pal},> [phe] whispered.",
         "<^someone has come to live in the [buildings],> [elder_said] [one_day]. ^it was @ "
         "{palbeast}, and [phis] name was {pal}."),
    RULE("newcomer_shy", "{pal} was [traits] and sat alone [near]. ^nobody asked [phim] to [acts].",
         "^everyone was [acts:ing], but {pal} only watched. ^[phe] was [sad_it].",
         "<^go away, we are [acts:ing],> said {rival}. {pal} was [sad_it] and [goes:ed] behind the "
         "{spot}.",
         "^at the {place2} {pal} had had {#n} friends. ^here [phe] had none. [nature]"),
    RULE("newcomer_try",
         "{hero} went up to [phim]. <^[hello],> [hero_said]. <^do you like [foods:s]?> {pal} "
         "nodded. ^they shared {#n} of them.",
         "<^[hello], {pal},> [hero_said]. <^can you [acts]?> <^no,> [pal_said], <but I can "
         "{skill}.> <^really?> [hero_asked]. <^show me!>",
         "{hero} sat down beside [phim] and said nothing for a while. [nature] <^that was nice,> "
         "[pal_said] at last.",
         "{hero} rolled @ [toys] to [phim]. {pal} rolled it back. ^to and fro it went, {#n} times, "
         "and then {pal} [joys:ed].",
         "<^what is that?> [hero_asked]. <^@ {treasure},> [pal_said]. <^do you want to "
         "{treasure.1}?> {hero} did, and then it was the turn of {pal}."),
    RULE("newcomer_friend",
         "^then {pal} {skill:ed}, and everyone stopped and [looks_at:ed]. <^[praise]!> they cried. "
         "<^will you teach us to {skill}?>",
         "<^where I come from, [fact],> [pal_said]. <^here, [fact],> [hero_said]. ^they talked "
         "[all_day].",
         "<^stay with us,> [hero_said]. ^even {rival} came and said sorry. ^now they were {#n}, "
         "and {#n} is better than {#n-1}.",
         "^the next day {pal} was waiting at the {spot}. <^shall we [acts] again?> [phe] asked. "
         "<^every day,> [hero_said]."),

    // Something is baked, and something is missing.
    RULE("bake_title", "", "", "The {town} {fruit} fair\n", "{hero} and the {fruit} pie\n"),
    RULE("bake_plan",
         "^on {weekday} there was to be a feast, and {hero} wanted to make the [tastes:est] "
         "{fruit} pie of all.",
         "<^let us make something with {fruit:s} for [person],> [elder_said]. {hero} put on @ "
         "[colours] [clothes].",
         "{hero} had never made @ {fruit} pie before. <^today I shall do it,> [hero_said].",
         "<^I am so hungry,> said {pal}. <^then I shall bake you @ {fruit} pie,> [hero_said]."),
    RULE("bake_count",
         "^[he] took {#n} cups of [liquids], {#m} spoons of [drys] and @ [produce]. ^[he] began to "
         "[liquid_acts] and to [bake_acts].",
         "^there were {#n} eggs in one bowl and {#m} eggs in the other. ^that made {#n+m}. {hero} "
         "mixed them with [drys] and [liquids].",
         "<^first [produce_acts] the [produce:s], then [liquid_acts] the [liquids],> [elder_said]. "
         "{hero} [produce_acts:ed] [manners:ly] and [liquid_acts:ed] [manners:ly].",
         "^the book said: {#n} [foods:s], {#m} spoons of [drys], and never [frets]. {hero} did as "
         "it said."),
    RULE("bake_trouble",
         "^but [then] there was no {stuff} left! <^without {stuff} it is no good,> [hero_said]. "
         "[felt_sad]",
         "<^where is the {stuff}?> [hero_asked]. ^the [vessels] was empty. ^@ {helpertrait} "
         "{helper} had eaten it all. <^I was so hungry,> [helper_said].",
         "^[he] tasted a bit. <^[oh_no]!> ^it was too [tastes]. ^it needed {stuff}, and there was "
         "none in the [rooms].",
         "^then the [vessels] [falls:ed], and all the {stuff} was on the floor. [felt_sad]"),
    RULE("bake_mend",
         "^[he] asked the {job}, [he] asked the {job2}, and [he] asked the {job3}. ^the {job3} had "
         "plenty of {stuff}. <^keep me a piece,> said the {job3}.",
         "{pal} [goes:ed] to the [buildings] and came back with some {stuff}. <^[praise]!> "
         "[hero_said]. ^[soon] the whole house smelt of {fruit:s}.",
         "<^take @ [bit] of [drys] instead,> [elder_said]. {hero} did. ^it was [tastes:er] than "
         "ever!",
         "^@ {helpertrait} {helper} knocked at the door. <^I have some {stuff},> [helper_said], "
         "<if I may taste.> ^so there was enough for all. [thanks]"),
    RULE("bit", "spoon", "cup", "bit", "drop", "handful"),

    // A day at school.
    RULE("school_title", "", "", "The first day at school\n", "{hero} learns to read\n"),
    RULE("school_bell", "^at {#t} o'clock the bell rang. {hero} sat down next to {pal}.",
         "^it was the first day at school. [felt_sad] ^but then [he] saw {pal}.",
         "^on {weekday} the teacher was the {job}, because the old teacher was ill.",
         "{hero} put {#n} pencils and @ {food} into [his] bag and [goes:ed] to school with {pal}."),
    RULE("school_sum",
         "<^how much is {#n} and {#m}?> asked the teacher. <^{#n+m}!> [hero_said]. <^[praise]!>",
         "<^{#n:d} and {#m:d} make {#n+m:d},> [pal_said]. <^and {#n+m:d} less {#m:d} is {#n:d},> "
         "[hero_said].",
         "{hero} had {#n} [counters:s], and {pal} had {#m}. <^together that is {#n+m},> said the "
         "teacher.",
         "<^count the [beasts:s] in the picture,> said the teacher. {hero} counted {#n+m}, and "
         "that was right."),
    RULE("school_break", "^in the break they [acts:ed] [near]. [talk]",
         "^then it was time to sing. {pal} played the [instruments], and {hero} [joys:ed].",
         "^after school {hero} showed [his] {elder} the word. <^[praise],> [elder_said].",
         "^they painted @ [looks] [bigs], and the teacher hung it on the wall. [felt_glad]"),

    // An ordinary good day.
    RULE("day_morning",
         "^in the morning {hero} helped [his] {elder} to [chores] and to [chores]. ^then [he] went "
         "to the {place2} with {pal}.",
         "^at {#t} o'clock {hero} got up, washed [his] [parts:s] and put on [his] [clothes:s]. "
         "^[he] had [foods:s] and [stuffs] for breakfast.",
         "^it was the [skies:est] morning of [months]. {hero} and {pal} [goes:ed] to the {place2}.",
         "<^what shall we do today?> asked {pal}. <^let us go to the {place2},> [hero_said], and "
         "they [goes:ed] off."),
    RULE("day_noon",
         "^at noon they [acts:ed] [near]. {hero} found {#n} [smalls:s], and {pal} found {#m}. "
         "^together they had {#n+m}.",
         "^they visited the {job}, who let them [wood_acts] @ [woodworks]. ^then they visited the "
         "{job2}, who let them [bake_acts] the [bakes:s].",
         "^they counted {#n} [vehicles:s] and {#m} [beasts:s] on the road. <^that makes {#n+m},> "
         "[pal_said].",
         "{hero} had @ [colours] [instruments], {pal} had @ [colours] one. ^they played, and the "
         "[beasts:s] [beast_acts:ed] to the music.",
         "^there was @ [bigs] [at_place2]. ^they [acts:ed] round it {#n} times and [acts:ed] on "
         "top of it."),
    RULE("day_evening", "^in the evening it was [skies] and [skies]. [felt_glad] [nature]",
         "^when the sun went down, {pal} went home past the {spot}. <^see you tomorrow!> "
         "[hero_said]. <^see you tomorrow!> [pal_said].",
         "^[his] {elder} asked: <^what did you do today?> <^we [acts:ed], we [acts:ed], and we "
         "[handles:ed] @ {made},> [hero_said].",
         "^in the evening they [acts:ed] home, past the {spot} and the {spot2}. [talk]"),
};

const struct story_table story_town = {
    .rules = rules,
    .n_rules = sizeof rules / sizeof *rules,
};
