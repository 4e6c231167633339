// SPDX-License-Identifier: Apache-2.0
// The cast, and what stories turn on, all of it about equally frequent. Notation: grammar.h.
#include "samples/stories/grammar.h"

const struct story_role story_cast[] = {
    {"hero", "names"},
    {"pal", "names"},
    {"rival", "names"},
    {"elder", "elders"},
    {"kind", "hero_kind"},
    {"beast", "beasts"},
    {"palbeast", "beasts"},
    {"palkind", "pal_kind"},
    {"helper", "helper_animal"},
    {"helpertrait", "helper_traits"},
    {"helpersex", "sexes"},
    {"place", "places"},
    {"place2", "places"},
    {"town", "towns"},
    {"treasure", "treasures"},
    {"look", "looks"},
    {"skill", "skills"},
    {"refrain", "refrains"},
    {"lesson", "lessons"},
    {"simile", "similes"},
    {"thing", "thing_similes"},
    {"gladsimile", "glad_similes"},
    {"obstacle", "obstacles"},
    {"noise", "noises"},
    {"danger", "dangers"},
    {"riddle", "riddles"},
    {"crop", "crops"},
    {"food", "foods"},
    {"fruit", "produce"},
    {"stuff", "stuffs"},
    {"job", "jobs"},
    {"job2", "jobs"},
    {"job3", "jobs"},
    {"small", "smalls"},
    {"tool", "tools"},
    {"made", "made"},
    {"spot", "spots"},
    {"spot2", "spots"},
    {"spot3", "spots"},
    {"victim", "land_animal"},
    {"weekday", "weekdays"},
    {"instrument", "instruments"},
};
const size_t story_cast_len = sizeof story_cast / sizeof *story_cast;

