(function_definition declarator: (function_declarator declarator: (_) @name)) @function
(function_definition declarator: (_ (function_declarator declarator: (_) @name))) @function
(function_definition declarator: (_ (_ (function_declarator declarator: (_) @name)))) @function
(struct_specifier name: (_) @name body: (_)) @struct
(union_specifier name: (_) @name body: (_)) @struct
(enum_specifier name: (_) @name body: (_)) @enum
(enumerator name: (_) @name) @enumerator
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
(field_declaration declarator: (_ (_ (_ (_ (field_identifier) @name))))) @field
(declaration declarator: (function_declarator declarator: (identifier) @name)) @declaration
(declaration declarator: (pointer_declarator (function_declarator declarator: (identifier) @name))) @declaration
(translation_unit (declaration declarator: (identifier) @name) @variable)
(translation_unit (declaration declarator: (_ declarator: (identifier) @name)) @variable)
(translation_unit (declaration declarator: (_ declarator: (_ declarator: (identifier) @name))) @variable)
(translation_unit (declaration declarator: (_ declarator: (_ declarator: (_ declarator: (identifier) @name)))) @variable)
(translation_unit (declaration declarator: (_ declarator: (_ declarator: (_ declarator: (_ declarator: (identifier) @name))))) @variable)
(declaration_list (declaration declarator: (identifier) @name) @variable)
(declaration_list (declaration declarator: (_ declarator: (identifier) @name)) @variable)
(declaration_list (declaration declarator: (_ declarator: (_ declarator: (identifier) @name))) @variable)
(declaration_list (declaration declarator: (_ declarator: (_ declarator: (_ declarator: (identifier) @name)))) @variable)
(declaration_list (declaration declarator: (_ declarator: (_ declarator: (_ declarator: (_ declarator: (identifier) @name))))) @variable)
