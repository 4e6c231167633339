// SPDX-License-Identifier: Apache-2.0
// What happens: fifteen shapes of story, and the beats of the first five. Notation: grammar.h.
#include "samples/stories/grammar.h"

static const struct story_rule rules[] = {
    RULE("story",
         "[lost_title][open]\n[lost_love] [lost_gone]\n[lost_search] "
         "[lost_ask]\n[lost_found]\n[home] [end]",
         "[learn_title][open]\n[learn_wish] [learn_fail]\n[learn_again] "
         "[life2]\n[learn_help]\n[learn_done] [end]",
         "[journey_title][open]\n[journey_why]\n[way] "
         "[journey_block]\n[journey_help]\n[journey_end] [end]",
         "[rescue_title][open]\n[rescue_cry] [rescue_see]\n[rescue_try]\n[rescue_free]\n[home] "
         "[end_together]",
         "[garden_title][open]\n[garden_seed] [garden_wait]\n[nature] "
         "[garden_grow]\n[garden_pull]\n[meal] [end]",
         "[quarrel_title][open]\n[quarrel_both] "
         "[quarrel_angry]\n[quarrel_alone]\n[quarrel_sorry]\n[fun] [end_together]",
         "[night_title][open]\n[night_hear] [night_fear]\n[night_call]\n[night_found]\n[end]",
         "[race_title][open]\n[race_call] [race_boast]\n[race_run]\n[race_stop]\n[race_end] [end]",
         "[riddle_title][open]\n[riddle_ask]\n[riddle_wrong] [riddle_again]\n[riddle_right]\n[fun] "
         "[end_together]",
         "[trade_title][open]\n[trade_want]\n[trade_first] [trade_second]\n[trade_done]\n[meal] "
         "[end]",
         "[gift_title][open]\n[gift_day] [gift_think]\n[gift_make]\n[gift_give]\n[fun] "
         "[end_together]",
         "[newcomer_title][open]\n[newcomer_meet] "
         "[newcomer_shy]\n[newcomer_try]\n[newcomer_friend]\n[fun] [end_together]",
         "[bake_title][open]\n[bake_plan] [bake_count]\n[bake_trouble]\n[bake_mend]\n[meal] [end]",
         "[school_title][open]\n[school_bell] [reading]\n[reading] "
         "[school_sum]\n[school_break]\n[home] [end_together]",
         "[open] [life2]\n[day_morning] [talk]\n[day_noon] [nature]\n[day_evening]\n[meal] "
         "[end_together]"),

    // Something dear is lost and found.
    RULE("lost_title", "", "", "The lost {treasure}\n", "{hero} and the {look} {treasure}\n"),
    RULE("lost_love", "{hero} had @ {look} {treasure}, and [he] loved to {treasure.1}.",
         "^of all [his] things {hero} liked [his] {look} {treasure} best. ^[he] would {treasure.1} "
         "[all_day].",
         "^[his] {elder} had given [him] @ {look} {treasure}. <^take good care of it,> "
         "[elder_said], and {hero} did.",
         "^for [his] birthday {hero} had got @ {look} {treasure}. ^it was the [qualities:est] "
         "{treasure} in {town}.",
         "{hero} kept @ {look} {treasure} in @ [vessels] by [his] bed. ^every [daytimes] [he] took "
         "it out to {treasure.1}.",
         "^the {treasure} of {hero} was {look}, and it was as {thing} as @ {thing.1}. ^[he] never "
         "went out without it."),
    RULE("lost_gone", "^but [one_day] the {treasure} was gone.",
         "^but [one_day], when [he] wanted to {treasure.1}, it was not there. <^[oh_no], where is "
         "my {treasure}?> [hero_asked].",
         "^[one_day] [he] [goes:ed] to the {place2}, and when [he] came back, the {look} "
         "{treasure} was gone. [felt_sad]",
         "^then, [one_day], [he] could not find the {treasure} anywhere. [felt_sad]",
         "^[one_day] the wind [winds:ed], the door opened, and the {treasure} rolled away.",
         "^[one_day] {hero} [acts:ed] so [manners:ly] that [he] forgot the {treasure}. ^and then "
         "it was gone!"),
    RULE("lost_search",
         "^[he] looked [where_to_look] and [where_to_look]. ^there was only @ [smalls].",
         "^[he] looked [where_to_look], but [he] found nothing but {#n} [smalls:s] and @ [smalls].",
         "^[he] [looks_at:ed] [where_to_look]. ^no {treasure}. ^[he] [looks_at:ed] "
         "[where_to_look]. ^no {treasure} there.",
         "<^I shall help you,> [elder_said]. ^together they looked [where_to_look] and "
         "[where_to_look].",
         "{hero} turned out @ [vessels], @ [vessels] and @ [vessels]. ^the {treasure} was in none "
         "of them.",
         "^was it [where_to_look]? ^no. ^was it [where_to_look]? ^no. {hero} [looks_at:ed] "
         "everywhere."),
    RULE("lost_ask",
         "^[he] asked the {job}. <^I have seen @ [colours] [clothes] and @ [toys], but no "
         "{treasure},> said the {job}.",
         "<^have you seen @ {look} {treasure}?> {hero} asked the {job}. <^no,> said the {job}, "
         "<but ask the {job2}.> ^the {job2} had not seen it.",
         "^[he] asked [person] and [person]. ^nobody had seen the {look} {treasure}. [talk]",
         "<^where did you have it last?> [elder_asked]. {hero} thought and thought. <^[near],> "
         "[hero_said].",
         "^[he] [goes:ed] to the {spot} and called. ^only @ [birds] [bird_acts:ed]. [felt_sad]",
         "^[he] asked the {job}, who was [acts:ing]. <^@ {treasure}? ^I saw one {place2.1} the "
         "{place2},> said the {job}. ^but it was not there."),
    RULE("lost_found",
         "^[soon] [he] met @ {helpertrait} {helper} [near]. <^is this yours?> [helper_asked]. "
         "^there was the {look} {treasure}! [thanks]",
         "^[soon] @ {helpertrait} {helper} came along. <^I found @ {look} {treasure} [near],> "
         "[helper_said]. <^it is mine!> [hero_said]. [thanks]",
         "^then {hero} heard @ {helper}. ^the {helper} had found the {treasure} [near] and had "
         "made a bed in it. [thanks]",
         "<^look up,> said @ {helpertrait} {helper}. ^the {look} {treasure} was hanging in the "
         "[trees] tree! ^the {helper} fetched it down. [thanks]",
         "<^follow me,> said @ {helpertrait} {helper}. ^they [goes:ed] to the {spot2}, and there, "
         "between {#m} [smalls:s], lay the {treasure}. [thanks]",
         "^at the {spot2} sat @ {helpertrait} {helper} and wanted to {treasure.1}. <^that is my "
         "{treasure},> [hero_said]. <^then take it back,> [helper_said]. ^they took turns until "
         "the evening."),

    // Something is learnt at the third try.
    RULE("learn_title", "", "", "How {hero} learnt to {skill}\n", "{hero} tries again\n"),
    RULE("learn_wish", "{hero} wanted to {skill} more than anything in the world.",
         "^all the others could {skill}, but {hero} could not. <^I wish I could {skill},> "
         "[hero_said].",
         "^[one_day] {hero} saw how [person] {skill:ed}. <^I want to {skill} too,> [hero_said].",
         "^every [weekdays] {hero} watched [his] {elder} {skill}. <^can you teach me to {skill}?> "
         "[hero_asked].",
         "{hero} had a wish. ^[he] wished to {skill} before [he] was {#n+1} years old.",
         "<^who can {skill}?> asked the teacher [one_day]. ^everyone could, but not {hero}."),
    RULE("learn_fail",
         "^the first time [he] tried to {skill}, everything went wrong with the {skill.1}.",
         "^on [weekdays] [he] tried, but the {skill.1} would not do as it was told. [oops]",
         "^[he] tried to {skill} in the [daytimes]. [oops] <^once is not enough,> [elder_said].",
         "<^it is easy to {skill},> said [person]. ^but it was not easy at all. [oops]",
         "^so [he] got up early to {skill}. [oops] ^even the {skill.1} seemed to laugh."),
    RULE("oops", "^oops! ^down [he] fell.", "^it went all wrong.", "^everything [falls:ed].",
         "^[he] [frets:ed] and sat down in the [flowers:s].",
         "^[person] laughed and [gestures:ed].",
         "^[his] [parts] hurt, and [his] [clothes] was wet.", "^[he] landed [near] with a bump.",
         "^the [birds:s] laughed at [him]."),
    RULE("learn_again",
         "^the second time was no better. [felt_sad] <^I shall never {skill},> [hero_said].",
         "^[he] tried again on {weekday}, and again on [weekdays]. [oops] [felt_sad]",
         "^[he] tried {#n} times, and {#n} times [he] failed. [oops]",
         "^[he] tried with the left hand, and [he] tried with the right hand. [oops] "
         "[felt_sad]",
         "^[he] tried it fast, and [he] tried it slowly. [oops] <^perhaps I am too [qualities] to "
         "{skill},> [hero_said]."),
    RULE("learn_help",
         "^@ {helpertrait} {helper} had been watching. <^to {skill} takes time,> [helper_said]. "
         "<^say after me: {refrain}>",
         "<^watch me,> said @ {helpertrait} {helper}. ^the {helper} did it slowly, once, twice, "
         "three times. <{refrain}> [helper_said].",
         "^[his] {elder} sat down beside [him]. <^when I was small I could not {skill} either,> "
         "[elder_said]. <{refrain} ^that is the secret.>",
         "<^shall I show you?> asked @ {helpertrait} {helper}. <^begin [manners:ly], and never "
         "give up. {refrain}>",
         "<^who wants to {skill} must first learn to wait,> said @ {helpertrait} {helper}. "
         "<{refrain}>",
         "^then [he] heard @ song. ^it was @ {helpertrait} {helper} that sang: <{refrain}> {hero} "
         "listened."),
    RULE("learn_done",
         "{hero} tried once more. <{refrain}> [he] sang. ^and this time [he] could {skill}! "
         "[felt_glad]",
         "<{refrain}> [hero_said], and [then] [he] {skill:ed} as if [he] had never done anything "
         "else. <^[praise]!> [elder_said].",
         "^for {#m} days {hero} practised [all_day]. <{refrain}> ^and on {weekday} [he] "
         "{skill:ed}. <^[praise]!> [elder_said].",
         "^slowly, [manners:ly], [he] began. ^the {skill.1} [shines:ed] in the sun. {hero} "
         "{skill:ed}! <^[praise]!> everyone cried.",
         "^at {#t} o'clock {hero} {skill:ed} once. ^a little later [he] {skill:ed} {#n} times. "
         "<^look at me!> [hero_said]. [felt_glad]"),

    // Something must be brought over the hills.
    RULE("journey_title", "", "", "The long way to the {place2}\n", "{hero} and the {obstacle}\n"),
    RULE("journey_why",
         "^[one_day] [his] {elder} gave [him] @ [vessels] of {food:s}. <^bring this to your [kin] "
         "at the {place2},> [elder_said].",
         "^[one_day] a letter came from [his] [kin]. <^please come to the {place2} and bring me @ "
         "{look} {treasure},> it said.",
         "<^my [kin] is ill,> [elder_said]. <^who will carry this {stuff} to the {place2}?> <^I "
         "will,> [hero_said].",
         "{hero} had found @ {small} that belonged to the {job} of the {place2}. <^I must take it "
         "back,> [hero_said].",
         "^the {job} at the {place2} needed {#n} {food:s} before {weekday}. <^I shall bring them,> "
         "[hero_said].",
         "{hero} had heard that there was @ {look} {treasure} hidden {place2.1} the {place2}. <^I "
         "shall find it,> [hero_said], and off [he] went."),
    RULE("journey_block",
         "^but [then] there was @ {obstacle} in the way. ^how could [he] {obstacle.1}?",
         "^[soon] [he] came to @ {obstacle}. <^[oh_no],> [hero_said], <I cannot {obstacle.1} "
         "alone.>",
         "^all went well until {hero} stood before @ {obstacle}. ^[he] tried to {obstacle.1}, but "
         "it was no use.",
         "^and there it was: @ {obstacle}, [sizes:er] than @ [bigs]. ^nobody could {obstacle.1}. "
         "[felt_sad]",
         "^behind the {spot} [he] stopped. ^there was @ {obstacle}! <^what now?> [hero_asked]."),
    RULE("journey_help",
         "^just then @ {helpertrait} {helper} came by. <^we must {obstacle.2},> [helper_said]. ^so "
         "they {obstacle.2:ed}, and it worked. [thanks]",
         "{hero} sat down and ate @ {food}. ^@ {helpertrait} {helper} asked for a bite, and {hero} "
         "shared. <^to {obstacle.1}, {obstacle.2},> [helper_said]. ^together they {obstacle.2:ed}.",
         "<^why do you [frets]?> asked @ {helpertrait} {helper}. <^because I cannot {obstacle.1},> "
         "[hero_said]. <^then let us {obstacle.2},> [helper_said]. ^and they {obstacle.2:ed}. "
         "[thanks]",
         "{pal} had followed [him]. <^two can {obstacle.2},> [pal_said]. ^it was hard to "
         "{obstacle.2}, but <{refrain}> they sang, and [soon] they were past it.",
         "{hero} thought of what [his] {elder} always said: <{refrain}> ^and then [he] knew it. "
         "<^I must {obstacle.2}!> ^so [he] {obstacle.2:ed}, and [soon] [he] was past it."),
    RULE("journey_end",
         "^at the {place2} everyone was waiting. <^you came all this way?> asked [person]. "
         "[felt_glad] [meal]",
         "^[soon] {hero} saw the {place2.2:s} of the {place2}. <^here I am!> [hero_said]. [meal]",
         "^when {hero} came to the {place2}, it was {#t} o'clock. <^[praise],> said [his] [kin]. "
         "[meal]",
         "^the rest of the way was easy. [nature] ^at the {place2} they were glad to see {hero}. "
         "[meal]",
         "^there, {place2.1} the {place2}, stood [his] [kin] and waved. <^you are the [traits:est] "
         "{hero.2} I know!> [felt_glad]"),

    // Someone is stuck and is set free.
    RULE("rescue_title", "", "", "Who saved the {victim}?\n", "{hero}, {pal} and the {victim}\n"),
    RULE("rescue_cry",
         "^[one_day] {hero} and {pal} were [acts:ing] [at_place2] when they heard a cry. <^help! "
         "^help!>",
         "^[one_day] {hero} was on the way to the {place2} with {pal}. <^hush,> said {pal}. "
         "<^someone is [frets:ing].>",
         "<^can you hear that?> {pal} asked {hero} [one_day]. ^something was [frets:ing] [near].",
         "^[one_day] @ [birds] flew to {hero} and [bird_acts:ed] and [bird_acts:ed]. <^it wants to "
         "show us something,> said {hero} to {pal}.",
         "{hero} and {pal} wanted to [acts] that [daytimes], but then they heard something. <^what "
         "was that?> asked {pal}."),
    RULE("rescue_see", "^they ran to the {spot}. ^there was @ {victim}, stuck in @ {danger}.",
         "^[near] they found @ little {victim}. ^it was caught in @ {danger} and was [sad_it].",
         "^behind the {spot} sat @ {victim} in @ {danger}. ^it could not get out. <^poor "
         "{victim},> [hero_said].",
         "^and what did they see? ^@ {victim} in @ {danger}! ^its [parts] was hurt, and it was "
         "[sad_it].",
         "^@ {victim} looked at them from @ {danger}. <^please help me,> it said. <^I have been "
         "here since {weekday}.>"),
    RULE("rescue_try",
         "^first they pulled, but that did not help. ^then they called the {job}, but the {job} "
         "was [acts:ing] and did not hear.",
         "{hero} tried with @ [tools]. ^that was [too_much]. {pal} tried with @ [tools]. ^that was "
         "[too_much].",
         "<^let us pull,> [hero_said]. ^they pulled and pulled. <{refrain}> ^but the {victim} did "
         "not move.",
         "<^do not be afraid,> said {hero} to the {victim}. <^we shall not leave you alone.> ^and "
         "they thought hard. [nature]",
         "^they gave the {victim} @ [foods] and some [stuffs]. <^now we must think,> [pal_said]. "
         "{hero} [gestures:ed]."),
    RULE("too_much", "too slow", "too heavy", "too small", "too big", "too long", "too short",
         "too thin", "too weak"),
    RULE("rescue_free",
         "<^I know!> [hero_said]. <^we must {danger.1}.> {pal} fetched @ {danger.2}, and they "
         "{danger.1:ed}. ^the {victim} was free! [rescue_thanks]",
         "^then {hero} remembered the {danger.2}. ^[he] ran home to get it. [manners_cap] they "
         "{danger.1:ed}, and out came the {victim}. [rescue_thanks]",
         "<^@ {danger.2} would do it,> [pal_said]. ^so they {danger.1:ed}. ^one, two, three, and "
         "the {victim} was free. [rescue_thanks]",
         "^@ {helpertrait} {helper} brought @ {danger.2}. <^now {danger.1},> [helper_said]. ^they "
         "{danger.1:ed}, and the {victim} [goes:ed] out. [thanks]"),
    RULE("manners_cap", "^slowly", "^quickly", "^softly", "^together", "^carefully"),
    RULE("rescue_thanks",
         "<^thank you for [kindnesses:ing] me,> said the {victim}. <^you are the [traits:est] "
         "friends of all.>",
         "<^thank you, {hero}! ^thank you, {pal}!> said the {victim}, and it [joys:ed].",
         "^the {victim} gave each of them @ [smalls] and [goes:ed] away [manners:ly].",
         "^from that day on, the {victim} came every [weekdays] and brought them [foods:s]."),

    // A seed is sown.
    RULE("garden_title", "", "", "The giant {crop}\n", "{hero} and the seed\n"),
    RULE("garden_seed",
         "^[one_day] {hero} found a seed in [his] pocket. <^plant it,> [elder_said], <and be "
         "patient.> ^so {hero} planted it [near].",
         "^in [months] the {job} gave {hero} {#n} seeds. ^[he] planted them [near] and gave them "
         "water.",
         "<^what is in this [vessels]?> [hero_asked]. <^@ {crop} seed,> [elder_said]. ^[he] dug a "
         "hole with @ [tools] and put it in.",
         "{hero} bought @ {crop} seed from the {job} for {#n} coins. ^[he] made a bed for it "
         "[near].",
         "^@ [birds] dropped a seed [near]. <^who knows what it will be?> [hero_said], and [he] "
         "covered it with earth."),
    RULE("garden_wait",
         "^[he] watered it on [weekdays], [he] watered it on [weekdays], and on [weekdays] it "
         "rained.",
         "^one day went by, then {#n} days, then {#n+m} days. ^nothing happened. <^does it sleep?> "
         "[hero_asked]. <^it [grows:z] in the dark,> [elder_said].",
         "^every [daytimes] {hero} looked at the earth. <^please [grows], little seed,> "
         "[hero_said]. <{refrain}>",
         "^the [birds:s] wanted to eat it, but {hero} waved @ [tools]. ^the [bugs:s] wanted to eat "
         "it, but {hero} [kindnesses:ed] the [flowers:s] and they hid it.",
         "^it rained, and {hero} waited. ^the sun came out, and {hero} waited. <^you must not dig "
         "it up again,> [elder_said]."),
    RULE("garden_grow",
         "^then, [one_day], a green leaf came up. ^it [grows:ed] and [grows:ed] until it was as "
         "[sizes] as @ [bigs].",
         "^[soon] there was a green tip. <^look, it [grows:z]!> [hero_said]. ^by [months] the "
         "{crop} was [sizes:er] than @ [bigs].",
         "^first came a leaf, then {#n} leaves, then the [sizes:est] {crop} that anyone had seen.",
         "^the {crop} was [grows:ing] at last. ^it was as big as @ [smalls], then as big as @ "
         "[toys], then as big as @ [bigs].",
         "^in [months] it began to [grows]. ^it was as {thing} as @ {thing.1}, and it was @ "
         "{crop}!"),
    RULE("garden_pull",
         "^it was so big that {hero} could not pull it out. ^[he] called {pal}. {pal} called the "
         "{job2}. ^the {job2} called the {helper}. <{refrain}> ^they all pulled, and up it came!",
         "{hero} pulled. ^nothing moved. {hero} and {pal} pulled. ^nothing moved. ^then @ tiny "
         "{helper} came and pulled too, and out came the {crop}!",
         "^they picked {#n} in the morning and {#m} in the evening. ^that made {#n+m} {crop:s}. "
         "{hero} kept one and gave the others to the {job}, the {job2} and the {job3}.",
         "^in [months] {hero} counted: {#n} for [his] {elder}, {#m} for {pal}, and one for the "
         "{helper} who had [kindnesses:ed] [him]. ^that made {#n+m} and one more.",
         "<^what shall we do with so big @ {crop}?> [hero_asked]. <^give half of it away,> "
         "[elder_said]. ^so {#n} friends and {#m} neighbours came, and all {#n+m} had enough."),
};

const struct story_table story_plots = {
    .rules = rules,
    .n_rules = sizeof rules / sizeof *rules,
};
