(** What the theorems are about. Everything that a reader has to believe is on this page; the other
    files only prove. Probabilities are rational and laws finite, so no axiom is needed. *)
From Coq Require Import QArith List ZArith NArith Bool.
Import ListNotations.
Open Scope Q_scope.

(** ** 1. Laws of random values, and what it means that two of them can hardly be told apart *)
Definition dist (A : Type) := list (A * Q).              (* outcomes with their probabilities *)
Fixpoint Ex {A} (d : dist A) (f : A -> Q) : Q :=         (* the mean of f *)
  match d with [] => 0 | (a, p) :: d' => p * f a + Ex d' f end.
Definition proper {A} (d : dist A) := Forall (fun x => 0 <= snd x) d /\ Ex d (fun _ => 1) == 1.
Definition ret {A} (a : A) : dist A := [(a, 1)].
Fixpoint bind {A B} (d : dist A) (k : A -> dist B) : dist B :=   (* draw a, then draw from k a *)
  match d with
  | [] => []
  | (a, p) :: d' => map (fun x => (fst x, p * snd x)) (k a) ++ bind d' k
  end.

(** A test says "the user was there" with a probability that may depend on all it sees. *)
Definition test {A} (f : A -> Q) := forall a, 0 <= f a <= 1.
Definition close {A} (E delta : Q) (P R : dist A) :=
  forall f, test f -> Ex P f <= E * Ex R f + delta.
Definition indist {A} (E delta : Q) (P R : dist A) := close E delta P R /\ close E delta R P.
(** 1 + x + x^2 / 2 + ... + x^n / n!, which is below e^x for x >= 0. So [private] implies
    (epsilon, delta) differential privacy. *)
Fixpoint exp_sum_from (i : positive) (n : nat) (x : Q) : Q :=
  match n with O => 1 | S n' => 1 + x * (1 # i) * exp_sum_from (Pos.succ i) n' x end.
Definition exp_sum (n : nat) (x : Q) : Q := exp_sum_from 1 n x.
Definition private {A} (epsilon delta : Q) (P R : dist A) :=
  exists n, indist (exp_sum n epsilon) delta P R.

(** ** 2. Noise from an integer table: value i with probability weights_i / total *)
Record law := Law { total : positive; weights : list Z }.
Definition sum (ws : list Z) : Z := fold_right Z.add 0%Z ws.
Definition valid (l : law) :=
  Forall (fun w => 0 <= w)%Z (weights l) /\ sum (weights l) = Zpos (total l)
  /\ rev (weights l) = weights l.
Fixpoint spread (W : positive) (h : nat) (ws : list Z) : dist nat :=
  match ws with [] => [] | w :: ws' => (h, w # W) :: spread W (S h) ws' end.
Definition noisy (l : law) (h : nat) : dist nat := spread (total l) h (weights l).    (* h + D *)
Fixpoint counts (l : law) (H : list nat) : dist (list nat) :=    (* H + D, one D for every cell *)
  match H with
  | [] => ret []
  | h :: H' => bind (noisy l h) (fun n => bind (counts l H') (fun v => ret (n :: v)))
  end.

(** ** 3. One release: all parties' messages about one table of cells *)
Record release := Release {
  cells : nat;                              (* how many cells exist; they are numbered from 0 *)
  parties : list nat;
  label : nat -> nat -> option nat;         (* of a party, in a cell; None: absent there *)
  others : list (option nat);               (* cell of every other user; None: in no cell *)
  user : option nat }.                      (* cell of the user who may be there or not *)
Definition in_cell (o : option nat) : list nat := match o with Some c => [c] | None => [] end.
Definition in_range (r : release) :=
  Forall (fun c => c < cells r)%nat (in_cell (user r) ++ flat_map in_cell (others r)).

Fixpoint decoys (c : nat) (D : list nat) : list nat :=     (* D_c times cell c, for every cell *)
  match D with [] => [] | d :: D' => repeat c d ++ decoys (S c) D' end.
Definition record := (N * nat)%type.                       (* a tag, and a cell or a label *)
Fixpoint tagged (tag : dist N) (cs : list nat) : dist (list record) :=   (* ideal tags *)
  match cs with
  | [] => ret []
  | c :: cs' => bind tag (fun t => bind (tagged tag cs') (fun r => ret ((t, c) :: r)))
  end.

