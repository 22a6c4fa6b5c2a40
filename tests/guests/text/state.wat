;; What is left of one call for the next: whoever finds something answers with a trap.

;;; state_in_memory
;; Marks every page of 32 MiB, after it looked for the mark.
(core module $m {{parts}}
  (memory (export "memory") 512)
  (func (export "call") (param i32 i32 i32 i32) (result i32)
    (local $at i32)
    (local.set $at (i32.const 69632))
    (loop
      (if (i32.load (local.get $at)) (then (unreachable)))
      (i32.store (local.get $at) (i32.const 0x5eced))
      (br_if 0 (i32.lt_u
        (local.tee $at (i32.add (local.get $at) (i32.const 4096)))
        (i32.const 33554432))))
    (i32.const 2048)))

;;; state_in_grown_memory
;; The same in memory that it grows first.
(core module $m {{parts}}
  (func (export "call") (param i32 i32 i32 i32) (result i32)
    (local $at i32)
    (if (i32.ne (memory.grow (i32.const 511)) (i32.const 1)) (then (unreachable)))
    (local.set $at (i32.const 69632))
    (loop
      (if (i32.load (local.get $at)) (then (unreachable)))
      (i32.store (local.get $at) (i32.const 0x5eced))
      (br_if 0 (i32.lt_u
        (local.tee $at (i32.add (local.get $at) (i32.const 4096)))
        (i32.const 33554432))))
    (i32.const 2048)))

;;; state_in_global
(core module $m {{parts}}
  (global $seen (mut i64) (i64.const 0))
  (func (export "call") (param i32 i32 i32 i32) (result i32)
    (if (i64.ne (global.get $seen) (i64.const 0)) (then (unreachable)))
    (global.set $seen (i64.const 0x5eced))
    (i32.const 2048)))

;;; state_in_table
(core module $m {{parts}}
  (table $t 10000 funcref)
  (elem declare func $mark)
  (func $mark)
  (func (export "call") (param i32 i32 i32 i32) (result i32)
    (local $at i32)
    (loop
      (if (i32.eqz (ref.is_null (table.get $t (local.get $at)))) (then (unreachable)))
      (table.set $t (local.get $at) (ref.func $mark))
      (br_if 0 (i32.lt_u
        (local.tee $at (i32.add (local.get $at) (i32.const 1)))
        (i32.const 10000))))
    (i32.const 2048)))

;;; state_in_dropped_segments
;; A segment that one call drops is there for the next.
(core module $m {{parts}}
  (data $mark "there")
  (func (export "call") (param i32 i32 i32 i32) (result i32)
    (memory.init $mark (i32.const 4096) (i32.const 0) (i32.const 5))
    (data.drop $mark)
    (i32.const 2048)))
