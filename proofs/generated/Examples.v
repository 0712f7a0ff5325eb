(** Written by proofs/generate.py; not to be edited.
    What the encoder sent and the server counted is what the definitions say. *)
From Coq Require Import List NArith Arith.
From Splitmeans Require Import Definitions.
Import ListNotations.

(** A release whose labels are written down: for every party, its label in every cell. *)
Definition of_labels (labels : list (list (option nat))) : release :=
  {| cells := length (hd [] labels); parties := seq 0 (length labels);
     label := fun p c => nth c (nth p labels []) None;
     others := []; user := None |}.
(** How many records every cell has: what the server must find, H + D. *)
Definition counted (r : release) (records : list record) : list nat :=
  map (count_occ Nat.eq_dec (map snd records)) (seq 0 (cells r)).

(** 2 parties, 11 cells, 29 records. *)
Definition release_1 : release := of_labels [[Some 0; Some 0; Some 0; Some 1; Some 1; Some 1; Some 2; Some 2; Some 2; None; None]; [Some 0; Some 1; None; Some 0; Some 1; None; Some 0; Some 1; None; Some 0; Some 1]].
Definition records_1 : list record := [
  (261493083%N, 1);
  (248778336%N, 9);
  (13829490%N, 9);
  (180896432%N, 0);
  (262403289%N, 9);
  (256954670%N, 2);
  (177042046%N, 0);
  (113626978%N, 0);
  (193545848%N, 1);
  (192241822%N, 1);
  (124278966%N, 2);
  (215152729%N, 3);
  (101189804%N, 3);
  (58386883%N, 4);
  (246804512%N, 4);
  (194619398%N, 4);
  (248830172%N, 5);
  (234618504%N, 6);
  (203907363%N, 7);
  (55324402%N, 7);
  (152947326%N, 7);
  (213954374%N, 7);
  (235585051%N, 8);
  (210008730%N, 8);
  (240020640%N, 8);
  (123723460%N, 9);
  (162616615%N, 9);
  (228049611%N, 10);
  (149413888%N, 10)].
Example messages_1 : messages release_1 records_1 = [
  ([55324402%N; 58386883%N; 101189804%N; 113626978%N; 124278966%N; 152947326%N; 177042046%N; 180896432%N; 192241822%N; 193545848%N; 194619398%N; 203907363%N; 210008730%N; 213954374%N; 215152729%N; 234618504%N; 235585051%N; 240020640%N; 246804512%N; 248830172%N; 256954670%N; 261493083%N], [2; 1; 1; 0; 0; 2; 0; 0; 0; 0; 1; 2; 2; 2; 1; 2; 2; 2; 1; 1; 0; 0]);
  ([13829490%N; 55324402%N; 58386883%N; 101189804%N; 113626978%N; 123723460%N; 149413888%N; 152947326%N; 162616615%N; 177042046%N; 180896432%N; 192241822%N; 193545848%N; 194619398%N; 203907363%N; 213954374%N; 215152729%N; 228049611%N; 234618504%N; 246804512%N; 248778336%N; 261493083%N; 262403289%N], [0; 1; 1; 0; 0; 0; 1; 1; 0; 0; 0; 1; 1; 1; 1; 1; 0; 1; 0; 1; 0; 1; 0])].
Proof. vm_compute; reflexivity. Qed.
Example counts_1 : counted release_1 records_1 = [3; 3; 2; 2; 3; 1; 1; 4; 3; 5; 2].
Proof. vm_compute; reflexivity. Qed.

(** 2 parties, 11 cells, 23 records. *)
Definition release_2 : release := of_labels [[Some 0; Some 0; Some 0; Some 1; Some 1; Some 1; Some 2; Some 2; Some 2; None; None]; [Some 0; Some 1; None; Some 0; Some 1; None; Some 0; Some 1; None; Some 0; Some 1]].
Definition records_2 : list record := [
  (137667197%N, 0);
  (103819613%N, 0);
  (111902112%N, 1);
  (66682685%N, 1);
  (227259041%N, 2);
  (213650087%N, 2);
  (76597080%N, 3);
  (170001371%N, 3);
  (209860709%N, 3);
  (75749957%N, 4);
  (53620612%N, 4);
  (29728607%N, 5);
  (166269717%N, 6);
  (235595318%N, 6);
  (29484235%N, 7);
  (73115158%N, 7);
  (153890860%N, 8);
  (240022244%N, 8);
  (180330548%N, 8);
  (231136910%N, 9);
  (165407769%N, 9);
  (193515270%N, 10);
  (224597191%N, 10)].
