(module_binding (module_name) @name) @module
(module_type_definition (module_type_name) @name) @interface
(value_specification (value_name) @name) @value
(external (value_name) @name) @value
(type_binding name: (_) @name) @type
(class_type_binding (class_type_name) @name) @class
(exception_definition (constructor_declaration (constructor_name) @name)) @exception
(constructor_declaration (constructor_name) @name) @enumerator
(field_declaration (field_name) @name) @field
