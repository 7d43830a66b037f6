(function_definition declarator: (function_declarator declarator: (_) @name)) @function
(function_definition declarator: (_ (function_declarator declarator: (_) @name))) @function
(function_definition declarator: (_ (_ (function_declarator declarator: (_) @name)))) @function
(function_definition declarator: (operator_cast) @name) @function
(function_definition declarator: (qualified_identifier scope: (_) @_scope name: (operator_cast) @name)) @function
(declaration declarator: (operator_cast) @name) @declaration
(field_declaration declarator: (operator_cast) @name) @declaration
(field_declaration declarator: (function_declarator declarator: [(field_identifier) (identifier)] @name)) @declaration
(field_declaration declarator: (_ (function_declarator declarator: [(field_identifier) (identifier)] @name))) @declaration
(field_declaration declarator: (function_declarator declarator: (operator_name) @name)) @declaration
(field_declaration declarator: (_ (function_declarator declarator: (operator_name) @name))) @declaration
(declaration declarator: (function_declarator declarator: [(identifier) (destructor_name) (operator_name)] @name)) @declaration
(declaration declarator: (_ (function_declarator declarator: [(identifier) (operator_name)] @name))) @declaration
(namespace_definition name: (_) @name) @namespace
(namespace_alias_definition name: (_) @name) @namespace
(class_specifier name: (template_type name: (_) @name) body: (_)) @class
(class_specifier name: (qualified_identifier name: (template_type name: (_) @name)) body: (_)) @class
(class_specifier name: (_) @name body: (_)) @class
(struct_specifier name: (template_type name: (_) @name) body: (_)) @struct
(struct_specifier name: (qualified_identifier name: (template_type name: (_) @name)) body: (_)) @struct
(struct_specifier name: (_) @name body: (_)) @struct
(union_specifier name: (_) @name body: (_)) @struct
(enum_specifier name: (_) @name body: (_)) @enum
(enumerator name: (_) @name) @enumerator
(concept_definition name: (_) @name) @type
(alias_declaration name: (_) @name) @type
(type_definition type: (_ body: (_) @_body) declarator: (type_identifier) @name) @type
(type_definition declarator: [(type_identifier) (primitive_type)] @name) @type
(type_definition declarator: (_ [(type_identifier) (primitive_type)] @name)) @type
(type_definition declarator: (_ (_ (type_identifier) @name))) @type
(type_definition declarator: (_ (_ (_ (type_identifier) @name)))) @type
(preproc_def name: (_) @name) @macro
(preproc_function_def name: (_) @name) @macro
(field_declaration declarator: (field_identifier) @name) @field
(field_declaration declarator: (_ (field_identifier) @name)) @field
(field_declaration declarator: (_ (_ (field_identifier) @name))) @field
(field_declaration declarator: (_ (_ (_ (field_identifier) @name)))) @field
(translation_unit (declaration declarator: [(identifier) (qualified_identifier)] @name) @variable)
(translation_unit (declaration declarator: (_ declarator: [(identifier) (qualified_identifier)] @name)) @variable)
(translation_unit (declaration declarator: (_ declarator: (_ declarator: [(identifier) (qualified_identifier)] @name))) @variable)
(translation_unit (declaration declarator: (_ declarator: (_ declarator: (_ declarator: [(identifier) (qualified_identifier)] @name)))) @variable)
(translation_unit (declaration declarator: (_ declarator: (_ declarator: (_ declarator: (_ declarator: [(identifier) (qualified_identifier)] @name))))) @variable)
(declaration_list (declaration declarator: [(identifier) (qualified_identifier)] @name) @variable)
(declaration_list (declaration declarator: (_ declarator: [(identifier) (qualified_identifier)] @name)) @variable)
(declaration_list (declaration declarator: (_ declarator: (_ declarator: [(identifier) (qualified_identifier)] @name))) @variable)
(declaration_list (declaration declarator: (_ declarator: (_ declarator: (_ declarator: [(identifier) (qualified_identifier)] @name)))) @variable)
(declaration_list (declaration declarator: (_ declarator: (_ declarator: (_ declarator: (_ declarator: [(identifier) (qualified_identifier)] @name))))) @variable)
