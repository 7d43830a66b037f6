(package_clause (package_identifier) @name) @package
(function_declaration name: (_) @name) @function
(method_declaration
  receiver: (parameter_list (parameter_declaration type: [
    (type_identifier) @_scope
    (pointer_type (type_identifier) @_scope)
    (generic_type type: (type_identifier) @_scope)
    (pointer_type (generic_type type: (type_identifier) @_scope))
    (parenthesized_type (pointer_type (type_identifier) @_scope))]))
  name: (_) @name) @method
(type_spec name: (_) @name type: (struct_type (field_declaration_list) @_body)) @struct
(type_spec name: (_) @name type: (interface_type)) @interface
(type_spec name: (_) @name) @type
(type_alias name: (_) @name) @type
(source_file (var_declaration (var_spec name: (identifier) @name) @variable))
(source_file (var_declaration (var_spec_list (var_spec name: (identifier) @name) @variable)))
(source_file (const_declaration (const_spec name: (identifier) @name) @constant))
(method_elem name: (_) @name) @method
(field_declaration name: (_) @name) @field
(field_declaration !name type: [(type_identifier) @name (qualified_type name: (_) @name)
  (generic_type type: (type_identifier) @name)]) @field
