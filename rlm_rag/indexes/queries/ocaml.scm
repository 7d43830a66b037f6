(module_binding (module_name) @name) @module
(module_type_definition (module_type_name) @name) @interface
(compilation_unit (value_definition (let_binding pattern: [(value_name) (parenthesized_operator)] @name) @value))
(structure (value_definition (let_binding pattern: [(value_name) (parenthesized_operator)] @name) @value))
(value_specification (value_name) @name) @value
(external (value_name) @name) @value
(type_binding name: (_) @name) @type
(class_binding (class_name) @name) @class
(class_type_binding (class_type_name) @name) @class
(method_definition (method_name) @name) @method
(exception_definition (constructor_declaration (constructor_name) @name)) @exception
(constructor_declaration (constructor_name) @name) @enumerator
(field_declaration (field_name) @name) @field
