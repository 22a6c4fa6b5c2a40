;; What crosses to the host: huge, or not what the contract says.

;;; crossing_aliased_texts
;; 20 000 pieces of content that are all the same 64 KiB.
(core module $m {{parts}}
  (memory (export "memory") 32)
  (func (export "call") (param i32 i32 i32 i32) (result i32)
    (local $at i32)
    (local.set $at (i32.const 1048576))
    (loop
      (i32.store (local.get $at) (i32.const 0))
      (i32.store offset=4 (local.get $at) (i32.const 65536))
      (i32.store offset=8 (local.get $at) (i32.const 65536))
      (br_if 0 (i32.lt_u
        (local.tee $at (i32.add (local.get $at) (i32.const 36)))
        (i32.const 1768576))))
    (i32.store (i32.const 2056) (i32.const 1048576))
    (i32.store (i32.const 2060) (i32.const 20000))
    (i32.const 2048)))

;;; crossing_aliased_tools
;; 20 000 tools that are all the same one.
(core module $m {{parts}}
  (memory (export "memory") 32)
  (func (export "list") (result i32)
    (local $at i32)
    (local.set $at (i32.const 65536))
    (loop
      (memory.copy (local.get $at) (i32.const 1024) (i32.const 52))
      (br_if 0 (i32.lt_u
        (local.tee $at (i32.add (local.get $at) (i32.const 52)))
        (i32.const 1105536))))
    (i32.store (i32.const 1088) (i32.const 65536))
    (i32.store (i32.const 1092) (i32.const 20000))
    (i32.const 1088)))

;;; crossing_beyond_memory
;; A text of 4 GiB in a memory of 64 KiB.
(core module $m {{parts}}
  (func (export "call") (param i32 i32 i32 i32) (result i32)
    (i32.store (i32.const 2116) (i32.const 64))
    (i32.store (i32.const 2120) (i32.const -1))
    (i32.const 2048)))

;;; crossing_list_beyond_memory
(core module $m {{parts}}
  (func (export "call") (param i32 i32 i32 i32) (result i32)
    (i32.store (i32.const 2060) (i32.const 0x7fffffff))
    (i32.const 2048)))

;;; crossing_result_beyond_memory
(core module $m {{parts}}
  (func (export "call") (param i32 i32 i32 i32) (result i32) (i32.const 65528)))

;;; crossing_result_not_aligned
(core module $m {{parts}}
  (func (export "call") (param i32 i32 i32 i32) (result i32) (i32.const 2049)))

;;; crossing_case_that_is_none
(core module $m {{parts}}
  (func (export "call") (param i32 i32 i32 i32) (result i32)
    (i32.store8 (i32.const 2112) (i32.const 200))
    (i32.const 2048)))

;;; crossing_text_that_is_none
;; Not UTF-8.
(core module $m {{parts}}
  (func (export "call") (param i32 i32 i32 i32) (result i32)
    (i32.store8 (i32.const 573) (i32.const 255))
    (i32.const 2048)))

;;; crossing_realloc_beyond_memory
(core module $m {{parts}}
  (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const -16)))

;;; crossing_realloc_to_the_host
;; Gives the place of its own answer to the arguments, and answers with what then stands there.
(core module $m {{parts}}
  (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 2112)))

;;; crossing_log_beyond_memory
(core module $l
  (memory (export "text") 1))
(core instance $log-memory (instantiate $l))
(alias core export $log-memory "text" (core memory $text))
(core func $log-text (canon lower (func $log) (memory $text)))
(core module $m
  (import "host" "log" (func $log (param i32 i32 i32)))
  {{parts}}
  (func (export "call") (param i32 i32 i32 i32) (result i32)
    (call $log (i32.const 4) (i32.const 1) (i32.const -2))
    (i32.const 2048)))
(core instance $host-functions (export "log" (func $log-text)))
(core instance $main (instantiate $m (with "host" (instance $host-functions))))

;;; crossing_log_without_end
;; The same 4 MiB to the log, again and again.
(core module $l
  (memory (export "text") 65))
(core instance $log-memory (instantiate $l))
(alias core export $log-memory "text" (core memory $text))
(core func $log-text (canon lower (func $log) (memory $text)))
(core module $m
  (import "host" "log" (func $log (param i32 i32 i32)))
  {{parts}}
  (func (export "call") (param i32 i32 i32 i32) (result i32)
    (loop (call $log (i32.const 4) (i32.const 0) (i32.const 4194304)) (br 0))
    (unreachable)))
(core instance $host-functions (export "log" (func $log-text)))
(core instance $main (instantiate $m (with "host" (instance $host-functions))))

;;; crossing_emit_without_end
(core module $l
  (memory (export "text") 65))
(core instance $text-memory (instantiate $l))
(alias core export $text-memory "text" (core memory $text))
(core func $emit-text (canon lower (func $emit) (memory $text)))
(core module $m
  (import "host" "emit" (func $emit (param i32 i32)))
  {{parts}}
  (func (export "call") (param i32 i32 i32 i32) (result i32)
    (loop (call $emit (i32.const 0) (i32.const 4194304)) (br 0))
    (unreachable)))
(core instance $host-functions (export "emit" (func $emit-text)))
(core instance $main (instantiate $m (with "host" (instance $host-functions))))
