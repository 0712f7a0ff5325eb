(** The bound is exact: the product of the pairs (D + 1, D) itself attains it. *)
From Coq Require Import QArith Lqa List ZArith Lia Arith.
From Splitmeans Require Import Definitions Distributions Composition.
Import ListNotations.
Open Scope Q_scope.

(** One cell a law, the user in it or not, and the test of Neyman and Pearson. *)
Fixpoint product (laws : list law) (h : nat) : dist (list nat) :=
  match laws with
  | [] => ret []
  | l :: laws' => bind (noisy l h) (fun n => bind (product laws' h) (fun v => ret (n :: v)))
  end.
Fixpoint best (laws : list law) (s t : Q) (v : list nat) : Q :=
  match laws, v with
  | l :: laws', n :: v' =>
      best laws' (s * (nth n (0%Z :: weights l) 0%Z # total l)) (t * (nth n (weights l) 0%Z # total l)) v'
  | _, _ => if Qlt_le_dec 0 (s - t) then 1 else 0
  end.

Lemma best_test laws : forall s t, test (best laws s t).
Proof.
  induction laws as [|l laws IH]; intros s t v; cbn [best].
  - destruct (Qlt_le_dec 0 (s - t)); lra.
  - destruct v; [destruct (Qlt_le_dec 0 (s - t)); lra|apply IH].
Qed.

Lemma product_cons l laws h f :
  Ex (product (l :: laws) h) f == Ex (noisy l h) (fun n => Ex (product laws h) (fun v => f (n :: v))).
Proof.
  cbn [product]. rewrite Ex_bind. apply Ex_ext; intros n. rewrite Ex_bind.
  apply Ex_ext; intros v. apply Ex_ret.
Qed.

Lemma joint_exact (phi : Q -> Q -> Q) W (F G : nat -> Q) (P R : nat -> Z) s t :
  (forall n, s * (P n # W) * F n - t * (R n # W) * G n == phi (s * (P n # W)) (t * (R n # W))) ->
  forall ws prev h,
  (forall i, nth i (prev :: ws) 0%Z = P (h + i)%nat) -> (forall i, nth i ws 0%Z = R (h + i)%nat) ->
  s * Ex (spread W h (prev :: ws)) F - t * Ex (spread W h ws) G
  == fold_right (fun x rest => phi (s * (fst x # W)) (t * (snd x # W)) + rest) 0 (joint prev ws).
Proof.
  intros B; induction ws as [|w ws IH]; intros prev h HP HR; pose proof (B h) as X;
    pose proof (HP 0%nat) as P0; pose proof (HR 0%nat) as R0; rewrite Nat.add_0_r in P0, R0;
    cbn [nth] in P0, R0; rewrite <- P0, <- R0 in X.
  - cbn [spread Ex joint fold_right fst snd]. rewrite <- X.
    setoid_replace (0 # W) with 0 by reflexivity. ring.
  - assert (IH' : s * Ex (spread W (S h) (w :: ws)) F - t * Ex (spread W (S h) ws) G
      == fold_right (fun x rest => phi (s * (fst x # W)) (t * (snd x # W)) + rest) 0 (joint w ws)).
    { apply IH; intros i; replace (S h + i)%nat with (h + S i)%nat by lia;
        [rewrite <- HP|rewrite <- HR]; reflexivity. }
    cbn [joint fold_right fst snd]. rewrite <- IH', <- X. cbn [spread Ex]. ring.
Qed.

Lemma best_attains laws : forall s t,
  s * Ex (product laws 1) (best laws s t) - t * Ex (product laws 0) (best laws s t)
  == hockey laws s t.
Proof.
  induction laws as [|l laws IH]; intros s t.
  - cbn [product best hockey]. unfold ret, Ex, pos. destruct (Qlt_le_dec 0 (s - t)); ring.
  - rewrite !product_cons. cbn [hockey].
    set (P := fun n => nth n (0%Z :: weights l) 0%Z). set (R := fun n => nth n (weights l) 0%Z).
    set (W := total l).
    set (g := fun n => best laws (s * (P n # W)) (t * (R n # W))).
    pose proof (joint_exact (hockey laws) W (fun n => Ex (product laws 1) (g n))
      (fun n => Ex (product laws 0) (g n)) P R s t) as J.
    assert (B : forall n, s * (P n # W) * Ex (product laws 1) (g n)
      - t * (R n # W) * Ex (product laws 0) (g n) == hockey laws (s * (P n # W)) (t * (R n # W)))
      by (intros n; apply IH).
    specialize (J B (weights l) 0%Z 0%nat (fun i => eq_refl) (fun i => eq_refl)).
    cbn [spread Ex] in J. setoid_replace (0 # W) with 0 in J at 1 by reflexivity.
    unfold noisy. fold W.
    change (fun n => Ex (product laws 1) (fun v => best (l :: laws) s t (n :: v)))
      with (fun n => Ex (product laws 1) (g n)).
    change (fun n => Ex (product laws 0) (fun v => best (l :: laws) s t (n :: v)))
      with (fun n => Ex (product laws 0) (g n)).
    rewrite <- J. ring.
Qed.

(** So nothing smaller can be promised of releases that show their counts. *)
Theorem product_attains laws E delta :
  close E delta (product laws 1) (product laws 0) -> hockey laws 1 E <= delta.
Proof.
  intros C. specialize (C (best laws 1 E) (best_test laws 1 E)).
  pose proof (best_attains laws 1 E). lra.
Qed.
