(** Written by proofs/generate.py from proofs/studies/two-parties.toml; not to be edited.
    Study 'bank and rental', hash dcca547f89074752ee129f17ec748d84c87e84d004c85011b57e8225ca01076d.
    1 of 1 tables: sigma 5.2909182556301175, t 28, SHA-256 5e4b7ad38912b9cdaa632a47d1dd11b1d45f9c9d8e773acff2fafc38573e1349. *)
From Coq Require Import QArith List ZArith NArith.
From Splitmeans Require Import Definitions Checker CheckerSound Theorems.
Import ListNotations.
Open Scope Q_scope.

Definition table_1 : list Z := [
  1153009490200; 3079401595347; 7935710852578;
  19732921887562; 47345969557374; 109612652857429;
  244863706621300; 527805858385025; 1097766692907829;
  2203088531391929; 4266187176619129; 7971387451805064;
  14371893416848951; 25002308715432207; 41969355038294794;
  67978336639653232; 106241655253934614; 160215739848896328;
  233131837782346981; 327328674075116558; 443458079382089890;
  579705136682023427; 731219529206349560; 889968164594153420;
  1045170679253245147; 1184366242190829880; 1295003312254445213;
  1366286554789548585; 1390909157295192510; 1366286554789548585;
  1295003312254445213; 1184366242190829880; 1045170679253245147;
  889968164594153420; 731219529206349560; 579705136682023427;
  443458079382089890; 327328674075116558; 233131837782346981;
  160215739848896328; 106241655253934614; 67978336639653232;
  41969355038294794; 25002308715432207; 14371893416848951;
  7971387451805064; 4266187176619129; 2203088531391929;
  1097766692907829; 527805858385025; 244863706621300;
  109612652857429; 47345969557374; 19732921887562;
  7935710852578; 3079401595347; 1153009490200]%Z.
Definition blocks : list block := [
  Block (Law 18446744073709551616 table_1) 1 17799417049189632719 6906949393161821137].
Definition epsilon : Q := (6833 # 10000).
Definition delta : Q := (9982797 # 1000000000000).

(** The certificate: the bound at this epsilon, over 2^64. *)
Lemma computed : figure blocks (exp_sum 12 epsilon) = 184150094977578%Z.
Proof. vm_cast_no_check (eq_refl 184150094977578%Z). Qed.
Lemma tables_are_good : forallb good blocks = true.
Proof. vm_compute; reflexivity. Qed.
Lemma passes : check blocks (exp_sum 12 epsilon) delta = true.
Proof. unfold check. rewrite tables_are_good, computed. vm_compute; reflexivity. Qed.
(** One less in the last digit is too little. *)
Lemma less_is_refused : check blocks (exp_sum 12 epsilon) (2495699 # 250000000000) = false.
Proof. unfold check. rewrite tables_are_good, computed. vm_compute; reflexivity. Qed.

Theorem two_parties_is_private {A} tag rate n (secret : dist A) p :
  proper tag -> 0 <= rate -> rate <= 1 -> proper secret ->
  (forall a, well_formed (laws_of blocks) (p a)) ->
  private epsilon delta (sampled_run tag (laws_of blocks) rate n secret p false)
                        (sampled_run tag (laws_of blocks) rate n secret p true).
Proof. apply (checked_run_is_private blocks epsilon 12); [discriminate|exact passes]. Qed.
