(** Means, mixtures, post-processing, and basic adaptive composition. *)
From Coq Require Import QArith Lqa List.
From Splitmeans Require Import Definitions.
Import ListNotations.
Open Scope Q_scope.

(** Two laws that give every function the same mean. *)
Definition same_law {A} (P R : dist A) := forall f, Ex P f == Ex R f.
Infix "==d" := same_law (at level 70).

Lemma Ex_ext {A} (d : dist A) f g : (forall a, f a == g a) -> Ex d f == Ex d g.
Proof.
  intros H; induction d as [|[a p] d IH]; simpl; [reflexivity|]. rewrite IH, (H a); reflexivity.
Qed.

Lemma Ex_app {A} (d e : dist A) f : Ex (d ++ e) f == Ex d f + Ex e f.
Proof. induction d as [|[a p] d IH]; simpl; [ring|rewrite IH; ring]. Qed.

Lemma Ex_bind {A B} (d : dist A) (k : A -> dist B) f :
  Ex (bind d k) f == Ex d (fun a => Ex (k a) f).
Proof.
  induction d as [|[a p] d IH]; simpl; [reflexivity|]. rewrite Ex_app, IH.
  assert (S : forall e : dist B, Ex (map (fun x => (fst x, p * snd x)) e) f == p * Ex e f).
  { induction e as [|[b q] e IHe]; simpl; [ring|rewrite IHe; ring]. }
  rewrite S; reflexivity.
Qed.

Lemma Ex_ret {A} (a : A) f : Ex (ret a) f == f a.
Proof. simpl; ring. Qed.

Lemma Ex_linear {A} (d : dist A) x y f g :
  Ex d (fun a => x * f a + y * g a) == x * Ex d f + y * Ex d g.
Proof. induction d as [|[a p] d IH]; simpl; [ring|rewrite IH; ring]. Qed.

Lemma Ex_const {A} (d : dist A) x : proper d -> Ex d (fun _ => x) == x.
Proof.
  intros [_ M]. transitivity (Ex d (fun _ => x * 1 + 0 * 1)).
  - apply Ex_ext; intros; ring.
  - rewrite (Ex_linear d x 0 (fun _ => 1) (fun _ => 1)), M; ring.
Qed.

Lemma Ex_mono {A} (d : dist A) f g : proper d -> (forall a, f a <= g a) -> Ex d f <= Ex d g.
Proof.
  intros [N _] H; induction N as [|[a p] d Hp N IH]; simpl; [lra|].
  simpl in Hp. specialize (H a). nra.
Qed.

Lemma Ex_swap {A B} (d : dist A) (e : dist B) f :
  Ex d (fun a => Ex e (fun b => f a b)) == Ex e (fun b => Ex d (fun a => f a b)).
Proof.
  induction d as [|[a p] d IH]; simpl.
  - induction e as [|[b q] e IHe]; simpl; [reflexivity|]. rewrite <- IHe; ring.
  - rewrite IH. transitivity (Ex e (fun b => p * f a b + 1 * Ex d (fun a => f a b))).
    + rewrite (Ex_linear e p 1 (fun b => f a b) (fun b => Ex d (fun a => f a b))); ring.
    + apply Ex_ext; intros; ring.
Qed.

Lemma proper_ret {A} (a : A) : proper (ret a).
Proof. split; [repeat constructor; discriminate|simpl; ring]. Qed.

Lemma proper_bind {A B} (d : dist A) (k : A -> dist B) :
  proper d -> (forall a, proper (k a)) -> proper (bind d k).
Proof.
  intros [N M] K; split.
  - clear M; induction N as [|[a p] d Hp N IH]; simpl; [constructor|].
    apply Forall_app; split; [|exact IH]. destruct (K a) as [KN _]. simpl in Hp.
    induction KN as [|[b q] e Hq KN IHe]; simpl; constructor; auto. simpl in *; nra.
  - rewrite Ex_bind, <- M. apply Ex_ext; intros a; apply K.
Qed.

Lemma test_mean {A} (d : dist A) f : proper d -> test f -> 0 <= Ex d f <= 1.
Proof.
  intros D T; split.
  - apply Qle_trans with (Ex d (fun _ => 0)); [rewrite Ex_const; auto; lra|].
    apply Ex_mono; auto; intros a; apply T.
  - apply Qle_trans with (Ex d (fun _ => 1)); [|rewrite Ex_const; auto; lra].
    apply Ex_mono; auto; intros a; apply T.
Qed.

