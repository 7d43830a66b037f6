(package_header (qualified_identifier) @name) @package
(class_declaration "interface" name: (_) @name) @interface
(class_declaration (modifiers (class_modifier) @_m) name: (_) @name (#eq? @_m "enum")) @enum
(class_declaration name: (_) @name) @class
(object_declaration name: (_) @name) @object
(companion_object "companion" @name !name) @object
(companion_object name: (_) @name) @object
(function_declaration name: (_) @name) @function
(secondary_constructor "constructor" @name) @method
(property_declaration (variable_declaration (identifier) @name)) @property
(source_file (property_declaration (multi_variable_declaration (variable_declaration (identifier) @name))) @property)
(class_parameter ["val" "var"] (identifier) @name) @property
(enum_entry (identifier) @name) @enumerator
(type_alias type: (identifier) @name) @type
(infix_expression . (identifier) @_a . (identifier) @_c . (identifier) @name
  (#eq? @_a "annotation") (#eq? @_c "class")) @class