Example messages_2 : messages release_2 records_2 = [
  ([29484235%N; 29728607%N; 53620612%N; 66682685%N; 73115158%N; 75749957%N; 76597080%N; 103819613%N; 111902112%N; 137667197%N; 153890860%N; 166269717%N; 170001371%N; 180330548%N; 209860709%N; 213650087%N; 227259041%N; 235595318%N; 240022244%N], [2; 1; 1; 0; 2; 1; 1; 0; 0; 0; 2; 2; 1; 2; 1; 0; 0; 2; 2]);
  ([29484235%N; 53620612%N; 66682685%N; 73115158%N; 75749957%N; 76597080%N; 103819613%N; 111902112%N; 137667197%N; 165407769%N; 166269717%N; 170001371%N; 193515270%N; 209860709%N; 224597191%N; 231136910%N; 235595318%N], [1; 1; 1; 1; 1; 0; 0; 1; 0; 0; 0; 0; 1; 0; 1; 0; 0])].
Proof. vm_compute; reflexivity. Qed.
Example counts_2 : counted release_2 records_2 = [2; 2; 2; 3; 2; 1; 2; 2; 3; 2; 2].
Proof. vm_compute; reflexivity. Qed.

(** 2 parties, 5 cells, 20 records. *)
Definition release_3 : release := of_labels [[Some 0; Some 0; Some 1; Some 1; None]; [Some 0; None; Some 0; None; Some 0]].
Definition records_3 : list record := [
  (156619076%N, 0);
  (61492165%N, 2);
  (237828277%N, 0);
  (57399317%N, 0);
  (120940187%N, 2);
  (145861385%N, 2);
  (140017558%N, 0);
  (261019723%N, 0);
  (130182016%N, 0);
  (234328203%N, 0);
  (135055237%N, 1);
  (123597509%N, 1);
  (187018083%N, 1);
  (67849051%N, 2);
  (69153427%N, 2);
  (202003112%N, 3);
  (123970197%N, 3);
  (226800976%N, 4);
  (244737118%N, 4);
  (108484579%N, 4)].
Example messages_3 : messages release_3 records_3 = [
  ([57399317%N; 61492165%N; 67849051%N; 69153427%N; 120940187%N; 123597509%N; 123970197%N; 130182016%N; 135055237%N; 140017558%N; 145861385%N; 156619076%N; 187018083%N; 202003112%N; 234328203%N; 237828277%N; 261019723%N], [0; 1; 1; 1; 1; 0; 1; 0; 0; 0; 1; 0; 0; 1; 0; 0; 0]);
  ([57399317%N; 61492165%N; 67849051%N; 69153427%N; 108484579%N; 120940187%N; 130182016%N; 140017558%N; 145861385%N; 156619076%N; 226800976%N; 234328203%N; 237828277%N; 244737118%N; 261019723%N], [0; 0; 0; 0; 0; 0; 0; 0; 0; 0; 0; 0; 0; 0; 0])].
Proof. vm_compute; reflexivity. Qed.
Example counts_3 : counted release_3 records_3 = [7; 3; 5; 2; 3].
Proof. vm_compute; reflexivity. Qed.

(** 3 parties, 7 cells, 13 records. *)
Definition release_4 : release := of_labels [[Some 0; Some 0; Some 0; Some 0; None; None; None]; [Some 0; Some 0; None; None; Some 0; Some 0; None]; [Some 0; None; Some 0; None; Some 0; None; Some 0]].
Definition records_4 : list record := [
  (208911782%N, 0);
  (7055498%N, 0);
  (268067240%N, 0);
  (49672871%N, 0);
  (63889552%N, 0);
  (59602605%N, 0);
  (202726209%N, 0);
  (36579766%N, 1);
  (168159725%N, 1);
  (176960467%N, 3);
  (54529975%N, 3);
  (99948718%N, 5);
  (59895179%N, 6)].
