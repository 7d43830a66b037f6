(package_statement name: (_) @name) @package
(subroutine_declaration_statement name: (_) @name) @function
(method_declaration_statement name: (_) @name) @function
(class_statement name: (_) @name) @class
(use_statement module: (package) @_p (list_expression . (autoquoted_bareword) @name) (#eq? @_p "constant")) @constant
(use_statement module: (package) @_p
  (anonymous_hash_expression (list_expression (autoquoted_bareword) @name)) (#eq? @_p "constant")) @constant
