(namespace_definition name: (_) @name) @namespace
(class_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @interface
(trait_declaration name: (_) @name) @trait
(enum_declaration name: (_) @name) @enum
(enum_case name: (_) @name) @enumerator
(method_declaration name: (_) @name) @method
(function_definition name: (_) @name) @function
(const_declaration (const_element . (name) @name) @constant)
(property_element name: (variable_name (name) @name)) @property
(property_promotion_parameter name: (variable_name (name) @name)) @field
(assignment_expression left: (variable_name (name) @name)
  right: [(anonymous_function body: (_) @_body) (arrow_function body: (_) @_body)]) @function
(program (expression_statement (assignment_expression left: (variable_name (name) @name)) @variable))
(function_call_expression function: (name) @_f
  arguments: (arguments . (argument [(string) (encapsed_string)] @name)) (#eq? @_f "define")) @constant
