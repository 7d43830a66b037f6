(binary_operator lhs: (_) @name operator: ["<-" "=" "<<-"] rhs: (function_definition body: (_) @_body)) @function
(call function: (identifier) @_f arguments: (arguments . argument: (argument value: (string) @name))
  (#any-of? @_f "setClass" "setGeneric" "setMethod" "setRefClass" "R6Class" "setValidity")) @class
(program (binary_operator lhs: (identifier) @name operator: ["<-" "="]) @variable)
