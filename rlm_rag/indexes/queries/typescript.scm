(class_declaration name: (_) @name) @class
(abstract_class_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @interface
(type_alias_declaration name: (_) @name) @type
(enum_declaration name: (_) @name) @enum
(enum_body name: (property_identifier) @enumerator @name)
(enum_assignment name: (_) @name) @enumerator
(internal_module name: (_) @name) @namespace
(module name: (_) @name) @namespace
(function_declaration name: (_) @name) @function
(generator_function_declaration name: (_) @name) @function
(function_signature name: (_) @name) @function
(method_definition name: (_) @name) @method
(method_signature name: (_) @name) @method
(abstract_method_signature name: (_) @name) @method
(public_field_definition name: (_) @name value: [
  (arrow_function body: (_) @_body)
  (function_expression body: (_) @_body)]) @method
(public_field_definition name: (_) @name) @field
(property_signature name: (_) @name) @field
(required_parameter (accessibility_modifier) pattern: (identifier) @name) @field
(optional_parameter (accessibility_modifier) pattern: (identifier) @name) @field
(variable_declarator
  name: (identifier) @name
  value: [
    (arrow_function body: (_) @_body)
    (function_expression body: (_) @_body)
    (generator_function body: (_) @_body)]) @function
(variable_declarator name: (identifier) @name value: (class body: (_) @_body)) @class
(assignment_expression
  left: (member_expression) @name
  right: [(arrow_function body: (_) @_body) (function_expression body: (_) @_body)]) @function
(pair key: [(property_identifier) (string)] @name
  value: [(arrow_function body: (_) @_body) (function_expression body: (_) @_body)]) @method
(program (lexical_declaration (variable_declarator name: (identifier) @name) @variable))
(program (variable_declaration (variable_declarator name: (identifier) @name) @variable))
(export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @variable))
(export_statement (variable_declaration (variable_declarator name: (identifier) @name) @variable))
(internal_module body: (statement_block (lexical_declaration (variable_declarator name: (identifier) @name) @variable)))
(ambient_declaration (lexical_declaration (variable_declarator name: (identifier) @name) @variable))
(ambient_declaration (variable_declaration (variable_declarator name: (identifier) @name) @variable))
(program (_ (variable_declarator name: (object_pattern [
  (shorthand_property_identifier_pattern) @name
  (pair_pattern value: (identifier) @name)])) @variable))
(program (_ (variable_declarator name: (array_pattern (identifier) @name)) @variable))
