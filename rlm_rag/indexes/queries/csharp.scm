(namespace_declaration name: (_) @name) @namespace
(file_scoped_namespace_declaration name: (_) @name) @namespace
(class_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @interface
(struct_declaration name: (_) @name) @struct
(enum_declaration name: (_) @name) @enum
(record_declaration name: (_) @name) @record
(delegate_declaration name: (_) @name) @type
(method_declaration name: (_) @name) @method
(constructor_declaration name: (_) @name) @method
(destructor_declaration name: (_) @name) @method
(local_function_statement name: (_) @name) @function
(operator_declaration "operator" @name) @method
(conversion_operator_declaration "operator" @name) @method
(indexer_declaration "this" @name) @property
(property_declaration name: (_) @name) @property
((field_declaration (modifier) @_m (variable_declaration (variable_declarator name: (_) @name))) @constant
  (#eq? @_m "const"))
(field_declaration (variable_declaration (variable_declarator name: (_) @name))) @field
(event_field_declaration (variable_declaration (variable_declarator name: (_) @name))) @field
(event_declaration name: (_) @name) @property
(enum_member_declaration name: (_) @name) @enumerator
