;; The usual parts of a text-format guest; each stands in for an export that the guest does not
;; give itself. There is one tool `probe`, at 1024, its list at 1088 and the answer `ok` at 2048.

;;; memory
(memory (export "memory") 1)

;;; data
(data (i32.const 512) "probeDoes what its name says it does not do.{\22type\22:\22object\22}ok")
(data (i32.const 1024)
  "\00\02\00\00\05\00\00\00" "\00\00\00\00\00\00\00\00\00\00\00\00"
  "\05\02\00\00\27\00\00\00" "\2c\02\00\00\11\00\00\00"
  "\00\00\00\00\00\00\00\00\00\00\00\00" "\01\00\00\00")
(data (i32.const 1088) "\00\04\00\00\01\00\00\00")
(data (i32.const 2048) "\00\00\00\00\00\00\00\00\40\08\00\00\01\00\00\00\00\00\00\00")
(data (i32.const 2112) "\00\00\00\00\3d\02\00\00\02\00\00\00")

;;; realloc
(global $free (mut i32) (i32.const 8192))
(func (export "realloc") (param i32 i32 i32 i32) (result i32)
  (global.set $free (i32.and (i32.add (global.get $free) (i32.const 15)) (i32.const -16)))
  (global.get $free)
  (global.set $free (i32.add (global.get $free) (local.get 3))))

;;; list
(func (export "list") (result i32) (i32.const 1088))

;;; call
(func (export "call") (param i32 i32 i32 i32) (result i32) (i32.const 2048))

;;; post
(func (export "post") (param i32))