Example messages_4 : messages release_4 records_4 = [
  ([7055498%N; 36579766%N; 49672871%N; 54529975%N; 59602605%N; 63889552%N; 168159725%N; 176960467%N; 202726209%N; 208911782%N; 268067240%N], [0; 0; 0; 0; 0; 0; 0; 0; 0; 0; 0]);
  ([7055498%N; 36579766%N; 49672871%N; 59602605%N; 63889552%N; 99948718%N; 168159725%N; 202726209%N; 208911782%N; 268067240%N], [0; 0; 0; 0; 0; 0; 0; 0; 0; 0]);
  ([7055498%N; 49672871%N; 59602605%N; 59895179%N; 63889552%N; 202726209%N; 208911782%N; 268067240%N], [0; 0; 0; 0; 0; 0; 0; 0])].
Proof. vm_compute; reflexivity. Qed.
Example counts_4 : counted release_4 records_4 = [7; 2; 0; 2; 0; 1; 1].
Proof. vm_compute; reflexivity. Qed.

(** 4 parties, 15 cells, 14 records. *)
Definition release_5 : release := of_labels [[Some 0; Some 0; Some 0; Some 0; Some 0; Some 0; Some 0; Some 0; None; None; None; None; None; None; None]; [Some 0; Some 0; Some 0; Some 0; None; None; None; None; Some 0; Some 0; Some 0; Some 0; None; None; None]; [Some 0; Some 0; None; None; Some 0; Some 0; None; None; Some 0; Some 0; None; None; Some 0; Some 0; None]; [Some 0; None; Some 0; None; Some 0; None; Some 0; None; Some 0; None; Some 0; None; Some 0; None; Some 0]].
Definition records_5 : list record := [
  (234983205%N, 1);
  (123627000%N, 2);
  (95438559%N, 3);
  (171893399%N, 4);
  (32332182%N, 4);
  (70918081%N, 5);
  (158209758%N, 6);
  (24767018%N, 7);
  (215771363%N, 7);
  (128098205%N, 8);
  (157032690%N, 9);
  (138527873%N, 10);
  (111799902%N, 12);
  (33175099%N, 13)].
Example messages_5 : messages release_5 records_5 = [
  ([24767018%N; 32332182%N; 70918081%N; 95438559%N; 123627000%N; 158209758%N; 171893399%N; 215771363%N; 234983205%N], [0; 0; 0; 0; 0; 0; 0; 0; 0]);
  ([95438559%N; 123627000%N; 128098205%N; 138527873%N; 157032690%N; 234983205%N], [0; 0; 0; 0; 0; 0]);
  ([32332182%N; 33175099%N; 70918081%N; 111799902%N; 128098205%N; 157032690%N; 171893399%N; 234983205%N], [0; 0; 0; 0; 0; 0; 0; 0]);
  ([32332182%N; 111799902%N; 123627000%N; 128098205%N; 138527873%N; 158209758%N; 171893399%N], [0; 0; 0; 0; 0; 0; 0])].
Proof. vm_compute; reflexivity. Qed.
Example counts_5 : counted release_5 records_5 = [0; 1; 1; 1; 2; 1; 1; 2; 1; 1; 1; 0; 1; 1; 0].
Proof. vm_compute; reflexivity. Qed.

(** 4 parties, 15 cells, 23 records. *)
Definition release_6 : release := of_labels [[Some 0; Some 0; Some 0; Some 0; Some 0; Some 0; Some 0; Some 0; None; None; None; None; None; None; None]; [Some 0; Some 0; Some 0; Some 0; None; None; None; None; Some 0; Some 0; Some 0; Some 0; None; None; None]; [Some 0; Some 0; None; None; Some 0; Some 0; None; None; Some 0; Some 0; None; None; Some 0; Some 0; None]; [Some 0; None; Some 0; None; Some 0; None; Some 0; None; Some 0; None; Some 0; None; Some 0; None; Some 0]].
Definition records_6 : list record := [
  (170920088%N, 4);
  (87218291%N, 2);
  (33877723%N, 6);
  (164253800%N, 10);
  (69999248%N, 4);
  (6636138%N, 2);
  (172712994%N, 13);
  (48568669%N, 0);
  (66438009%N, 1);
  (101716837%N, 2);
  (63121858%N, 2);
  (205746351%N, 3);
  (4006848%N, 4);
  (237937840%N, 5);
  (70412884%N, 7);
  (47311165%N, 8);
  (116418623%N, 9);
  (255440162%N, 9);
  (260359705%N, 10);
  (171162291%N, 12);
  (61371787%N, 12);
  (75577714%N, 13);
  (85050357%N, 14)].
