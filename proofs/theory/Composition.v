(** Two worlds that differ by one shift under each of some laws, in adaptively chosen releases: the
    product of the pairs (D + 1, D) bounds how well they can be told apart, exactly. *)
From Coq Require Import QArith Lqa List ZArith Lia Arith.
From Splitmeans Require Import Definitions Distributions.
Import ListNotations.
Open Scope Q_scope.

(** ** A table and its shift *)
Lemma Qmake_plus a b d : (a # d) + (b # d) == (a + b) # d.
Proof. unfold Qeq, Qplus; simpl; rewrite !Pos2Z.inj_mul; ring. Qed.

Lemma Qmake_nonneg w W : (0 <= w)%Z -> 0 <= w # W.
Proof. unfold Qle; simpl; lia. Qed.

Lemma noisy_proper l h : valid l -> proper (noisy l h).
Proof.
  intros (N & M & _). unfold noisy; split.
  - clear M; revert h; induction N as [|w ws Hw N IH]; intros h; simpl; constructor; auto.
    apply Qmake_nonneg, Hw.
  - assert (G : forall ws h, Ex (spread (total l) h ws) (fun _ => 1) == sum ws # total l).
    { induction ws as [|w ws IH]; intros k; simpl; [reflexivity|].
      unfold sum in *; simpl. rewrite IH, <- Qmake_plus; ring. }
    rewrite G, M. unfold Qeq; simpl; lia.
Qed.

Lemma spread_shift W h ws f : Ex (spread W h ws) f == Ex (spread W 0 ws) (fun d => f (h + d)%nat).
Proof.
  assert (G : forall k, Ex (spread W (h + k) ws) f == Ex (spread W k ws) (fun d => f (h + d)%nat)).
  { induction ws as [|w ws IH]; intros k; simpl; [reflexivity|].
    rewrite <- IH, Nat.add_succ_r; reflexivity. }
  rewrite <- (G 0%nat), Nat.add_0_r; reflexivity.
Qed.

Lemma noisy_shift l h f : Ex (noisy l h) f == Ex (noisy l 0) (fun d => f (h + d)%nat).
Proof. apply spread_shift. Qed.

Lemma spread_app W h xs ys f :
  Ex (spread W h (xs ++ ys)) f == Ex (spread W h xs) f + Ex (spread W (h + length xs) ys) f.
Proof.
  revert h; induction xs as [|x xs IH]; intros h; simpl.
  - rewrite Nat.add_0_r; ring.
  - rewrite IH, Nat.add_succ_r; simpl; ring.
Qed.

Lemma spread_rev W h ws f :
  Ex (spread W h (rev ws)) f == Ex (spread W 0 ws) (fun d => f (h + length ws - S d)%nat).
Proof.
  revert h; induction ws as [|w ws IH]; intros h; [reflexivity|].
  cbn [rev spread]. rewrite spread_app, IH, rev_length. cbn [spread Ex length].
  rewrite (spread_shift W 1). replace (h + S (length ws) - 1)%nat with (h + length ws)%nat by lia.
  assert (G : Ex (spread W 0 ws) (fun d => f (h + length ws - S d)%nat)
    == Ex (spread W 0 ws) (fun d => f (h + S (length ws) - S (1 + d))%nat)).
  { apply Ex_ext; intros d. replace (h + S (length ws) - S (1 + d))%nat
      with (h + length ws - S d)%nat by lia. reflexivity. }
  rewrite G; ring.
Qed.

(** Read backwards, a symmetric table and its shift change places. *)
Lemma noisy_mirror_0 l f : valid l ->
  Ex (noisy l 0) f == Ex (noisy l 1) (fun n => f (length (weights l) - n)%nat).
Proof.
  intros (_ & _ & S). rewrite noisy_shift with (h := 1%nat). unfold noisy.
  rewrite <- S at 1. rewrite spread_rev. apply Ex_ext; intros d. reflexivity.
Qed.

Lemma noisy_mirror_1 l f : valid l ->
  Ex (noisy l 1) f == Ex (noisy l 0) (fun n => f (length (weights l) - n)%nat).
Proof.
  intros (_ & _ & S). unfold noisy. rewrite <- S at 1. rewrite spread_rev.
  apply Ex_ext; intros d. reflexivity.
Qed.

(** ** Worlds that are a sequence of steps apart *)
Inductive steps {V : Type} : list law -> dist V -> dist V -> Prop :=
| steps_done P R : proper P -> P ==d R -> steps [] P R
| steps_same ls A (S : dist A) (M M' : A -> dist V) P R :       (* the same draw in both worlds *)
    proper S -> P ==d bind S M -> R ==d bind S M' ->
    (forall a, steps ls (M a) (M' a)) -> steps ls P R
| steps_shift l ls (M M' : nat -> dist V) P R :                 (* a draw that is one larger in P *)
    P ==d bind (noisy l 1) M -> R ==d bind (noisy l 0) M' ->
    (forall n, steps ls (M n) (M' n)) -> steps (l :: ls) P R.

Lemma steps_shift_back {V} l ls (M M' : nat -> dist V) P R : valid l ->
  P ==d bind (noisy l 0) M -> R ==d bind (noisy l 1) M' ->
  (forall n, steps ls (M n) (M' n)) -> steps (l :: ls) P R.
Proof.
  intros Hl HP HR H. set (m := length (weights l)).
  apply steps_shift with (M := fun n => M (m - n)%nat) (M' := fun n => M' (m - n)%nat); auto;
    intros f; [rewrite (HP f)|rewrite (HR f)]; rewrite !Ex_bind.
  - apply (noisy_mirror_0 l (fun n => Ex (M n) f)), Hl.
  - apply (noisy_mirror_1 l (fun n => Ex (M' n) f)), Hl.
Qed.

(** A release in which nothing of the user is seen. *)
Lemma steps_idle {V} l ls (P R : dist V) : valid l -> steps ls P R -> steps (l :: ls) P R.
Proof.
  intros Hl H. apply steps_shift with (M := fun _ => P) (M' := fun _ => R); auto;
    intros f; rewrite Ex_bind; symmetry; apply Ex_const, noisy_proper, Hl.
Qed.

Lemma steps_law {V} ls (P P' R R' : dist V) :
  P ==d P' -> R ==d R' -> steps ls P' R' -> steps ls P R.
Proof.
  intros HP HR H. apply steps_same with (S := ret tt) (M := fun _ => P') (M' := fun _ => R').
  - apply proper_ret.
  - intros f. rewrite Ex_bind, Ex_ret. apply HP.
  - intros f. rewrite Ex_bind, Ex_ret. apply HR.
  - intros _; exact H.
Qed.

Lemma bind_bind {A B C} (P : dist A) (M : A -> dist B) (k : B -> dist C) :
  bind (bind P M) k ==d bind P (fun a => bind (M a) k).
Proof. intros f. rewrite !Ex_bind. apply Ex_ext; intros a. rewrite Ex_bind; reflexivity. Qed.

Lemma bind_law {A B} (P P' : dist A) (k : A -> dist B) : P ==d P' -> bind P k ==d bind P' k.
Proof. intros H f. rewrite !Ex_bind. apply H. Qed.

Lemma law_trans {A} (P Q R : dist A) : P ==d Q -> Q ==d R -> P ==d R.
Proof. intros H1 H2 f. rewrite (H1 f). apply H2. Qed.

Lemma steps_postprocess {V X} ls (P R : dist V) (k : V -> dist X) :
  (forall v, proper (k v)) -> steps ls P R -> steps ls (bind P k) (bind R k).
Proof.
  intros K; induction 1 as [P R HP E|ls A S M M' P R HS EP ER H IH|l ls M M' P R EP ER H IH].
  - apply steps_done; [apply proper_bind; auto|apply bind_law, E].
  - apply steps_same with (S := S) (M := fun a => bind (M a) k) (M' := fun a => bind (M' a) k); auto;
      (eapply law_trans; [apply bind_law; eassumption|apply bind_bind]).
  - apply steps_shift with (M := fun a => bind (M a) k) (M' := fun a => bind (M' a) k); auto;
      (eapply law_trans; [apply bind_law; eassumption|apply bind_bind]).
Qed.

(** ** The bound *)
Lemma joint_sum (phi : Q -> Q -> Q) W (F G : nat -> Q) s t ws :
  0 <= s -> 0 <= t -> Forall (fun w => 0 <= w)%Z ws ->
  (forall n s t, 0 <= s -> 0 <= t -> s * F n - t * G n <= phi s t) ->
  forall prev h, (0 <= prev)%Z ->
  s * Ex (spread W h (prev :: ws)) F - t * Ex (spread W h ws) G
  <= fold_right (fun x rest => phi (s * (fst x # W)) (t * (snd x # W)) + rest) 0 (joint prev ws).
Proof.
  intros Hs Ht N B; induction N as [|w ws Hw N IH]; intros prev h Hp;
    pose proof (Qmult_le_0_compat _ _ Hs (Qmake_nonneg prev W Hp)) as S1.
  - pose proof (B h _ _ S1 (Qmult_le_0_compat _ _ Ht (Qmake_nonneg 0 W (Z.le_refl 0)))) as X.
    cbn [spread Ex joint fold_right fst snd]. setoid_replace (0 # W) with 0 in X at 1 by reflexivity.
    lra.
  - pose proof (B h _ _ S1 (Qmult_le_0_compat _ _ Ht (Qmake_nonneg w W Hw))) as X.
    specialize (IH w (S h) Hw).
    cbn [spread Ex joint fold_right fst snd] in *. lra.
Qed.

Theorem steps_bound {V} ls (P R : dist V) : Forall valid ls -> steps ls P R ->
  forall s t f, 0 <= s -> 0 <= t -> test f -> s * Ex P f - t * Ex R f <= hockey ls s t.
Proof.
  intros L H; revert L.
  induction H as [P R HP E|ls A S M M' P R HS EP ER H IH|l ls M M' P R EP ER H IH];
    intros L s t f Hs Ht T.
  - rewrite <- (E f). destruct (test_mean P f HP T) as [X0 X1]. cbn [hockey].
    set (x := Ex P f) in *. unfold pos; destruct (Qlt_le_dec 0 (s - t)); nra.
  - rewrite (EP f), (ER f), !Ex_bind.
    apply Qle_trans with (Ex S (fun a => s * Ex (M a) f + (- t) * Ex (M' a) f)).
    + rewrite (Ex_linear S s (- t) (fun a => Ex (M a) f) (fun a => Ex (M' a) f)). lra.
    + apply Qle_trans with (Ex S (fun _ => hockey ls s t)).
      * apply Ex_mono; auto; intros a. specialize (IH a L s t f Hs Ht T). lra.
      * rewrite Ex_const by auto. lra.
  - inversion L as [|? ? [N _] Ls]; subst. rewrite (EP f), (ER f), !Ex_bind. cbn [hockey].
    unfold noisy.
    pose proof (joint_sum (hockey ls) (total l) (fun n => Ex (M n) f) (fun n => Ex (M' n) f) s t
                  (weights l) Hs Ht N) as J.
    assert (B : forall n s t, 0 <= s -> 0 <= t ->
      s * Ex (M n) f - t * Ex (M' n) f <= hockey ls s t) by (intros; apply IH; auto).
    specialize (J B 0%Z 0%nat (Z.le_refl 0)). cbn [spread Ex] in J.
    setoid_replace (0 # total l) with 0 in J at 1 by reflexivity. lra.
Qed.

Corollary steps_close {V} ls (P R : dist V) E delta : Forall valid ls -> 0 <= E ->
  hockey ls 1 E <= delta -> steps ls P R -> close E delta P R.
Proof.
  intros L HE D H f T. pose proof (steps_bound ls P R L H 1 E f ltac:(lra) HE T). lra.
Qed.
