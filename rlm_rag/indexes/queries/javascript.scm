(class_declaration name: (_) @name) @class
(function_declaration name: (_) @name) @function
(generator_function_declaration name: (_) @name) @function
(method_definition name: (_) @name body: (_) @_body) @method
(variable_declarator
  name: (identifier) @name
  value: [
    (arrow_function body: (_) @_body)
    (function_expression body: (_) @_body)
    (generator_function body: (_) @_body)]) @function
(variable_declarator name: (identifier) @name value: (class body: (_) @_body)) @class
(assignment_expression
  left: [(member_expression) @name (identifier) @name]
  right: [
    (arrow_function body: (_) @_body)
    (function_expression body: (_) @_body)
    (generator_function body: (_) @_body)]) @function
(assignment_expression left: [(member_expression) @name (identifier) @name]
  right: (class body: (_) @_body)) @class
(pair key: [(property_identifier) (string)] @name
  value: [(arrow_function body: (_) @_body) (function_expression body: (_) @_body)]) @method
(field_definition property: (_) @name value: (arrow_function body: (_) @_body)) @method
(field_definition property: (_) @name) @field
(program (lexical_declaration (variable_declarator name: (identifier) @name) @variable))
(program (variable_declaration (variable_declarator name: (identifier) @name) @variable))
(program (export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @variable)))
(program (export_statement (variable_declaration (variable_declarator name: (identifier) @name) @variable)))
(program (_ (variable_declarator name: (object_pattern [
  (shorthand_property_identifier_pattern) @name
  (pair_pattern value: (identifier) @name)])) @variable))
(program (_ (variable_declarator name: (array_pattern (identifier) @name)) @variable))
