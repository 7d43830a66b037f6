(* A tree of values. *)
open Stdlib

type 'a tree =
  | Leaf
  | Node of 'a tree * 'a * 'a tree

type point = { x : int; mutable y : int }

exception Not_here of string

module type ORDERED = sig
  type t
  val compare : t -> t -> int
end

module Make (Ord : ORDERED) = struct
  type key = Ord.t

  (** Inserts a value. *)
  let rec insert value = function
    | Leaf -> Node (Leaf, value, Leaf)
    | Node (l, v, r) -> let smaller = insert value l in Node (smaller, v, r)

  and remove value tree = tree
end

let empty = Leaf
let ( >>= ) x f = f x
external length : string -> int = "%string_length"

class counter = object
  val mutable n = 0
  method incr = n <- n + 1
end
