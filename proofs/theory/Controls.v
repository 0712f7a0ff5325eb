(** What must not pass: joins that leak, with the test that shows it. Small on purpose, so that all
    probabilities are computed. Tags are one of eight. *)
From Coq Require Import QArith List ZArith NArith Bool Lqa.
From Splitmeans Require Import Definitions Composition Runs.
Import ListNotations.
Open Scope Q_scope.

Definition leaks {A} (E delta : Q) (P R : dist A) :=
  exists f, test f /\ E * Ex R f + delta < Ex P f.

Lemma leak_is_not_private {A} E delta (P R : dist A) : leaks E delta P R -> ~ indist E delta R P.
Proof. intros (f & T & L) [_ C]. specialize (C f T). lra. Qed.

Definition eight : dist N := map (fun i => (N.of_nat i, 1 # 8)) (seq 0 8).
Definition two_parties : release :=
  {| cells := 3; parties := [0; 1]%nat; others := []; user := Some 0%nat;
     (* cell 0: at both parties; cell 1: at the first alone; cell 2: at the second alone *)
     label := fun p c => match p, c with
       | O, O | O, 1%nat | 1%nat, O | 1%nat, 2%nat => Some 0%nat | _, _ => None end |}.

(** The test: is some tag at both parties? *)
Definition shared (v : view) : bool :=
  match v with
  | [(xs, _); (ys, _)] => existsb (fun x => existsb (N.eqb x) ys) xs
  | _ => false
  end.
Definition sees (v : view) : Q := if shared v then 1 else 0.
Lemma sees_test : test sees.
Proof. intros v; unfold sees; destruct (shared v); lra. Qed.

(** Without decoys nothing hides the user: whatever E is, and for every delta below 1. *)
Definition none : law := Law 1 [1]%Z.
Theorem no_decoys_leak E delta : delta < 1 ->
  leaks E delta (join eight none two_parties [0%nat]) (join eight none two_parties []).
Proof.
  intros D. exists sees; split; [exact sees_test|].
  assert (P : Ex (join eight none two_parties [0%nat]) sees == 1) by (vm_compute; reflexivity).
  assert (R : Ex (join eight none two_parties []) sees == 0) by (vm_compute; reflexivity).
  rewrite P, R. lra.
Qed.

(** Decoys for every cluster of every party, but not for cells: cell 0 has none. Each party's own
    list hides its users, and the join shows them. *)
Definition half : law := Law 2 [1; 1]%Z.
Definition per_cluster (users : list nat) : dist view :=
  bind (noisy half 0) (fun x => bind (noisy half 0) (fun y =>
  bind (tagged eight (users ++ repeat 1%nat x ++ repeat 2%nat y)) (fun records =>
  ret (messages two_parties records)))).
Theorem decoys_per_cluster_leak : leaks 3 (1 # 2) (per_cluster [0%nat]) (per_cluster []).
Proof.
  exists sees; split; [exact sees_test|]. vm_compute. reflexivity.
Qed.

(** With the same table in every cell nothing leaks, at the same E and delta: the theorems are about
    something. *)
Theorem decoys_per_cell_do_not : indist 3 (1 # 2)
  (run eight [half] (two_parties, fun _ => tt) [] false)
  (run eight [half] (two_parties, fun _ => tt) [] true).
Proof.
  apply run_private.
  - split; [repeat constructor; discriminate|vm_compute; reflexivity].
  - repeat constructor; discriminate.
  - discriminate.
  - vm_compute; discriminate.
  - split; [|intros; exact I]. repeat constructor.
Qed.
