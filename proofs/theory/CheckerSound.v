(** The checker's program gives an upper bound: block by block. *)
From Coq Require Import QArith Lqa List ZArith Lia Arith Bool.
From Splitmeans Require Import Definitions Distributions Composition Checker Lattice.
Import ListNotations.
Open Scope Q_scope.

Definition covers (xs : list prepared) (laws : list law) := forall u s t,
  (0 <= u)%Z -> 0 <= s -> 0 <= t -> s * (u # F) <= t -> hockey laws s t <= s * (bound xs u # F).

Lemma down_div x : down x = (x / Zpos F)%Z.
Proof. unfold down. rewrite Z.shiftr_div_pow2 by lia. reflexivity. Qed.

Lemma ratios_sound b c : (0 < b)%Z -> forall ws prev x r, (0 <= prev)%Z ->
  qpow (b # F) r <= (x # F) -> ratios b c x prev ws = true ->
  Forall (fun w => 0 <= w)%Z ws -> on_lattice (b # F) (c # F) r prev ws.
Proof.
  intros B; induction ws as [|w ws IH]; intros prev x r Hp X R N; simpl; [exact I|].
  cbn [ratios] in R. apply andb_true_iff in R; destruct R as [R R']. inversion N; subst. split.
  - apply Z.leb_le in R. apply Qle_trans with (iz prev * (x # F)).
    + assert (0 <= iz prev * ((x # F) - qpow (b # F) r)); [|lra].
      apply Qmult_le_0_compat; [apply iz_nonneg; auto|lra].
    + unfold iz, Qle, Qmult; cbn [Qnum Qden]. nia.
  - apply (IH w (up (x * b) F)); auto. cbn [qpow].
    apply Qle_trans with ((b # F) * (x # F)).
    + assert (0 <= (b # F) * ((x # F) - qpow (b # F) r)); [|lra].
      apply Qmult_le_0_compat; [apply Qmake_nonneg; lia|lra].
    + pose proof (up_ge (x * b) F) as U.
      rewrite (over (up (x * b) F)).
      assert (Q1 : 0 <= (iz (up (x * b) F) - (x * b # F)) * (1 # F))
        by (apply Qmult_le_0_compat; [lra|discriminate]).
      assert (Q2 : (b # F) * (x # F) == (x * b # F) * (1 # F))
        by (rewrite (over b), (over x), (over (x * b)), iz_mul; ring).
      lra.
Qed.

Lemma bound_nonneg xs u : Forall (fun x => Forall (fun a => 0 <= a)%Z (mass x) /\ (0 <= rest x)%Z) xs ->
  (0 <= bound xs u)%Z.
Proof.
  intros H; revert u; induction H as [|x xs [M R] H IH]; intros u; cbn [bound]; [lia|].
  assert (G : forall mu v, Forall (fun a => 0 <= a)%Z mu -> (0 <= weigh (bound xs) (step x) mu v)%Z).
  { induction mu as [|a mu IHm]; intros v N; cbn [weigh]; [lia|]. inversion N; subst.
    specialize (IHm (down (v * step x)) ltac:(auto)). specialize (IH v). nia. }
  specialize (G (mass x) (u * factor x / divisor x)%Z M). unfold up.
  pose proof (Z.div_pos _ (Zpos F) G ltac:(lia)). lia.
Qed.

Lemma conv_nonneg l k : valid l -> Forall (fun a => 0 <= a)%Z (conv l k).
Proof.
  intros V. pose proof (weights_split l V) as Split. destruct V as (N & _).
  rewrite Split in N. inversion N as [|? ? H1 N']; subst.
  induction k as [|k IH]; cbn [conv]; [repeat constructor; lia|].
  assert (G : forall ws prev, (0 <= prev)%Z -> Forall (fun w => 0 <= w)%Z ws ->
    Forall (fun a => 0 <= a)%Z (pmul prev ws (conv l k))).
  { induction ws as [|w ws IHw]; intros prev Hp Nw; cbn [pmul]; [constructor|].
    inversion Nw; subst.
    assert (A : forall x y, Forall (fun a => 0 <= a)%Z x -> Forall (fun a => 0 <= a)%Z y ->
      Forall (fun a => 0 <= a)%Z (padd x y)).
    { induction x as [|a x IHx]; intros [|b y] X Y; cbn [padd]; auto.
      inversion X; inversion Y; subst. constructor; [lia|apply IHx; auto]. }
    apply A.
    - clear -IH Hp. induction IH; cbn [map]; constructor; auto. nia.
    - constructor; [lia|apply IHw; auto]. }
  specialize (G (tl (weights l)) (first l) H1 N').
  induction G; cbn [map]; constructor; auto.
  unfold up. pose proof (Z.div_pos x (Zpos (total l)) ltac:(auto) ltac:(lia)). lia.
Qed.

Lemma qpow_over c k : qpow (c # F) k * iz (Zpos F ^ Z.of_nat k) == iz (c ^ Z.of_nat k).
Proof.
  induction k as [|k IH]; [reflexivity|].
  rewrite Nat2Z.inj_succ, !Z.pow_succ_r by lia. rewrite !iz_mul, <- IH. cbn [qpow].
  set (q := qpow (c # F) k). set (f := iz (Zpos F ^ Z.of_nat k)). rewrite (over c).
  assert (O : (1 # F) * iz (Zpos F) == 1) by reflexivity.
  setoid_replace (iz c * (1 # F) * q * (iz (Zpos F) * f))
    with (iz c * (q * f) * ((1 # F) * iz (Zpos F))) by ring.
  rewrite O. ring.
Qed.

Lemma good_valid x : good x = true -> valid (noise x).
Proof.
  unfold good; rewrite !andb_true_iff. intros [[[V _] _] _]. apply valid_law_sound, V.
Qed.

Lemma good_laws blocks : forallb good blocks = true -> Forall valid (laws_of blocks).
Proof.
  induction blocks as [|x blocks IH]; cbn [forallb laws_of flat_map]; [constructor|].
  rewrite andb_true_iff; intros [G H]. apply Forall_app; split; [|apply IH, H].
  apply good_valid in G. induction (times x); cbn [repeat]; constructor; auto.
Qed.

Lemma good_covers blocks : forallb good blocks = true -> covers (map prepare blocks) (laws_of blocks).
Proof.
  induction blocks as [|x blocks IH]; cbn [forallb]; intros G.
  - intros u s t Hu Hs Ht C. cbn [map bound laws_of flat_map hockey].
    assert (O : Zpos F # F == 1) by reflexivity.
    assert (B : 1 - (u # F) <= (Z.max 0 (Zpos F - u) # F)).
    { rewrite <- O. unfold Qminus. rewrite (over (Zpos F)), (over u), (over (Z.max 0 (Zpos F - u))).
      assert (I : iz (Zpos F) - iz u <= iz (Z.max 0 (Zpos F - u))).
      { unfold iz, Qle, Qminus, Qplus, Qopp; cbn [Qnum Qden]. lia. }
      assert (0 <= (iz (Z.max 0 (Zpos F - u)) - (iz (Zpos F) - iz u)) * (1 # F))
        by (apply Qmult_le_0_compat; [lra|discriminate]). lra. }
    assert (B0 : 0 <= (Z.max 0 (Zpos F - u) # F)) by (apply Qmake_nonneg; lia).
    set (g := Z.max 0 (Zpos F - u) # F) in *.
    assert (0 <= s * (g - (1 - (u # F)))) by (apply Qmult_le_0_compat; lra).
    assert (0 <= s * g) by (apply Qmult_le_0_compat; auto).
    unfold pos; destruct (Qlt_le_dec 0 (s - t)); lra.
  - apply andb_true_iff in G; destruct G as [Gx G]. specialize (IH G).
    pose proof (good_laws blocks G) as LV. pose proof (good_valid x Gx) as V.
    unfold good in Gx; rewrite !andb_true_iff in Gx. destruct Gx as [[[_ B] C] R].
    apply Z.ltb_lt in B, C.
    assert (NN : Forall (fun x => Forall (fun a => 0 <= a)%Z (mass x) /\ (0 <= rest x)%Z)
                   (map prepare blocks)).
    { clear -G. induction blocks as [|y blocks IH]; cbn [map]; constructor.
      - cbn [forallb] in G. apply andb_true_iff in G; destruct G as [Gy _].
        apply good_valid in Gy. split; [apply conv_nonneg, Gy|]. cbn [rest prepare]. unfold up.
        pose proof (final_nonneg (noise y) Gy).
        pose proof (Z.div_pos (Z.of_nat (times y) * final (noise y) * Zpos F)
          (Zpos (total (noise y))) ltac:(nia) ltac:(lia)). lia.
      - cbn [forallb] in G. apply andb_true_iff in G; apply IH, G. }
    intros u s t Hu Hs Ht Cond. cbn [map bound laws_of flat_map]. fold (laws_of blocks).
    cbn [mass step divisor factor rest prepare].
    set (l := noise x) in *. set (k := times x) in *.
    set (b := lattice_b x) in *. set (c := lattice_c x) in *.
    set (xs := map prepare blocks) in *.
    assert (CP : (0 < c ^ Z.of_nat k)%Z) by (apply Z.pow_pos_nonneg; lia).
    assert (FP : (0 < Zpos F ^ Z.of_nat k)%Z) by (apply Z.pow_pos_nonneg; lia).
    set (u0 := (u * Zpos F ^ Z.of_nat k / c ^ Z.of_nat k)%Z).
    assert (U0 : (0 <= u0)%Z) by (apply Z.div_pos; nia).
    set (next := fun v => (v * b / Zpos F)%Z).
    set (useq := fun j => Nat.iter j next u0).
    assert (US : forall j, (0 <= useq j)%Z /\ (useq j # F) <= (u0 # F) * qpow (b # F) j).
    { induction j as [|j [P Q]]; [split; [exact U0|cbn [useq Nat.iter qpow]; unfold useq; simpl; lra]|].
      assert (EQ : useq (S j) = next (useq j)) by reflexivity. rewrite EQ. unfold next. split.
      - apply Z.div_pos; nia.
      - cbn [qpow]. pose proof (div_le (useq j * b) (Zpos F) ltac:(lia)) as D. rewrite iz_mul in D.
        rewrite (over (useq j * b / Zpos F)).
        assert (O : iz (Zpos F) * (1 # F) == 1) by reflexivity.
        assert (A1 : 0 <= (iz (useq j) * iz b - iz (useq j * b / Zpos F) * iz (Zpos F)) * ((1 # F) * (1 # F)))
          by (apply Qmult_le_0_compat; [lra|discriminate]).
        setoid_replace ((iz (useq j) * iz b - iz (useq j * b / Zpos F) * iz (Zpos F)) * ((1 # F) * (1 # F)))
          with (iz (useq j) * (1 # F) * (iz b * (1 # F))
                - iz (useq j * b / Zpos F) * (1 # F) * (iz (Zpos F) * (1 # F))) in A1 by ring.
        rewrite O, <- (over b), <- (over (useq j)), <- (over (useq j * b / Zpos F)) in A1.
        rewrite <- (over (useq j * b / Zpos F)).
        assert (A2 : 0 <= ((u0 # F) * qpow (b # F) j - (useq j # F)) * (b # F))
          by (apply Qmult_le_0_compat; [lra|apply Qmake_nonneg; lia]).
        lra. }
    set (leaf := fun j => bound xs (useq j) # F).
    assert (L0 : forall j, 0 <= leaf j) by (intros j; apply Qmake_nonneg, bound_nonneg, NN).
    assert (W : forall mu j, iz (weigh (bound xs) b mu (useq j)) == iz (Zpos F) * ev mu leaf j).
    { induction mu as [|a mu IHm]; intros j; cbn [weigh ev]; [reflexivity|].
      rewrite down_div. change (useq j * b / Zpos F)%Z with (useq (S j)). rewrite iz_add, iz_mul, IHm.
      change (leaf j) with (bound xs (useq j) # F). rewrite (over (bound xs (useq j))).
      assert (O : iz (Zpos F) * (1 # F) == 1) by reflexivity.
      setoid_replace (iz (Zpos F) * (iz a * (iz (bound xs (useq j)) * (1 # F)) + ev mu leaf (S j)))
        with (iz a * iz (bound xs (useq j)) * (iz (Zpos F) * (1 # F)) + iz (Zpos F) * ev mu leaf (S j))
        by ring. rewrite O. ring. }
    assert (N : Forall (fun w => 0 <= w)%Z (first l :: tl (weights l))).
    { rewrite <- weights_split by auto. apply V. }
    inversion N as [|? ? H1 N']; subst.
    assert (Lat : on_lattice (b # F) (c # F) 0 (first l) (tl (weights l))).
    { apply (ratios_sound b c B (tl (weights l)) (first l) (Zpos F) 0%nat); auto. discriminate. }
    assert (Cond' : s * ((u0 # F) * qpow (b # F) 0 * qpow (c # F) k) <= t).
    { cbn [qpow]. apply Qle_trans with (s * (u # F)); [|exact Cond].
      assert (X : (u0 # F) * qpow (c # F) k <= (u # F)).
      { pose proof (div_le (u * Zpos F ^ Z.of_nat k) (c ^ Z.of_nat k) CP) as D.
        fold u0 in D. rewrite iz_mul, <- qpow_over in D.
        set (p := qpow (c # F) k) in *. set (f := iz (Zpos F ^ Z.of_nat k)) in *.
        assert (f0 : 0 < f) by (unfold f, iz, Qlt; cbn [Qnum Qden]; lia).
        assert (Y : iz u0 * p <= iz u).
        { apply Qmult_lt_0_le_reg_r with f; [exact f0|]. lra. }
        rewrite (over u0), (over u).
        assert (0 <= (iz u - iz u0 * p) * (1 # F)) by (apply Qmult_le_0_compat; [lra|discriminate]).
        lra. }
      assert (0 <= s * ((u # F) - (u0 # F) * qpow (c # F) k)) by (apply Qmult_le_0_compat; lra).
      lra. }
    pose proof (block_bound l (b # F) (c # F) (u0 # F) (laws_of blocks) leaf V LV
      (Qmake_nonneg b F ltac:(lia)) (Qmake_nonneg c F ltac:(lia)) (Qmake_nonneg u0 F U0) L0) as BB.
    assert (LB : forall j s t, 0 <= s -> 0 <= t -> s * ((u0 # F) * qpow (b # F) j) <= t ->
      hockey (laws_of blocks) s t <= s * leaf j).
    { intros j s' t' Hs' Ht' Cj. destruct (US j) as [UP UQ]. apply IH; auto.
      assert (0 <= s' * ((u0 # F) * qpow (b # F) j - (useq j # F))) by (apply Qmult_le_0_compat; lra).
      lra. }
    specialize (BB LB Lat k s t 0%nat Hs Ht Cond').
    apply Qle_trans with (1 := BB).
    pose proof (W (conv l k) 0%nat) as W0. change (useq 0%nat) with u0 in W0.
    pose proof (up_ge (weigh (bound xs) b (conv l k) u0) F) as G1. rewrite over, W0 in G1.
    assert (O : iz (Zpos F) * (1 # F) == 1) by reflexivity.
    setoid_replace (iz (Zpos F) * ev (conv l k) leaf 0 * (1 # F))
      with (ev (conv l k) leaf 0 * (iz (Zpos F) * (1 # F))) in G1 by ring. rewrite O in G1.
    pose proof (up_ge (Z.of_nat k * final l * Zpos F) (total l)) as G2.
    rewrite over, !iz_mul in G2. rewrite <- Qmake_plus.
    rewrite (over (up _ F)), (over (up _ (total l))), (over (final l)).
    set (A1 := iz (up (weigh (bound xs) b (conv l k) u0) F)) in *.
    set (A2 := iz (up (Z.of_nat k * final l * Zpos F) (total l))) in *.
    assert (B1 : 0 <= (A1 - ev (conv l k) leaf 0) * (1 # F))
      by (apply Qmult_le_0_compat; [lra|discriminate]).
    assert (B2 : 0 <= (A2 - iz (Z.of_nat k) * iz (final l) * iz (Zpos F) * (1 # total l)) * (1 # F))
      by (apply Qmult_le_0_compat; [lra|discriminate]).
    setoid_replace ((A2 - iz (Z.of_nat k) * iz (final l) * iz (Zpos F) * (1 # total l)) * (1 # F))
      with (A2 * (1 # F) - iz (Z.of_nat k) * (iz (final l) * (1 # total l)) * (iz (Zpos F) * (1 # F)))
      in B2 by ring.
    rewrite O in B2.
    set (y := iz (Z.of_nat k) * (iz (final l) * (1 # total l))) in *.
    assert (0 <= s * ((A1 * (1 # F) + A2 * (1 # F)) - ((1 # F) * ev (conv l k) leaf 0 + y)))
      by (apply Qmult_le_0_compat; lra).
    lra.
Qed.

Theorem check_sound blocks E delta : check blocks E delta = true ->
  Forall valid (laws_of blocks) /\ 0 <= E /\ hockey (laws_of blocks) 1 E <= delta.
Proof.
  unfold check; rewrite !andb_true_iff; intros [[G HE] D].
  apply Qle_bool_iff in HE, D. split; [apply good_laws, G|split; [exact HE|]].
  apply Qle_trans with (2 := D). unfold figure.
  set (u := (Qnum E * Zpos F / Zpos (Qden E))%Z).
  assert (EN : (0 <= Qnum E)%Z) by (unfold Qle in HE; simpl in HE; lia).
  assert (U : (0 <= u)%Z) by (apply Z.div_pos; lia).
  assert (C : 1 * (u # F) <= E).
  { unfold u, Qle, Qmult; cbn [Qnum Qden].
    pose proof (Z.mul_div_le (Qnum E * Zpos F) (Zpos (Qden E)) ltac:(lia)). lia. }
  pose proof (good_covers blocks G u 1 E U ltac:(lra) HE C). lra.
Qed.