static const struct story_list lists[] = {
    // Who: name, pronoun, child.
    {"names",
     "Mia/she/girl Tom/he/boy Lily/she/girl Ben/he/boy Anna/she/girl Sam/he/boy "
     "Rosie/she/girl Max/he/boy Ella/she/girl Leo/he/boy Nora/she/girl Tim/he/boy "
     "Lucy/she/girl Jack/he/boy Emma/she/girl Finn/he/boy Ruby/she/girl Oscar/he/boy "
     "Daisy/she/girl Hugo/he/boy Molly/she/girl Toby/he/boy Clara/she/girl Noah/he/boy "
     "Hazel/she/girl Adam/he/boy Ivy/she/girl Felix/he/boy Poppy/she/girl Oliver/he/boy "
     "Tess/she/girl Henry/he/boy Maya/she/girl Luke/he/boy Lotta/she/girl Milo/he/boy "
     "Sara/she/girl Otto/he/boy Nina/she/girl Peter/he/boy Ada/she/girl Theo/he/boy "
     "Bella/she/girl Alex/he/boy Dora/she/girl Bruno/he/boy Edith/she/girl Carl/he/boy "
     "Flora/she/girl David/he/boy Greta/she/girl Emil/he/boy Hanna/she/girl George/he/boy "
     "Ida/she/girl Ivan/he/boy Jenny/she/girl Jonas/he/boy Cleo/she/girl Liam/he/boy "
     "Lena/she/girl Martin/he/boy Mina/she/girl Nico/he/boy Nelly/she/girl Owen/he/boy "
     "Olive/she/girl Paul/he/boy Penny/she/girl Arne/he/boy Rita/she/girl Ralph/he/boy "
     "Sally/she/girl Simon/he/boy Tilly/she/girl Conrad/he/boy Romy/she/girl Walter/he/boy "
     "Wanda/she/girl Arlo/he/boy Betty/she/girl Basil/he/boy Cora/she/girl Caleb/he/boy "
     "Elsie/she/girl Edgar/he/boy Fern/she/girl Gus/he/boy Gwen/she/girl Harry/he/boy "
     "Iris/she/girl Isaac/he/boy Julia/she/girl Jasper/he/boy Thea/she/girl Abel/he/boy "
     "Mabel/she/girl Mateo/he/boy Nadia/she/girl Ned/he/boy Opal/she/girl Omar/he/boy "
     "Petra/she/girl Percy/he/boy Stella/she/girl Ravi/he/boy Tara/she/girl Rufus/he/boy "
     "Willa/she/girl Silas/he/boy Yara/she/girl Ted/he/boy Amira/she/girl Diego/he/boy"},
    {"elders",
     "mother/she father/he grandmother/she grandfather/he aunt/she uncle/he big_sister/she "
     "big_brother/he godmother/she godfather/he"},
    {"sexes", "she he"},
    // Where: place, preposition, what is there.
    {"places",
     "forest/in/tall_tree garden/in/flower meadow/in/daisy park/in/bench "
     "orchard/in/apple_tree valley/in/stream barn/in/hay_bale farmyard/in/hen "
     "village/in/little_house town/in/street market/at/stall harbour/at/ship river/by/reed "
     "lake/by/willow sea/by/wave pond/by/lily_pad beach/on/shell hill/on/sheep island/on/palm "
     "mountain/on/rock cave/in/shadow castle/in/tower windmill/at/sail school/at/book "
     "library/in/shelf kitchen/in/pot attic/in/old_trunk cellar/in/barrel workshop/in/tool "
     "stable/in/horse field/in/poppy vineyard/in/grape desert/in/dune jungle/in/vine "
     "swamp/in/bulrush station/at/train bakery/at/warm_loaf playground/at/swing "
     "museum/in/statue greenhouse/in/fern courtyard/in/fountain lighthouse/at/stair "
     "mill/at/wheel quarry/in/stone canyon/in/echo moor/on/heather cliff/on/nest "
     "shore/on/pebble riverbank/on/buttercup hillside/on/goat"},
    {"towns",
     "Willowbrook Maplebrook Foxbrook Stonebrook Honeybrook Mossbrook Applebrook Riverbrook "
     "Willowfield Maplefield Foxfield Stonefield Honeyfield Mossfield Applefield Riverfield "
     "Willowhill Maplehill Foxhill Stonehill Honeyhill Mosshill Applehill Riverhill "
     "Willowwood Maplewood Foxwood Stonewood Honeywood Mosswood Applewood Riverwood"},
    // What one does with it.
    {"treasures",
     "kite/fly_it_high ball/bounce_it drum/bang_it boat/sail_it_on_the_pond book/read_it "
     "lantern/carry_it_about whistle/blow_it doll/dress_it_up bell/ring_it hat/wear_it "
     "scarf/wear_it puppet/make_it_dance teddy/hug_it flute/play_it marble/roll_it "
     "paintbrush/paint_with_it wagon/pull_it_along spinning_top/spin_it coin/polish_it "
     "ring/look_at_it button/count_its_holes feather/write_with_it shell/listen_to_it "
     "stone/turn_it_over music_box/wind_it_up compass/follow_it telescope/look_through_it "
     "basket/fill_it_with_flowers necklace/wear_it map/study_it key/jingle_it fiddle/play_it "
     "blanket/sleep_under_it umbrella/open_and_shut_it trumpet/blow_it train/push_it_along "
     "rocking_horse/ride_it skipping_rope/jump_over_it hoop/roll_it tambourine/shake_it "
     "snow_globe/shake_it pocket_watch/listen_to_it notebook/draw_in_it crayon/draw_with_it "
     "yo-yo/play_with_it balloon/hold_it windmill/watch_it_turn medal/polish_it "
     "accordion/play_it banjo/play_it crown/wear_it cape/twirl_it magnet/play_with_it "
     "magnifying_glass/look_through_it jigsaw/finish_it paper_plane/throw_it_far "
     "sledge/pull_it_uphill tricycle/ride_it scooter/ride_it wand/wave_it"},
    // What it needs.
    {"skills",
     "swim/water whistle/tune ride_a_bicycle/wheel skate/ice tie_a_bow/ribbon bake_bread/oven "
     "juggle/ball skip_stones/pond row_a_boat/oar dance/music draw_a_horse/pencil "
     "fly_a_kite/wind climb_a_rope/rope knit_a_scarf/wool milk_the_goat/bucket read/letter "
     "write_a_poem/word play_the_fiddle/bow count_to_a_hundred/number tell_the_time/clock "
     "dive/pool sing_high/note turn_a_cartwheel/grass build_a_raft/log catch_a_ball/hand "
     "make_pancakes/pan walk_on_stilts/stilt blow_bubbles/soap light_a_lantern/flame "
     "mend_a_shoe/thread plant_a_tree/root spin_a_top/floor jump_the_brook/stepping_stone "
     "yodel/mountain play_chess/pawn paint_a_portrait/brush sail/sail ski/slope "
     "fold_a_paper_boat/paper weave_a_basket/reed carve_a_spoon/wood stand_on_one_leg/toe "
     "hop_backwards/step ride_a_pony/saddle play_the_drum/stick throw_a_hoop/peg "
     "build_a_snowman/snowball crack_a_nut/shell say_the_alphabet/letter "
     "walk_a_tightrope/rope"},
    // What one would like to do about it, and what helps.
    {"obstacles",
     "wide_river/cross_it/build_a_raft_from_logs high_wall/climb_it/stack_some_boxes "
     "muddy_ditch/jump_over_it/lay_a_plank_across steep_hill/climb_it/hold_on_to_a_rope "
     "locked_gate/open_it/look_for_the_key dark_tunnel/go_through_it/light_a_lantern "
     "thorny_hedge/get_through_it/find_a_gap_near_the_ground "
     "broken_bridge/cross_it/mend_it_with_rope deep_puddle/get_past_it/use_stepping_stones "
     "fallen_tree/move_it/push_it_together frozen_pond/cross_it/walk_on_woollen_socks "
     "sleeping_bear/pass_him/tiptoe_past_on_soft_moss "
     "grumpy_goose/pass_her/offer_her_some_corn "
     "dark_wood/find_the_way_through_it/ring_a_bell_at_every_turn "
     "sandy_desert/cross_it/travel_by_starlight "
     "deep_snowdrift/get_out_of_it/make_snowshoes_from_twigs "
     "narrow_ledge/walk_along_it/hold_hands_all_the_way "
     "rocky_cliff/climb_it/take_one_small_step_at_a_time "
     "stubborn_donkey/lead_him_on/hold_a_carrot_before_his_nose "
     "rushing_stream/wade_it/make_a_chain_of_hands tangled_wood/find_a_path/follow_the_moss"},
    // Where it comes from.
    {"noises",
     "scratching/branch_on_the_window tapping/woodpecker_in_the_pear_tree "
     "howling/wind_in_the_chimney dripping/tap_in_the_kitchen rustling/hedgehog_in_the_leaves "
     "creaking/door_in_the_draught squeaking/mouse_behind_the_flour_sack "
     "thumping/shutter_in_the_wind snoring/cat_in_the_laundry_basket "
     "humming/moth_in_the_lampshade clinking/bell_on_the_goat rattling/loose_tile_on_the_roof "
     "flapping/sheet_on_the_clothes_line croaking/frog_in_the_watering_can "
     "whistling/kettle_on_the_stove munching/rabbit_in_the_cabbages "
     "purring/kitten_under_the_stairs ticking/clock_in_the_hall "
     "splashing/duck_in_the_water_barrel crackling/log_in_the_fireplace"},
    // What must be done, and with what.
    {"dangers",
     "net/cut_the_net/knife puddle_of_mud/build_a_little_bridge/plank "
     "bramble_bush/bend_back_the_thorns/stick hollow_log/roll_the_log_over/pole "
     "deep_hole/let_down_a_rope/rope fishing_line/snip_the_line/pair_of_scissors "
     "tall_tree/lean_a_ladder_on_the_trunk/ladder wire_fence/lift_the_wire/forked_branch "
     "empty_barrel/tip_the_barrel/lever patch_of_ice/throw_a_line/skipping_rope "
     "snowdrift/dig_a_path/shovel old_well/lower_the_bucket/bucket "
     "jam_jar/break_the_rim/hammer cobweb/brush_the_threads_away/feather "
     "chimney/lower_a_basket/basket rolled-up_rug/unroll_the_rug/broom"},
    // What it is.
    {"riddles",
     "has_a_face_but_no_eyes/clock has_teeth_but_never_bites/comb "
     "has_a_neck_but_no_head/bottle grows_when_it_eats_and_dies_when_it_drinks/fire "
     "runs_all_day_and_never_gets_tired/river has_many_leaves_but_is_not_a_tree/book "
     "has_an_eye_but_cannot_see/needle gets_wetter_the_more_it_dries/towel "
     "follows_you_all_day_and_hides_at_night/shadow has_four_legs_but_cannot_walk/table "
     "is_full_of_holes_and_still_holds_water/sponge goes_up_when_the_rain_comes_down/umbrella "
     "speaks_without_a_mouth/echo has_hands_but_cannot_clap/clock "
     "has_a_tongue_but_cannot_talk/shoe is_broken_before_you_use_it/egg "
     "has_one_foot_and_a_hat/mushroom wears_a_coat_in_summer_and_none_in_winter/tree "
     "has_a_bed_but_never_sleeps/river gets_bigger_the_more_you_take_away/hole "
     "has_keys_but_opens_no_door/piano walks_with_its_house_on_its_back/snail "
     "flies_without_wings/cloud"},
    {"refrains",
     "Hop,_hop,_over_the_top! One_foot_and_then_the_other! Slow_and_steady,_ready,_ready! "
     "Round_and_round_and_homeward_bound! Down_we_go_and_up_we_go! "
     "Step_by_step_and_hand_in_hand! Little_by_little_the_pot_gets_full! "
     "Try_once,_try_twice,_try_once_more! Sun_or_rain,_we_try_again! "
     "Tip,_tap,_feather_in_my_cap! Hey_ho,_away_we_go! Ding,_dong,_it_won't_be_long! "
     "Click,_clack,_there_and_back! Rise_and_shine,_the_day_is_mine! "
     "Hush,_hush,_there_is_no_rush! Pitter,_patter,_it_does_not_matter! "
     "Rumble,_tumble,_never_grumble! Heave_ho,_nice_and_slow! Left,_right,_out_of_sight! "
     "Sing_a_song_and_come_along!"},
    {"lessons",
     "a_friend_in_need_is_worth_more_than_gold many_small_hands_make_a_big_job_easy "
     "it_is_never_too_late_to_say_sorry a_kind_word_opens_every_door "
     "sharing_makes_a_small_cake_big the_slow_road_is_often_the_nicest "
     "even_the_smallest_helper_can_do_great_things asking_for_help_is_brave "
     "nobody_is_good_at_everything_at_first what_is_lost_can_often_be_found "
     "the_dark_is_only_the_day_with_its_eyes_shut a_promise_is_a_thing_to_keep "
     "true_friends_laugh_together_and_cry_together the_best_presents_are_made_by_hand "
     "it_is_good_to_look_before_you_leap a_smile_costs_nothing_and_warms_two_people "
     "you_can_learn_anything_one_step_at_a_time winning_is_nice_but_playing_together_is_nicer "
     "every_day_has_something_good_in_it there_is_no_place_like_home"},
    // Like what.
    {"similes",
     "quiet/mouse busy/bee quick/hare brave/lion clever/fox strong/ox free/bird gentle/lamb "
     "wise/owl proud/peacock happy/lark graceful/swan playful/kitten steady/rock sweet/berry "
     "fresh/daisy stubborn/mule hungry/wolf silent/shadow tall/tower bright/star "
     "light/feather"},
    {"thing_similes",
     "light/feather soft/cushion bright/star cold/icicle warm/oven hard/stone round/ball "
     "flat/pancake smooth/pebble white/snowflake red/cherry green/leaf black/crow thin/thread "
     "sharp/needle dark/cellar straight/arrow blue/bluebell slippery/eel big/house"},
    {"glad_similes",
     "happy/lark light/feather free/bird proud/peacock warm/oven merry/cricket brave/lion "
     "bright/star rich/king tall/tower snug/dormouse fresh/daisy cheerful/robin bold/knight"},
    // When.
    {"weekdays", "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"},
    {"months",
     "January February March April May June July August September October November December"},
    {"seasons", "summer spring autumn winter"},
    {"daytimes", "morning evening afternoon night day"},
    {"ordinals", "first second third fourth fifth sixth seventh eighth ninth tenth"},
    // Words that children learn to read first.
    {"plains",
     "the and a with had she he they lived but for were little than liked there named could "
     "sat young never that his her been are until has shall most near name wanted only when "
     "every from under made what would some next learnt loved make between whole took helped "
     "put how worth must nobody beside got everyone asleep like very let long cannot heard "
     "get upon wore job lost even together ever new many try first late agreed often each not "
     "told somebody none nothing waiting after became anything was opens gone word give grew "
     "fetched among half later kept thanked tall watered stood look needed win all twice its "
     "planted turned through their teach show both others come your second wants here great "
     "without where everybody friendly birthday bring early carry find talked helper now hold "
     "followed brought somewhere everything tomorrow enough just heart wrong these down "
     "runner face side behind failed secret help asked mended given letter again way soon "
     "those remembered looking learn same before happened something leave tell much already "
     "anyone giant shone guess sign himself herself forgive deep please mixed wondered true "
     "minutes struck instead towards against louder quite moment hour o'clock because in you "
     "what when who good we if my no does think watch thank keep have step today yes why well "
     "long knew gave ate nobody drank slept belonged answer left right ask stay bring hush "
     "wrong poor asleep picture chain pole rim globe medal lever alphabet thorny tower "
     "perhaps this really which goodness welcome did click softly fair straw mud fog comb "
     "throw tongue scissors locked plane magnifying stepping skipping paper spinning music "
     "patience courage kindness teeth square small big old day night morning house tree water "
     "green red blue one two three four five six seven eight nine ten school play run sing "
     "home door hand foot see say follow climb begin always suddenly practised borrowed close "
     "read count round"},
};

const struct story_table story_people = {
    .even_lists = lists,
    .n_even_lists = sizeof lists / sizeof *lists,
};
