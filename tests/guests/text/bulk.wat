;; Much work in one instruction, again and again.

;;; bulk_fill
(core module $m {{parts}}
  (memory (export "memory") 960)
  (func (export "call") (param i32 i32 i32 i32) (result i32)
    (loop (memory.fill (i32.const 4096) (i32.const 7) (i32.const 62000000)) (br 0))
    (unreachable)))

;;; bulk_copy
(core module $m {{parts}}
  (memory (export "memory") 960)
  (func (export "call") (param i32 i32 i32 i32) (result i32)
    (loop (memory.copy (i32.const 4096) (i32.const 4097) (i32.const 62000000)) (br 0))
    (unreachable)))

;;; bulk_init
(core module $m {{parts}}
  (data $passive "0123456789abcdef")
  (func (export "call") (param i32 i32 i32 i32) (result i32)
    (loop (memory.init $passive (i32.const 4096) (i32.const 0) (i32.const 16)) (br 0))
    (unreachable)))

;;; bulk_table_fill
(core module $m {{parts}}
  (table $t 20000 funcref)
  (func (export "call") (param i32 i32 i32 i32) (result i32)
    (loop (table.fill $t (i32.const 0) (ref.null func) (i32.const 20000)) (br 0))
    (unreachable)))

;;; bulk_table_copy
(core module $m {{parts}}
  (table $t 20000 funcref)
  (table $u 20000 funcref)
  (func (export "call") (param i32 i32 i32 i32) (result i32)
    (loop (table.copy $t $u (i32.const 0) (i32.const 0) (i32.const 20000)) (br 0))
    (unreachable)))
