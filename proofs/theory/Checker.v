(** An integer program that computes an upper bound of [hockey], and its proof.

    The losses of a discrete Gaussian table lie on a lattice: weights_r b^r <= weights_(r+1) c for
    all r, nearly with equality. So a product of equal tables is a convolution of integer lists,
    rounded upwards. Tables of different laws have different lattices: one block for each law. *)
From Coq Require Import QArith Lqa List ZArith Lia Arith Bool.
From Splitmeans Require Import Definitions Distributions Composition.
Import ListNotations.
Open Scope Q_scope.

(** ** The program *)
Definition F : positive := Pos.pow 2 80.              (* all numbers below are over this *)
Record block := Block {
  noise : law; times : nat;                           (* so many releases under this law *)
  lattice_b : Z; lattice_c : Z }.                     (* b and c, over F *)

Definition up (x : Z) (d : positive) : Z := (x / Zpos d + 1)%Z.
Fixpoint padd (x y : list Z) : list Z :=
  match x, y with [], _ => y | _, [] => x | a :: x', b :: y' => (a + b)%Z :: padd x' y' end.
Fixpoint pmul (prev : Z) (ws mu : list Z) : list Z :=    (* all of prev :: ws but the last, times mu *)
  match ws with
  | [] => []
  | w :: ws' => padd (map (Z.mul prev) mu) (0%Z :: pmul w ws' mu)
  end.
Definition first (l : law) : Z := hd 0%Z (weights l).
Definition final (l : law) : Z := last (tl (weights l)) (first l).
Fixpoint conv (l : law) (k : nat) : list Z :=
  match k with
  | O => [Zpos F]
  | S k' => map (fun x => up x (total l)) (pmul (first l) (tl (weights l)) (conv l k'))
  end.

Record prepared := Prepared { mass : list Z; step : Z; divisor : Z; factor : Z; rest : Z }.
Definition prepare (x : block) : prepared :=
  let k := Z.of_nat (times x) in
  {| mass := conv (noise x) (times x); step := lattice_b x;
     divisor := lattice_c x ^ k; factor := Zpos F ^ k;
     rest := up (k * final (noise x) * Zpos F) (total (noise x)) |}%Z.
Fixpoint weigh (g : Z -> Z) (b : Z) (mu : list Z) (u : Z) : Z :=
  match mu with [] => 0 | a :: mu' => a * g u + weigh g b mu' (u * b / Zpos F) end%Z.
Fixpoint bound (xs : list prepared) (u : Z) : Z :=
  match xs with
  | [] => Z.max 0 (Zpos F - u)
  | x :: xs' =>
      up (weigh (bound xs') (step x) (mass x) (u * factor x / divisor x)) F + rest x
  end%Z.

Fixpoint ratios (b c x prev : Z) (ws : list Z) : bool :=
  match ws with
  | [] => true
  | w :: ws' => (prev * x <=? w * c)%Z && ratios b c (up (x * b) F) w ws'
  end.
Definition valid_law (l : law) : bool :=
  forallb (fun w => 0 <=? w)%Z (weights l) && (sum (weights l) =? Zpos (total l))%Z
  && if list_eq_dec Z.eq_dec (rev (weights l)) (weights l) then true else false.
Definition good (x : block) : bool :=
  valid_law (noise x) && (0 <? lattice_b x)%Z && (0 <? lattice_c x)%Z
  && ratios (lattice_b x) (lattice_c x) (Zpos F) (first (noise x)) (tl (weights (noise x))).

Definition laws_of (blocks : list block) : list law :=
  flat_map (fun x => repeat (noise x) (times x)) blocks.
(** The bound at this E, over F. *)
Definition figure (blocks : list block) (E : Q) : Z :=
  bound (map prepare blocks) (Qnum E * Zpos F / Zpos (Qden E)).
Definition check (blocks : list block) (E delta : Q) : bool :=
  forallb good blocks && Qle_bool 0 E && Qle_bool (figure blocks E # F) delta.

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

(** ** All blocks *)
Definition covers (xs : list prepared) (laws : list law) := forall u s t,
  (0 <= u)%Z -> 0 <= s -> 0 <= t -> s * (u # F) <= t -> hockey laws s t <= s * (bound xs u # F).

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
    specialize (IHm (v * step x / Zpos F)%Z ltac:(auto)). specialize (IH v). nia. }
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
      change (useq j * b / Zpos F)%Z with (useq (S j)). rewrite iz_add, iz_mul, IHm.
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