Example messages_6 : messages release_6 records_6 = [
  ([4006848%N; 6636138%N; 33877723%N; 48568669%N; 63121858%N; 66438009%N; 69999248%N; 70412884%N; 87218291%N; 101716837%N; 170920088%N; 205746351%N; 237937840%N], [0; 0; 0; 0; 0; 0; 0; 0; 0; 0; 0; 0; 0]);
  ([6636138%N; 47311165%N; 48568669%N; 63121858%N; 66438009%N; 87218291%N; 101716837%N; 116418623%N; 164253800%N; 205746351%N; 255440162%N; 260359705%N], [0; 0; 0; 0; 0; 0; 0; 0; 0; 0; 0; 0]);
  ([4006848%N; 47311165%N; 48568669%N; 61371787%N; 66438009%N; 69999248%N; 75577714%N; 116418623%N; 170920088%N; 171162291%N; 172712994%N; 237937840%N; 255440162%N], [0; 0; 0; 0; 0; 0; 0; 0; 0; 0; 0; 0; 0]);
  ([4006848%N; 6636138%N; 33877723%N; 47311165%N; 48568669%N; 61371787%N; 63121858%N; 69999248%N; 85050357%N; 87218291%N; 101716837%N; 164253800%N; 170920088%N; 171162291%N; 260359705%N], [0; 0; 0; 0; 0; 0; 0; 0; 0; 0; 0; 0; 0; 0; 0])].
Proof. vm_compute; reflexivity. Qed.
Example counts_6 : counted release_6 records_6 = [1; 1; 4; 1; 3; 1; 1; 1; 1; 2; 2; 0; 2; 2; 1].
Proof. vm_compute; reflexivity. Qed.

(** 2 parties, 3 cells, 9 records. *)
Definition release_7 : release := of_labels [[Some 0; Some 0; None]; [Some 0; None; Some 0]].
Definition records_7 : list record := [
  (141817998%N, 0);
  (25570042%N, 0);
  (53171914%N, 0);
  (120405070%N, 0);
  (59608133%N, 1);
  (111667971%N, 1);
  (179171364%N, 1);
  (259119283%N, 2);
  (56527721%N, 2)].
Example messages_7 : messages release_7 records_7 = [
  ([25570042%N; 53171914%N; 59608133%N; 111667971%N; 120405070%N; 141817998%N; 179171364%N], [0; 0; 0; 0; 0; 0; 0]);
  ([25570042%N; 53171914%N; 56527721%N; 120405070%N; 141817998%N; 259119283%N], [0; 0; 0; 0; 0; 0])].
Proof. vm_compute; reflexivity. Qed.
Example counts_7 : counted release_7 records_7 = [4; 3; 2].
Proof. vm_compute; reflexivity. Qed.

(** 2 parties, 7 cells, 14 records. *)
Definition release_8 : release := of_labels [[Some 0; Some 0; Some 1; Some 1; Some 2; Some 2; None]; [Some 0; None; Some 0; None; Some 0; None; Some 0]].
Definition records_8 : list record := [
  (31692136%N, 0);
  (258621809%N, 0);
  (35349299%N, 1);
  (81193579%N, 1);
  (240159545%N, 2);
  (223254762%N, 2);
  (174283485%N, 3);
  (99646956%N, 3);
  (93398413%N, 4);
  (188779345%N, 5);
  (198406387%N, 5);
  (160817962%N, 5);
  (152293421%N, 6);
  (255921927%N, 6)].
Example messages_8 : messages release_8 records_8 = [
  ([31692136%N; 35349299%N; 81193579%N; 93398413%N; 99646956%N; 160817962%N; 174283485%N; 188779345%N; 198406387%N; 223254762%N; 240159545%N; 258621809%N], [0; 0; 0; 2; 1; 2; 1; 2; 2; 1; 1; 0]);
  ([31692136%N; 93398413%N; 152293421%N; 223254762%N; 240159545%N; 255921927%N; 258621809%N], [0; 0; 0; 0; 0; 0; 0])].
Proof. vm_compute; reflexivity. Qed.
Example counts_8 : counted release_8 records_8 = [2; 2; 2; 2; 1; 3; 2].
Proof. vm_compute; reflexivity. Qed.
