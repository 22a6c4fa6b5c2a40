;; More memory than a call may have, in parts that are each small enough. Limits of 64 MiB, 4
;; memories, 16 tables and 32 instances are assumed.

;;; memory_grows
(core module $m {{parts}}
  (func (export "call") (param i32 i32 i32 i32) (result i32)
    (loop
      (if (i32.eq (memory.grow (i32.const 1)) (i32.const -1)) (then (unreachable)))
      (br 0))
    (unreachable)))

;;; memory_grows_at_once
(core module $m {{parts}}
  (func (export "call") (param i32 i32 i32 i32) (result i32)
    (if (i32.eq (memory.grow (i32.const 65535)) (i32.const -1)) (then (unreachable)))
    (i32.const 2048)))

;;; memory_in_several
;; Three memories that grow to 25 MiB each.
(core module $m {{parts}}
  (memory (export "memory") 1)
  (memory $b 1)
  (memory $c 1)
  (func $grow
    (if (i32.eq (memory.grow 0 (i32.const 400)) (i32.const -1)) (then (unreachable)))
    (if (i32.eq (memory.grow $b (i32.const 400)) (i32.const -1)) (then (unreachable)))
    (if (i32.eq (memory.grow $c (i32.const 400)) (i32.const -1)) (then (unreachable))))
  (func (export "call") (param i32 i32 i32 i32) (result i32) (call $grow) (i32.const 2048)))

;;; memory_in_instances
;; The same module three times, with 25 MiB each from the start.
(core module $n (memory 400))
(core module $m {{parts}})
(core instance (instantiate $n))
(core instance (instantiate $n))
(core instance (instantiate $n))

;;; memory_in_components
;; A component in the component, three times, with 25 MiB each from the start.
(component $nested
  (core module $n (memory 400))
  (core instance (instantiate $n)))
(core module $m {{parts}})
(instance (instantiate $nested))
(instance (instantiate $nested))
(instance (instantiate $nested))

;;; memory_of_table_and_memory
;; A memory of 63 MiB and tables that are too much beside it.
(core module $m {{parts}}
  (memory (export "memory") 1008)
  (table $a 1 funcref) (table $b 1 funcref) (table $c 1 funcref) (table $d 1 funcref)
  (table $e 1 funcref) (table $f 1 funcref) (table $g 1 funcref) (table $h 1 funcref)
  (func $check (param i32) (if (i32.eq (local.get 0) (i32.const -1)) (then (unreachable))))
  (func (export "call") (param i32 i32 i32 i32) (result i32)
    (call $check (table.grow $a (ref.null func) (i32.const 19000)))
    (call $check (table.grow $b (ref.null func) (i32.const 19000)))
    (call $check (table.grow $c (ref.null func) (i32.const 19000)))
    (call $check (table.grow $d (ref.null func) (i32.const 19000)))
    (call $check (table.grow $e (ref.null func) (i32.const 19000)))
    (call $check (table.grow $f (ref.null func) (i32.const 19000)))
    (call $check (table.grow $g (ref.null func) (i32.const 19000)))
    (call $check (table.grow $h (ref.null func) (i32.const 19000)))
    (i32.const 2048)))

;;; memory_of_the_largest_minimum
(core module $m {{parts}} (memory (export "memory") 65536))

;;; memory_of_64_bits
(core module $n (memory i64 4294967296))
(core module $m {{parts}})
(core instance (instantiate $n))

;;; memories_too_many
(core module $m {{parts}}
  (memory (export "memory") 1)
  (memory 1) (memory 1) (memory 1) (memory 1))

;;; tables_too_many
(core module $m {{parts}}
  (table 1 funcref) (table 1 funcref) (table 1 funcref) (table 1 funcref) (table 1 funcref)
  (table 1 funcref) (table 1 funcref) (table 1 funcref) (table 1 funcref) (table 1 funcref)
  (table 1 funcref) (table 1 funcref) (table 1 funcref) (table 1 funcref) (table 1 funcref)
  (table 1 funcref) (table 1 funcref))

;;; tables_too_large
(core module $m {{parts}} (table 4000000000 funcref))

;;; instances_too_many
(core module $n)
(core module $m {{parts}})
(core instance (instantiate $n)) (core instance (instantiate $n))
(core instance (instantiate $n)) (core instance (instantiate $n))
(core instance (instantiate $n)) (core instance (instantiate $n))
(core instance (instantiate $n)) (core instance (instantiate $n))
(core instance (instantiate $n)) (core instance (instantiate $n))
(core instance (instantiate $n)) (core instance (instantiate $n))
(core instance (instantiate $n)) (core instance (instantiate $n))
(core instance (instantiate $n)) (core instance (instantiate $n))
(core instance (instantiate $n)) (core instance (instantiate $n))
(core instance (instantiate $n)) (core instance (instantiate $n))
(core instance (instantiate $n)) (core instance (instantiate $n))
(core instance (instantiate $n)) (core instance (instantiate $n))
(core instance (instantiate $n)) (core instance (instantiate $n))
(core instance (instantiate $n)) (core instance (instantiate $n))
(core instance (instantiate $n)) (core instance (instantiate $n))
(core instance (instantiate $n)) (core instance (instantiate $n))
