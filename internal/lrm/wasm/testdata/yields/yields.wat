;; A program that yields: 20,000 times, ten million times if it has an argument, each from up to
;; seven frames deep, and prints a number in which every frame has a part. Before asyncify it is an
;; ordinary command, plain.wasm. Made by
;;
;;   wasm-as yields.wat -o plain.wasm
;;   wasm-opt yields.wat --asyncify --pass-arg=asyncify-imports@mrs.yield -O1 -o yields.wasm
(module
  (import "mrs" "yield" (func $yield))
  (import "wasi_snapshot_preview1" "fd_write"
    (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_sizes_get"
    (func $sizes (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (global $rounds (mut i32) (i32.const 0))

  (func $deep (param $n i32) (result i32) (local $part i32)
    (local.set $part (i32.add (i32.mul (local.get $n) (i32.const 17)) (global.get $rounds)))
    (if (i32.eqz (local.get $n))
      (then (call $yield))
      (else (local.set $part (i32.add (i32.mul (local.get $part) (i32.const 3))
        (call $deep (i32.sub (local.get $n) (i32.const 1)))))))
    (local.get $part))

  (func (export "_start") (local $sum i32) (local $at i32) (local $most i32)
    (drop (call $sizes (i32.const 0) (i32.const 4)))
    (local.set $most (select (i32.const 20000) (i32.const 10000000)
      (i32.eq (i32.load (i32.const 0)) (i32.const 1))))
    (loop $again
      (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31))
        (call $deep (i32.rem_u (global.get $rounds) (i32.const 7)))))
      (global.set $rounds (i32.add (global.get $rounds) (i32.const 1)))
      (br_if $again (i32.lt_u (global.get $rounds) (local.get $most))))
    (local.set $at (i32.const 63)) ;; the digits, from the last one on
    (i32.store8 (i32.const 63) (i32.const 10))
    (loop $digits
      (local.set $at (i32.sub (local.get $at) (i32.const 1)))
      (i32.store8 (local.get $at)
        (i32.add (i32.const 48) (i32.rem_u (local.get $sum) (i32.const 10))))
      (local.set $sum (i32.div_u (local.get $sum) (i32.const 10)))
      (br_if $digits (local.get $sum)))
    (i32.store (i32.const 0) (local.get $at))
    (i32.store (i32.const 4) (i32.sub (i32.const 64) (local.get $at)))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))
)
