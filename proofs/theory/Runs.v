(** Whole runs: several tables, sampling, other releases before, and what fellow parties see. *)
From Coq Require Import QArith Lqa List ZArith NArith Bool.
From Splitmeans Require Import Definitions Distributions Composition Views.
Import ListNotations.
Open Scope Q_scope.

Section Runs.
Variable tag : dist N.
Hypothesis tag_proper : proper tag.

Lemma run_proper laws : Forall valid laws -> forall p sample present,
  proper (run tag laws p sample present).
Proof.
  induction 1 as [|l ls Hl L IH]; intros p sample present; cbn [run]; [apply proper_ret|].
  apply proper_bind; [apply join_proper; auto|intros v].
  apply proper_bind; [apply IH|intros vs; apply proper_ret].
Qed.

Lemma kept_in sample os c : In c (kept sample os) -> In c (flat_map in_cell os).
Proof.
  revert sample; induction os as [|o os IH]; intros [|b sample]; simpl; try (intros []; fail);
    rewrite !in_app_iff; (intros [H|H]; [|right; eapply IH; eauto]).
  - left; exact H.
  - destruct b; [left; exact H|destruct H].
Qed.

Lemma run_steps laws : Forall valid laws -> forall p sample, well_formed laws p ->
  steps laws (run tag laws p sample true) (run tag laws p sample false) /\
  steps laws (run tag laws p sample false) (run tag laws p sample true).
