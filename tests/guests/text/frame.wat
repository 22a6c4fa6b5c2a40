;; What every text-format guest is: a component that exports the tools of the contract, made of a
;; core instance `$main` that the guest defines. A guest gives `memory`, `realloc`, `list`, `call`
;; and `post`, or takes the usual ones from `parts.wat`.
(component
  (import "belljar:plugin/types@0.1.0" (instance $types
    (type $hints' (flags "read-only" "destructive" "idempotent" "open-world"))
    (export "hints" (type $hints (eq $hints')))
    (type $tool' (record
      (field "name" string)
      (field "title" (option string))
      (field "description" string)
      (field "input-schema" string)
      (field "output-schema" (option string))
      (field "hints" $hints)))
    (export "tool" (type $tool (eq $tool')))
    (type $blob' (record
      (field "media-type" string) (field "name" (option string)) (field "data" (list u8))))
    (export "blob" (type $blob (eq $blob')))
    (type $link' (record
      (field "uri" string) (field "title" (option string)) (field "media-type" (option string))))
    (export "link" (type $link (eq $link')))
    (type $content' (variant
      (case "text" string) (case "image" $blob) (case "audio" $blob) (case "file" $blob)
      (case "link" $link)))
    (export "content" (type $content (eq $content')))
    (type $output' (record (field "content" (list $content)) (field "structured" (option string))))
    (export "output" (type $output (eq $output')))
    (type $unavailable' (record
      (field "message" string) (field "retry-after-ms" (option u64))))
    (export "unavailable" (type $unavailable (eq $unavailable')))
    (type $failure' (variant
      (case "unknown-tool") (case "invalid-arguments" string) (case "denied" string)
      (case "failed" string) (case "unavailable" $unavailable)))
    (export "failure" (type $failure (eq $failure')))))
  (alias export $types "tool" (type $tool))
  (alias export $types "output" (type $output))
  (alias export $types "failure" (type $failure))

  (import "belljar:plugin/host@0.1.0" (instance $host
    (type $level' (enum "trace" "debug" "info" "warn" "error"))
    (export "level" (type $level (eq $level')))
    (export "log" (func (param "level" $level) (param "message" string)))
    (export "progress" (func
      (param "done" u64) (param "total" (option u64)) (param "message" string)))
    (export "emit" (func (param "text" string)))
    (export "remaining-ms" (func (result u64)))))
  (alias export $host "log" (func $log))
  (alias export $host "emit" (func $emit))
  (alias export $host "remaining-ms" (func $remaining-ms))
  ;; Takes nothing from the guest's memory, so that any core instance may import it.
  (core func $remaining (canon lower (func $remaining-ms)))

  {{guest}}

  (alias core export $main "memory" (core memory $memory))
  (alias core export $main "realloc" (core func $realloc))
  (alias core export $main "list" (core func $list))
  (alias core export $main "call" (core func $call))
  (alias core export $main "post" (core func $post))
  (func $list-tools (result (list $tool))
    (canon lift (core func $list) (memory $memory)))
  (func $call-tool
    (param "name" string) (param "arguments" string) (result (result $output (error $failure)))
    (canon lift (core func $call) (memory $memory) (realloc $realloc) (post-return $post)))
  (instance $tools
    (export "list-tools" (func $list-tools))
    (export "call-tool" (func $call-tool)))
  (export "belljar:plugin/tools@0.1.0" (instance $tools)))
