(call target: (identifier) @_d (arguments . (_) @name)
  (#any-of? @_d "defmodule" "defimpl")) @module
(call target: (identifier) @_d (arguments . (_) @name) (#eq? @_d "defprotocol")) @protocol
(call target: (identifier) @_d
  (arguments . [
    (call target: (_) @name)
    (identifier) @name
    (binary_operator left: [(call target: (_) @name) (identifier) @name])
    (binary_operator left: (binary_operator left: (call target: (_) @name)))])
  (#any-of? @_d "def" "defp" "defdelegate" "defn" "defnp" "defcallback")) @function
(call target: (identifier) @_d
  (arguments . [
    (call target: (_) @name)
    (identifier) @name
    (binary_operator left: [(call target: (_) @name) (identifier) @name])])
  (#any-of? @_d "defmacro" "defmacrop" "defguard" "defguardp")) @macro
(call target: (identifier) @_d (arguments . (string) @name) (#any-of? @_d "test" "describe")) @test
(unary_operator operand: (call target: (identifier) @_a
  (arguments (binary_operator left: [(call target: (_) @name) (identifier) @name])))
  (#any-of? @_a "type" "typep" "opaque" "callback" "macrocallback")) @type
(call target: (identifier) @_d (arguments . (list (atom) @name @field)) (#eq? @_d "defstruct"))
(call target: (identifier) @_d (arguments . (list (keywords (pair key: (keyword) @name) @field)))
  (#eq? @_d "defstruct"))
(call target: (identifier) @_d (arguments . (keywords (pair key: (keyword) @name) @field))
  (#eq? @_d "defstruct"))