(** A party's message: its records by tag, equal tags by label. *)
Definition before (x y : record) : bool :=
  (fst x <? fst y)%N || ((fst x =? fst y)%N && (snd x <=? snd y)%nat).
Fixpoint insert (x : record) (l : list record) : list record :=
  match l with [] => [x] | y :: l' => if before x y then x :: l else y :: insert x l' end.
Definition sort (l : list record) : list record := fold_right insert [] l.
Definition held (r : release) (p : nat) (records : list record) : list record :=
  flat_map (fun x => match label r p (snd x) with Some a => [(fst x, a)] | None => [] end) records.
Definition message (r : release) (records : list record) (p : nat) : list N * list nat :=
  let mine := sort (held r p records) in (map fst mine, map snd mine).
Definition view := list (list N * list nat).
Definition messages (r : release) (records : list record) : view :=
  map (message r records) (parties r).

Definition join (tag : dist N) (l : law) (r : release) (users : list nat) : dist view :=
  bind (counts l (repeat 0%nat (cells r))) (fun D =>
  bind (tagged tag (users ++ decoys 0 D)) (fun records => ret (messages r records))).

(** ** 4. A run: one release for each law. All but the laws may follow from earlier messages. *)
Fixpoint plan (laws : list law) : Type :=
  match laws with [] => unit | _ :: laws' => (release * (view -> plan laws'))%type end.
Fixpoint well_formed (laws : list law) : plan laws -> Prop :=
  match laws return plan laws -> Prop with
  | [] => fun _ => True
  | _ :: laws' => fun p => in_range (fst p) /\ forall v, well_formed laws' (snd p v)
  end.
Fixpoint kept (sample : list bool) (os : list (option nat)) : list nat :=
  match os, sample with
  | [], _ => []
  | o :: os', [] => in_cell o ++ kept [] os'
  | o :: os', b :: sample' => (if b then in_cell o else []) ++ kept sample' os'
  end.
Fixpoint run (tag : dist N) (laws : list law) :
    plan laws -> list bool -> bool -> dist (list view) :=
  match laws return plan laws -> list bool -> bool -> dist (list view) with
  | [] => fun _ _ _ => ret []
  | l :: laws' => fun p sample present =>
      let users := (if present then in_cell (user (fst p)) else [])
                   ++ kept sample (others (fst p)) in
      bind (join tag l (fst p) users) (fun v =>
      bind (run tag laws' (snd p v) sample present) (fun vs => ret (v :: vs)))
  end.

(** A secret sample keeps each of n others, and the user, with the same chance for the whole run.
    [secret] is any other randomness of the parties, such as randomised labels. *)
Definition coin (rate : Q) : dist bool := [(true, rate); (false, 1 - rate)].
Fixpoint coins (rate : Q) (n : nat) : dist (list bool) :=
  match n with
  | O => ret []
  | S n' => bind (coin rate) (fun b => bind (coins rate n') (fun bs => ret (b :: bs)))
  end.
Definition sampled_run {A} (tag : dist N) (laws : list law) (rate : Q) (n : nat)
    (secret : dist A) (p : A -> plan laws) (present : bool) : dist (list view) :=
  bind secret (fun a => bind (coins rate n) (fun sample => bind (coin rate) (fun kept_too =>
  run tag laws (p a) sample (kept_too && present)))).

(** Other releases come first; whatever follows may depend on them. *)
Definition after {A B} (first : dist A) (next : A -> dist B) : dist (A * B) :=
  bind first (fun a => bind (next a) (fun b => ret (a, b))).

(** ** 5. What a fellow party sees: H + D + E. It knows D, its own labels and all other users, so
    that of every table all is fixed but the cell of one record, and the server's noise E. *)
Fixpoint bump (c : nat) (H : list nat) : list nat :=
  match c, H with
  | _, [] => []
  | O, h :: H' => S h :: H'
  | S c', h :: H' => h :: bump c' H'
  end.
Record seen := Seen { known : list nat; here : option nat; there : option nat }.
Definition place (o : option nat) (H : list nat) := match o with Some c => bump c H | None => H end.
Fixpoint published (tables : list (law * seen)) (moved : bool) : dist (list (list nat)) :=
  match tables with
  | [] => ret []
  | (l, x) :: tables' =>
      bind (counts l (place (if moved then there x else here x) (known x))) (fun v =>
      bind (published tables' moved) (fun vs => ret (v :: vs)))
  end.
Definition shifts (x : law * seen) : list law :=      (* two where it moves, one where it comes or goes *)
  match here (snd x), there (snd x) with
  | Some _, Some _ => [fst x; fst x]
  | None, None => []
  | _, _ => [fst x]
  end.

(** ** 6. The exact bound: the hockey-stick divergence of the product of the pairs (D + 1, D) *)
Fixpoint joint (prev : Z) (ws : list Z) : list (Z * Z) :=   (* weights of D + 1 and of D, by value *)
  match ws with [] => [(prev, 0%Z)] | w :: ws' => (prev, w) :: joint w ws' end.
Definition pos (x : Q) : Q := if Qlt_le_dec 0 x then x else 0.
Fixpoint hockey (laws : list law) (s t : Q) : Q :=
  match laws with
  | [] => pos (s - t)
  | l :: laws' => fold_right
      (fun x rest => hockey laws' (s * (fst x # total l)) (t * (snd x # total l)) + rest) 0
      (joint 0 (weights l))
  end.
