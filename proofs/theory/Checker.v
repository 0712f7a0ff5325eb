(** An integer program that computes an upper bound of [hockey]; CheckerSound.v proves that it does.

    The losses of a discrete Gaussian table lie on a lattice: weights_r b^r <= weights_(r+1) c for
    all r, nearly with equality. So a product of equal tables is a convolution of integer lists,
    rounded upwards. Tables of different laws have different lattices: one block for each law. *)
From Coq Require Import QArith List ZArith Bool.
From Splitmeans Require Import Definitions.
Import ListNotations.
Open Scope Q_scope.

Definition F : positive := Pos.pow 2 64.              (* all numbers below are over this *)
Definition down (x : Z) : Z := Z.shiftr x 64.         (* x / F, rounded down *)
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
  match mu with [] => 0 | a :: mu' => a * g u + weigh g b mu' (down (u * b)) end%Z.
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
