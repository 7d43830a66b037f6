(class_declaration "struct" name: (_) @name) @struct
(class_declaration "enum" name: (_) @name) @enum
(class_declaration "extension" name: (_) @name) @extension
(class_declaration name: (_) @name) @class
(protocol_declaration name: (_) @name) @protocol
(function_declaration "func" . name: _ @name) @function
(protocol_function_declaration "func" . name: _ @name) @method
(init_declaration name: "init" @name) @method
(deinit_declaration "deinit" @name) @method
(subscript_declaration "subscript" @name) @method
(property_declaration name: (pattern bound_identifier: (_) @name)) @property
(protocol_property_declaration name: (pattern bound_identifier: (_) @name)) @property
(typealias_declaration name: (type_identifier) @name) @type
(associatedtype_declaration name: (_) @name) @type
(enum_entry name: (simple_identifier) @name) @enumerator
(macro_declaration (simple_identifier) @name) @macro
