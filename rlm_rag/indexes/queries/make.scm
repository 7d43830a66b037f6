(rule (targets (_) @name)) @target
(variable_assignment name: (_) @name) @variable
(define_directive name: (_) @name) @macro
