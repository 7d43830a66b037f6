(class_definition name: (_) @name) @class
(mixin_declaration (identifier) @name) @class
(extension_declaration name: (_) @name) @extension
(enum_declaration name: (_) @name) @enum
(enum_constant name: (_) @name) @enumerator
(function_signature name: (_) @name) @function
(getter_signature name: (_) @name) @method
(setter_signature name: (_) @name) @method
(constructor_signature name: (_) @name) @method
(factory_constructor_signature (identifier) @name) @method
(type_alias . (type_identifier) @name) @type
(initialized_identifier (identifier) @name) @field
(static_final_declaration (identifier) @name) @field
