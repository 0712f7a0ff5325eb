(** All parties' messages together are drawn from the counts H + D alone. *)
From Coq Require Import QArith List Permutation ZArith NArith Lia Arith Bool.
From Splitmeans Require Import Definitions Distributions Composition.
Import ListNotations.
Open Scope Q_scope.

(** ** Messages do not depend on the order in which records were made *)
Lemma before_spec x y : before x y = true <->
  (fst x < fst y)%N \/ (fst x = fst y /\ (snd x <= snd y)%nat).
Proof.
  unfold before. rewrite orb_true_iff, andb_true_iff, N.ltb_lt, N.eqb_eq, Nat.leb_le. tauto.
Qed.

Lemma before_total x y : before x y = false -> before y x = true.
Proof.
  intros H. apply before_spec. destruct (N.lt_trichotomy (fst x) (fst y)) as [L|[L|L]]; auto.
  - assert (before x y = true) by (apply before_spec; auto). congruence.
  - destruct (le_lt_dec (snd x) (snd y)).
    + assert (before x y = true) by (apply before_spec; auto). congruence.
    + right; split; [auto|lia].
Qed.

Lemma before_antisym x y : before x y = true -> before y x = true -> x = y.
Proof.
  rewrite !before_spec; destruct x, y; simpl; intros [|[]] [|[]]; f_equal; lia.
Qed.

Lemma before_trans x y z : before x y = true -> before y z = true -> before x z = true.
Proof. rewrite !before_spec; intros [|[]] [|[]]; lia. Qed.

Lemma insert_comm x y l : insert x (insert y l) = insert y (insert x l).
Proof.
  induction l as [|z l IH]; simpl.
  - destruct (before x y) eqn:A, (before y x) eqn:B; auto.
    + rewrite (before_antisym x y A B); reflexivity.
    + apply before_total in A; congruence.
  - destruct (before y z) eqn:B, (before x z) eqn:A; simpl; rewrite ?A, ?B; auto.
    + destruct (before x y) eqn:C, (before y x) eqn:G; simpl; rewrite ?A, ?B; auto.
      * rewrite (before_antisym x y C G); reflexivity.
      * apply before_total in C; congruence.
    + destruct (before x y) eqn:C; simpl; rewrite ?A, ?B; auto.
      rewrite (before_trans x y z C B) in A; discriminate.
    + destruct (before y x) eqn:C; simpl; rewrite ?A, ?B; auto.
      rewrite (before_trans y x z C A) in B; discriminate.
    + rewrite IH; reflexivity.
Qed.

Lemma sort_perm l l' : Permutation l l' -> sort l = sort l'.
Proof. induction 1; simpl; [reflexivity|congruence|apply insert_comm|congruence]. Qed.

Lemma flat_map_perm {A B} (f : A -> list B) l l' :
  Permutation l l' -> Permutation (flat_map f l) (flat_map f l').
Proof.
  induction 1; simpl; auto.
  - apply Permutation_app_head; auto.
  - rewrite !app_assoc. apply Permutation_app_tail, Permutation_app_comm.
  - etransitivity; eauto.
Qed.

Theorem messages_perm r records records' :
  Permutation records records' -> messages r records = messages r records'.