Proof.
  induction 1 as [|l ls Hl L IH]; intros p sample W.
  - split; (apply steps_done; [apply proper_ret|intros f; reflexivity]).
  - destruct p as [r next], W as [Range W]; cbn [run fst snd app] in *.
    set (base := kept sample (others r)).
    set (rest := fun (present : bool) v =>
      bind (run tag ls (next v) sample present) (fun vs => ret (v :: vs))).
    change (fun v => bind (run tag ls (next v) sample true) (fun vs => ret (v :: vs)))
      with (rest true).
    change (fun v => bind (run tag ls (next v) sample false) (fun vs => ret (v :: vs)))
      with (rest false).
    assert (Next : forall v, steps ls (rest true v) (rest false v) /\
                             steps ls (rest false v) (rest true v)).
    { intros v. destruct (IH (next v) sample (W v)).
      split; apply steps_postprocess; auto; intros; apply proper_ret. }
    unfold in_range in Range. apply Forall_app in Range; destruct Range as [RU RO].
    assert (RB : Forall (fun c => c < cells r)%nat base).
    { apply Forall_forall; intros c I. rewrite Forall_forall in RO. apply RO, (kept_in sample), I. }
    assert (G : forall us (M : view -> dist (list view)), Forall (fun c => c < cells r)%nat us -> bind (join tag l r us) M
      ==d bind (counts l (hist (cells r) us)) (fun n => bind (simulate tag r n) M)).
    { intros us M F. eapply law_trans; [apply bind_law, join_from_counts, F|apply bind_bind]. }
    set (H := hist (cells r) base).
    assert (S : forall a b, (forall v, steps ls (rest a v) (rest b v)) -> forall n,
      steps ls (bind (simulate tag r n) (rest a)) (bind (simulate tag r n) (rest b))).
    { intros a b N n. eapply steps_same with (S := simulate tag r n); eauto.
      - apply simulate_proper, tag_proper.
      - intros f; reflexivity.
      - intros f; reflexivity. }
    destruct (user r) as [u|]; cbn [in_cell app] in *.
    + assert (RU' : Forall (fun c => c < cells r)%nat (u :: base)).
      { constructor; auto. inversion RU; auto. }
      split; (eapply steps_law; [apply G; auto|apply G; auto|]);
        change (hist (cells r) (u :: base)) with (bump u H); apply counts_one_more; auto;
        apply S; intros v; apply Next.
    + split; apply steps_idle; auto; (eapply steps_law; [apply G; auto|apply G; auto|]);
        apply counts_same; auto; apply S; intros v; apply Next.
Qed.

(** Adding or removing one user, towards a server that sees all messages of all parties. *)
Theorem run_private laws E delta p sample :
  Forall valid laws -> 0 <= E -> hockey laws 1 E <= delta -> well_formed laws p ->
  indist E delta (run tag laws p sample false) (run tag laws p sample true).
Proof.
  intros L HE D W. destruct (run_steps laws L p sample W).
  split; eapply steps_close; eauto.
Qed.

Lemma coin_proper rate : 0 <= rate -> rate <= 1 -> proper (coin rate).
Proof.
  intros H0 H1; split; [repeat constructor; simpl; lra|simpl; ring].
Qed.

Lemma coins_proper rate n : 0 <= rate -> rate <= 1 -> proper (coins rate n).
Proof.
  intros H0 H1; induction n; cbn [coins]; [apply proper_ret|].
  apply proper_bind; [apply coin_proper; auto|intros b].
  apply proper_bind; [auto|intros bs; apply proper_ret].
Qed.

Lemma sampled_proper {A} laws rate n (secret : dist A) p present :
  Forall valid laws -> 0 <= rate -> rate <= 1 -> proper secret ->
  proper (sampled_run tag laws rate n secret p present).
Proof.
  intros L R0 R1 S. apply proper_bind; auto; intros a.
  apply proper_bind; [apply coins_proper; auto|intros sample].
  apply proper_bind; [apply coin_proper; auto|intros k; apply run_proper, L].
Qed.

Theorem sampled_private {A} laws E delta rate n (secret : dist A) p :
  Forall valid laws -> 1 <= E -> hockey laws 1 E <= delta ->
  0 <= rate -> rate <= 1 -> proper secret -> (forall a, well_formed laws (p a)) ->
  indist E delta (sampled_run tag laws rate n secret p false)
                 (sampled_run tag laws rate n secret p true).
Proof.
  intros L HE D R0 R1 S W. unfold sampled_run.
  assert (P : forall a sample b, indist E delta
    (run tag laws (p a) sample (b && false)) (run tag laws (p a) sample (b && true))).
  { intros a sample b. pose proof (run_private laws E delta (p a) sample L ltac:(lra) D (W a)) as H.
    destruct b; [exact H|]. cbn [andb].
    assert (0 <= delta).
    { destruct H as [H _]. eapply close_delta; [apply run_proper, L|exact H]. }
    split; apply close_refl; auto; apply run_proper, L. }
  split; (apply close_mixture; auto; intros a; apply close_mixture; [apply coins_proper; auto|];
    intros sample; apply close_mixture; [apply coin_proper; auto|]; intros b; apply P).
Qed.

(** Any other releases before the join, with a cost (E1, delta1) that is proved elsewhere. *)
Theorem sampled_private_after {A S} laws E1 d1 E2 d2 rate n (first first' : dist A)
    (secret : A -> dist S) p :
  Forall valid laws -> 0 <= E1 -> 1 <= E2 -> hockey laws 1 E2 <= d2 ->
  0 <= rate -> rate <= 1 -> (forall a, proper (secret a)) -> (forall a s, well_formed laws (p a s)) ->
  proper first -> proper first' -> indist E1 d1 first first' ->
  indist (E1 * E2) (d1 + d2)
    (after first (fun a => sampled_run tag laws rate n (secret a) (p a) false))
    (after first' (fun a => sampled_run tag laws rate n (secret a) (p a) true)).
Proof.
  intros L HE1 HE2 D R0 R1 HS W HF HF' [C C'].
  assert (I : forall a, indist E2 d2 (sampled_run tag laws rate n (secret a) (p a) false)
                                     (sampled_run tag laws rate n (secret a) (p a) true))
    by (intros a; apply sampled_private; auto).
  assert (HP : forall a b, proper (sampled_run tag laws rate n (secret a) (p a) b))
    by (intros; apply sampled_proper; auto).
  split; apply close_after; auto; try lra; intros a; apply I.
Qed.
End Runs.

(** What a fellow party sees of the tables: one record in another cell, or there or not. *)
Lemma published_steps tables a : Forall (fun x => valid (fst x)) tables ->
  steps (flat_map shifts tables) (published tables a) (published tables (negb a)).
Proof.
  induction 1 as [|[l x] tables Hl L IH]; cbn [published flat_map fst] in *.
  - apply steps_done; [apply proper_ret|intros f; reflexivity].
  - assert (Next : forall v : list nat, steps (flat_map shifts tables)
      (bind (published tables a) (fun vs => ret (v :: vs)))
      (bind (published tables (negb a)) (fun vs => ret (v :: vs)))).
    { intros v. apply steps_postprocess; auto. intros; apply proper_ret. }
    unfold shifts at 1; cbn [fst snd].
    destruct (here x) as [u|], (there x) as [w|], a; cbn [negb place app];
      (apply counts_moved || apply counts_one_more || apply counts_same); auto.
Qed.

Theorem published_private tables E delta :
  Forall (fun x => valid (fst x)) tables -> 0 <= E ->
  hockey (flat_map shifts tables) 1 E <= delta ->
  indist E delta (published tables false) (published tables true).
Proof.
  intros L HE D. assert (V : Forall valid (flat_map shifts tables)).
  { clear - L. induction L as [|[l x] tables Hl L IH]; cbn [flat_map]; [constructor|].
    apply Forall_app; split; [|exact IH].
    unfold shifts; cbn [fst snd] in *. destruct (here x), (there x);
      repeat (apply Forall_cons; [exact Hl|]); apply Forall_nil. }
  split; eapply steps_close; eauto;
    [apply (published_steps tables false L)|apply (published_steps tables true L)].
Qed.

Lemma published_proper tables b : Forall (fun x => valid (fst x)) tables ->
  proper (published tables b).
Proof.
  induction 1 as [|[l x] tables Hl L IH]; cbn [published]; [apply proper_ret|].
  apply proper_bind; [apply counts_proper, Hl|intros v].
  apply proper_bind; [exact IH|intros vs; apply proper_ret].
Qed.
