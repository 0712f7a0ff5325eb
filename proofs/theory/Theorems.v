(** The statements, in the order of docs/concepts/machine-checked.md. Each is proved in the file
    named with it; `make proofs` checks that none of them rests on an axiom. *)
From Coq Require Import QArith List ZArith NArith Lqa.
From Splitmeans Require Import Definitions Distributions Composition Views Runs Attained Checker CheckerSound.
Import ListNotations.
Open Scope Q_scope.

(** 1. Closeness is about every event that may be observed. *)
Theorem events_are_covered {A} E delta (P R : dist A) : indist E delta P R ->
  forall S : A -> bool,
  Ex P (fun a => if S a then 1 else 0) <= E * Ex R (fun a => if S a then 1 else 0) + delta /\
  Ex R (fun a => if S a then 1 else 0) <= E * Ex P (fun a => if S a then 1 else 0) + delta.
Proof. intros [C C'] S; split; [apply C|apply C']; intros a; destruct (S a); lra. Qed.

(** 2. What is computed from the messages later costs nothing (Distributions.v). *)
Theorem post_processing_is_free {A B} E delta (P R : dist A) (k : A -> dist B) :
  (forall a, proper (k a)) -> indist E delta P R -> indist E delta (bind P k) (bind R k).
Proof. intros K [C C']; split; apply close_postprocess; auto. Qed.

(** 3. All parties' messages of a release are drawn from the counts H + D alone: tags of any
    law, repeated ones included, whatever the labels are (Views.v). *)
Theorem messages_follow_from_counts tag l r users :
  Forall (fun c => c < cells r)%nat users ->
  forall f, Ex (join tag l r users) f == Ex (bind (counts l (hist (cells r) users)) (simulate tag r)) f.
Proof. exact (join_from_counts tag l r users). Qed.

(** 4. A run of any releases under these laws, each chosen with knowledge of all earlier messages,
    is bounded by the exact divergence of the product of the pairs (D + 1, D) (Runs.v). *)
Theorem run_is_bounded_by_the_product {A} tag laws E delta rate n (secret : dist A) p :
  proper tag -> Forall valid laws -> 1 <= E -> hockey laws 1 E <= delta ->
  0 <= rate -> rate <= 1 -> proper secret -> (forall a, well_formed laws (p a)) ->
  indist E delta (sampled_run tag laws rate n secret p false)
                 (sampled_run tag laws rate n secret p true).
Proof. intros T; apply sampled_private, T. Qed.

(** 5. That divergence is exact: whoever sees one count of every law attains it (Attained.v). *)
Theorem product_bound_is_exact laws E delta :
  close E delta (product laws 1) (product laws 0) -> hockey laws 1 E <= delta.
Proof. exact (product_attains laws E delta). Qed.

(** 6. The program that bounds the divergence is right (CheckerSound.v). *)
Theorem checker_is_sound blocks E delta : check blocks E delta = true ->
  Forall valid (laws_of blocks) /\ 0 <= E /\ hockey (laws_of blocks) 1 E <= delta.
Proof. exact (check_sound blocks E delta). Qed.

Lemma exp_sum_ge_1 n x : 0 <= x -> 1 <= exp_sum n x.
Proof.
  intros X. unfold exp_sum.
  assert (G : forall n i, 1 <= exp_sum_from i n x).
  { clear n; induction n as [|n IH]; intros i; simpl; [lra|].
    specialize (IH (Pos.succ i)).
    assert (0 <= x * (1 # i) * exp_sum_from (Pos.succ i) n x).
    { repeat apply Qmult_le_0_compat; auto; [discriminate|lra]. }
    lra. }
  apply G.
Qed.

(** 7. So a study whose blocks pass is private towards a server that sees all of its messages about
    memberships: for one user more or less, with any sample and any randomised labels. *)
Theorem checked_run_is_private {A} blocks epsilon terms delta tag rate n (secret : dist A) p :
  0 <= epsilon -> check blocks (exp_sum terms epsilon) delta = true ->
  proper tag -> 0 <= rate -> rate <= 1 -> proper secret ->
  (forall a, well_formed (laws_of blocks) (p a)) ->
  private epsilon delta (sampled_run tag (laws_of blocks) rate n secret p false)
                        (sampled_run tag (laws_of blocks) rate n secret p true).
Proof.
  intros HE C T R0 R1 S W. destruct (check_sound _ _ _ C) as (V & _ & H).
  exists terms. apply sampled_private; auto. apply exp_sum_ge_1, HE.
Qed.

(** 8. Releases of another kind before it, with a cost (E1, delta1) that is assumed here: the run
    with them. Which tables, labels and cells follow is chosen by what they showed (Runs.v). *)
Theorem run_after_other_releases {A S} tag laws E1 d1 E2 d2 rate n (first first' : dist A)
    (secret : A -> dist S) p :
  proper tag -> Forall valid laws -> 0 <= E1 -> 1 <= E2 -> hockey laws 1 E2 <= d2 ->
  0 <= rate -> rate <= 1 -> (forall a, proper (secret a)) -> (forall a s, well_formed laws (p a s)) ->
  proper first -> proper first' ->
  indist E1 d1 first first' ->                                 (* the hypothesis about them *)
  indist (E1 * E2) (d1 + d2)
    (after first (fun a => sampled_run tag laws rate n (secret a) (p a) false))
    (after first' (fun a => sampled_run tag laws rate n (secret a) (p a) true)).
Proof. intros T; apply sampled_private_after, T. Qed.

(** 9. A fellow party, who knows all decoys and all users but one record elsewhere: for every table
    two shifts of the server's noise where that record moves, one where it comes or goes (Runs.v),
    after other releases as in 8. *)
Theorem fellow_party_is_bounded {A} laws E1 d1 E2 d2 (first first' : dist A)
    (tables : A -> list (law * seen)) :
  (forall a, Forall (fun x => valid (fst x)) (tables a)) ->
  (forall a, flat_map shifts (tables a) = laws) -> 0 <= E1 -> 0 <= E2 -> hockey laws 1 E2 <= d2 ->
  proper first -> proper first' ->
  indist E1 d1 first first' ->                                 (* the hypothesis about them *)
  indist (E1 * E2) (d1 + d2)
    (after first (fun a => published (tables a) false))
    (after first' (fun a => published (tables a) true)).
Proof.
  intros L M HE1 HE2 H HF HF' [C C'].
  assert (I : forall a, indist E2 d2 (published (tables a) false) (published (tables a) true)).
  { intros a. apply published_private; auto. rewrite M; exact H. }
  assert (HP : forall a b, proper (published (tables a) b)) by (intros; apply published_proper, L).
  split; apply close_after; auto; intros a; apply I.
Qed.