Proof.
  intros P. unfold messages. apply map_ext; intros p. unfold message.
  rewrite (sort_perm _ (held r p records')); [reflexivity|apply flat_map_perm, P].
Qed.

(** ** Histograms *)
Definition hist (m : nat) (users : list nat) : list nat := fold_right bump (repeat 0%nat m) users.

Lemma bump_length c H : length (bump c H) = length H.
Proof. revert c; induction H; intros [|c]; simpl; auto. Qed.

Lemma hist_length m users : length (hist m users) = m.
Proof. induction users; simpl; [apply repeat_length|rewrite bump_length; auto]. Qed.

Fixpoint add (H D : list nat) : list nat :=
  match H, D with
  | [], _ => D
  | _, [] => H
  | h :: H', d :: D' => (h + d)%nat :: add H' D'
  end.

Lemma decoys_add H D c : Permutation (decoys c H ++ decoys c D) (decoys c (add H D)).
Proof.
  revert c D; induction H as [|h H IH]; intros c [|d D]; simpl; try rewrite app_nil_r; auto.
  rewrite repeat_app, <- !app_assoc. apply Permutation_app_head.
  rewrite <- (IH (S c) D), !app_assoc. apply Permutation_app_tail, Permutation_app_comm.
Qed.

Lemma decoys_bump u H c : (u < length H)%nat ->
  Permutation ((c + u)%nat :: decoys c H) (decoys c (bump u H)).
Proof.
  revert u c; induction H as [|h H IH]; intros [|u] c L; simpl in *; try lia.
  - rewrite Nat.add_0_r; auto.
  - rewrite <- IH by lia. rewrite Nat.add_succ_r. simpl. apply Permutation_middle.
Qed.

Lemma decoys_hist m users : Forall (fun u => u < m)%nat users ->
  Permutation users (decoys 0 (hist m users)).
Proof.
  induction 1 as [|u users L F IH]; simpl.
  - assert (E : forall c, decoys c (repeat 0%nat m) = []) by (induction m; simpl; auto).
    rewrite E; auto.
  - change (fold_right bump (repeat 0%nat m) users) with (hist m users).
    rewrite <- decoys_bump by (rewrite hist_length; auto). simpl; auto.
Qed.

(** ** The simulator is given H + D and knows neither H nor D *)
Definition simulate (tag : dist N) (r : release) (n : list nat) : dist view :=
  bind (tagged tag (decoys 0 n)) (fun records => ret (messages r records)).

Lemma tagged_proper tag cs : proper tag -> proper (tagged tag cs).
Proof.
  intros T; induction cs; simpl; [apply proper_ret|].
  apply proper_bind; [exact T|intros t].
  apply proper_bind; [assumption|intros r; apply proper_ret].
Qed.

Lemma simulate_proper tag r n : proper tag -> proper (simulate tag r n).
Proof.
  intros T. apply proper_bind; [apply tagged_proper, T|intros; apply proper_ret].
Qed.

Lemma counts_proper l H : valid l -> proper (counts l H).
Proof.
  intros V; induction H as [|h H IH]; simpl; [apply proper_ret|].
  apply proper_bind; [apply noisy_proper, V|intros n].
  apply proper_bind; [exact IH|intros v; apply proper_ret].
Qed.

Lemma join_proper tag l r users : proper tag -> valid l -> proper (join tag l r users).
Proof.
  intros T V. apply proper_bind; [apply counts_proper, V|intros D].
  apply proper_bind; [apply tagged_proper, T|intros; apply proper_ret].
Qed.

Lemma tagged_cons tag c cs f :
  Ex (tagged tag (c :: cs)) f == Ex tag (fun t => Ex (tagged tag cs) (fun r => f ((t, c) :: r))).
Proof.
  simpl. rewrite Ex_bind. apply Ex_ext; intros t. rewrite Ex_bind.
  apply Ex_ext; intros r. apply Ex_ret.
Qed.

(** Tags are independent of the records that carry them. *)
Lemma tagged_perm tag cs cs' : Permutation cs cs' ->
  forall f, (forall r r', Permutation r r' -> f r == f r') ->
  Ex (tagged tag cs) f == Ex (tagged tag cs') f.
Proof.
  induction 1 as [|c l l' P IH|x y l|l l' l'' P1 IH1 P2 IH2]; intros f F.
  - reflexivity.
  - rewrite !tagged_cons. apply Ex_ext; intros t. apply IH; intros r r' Q; apply F; auto.
  - assert (G : forall a b, Ex (tagged tag (a :: b :: l)) f
      == Ex tag (fun t => Ex tag (fun s => Ex (tagged tag l) (fun r => f ((t, a) :: (s, b) :: r))))).
    { intros a b. rewrite tagged_cons. apply Ex_ext; intros t. apply tagged_cons. }
    rewrite !G, Ex_swap. apply Ex_ext; intros s. apply Ex_ext; intros t. apply Ex_ext; intros r.
    apply F. constructor.
  - rewrite IH1, IH2; auto. reflexivity.
Qed.

Lemma counts_cons l h H f :
  Ex (counts l (h :: H)) f == Ex (noisy l h) (fun n => Ex (counts l H) (fun v => f (n :: v))).
Proof.
  simpl. rewrite Ex_bind. apply Ex_ext; intros n. rewrite Ex_bind.
  apply Ex_ext; intros v. apply Ex_ret.
Qed.

Lemma counts_shift l H f :
  Ex (counts l H) f == Ex (counts l (repeat 0%nat (length H))) (fun D => f (add H D)).
Proof.
  revert f; induction H as [|h H IH]; intros f; [reflexivity|].
  cbn [length repeat]. rewrite !counts_cons, noisy_shift.
  apply Ex_ext; intros d. rewrite IH. reflexivity.
Qed.

(** The whole view of one release is a random function of H + D. *)
Theorem join_from_counts tag l r users : Forall (fun c => c < cells r)%nat users ->
  join tag l r users ==d bind (counts l (hist (cells r) users)) (simulate tag r).
Proof.
  intros F f. unfold join. rewrite !Ex_bind, (counts_shift l (hist (cells r) users)), hist_length.
  apply Ex_ext; intros D. unfold simulate. rewrite !Ex_bind.
  apply tagged_perm.
  - rewrite <- decoys_add. apply Permutation_app_tail, decoys_hist, F.
  - intros x x' P. rewrite (messages_perm r _ _ P). reflexivity.
Qed.

(** ** Counts of which one, or two, are one larger *)
Lemma bind_counts_cons {V} l h H (M : list nat -> dist V) :
  bind (counts l (h :: H)) M ==d bind (noisy l h) (fun n => bind (counts l H) (fun v => M (n :: v))).
Proof.
  intros f. rewrite Ex_bind, counts_cons, Ex_bind. apply Ex_ext; intros n. rewrite Ex_bind.
  reflexivity.
Qed.

Lemma bind_noisy_shift {V} l h k (M : nat -> dist V) :
  bind (noisy l (h + k)) M ==d bind (noisy l k) (fun n => M (h + n)%nat).
Proof.
  intros f. rewrite !Ex_bind, (noisy_shift l (h + k)), (noisy_shift l k).
  apply Ex_ext; intros d. rewrite Nat.add_assoc. reflexivity.
Qed.

Section Moves.
Context {V : Type}.
Variables (l : law) (ls : list law).
Hypothesis l_valid : valid l.

Lemma counts_same H : forall M M' : list nat -> dist V,
  (forall v, steps ls (M v) (M' v)) -> steps ls (bind (counts l H) M) (bind (counts l H) M').
Proof.
  intros M M' N. apply steps_same with (S := counts l H) (M := M) (M' := M'); auto.
  - apply counts_proper, l_valid.
  - intros f; reflexivity.
  - intros f; reflexivity.
Qed.

Lemma counts_one_more u H : forall M M' : list nat -> dist V,
  (forall v, steps ls (M v) (M' v)) ->
  steps (l :: ls) (bind (counts l (bump u H)) M) (bind (counts l H) M') /\
  steps (l :: ls) (bind (counts l H) M) (bind (counts l (bump u H)) M').
Proof.
  revert u; induction H as [|h H IH]; intros u M M' N.
  - destruct u; simpl bump; split; apply steps_idle; auto; apply counts_same, N.
  - destruct u as [|u]; cbn [bump].
    + set (K := fun (X : list nat -> dist V) n => bind (counts l H) (fun v => X ((h + n)%nat :: v))).
      assert (E1 : forall X, bind (counts l (S h :: H)) X ==d bind (noisy l 1) (K X)).
      { intros X. eapply law_trans; [apply bind_counts_cons|].
        replace (S h) with (h + 1)%nat by lia. apply (bind_noisy_shift l h 1). }
      assert (E0 : forall X, bind (counts l (h :: H)) X ==d bind (noisy l 0) (K X)).
      { intros X. eapply law_trans; [apply bind_counts_cons|].
        replace h with (h + 0)%nat at 1 by lia. apply (bind_noisy_shift l h 0). }
      split; [apply steps_shift with (M := K M) (M' := K M')
             |apply steps_shift_back with (M := K M) (M' := K M')]; auto;
        intros n; apply counts_same; auto.
    + assert (G : forall (X : list nat -> dist V) H', bind (counts l (h :: H')) X
        ==d bind (noisy l h) (fun n => bind (counts l H') (fun v => X (n :: v))))
        by (intros; apply bind_counts_cons).
      split; (eapply steps_same;
        [apply (noisy_proper l h), l_valid|apply G|apply G|intros n; apply IH; auto]).
Qed.

(** A record that moves from one cell to another. *)
Lemma counts_moved u w H : forall M M' : list nat -> dist V,
  (forall v, steps ls (M v) (M' v)) ->
  steps (l :: l :: ls) (bind (counts l (bump u H)) M) (bind (counts l (bump w H)) M').
Proof.
  revert u w; induction H as [|h H IH]; intros u w M M' N.
  - destruct u, w; simpl bump; repeat (apply steps_idle; auto); apply counts_same, N.
  - destruct u as [|u], w as [|w]; cbn [bump].
    + repeat (apply steps_idle; auto). apply counts_same, N.
    + set (K := fun (X : list nat -> dist V) H' n =>
        bind (counts l H') (fun v => X ((h + n)%nat :: v))).
      apply steps_shift with (M := K M H) (M' := K M' (bump w H)).
      * eapply law_trans; [apply bind_counts_cons|].
        replace (S h) with (h + 1)%nat by lia. apply (bind_noisy_shift l h 1).
      * eapply law_trans; [apply bind_counts_cons|].
        replace h with (h + 0)%nat at 1 by lia. apply (bind_noisy_shift l h 0).
      * intros n. apply counts_one_more; auto.
    + set (K := fun (X : list nat -> dist V) H' n =>
        bind (counts l H') (fun v => X ((h + n)%nat :: v))).
      apply steps_shift_back with (M := K M (bump u H)) (M' := K M' H); auto.
      * eapply law_trans; [apply bind_counts_cons|].
        replace h with (h + 0)%nat at 1 by lia. apply (bind_noisy_shift l h 0).
      * eapply law_trans; [apply bind_counts_cons|].
        replace (S h) with (h + 1)%nat by lia. apply (bind_noisy_shift l h 1).
      * intros n. apply counts_one_more; auto.
    + eapply steps_same; [apply (noisy_proper l h), l_valid|apply bind_counts_cons
        |apply bind_counts_cons|intros n; apply IH; auto].
Qed.
End Moves.