(** Whatever is computed from what was seen, with fresh randomness too, costs nothing. *)
Lemma close_postprocess {A B} E delta (P R : dist A) (k : A -> dist B) :
  (forall a, proper (k a)) -> close E delta P R -> close E delta (bind P k) (bind R k).
Proof. intros K C f T. rewrite !Ex_bind. apply C. intros a; apply test_mean; auto. Qed.

(** Neither does randomness that is the same in both worlds. *)
Lemma close_mixture {A B} E delta (S : dist A) (k k' : A -> dist B) :
  proper S -> (forall a, close E delta (k a) (k' a)) -> close E delta (bind S k) (bind S k').
Proof.
  intros H C f T. rewrite !Ex_bind.
  apply Qle_trans with (Ex S (fun a => E * Ex (k' a) f + delta * 1)).
  - apply Ex_mono; auto; intros a. specialize (C a f T). lra.
  - rewrite (Ex_linear S E delta (fun a => Ex (k' a) f) (fun _ => 1)), Ex_const by auto. lra.
Qed.

Lemma close_law {A} E delta (P P' R R' : dist A) :
  P ==d P' -> R ==d R' -> close E delta P' R' -> close E delta P R.
Proof. intros HP HR C f T. rewrite (HP f), (HR f). apply C, T. Qed.

Lemma close_delta {A} E delta (P R : dist A) : proper P -> close E delta P R -> 0 <= delta.
Proof.
  intros HP C. assert (Z : test (fun _ : A => 0)) by (intros a; lra).
  specialize (C _ Z). assert (E0 : forall d : dist A, Ex d (fun _ => 0) == 0).
  { induction d as [|[a p] d IH]; simpl; [reflexivity|rewrite IH; ring]. }
  rewrite !E0 in C. lra.
Qed.

(** A world is close to itself, for E >= 1. *)
Lemma close_refl {A} E delta (P : dist A) : 1 <= E -> 0 <= delta -> proper P -> close E delta P P.
Proof. intros HE HD HP f T. destruct (test_mean P f HP T). nra. Qed.

(** Basic adaptive composition: the second release may depend on what the first one showed. *)
Lemma close_after {A B} E1 d1 E2 d2 (P R : dist A) (k k' : A -> dist B) :
  0 <= E1 -> 0 <= E2 -> proper P -> proper R ->
  (forall a, proper (k a)) -> (forall a, proper (k' a)) ->
  close E1 d1 P R -> (forall a, close E2 d2 (k a) (k' a)) ->
  close (E1 * E2) (d1 + d2) (after P k) (after R k').
Proof.
  intros HE1 HE2 HP HR K K' C1 C2 f T. unfold after.
  assert (L : forall (S : dist A) (h : A -> dist B),
    Ex (bind S (fun a => bind (h a) (fun b => ret (a, b)))) f
    == Ex S (fun a => Ex (h a) (fun b => f (a, b)))).
  { intros S h. rewrite Ex_bind. apply Ex_ext; intros a. rewrite Ex_bind.
    apply Ex_ext; intros b; apply Ex_ret. }
  rewrite !L.
  assert (T1 : forall a, test (fun b => f (a, b))) by (intros a b; apply T).
  set (g := fun a => Ex (k a) (fun b => f (a, b))).
  set (g' := fun a => Ex (k' a) (fun b => f (a, b))).
  assert (G : test g) by (intros a; apply test_mean; auto).
  assert (G' : test g') by (intros a; apply test_mean; auto).
  set (h := fun a => if Qlt_le_dec (E2 * g' a) 1 then E2 * g' a else 1).
  assert (H : test h).
  { intros a; unfold h; destruct (G' a); destruct (Qlt_le_dec (E2 * g' a) 1); split; nra. }
  assert (U : forall a, g a <= 1 * h a + d2 * 1).
  { intros a. pose proof (C2 a _ (T1 a)) as C. fold (g a) (g' a) in C.
    pose proof (close_delta E2 d2 (k a) (k' a) (K a) (C2 a)).
    unfold h; destruct (G a); destruct (Qlt_le_dec (E2 * g' a) 1); lra. }
  apply Qle_trans with (Ex P (fun a => 1 * h a + d2 * 1)); [apply Ex_mono; auto|].
  rewrite (Ex_linear P 1 d2 h (fun _ => 1)), Ex_const by auto.
  pose proof (C1 h H).
  assert (Ex R h <= Ex R (fun a => E2 * g' a + 0 * 0)).
  { apply Ex_mono; auto; intros a; unfold h; destruct (Qlt_le_dec (E2 * g' a) 1); lra. }
  rewrite (Ex_linear R E2 0 g' (fun _ => 0)) in *. fold g'. nra.
Qed.
