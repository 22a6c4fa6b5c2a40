;; Recursion that no compiler's own stack ends before the host's does.

;;; recurse_directly
(core module $m {{parts}}
  (func $run (call $run))
  (func (export "call") (param i32 i32 i32 i32) (result i32) (call $run) (unreachable)))

;;; recurse_indirectly
(core module $m {{parts}}
  (type $nothing (func))
  (table $targets 1 funcref)
  (elem (table $targets) (i32.const 0) func $run)
  (func $run (call_indirect $targets (type $nothing) (i32.const 0)))
  (func (export "call") (param i32 i32 i32 i32) (result i32) (call $run) (unreachable)))

;;; recurse_mutually
;; Large frames: every value lives across the call.
(core module $m {{parts}}
  (func $one (param i64 i64 i64 i64 i64 i64 i64 i64) (result i64)
    (call $other
      (local.get 1) (local.get 2) (local.get 3) (local.get 4)
      (local.get 5) (local.get 6) (local.get 7) (local.get 0))
    (i64.add (i64.add (local.get 0) (local.get 1)) (i64.add (local.get 2) (local.get 3)))
    (i64.add (i64.add (local.get 4) (local.get 5)) (i64.add (local.get 6) (local.get 7)))
    i64.add i64.add)
  (func $other (param i64 i64 i64 i64 i64 i64 i64 i64) (result i64)
    (call $one
      (local.get 7) (local.get 6) (local.get 5) (local.get 4)
      (local.get 3) (local.get 2) (local.get 1) (local.get 0))
    (i64.mul (local.get 0) (local.get 7))
    i64.xor)
  (func (export "call") (param i32 i32 i32 i32) (result i32)
    (drop (call $one
      (i64.const 1) (i64.const 2) (i64.const 3) (i64.const 4)
      (i64.const 5) (i64.const 6) (i64.const 7) (i64.const 8)))
    (unreachable)))

;;; recurse_with_host_calls
;; Each level calls the host, so that one of these calls is made with the least stack left.
(core module $m
  (import "host" "remaining" (func $remaining (result i64)))
  {{parts}}
  (func $run (drop (call $remaining)) (call $run) (drop (call $remaining)))
  (func (export "call") (param i32 i32 i32 i32) (result i32) (call $run) (unreachable)))
(core instance $host-functions (export "remaining" (func $remaining)))
(core instance $main (instantiate $m (with "host" (instance $host-functions))))

;;; recurse_in_realloc
(core module $m {{parts}}
  (func $realloc (export "realloc") (param i32 i32 i32 i32) (result i32)
    (i32.add
      (i32.const 1)
      (call $realloc (local.get 0) (local.get 1) (local.get 2) (local.get 3)))))

;;; recurse_in_start
(core module $m {{parts}}
  (func $run (call $run))
  (start $run))

;;; recurse_with_texts
;; Each level hands the host a text, which it lifts, keeps and shows.
(core module $l
  (memory (export "text") 1))
(core instance $text-memory (instantiate $l))
(alias core export $text-memory "text" (core memory $text))
(core func $emit-text (canon lower (func $emit) (memory $text)))
(core module $m
  (import "host" "emit" (func $emit (param i32 i32)))
  {{parts}}
  (func $run
    (call $emit (i32.const 0) (i32.const 1))
    (call $run)
    (call $emit (i32.const 0) (i32.const 1)))
  (func (export "call") (param i32 i32 i32 i32) (result i32) (call $run) (unreachable)))
(core instance $host-functions (export "emit" (func $emit-text)))
(core instance $main (instantiate $m (with "host" (instance $host-functions))))
