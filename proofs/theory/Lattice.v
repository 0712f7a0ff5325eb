(** Copies of one table whose losses lie on a lattice: their product is a convolution. *)
From Coq Require Import QArith Lqa List ZArith Lia Arith Bool.
From Splitmeans Require Import Definitions Distributions Composition Checker.
Import ListNotations.
Open Scope Q_scope.

(** ** Small facts *)
Definition iz (z : Z) : Q := z # 1.
Fixpoint qpow (b : Q) (n : nat) : Q := match n with O => 1 | S n' => b * qpow b n' end.
Fixpoint ev (mu : list Z) (g : nat -> Q) (j : nat) : Q :=
  match mu with [] => 0 | a :: mu' => iz a * g j + ev mu' g (S j) end.

Lemma qpow_nonneg b n : 0 <= b -> 0 <= qpow b n.
Proof. intros; induction n; simpl; [lra|apply Qmult_le_0_compat; auto]. Qed.
Lemma qpow_add b n m : qpow b (n + m) == qpow b n * qpow b m.
Proof. induction n; simpl; [ring|rewrite IHn; ring]. Qed.
Lemma iz_add a b : iz (a + b) == iz a + iz b.
Proof. unfold iz; symmetry; apply Qmake_plus. Qed.
Lemma iz_mul a b : iz (a * b) == iz a * iz b.
Proof. reflexivity. Qed.
Lemma iz_nonneg a : (0 <= a)%Z -> 0 <= iz a.
Proof. unfold iz, Qle; simpl; lia. Qed.
Lemma over a d : a # d == iz a * (1 # d).
Proof. unfold iz, Qeq, Qmult; simpl; lia. Qed.
Lemma up_ge x d : (x # d) <= iz (up x d).
Proof.
  unfold up, iz, Qle; cbn [Qnum Qden].
  pose proof (Z.mul_succ_div_gt x (Zpos d) ltac:(lia)). unfold Z.succ in *. lia.
Qed.
Lemma div_le x d : (0 < d)%Z -> iz (x / d) * iz d <= iz x.
Proof. intros H. unfold iz, Qle, Qmult; cbn. pose proof (Z.mul_div_le x d H). lia. Qed.

Lemma ev_padd x y g j : ev (padd x y) g j == ev x g j + ev y g j.
Proof.
  revert y j; induction x as [|a x IH]; intros [|b y] j; cbn [padd ev]; try ring.
  rewrite IH, iz_add; ring.
Qed.
Lemma ev_mul p x g j : ev (map (Z.mul p) x) g j == iz p * ev x g j.
Proof.
  revert j; induction x as [|a x IH]; intros j; cbn [map ev]; [ring|rewrite IH, iz_mul; ring].
Qed.
Lemma ev_up W mu g j : (forall i, 0 <= g i) ->
  (1 # W) * ev mu g j <= ev (map (fun x => up x W) mu) g j.
Proof.
  intros G; revert j; induction mu as [|a mu IH]; intros j; cbn [map ev]; [lra|].
  specialize (IH (S j)). pose proof (G j). pose proof (up_ge a W) as U. rewrite over in U.
  assert (0 <= (iz (up a W) - iz a * (1 # W)) * g j) by (apply Qmult_le_0_compat; lra). lra.
Qed.

Lemma last_cons (w : Z) ws : forall d, last (w :: ws) d = last ws w.
Proof.
  revert w; induction ws as [|v ws IH]; intros w d; [reflexivity|].
  change (last (w :: v :: ws) d) with (last (v :: ws) d). rewrite (IH v d), (IH v w). reflexivity.
Qed.

(** ** Validity *)
Lemma valid_law_sound l : valid_law l = true -> valid l.
Proof.
  unfold valid_law; rewrite !andb_true_iff; intros [[N M] S]; split; [|split].
  - apply Forall_forall; intros w I. rewrite forallb_forall in N. apply Z.leb_le, N, I.
  - apply Z.eqb_eq, M.
  - destruct (list_eq_dec Z.eq_dec (rev (weights l)) (weights l)); [auto|discriminate].
Qed.

Lemma weights_split l : valid l -> weights l = first l :: tl (weights l).
Proof.
  intros (_ & M & _). unfold first. destruct (weights l); [discriminate M|reflexivity].
Qed.

Lemma final_nonneg l : valid l -> (0 <= final l)%Z.
Proof.
  intros (N & _). unfold final, first.
  assert (G : forall ws d, (0 <= d)%Z -> Forall (fun w => 0 <= w)%Z ws -> (0 <= last ws d)%Z).
  { induction ws as [|w ws IH]; intros d Hd Nw; [exact Hd|]. inversion Nw; subst.
    destruct ws; [simpl; lia|]. apply (IH d); auto. }
  destruct (weights l) as [|w ws]; simpl; [lia|]. inversion N; subst. apply G; auto.
Qed.

(** The product of laws never shows more than everything. *)
Lemma hockey_le laws : Forall valid laws -> forall s t, 0 <= s -> 0 <= t -> hockey laws s t <= s.
Proof.
  induction 1 as [|l ls (N & M & _) L IH]; intros s t Hs Ht; cbn [hockey].
  - unfold pos; destruct (Qlt_le_dec 0 (s - t)); lra.
  - assert (G : forall ws prev, (0 <= prev)%Z -> Forall (fun w => 0 <= w)%Z ws ->
      fold_right (fun x r => hockey ls (s * (fst x # total l)) (t * (snd x # total l)) + r) 0
        (joint prev ws) <= s * ((prev + sum ws) # total l)).
    { assert (T : forall p q, (0 <= p)%Z -> (0 <= q)%Z ->
        hockey ls (s * (p # total l)) (t * (q # total l)) <= s * (p # total l)).
      { intros p q Hp Hq. apply IH; apply Qmult_le_0_compat; auto; apply Qmake_nonneg; auto. }
      induction ws as [|w ws IHw]; intros prev Hp Nw; cbn [joint fold_right fst snd].
      - specialize (T prev 0%Z Hp (Z.le_refl 0)). unfold sum; simpl. rewrite Z.add_0_r. lra.
      - inversion Nw; subst. specialize (T prev w Hp ltac:(lia)). specialize (IHw w ltac:(lia) ltac:(auto)).
        change (sum (w :: ws)) with (w + sum ws)%Z. rewrite <- Qmake_plus. lra. }
    specialize (G (weights l) 0%Z (Z.le_refl 0) N). rewrite M in G. cbn [Z.add] in G.
    assert (O : Zpos (total l) # total l == 1) by (unfold Qeq; simpl; lia).
    rewrite O in G. lra.
Qed.

(** ** One block *)
Section Block.
Variables (l : law) (b c tau : Q) (after : list law) (leaf : nat -> Q).
Hypothesis l_valid : valid l.
Hypothesis after_valid : Forall valid after.
Hypothesis b0 : 0 <= b.
Hypothesis c0 : 0 <= c.
Hypothesis tau0 : 0 <= tau.
Hypothesis leaf0 : forall j, 0 <= leaf j.
Hypothesis leaf_bound : forall j s t, 0 <= s -> 0 <= t -> s * (tau * qpow b j) <= t ->
  hockey after s t <= s * leaf j.

Fixpoint on_lattice (r : nat) (prev : Z) (ws : list Z) : Prop :=
  match ws with
  | [] => True
  | w :: ws' => iz prev * qpow b r <= iz w * c /\ on_lattice (S r) w ws'
  end.
Hypothesis lattice : on_lattice 0 (first l) (tl (weights l)).

Lemma block_bound k : forall s t j, 0 <= s -> 0 <= t ->
  s * (tau * qpow b j * qpow c k) <= t ->
  hockey (repeat l k ++ after) s t
    <= s * ((1 # F) * ev (conv l k) leaf j + iz (Z.of_nat k) * (final l # total l)).
Proof.
  induction k as [|k IH]; intros s t j Hs Ht C.
  - cbn [repeat app conv ev]. simpl in C. specialize (leaf_bound j s t Hs Ht ltac:(lra)).
    setoid_replace (iz (Z.of_nat 0)) with 0 by reflexivity.
    assert (O : (1 # F) * iz (Zpos F) == 1) by reflexivity.
    setoid_replace (s * ((1 # F) * (iz (Zpos F) * leaf j + 0) + 0 * (final l # total l)))
      with (s * (((1 # F) * iz (Zpos F)) * leaf j)) by ring.
    rewrite O. lra.
  - assert (V : Forall valid (repeat l k ++ after)).
    { apply Forall_app; split; auto. clear -l_valid; induction k; simpl; constructor; auto. }
    pose proof (hockey_le _ V) as All. cbn [repeat app hockey conv].
    set (phi := hockey (repeat l k ++ after)) in *. set (mu := conv l k) in *.
    set (W := total l) in *. set (K := iz (Z.of_nat k) * (final l # W)) in *.
    assert (K0 : 0 <= K).
    { unfold K; apply Qmult_le_0_compat; [apply iz_nonneg; lia|apply Qmake_nonneg, final_nonneg, l_valid]. }
    assert (G : forall ws prev r, (0 <= prev)%Z -> Forall (fun w => 0 <= w)%Z ws ->
      on_lattice r prev ws ->
      fold_right (fun x rest => phi (s * (fst x # W)) (t * (snd x # W)) + rest) 0 (joint prev ws)
      <= s * ((1 # F) * ((1 # W) * ev (pmul prev ws mu) leaf (j + r)) + K * ((prev + sum ws) # W)
              + (last ws prev # W))).
    { clear lattice. induction ws as [|w ws IHw]; intros prev r Hp Nw Lat;
        pose proof (Qmake_nonneg prev W Hp) as P0;
        pose proof (Qmult_le_0_compat _ _ Hs P0) as SP;
        pose proof (Qmult_le_0_compat _ _ Hs (Qmult_le_0_compat _ _ K0 P0)) as KP.
      - cbn [joint fold_right fst snd pmul ev last]. unfold sum; cbn [fold_right]. rewrite Z.add_0_r.
        pose proof (All _ _ SP (Qmult_le_0_compat _ _ Ht (Qmake_nonneg 0 W (Z.le_refl 0)))). lra.
      - inversion Nw as [|? ? Hw Nw']; subst. destruct Lat as [Lat Lat'].
        specialize (IHw w (S r) Hw Nw' Lat').
        cbn [joint fold_right fst snd pmul]. rewrite ev_padd, ev_mul. cbn [ev].
        replace (j + S r)%nat with (S (j + r)) in IHw by lia.
        setoid_replace (iz 0) with 0 by reflexivity.
        rewrite last_cons.
        change (sum (w :: ws)) with (w + sum ws)%Z. rewrite <- (Qmake_plus prev).
        assert (C' : s * (prev # W) * (tau * qpow b (j + r) * qpow c k) <= t * (w # W)).
        { rewrite qpow_add, (over prev), (over w). cbn [qpow] in C.
          assert (A0 : 0 <= 1 # W) by discriminate.
          assert (Z1 : 0 <= s * (tau * qpow b j * qpow c k) * (1 # W)).
          { repeat apply Qmult_le_0_compat; auto using qpow_nonneg. }
          assert (A1 : 0 <= s * (tau * qpow b j * qpow c k) * (1 # W) * (iz w * c - iz prev * qpow b r))
            by (apply Qmult_le_0_compat; lra).
          assert (A2 : 0 <= (t - s * (tau * qpow b j * (c * qpow c k))) * (iz w * (1 # W))).
          { apply Qmult_le_0_compat; [lra|]. apply Qmult_le_0_compat; [apply iz_nonneg; auto|auto]. }
          lra. }
        pose proof (IH _ _ (j + r)%nat SP (Qmult_le_0_compat _ _ Ht (Qmake_nonneg w W Hw)) C') as T.
        fold K in T. set (z := phi (s * (prev # W)) (t * (w # W))) in *. clearbody z.
        rewrite (over prev) in T, KP |- *. lra. }
    destruct l_valid as (N & M & _). pose proof (weights_split l l_valid) as Split.
    replace (joint 0 (weights l)) with (joint 0 (first l :: tl (weights l)))
      by (rewrite <- Split; reflexivity).
    rewrite Split in N. inversion N as [|? ? H1 N']; subst.
    cbn [joint fold_right fst snd].
    specialize (G (tl (weights l)) (first l) 0%nat H1 N' lattice). rewrite Nat.add_0_r in G.
    rewrite Split in M. change (sum (first l :: tl (weights l))) with (first l + sum (tl (weights l)))%Z in M.
    rewrite M in G. fold W in G. fold (final l) in G.
    assert (O : Zpos W # W == 1) by (unfold Qeq; simpl; lia). rewrite O in G.
    assert (Z0 : phi (s * (0 # W)) (t * (first l # W)) <= s * (0 # W)).
    { apply All; apply Qmult_le_0_compat; auto; apply Qmake_nonneg; lia. }
    setoid_replace (s * (0 # W)) with 0 in Z0 at 2 by (setoid_replace (0 # W) with 0 by reflexivity; ring).
    pose proof (ev_up W (pmul (first l) (tl (weights l)) mu) leaf j leaf0) as U.
    assert (A : 0 <= s * ((1 # F) * (ev (map (fun x => up x W) (pmul (first l) (tl (weights l)) mu)) leaf j
      - (1 # W) * ev (pmul (first l) (tl (weights l)) mu) leaf j))).
    { apply Qmult_le_0_compat; auto. apply Qmult_le_0_compat; [discriminate|lra]. }
    assert (KS : iz (Z.of_nat (S k)) * (final l # W) == K + (final l # W)).
    { unfold K. rewrite Nat2Z.inj_succ. unfold Z.succ. rewrite iz_add.
      setoid_replace (iz 1) with 1 by reflexivity. ring. }
    rewrite KS. lra.
Qed.
End Block.
