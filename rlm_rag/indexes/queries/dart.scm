(_ (method_signature [(function_signature name: (_) @name) (getter_signature name: (_) @name)
  (setter_signature name: (_) @name) (operator_signature "operator" . [(binary_operator) "[]" "[]=" "~"] @name)
  (constructor_signature . name: (_) @name . parameters: (_))
  (constructor_signature . name: (_) . name: (_) @name)
  (factory_constructor_signature (identifier) @name . (formal_parameter_list))]) @method . (function_body) @_body)
(_ [(function_signature name: (_) @name) (getter_signature name: (_) @name) (setter_signature name: (_) @name)] @function
  . (function_body) @_body)
(redirecting_factory_constructor_signature (identifier) @name . (formal_parameter_list)) @method
(class_definition name: (_) @name) @class
(extension_type_declaration name: (_) @name) @class
(mixin_declaration (identifier) @name) @class
(extension_declaration name: (_) @name) @extension
(enum_declaration name: (_) @name) @enum
(enum_constant name: (_) @name) @enumerator
(function_signature name: (_) @name) @function
(getter_signature name: (_) @name) @method
(setter_signature name: (_) @name) @method
(constructor_signature . name: (_) @name . parameters: (_)) @method
(constructor_signature . name: (_) . name: (_) @name) @method
(constant_constructor_signature (identifier) @name . (formal_parameter_list)) @method
(operator_signature "operator" . [(binary_operator) "[]" "[]=" "~"] @name) @method
(factory_constructor_signature (identifier) @name . (formal_parameter_list)) @method
(type_alias . (type_identifier) @name) @type
(initialized_identifier (identifier) @name) @field
(static_final_declaration (identifier) @name) @field
