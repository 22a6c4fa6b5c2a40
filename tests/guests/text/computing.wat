;; Endless computing, where a compiler would put none.

;;; spin_in_start
(core module $m {{parts}}
  (func $run (loop (br 0)))
  (start $run))

;;; spin_in_nested_start
(core module $n
  (func $run (loop (br 0)))
  (start $run))
(core module $m {{parts}})
(core instance $nested (instantiate $n))

;;; spin_in_list
(core module $m {{parts}}
  (func (export "list") (result i32) (loop (br 0)) (unreachable)))

;;; spin_in_realloc
(core module $m {{parts}}
  (func (export "realloc") (param i32 i32 i32 i32) (result i32) (loop (br 0)) (unreachable)))

;;; spin_in_post
(core module $m {{parts}}
  (func (export "post") (param i32) (loop (br 0))))

;;; spin_by_tail_calls
(core module $m {{parts}}
  (func $run (return_call $run))
  (func (export "call") (param i32 i32 i32 i32) (result i32) (call $run) (unreachable)))

;;; spin_by_indirect_calls
(core module $m {{parts}}
  (type $nothing (func))
  (table $targets 2 funcref)
  (elem (table $targets) (i32.const 0) func $one $other)
  (func $one)
  (func $other)
  (func (export "call") (param i32 i32 i32 i32) (result i32)
    (local $turn i32)
    (loop
      (call_indirect $targets (type $nothing) (local.get $turn))
      (local.set $turn (i32.xor (local.get $turn) (i32.const 1)))
      (br 0))
    (unreachable)))

;;; spin_in_host_calls
(core module $m
  (import "host" "remaining" (func $remaining (result i64)))
  {{parts}}
  (func (export "call") (param i32 i32 i32 i32) (result i32)
    (loop (drop (call $remaining)) (br 0))
    (unreachable)))
(core instance $host-functions (export "remaining" (func $remaining)))
(core instance $main (instantiate $m (with "host" (instance $host-functions))))
