(header module: (_) @name) @module
(data_type name: (_) @name) @type
(newtype name: (_) @name) @type
(type_synomym name: (_) @name) @type
(type_family name: (_) @name) @type
(data_family name: (_) @name) @type
(class name: (_) @name) @class
(instance name: (_) @name) @instance
(declarations (function name: (_) @name) @function)
(declarations (function (infix operator: (_) @name)) @function)
(declarations (function (function_head_parens (infix operator: (_) @name))) @function)
(declarations (bind name: (_) @name) @function)
(declarations (foreign_import (signature name: (_) @name)) @function)
(class_declarations (signature name: (_) @name) @method)
(data_constructor (prefix name: (_) @name)) @enumerator
(data_constructor (record name: (_) @name)) @enumerator
(newtype_constructor name: (_) @name) @enumerator
(gadt_constructor name: (_) @name) @enumerator
(field name: (field_name (variable) @name)) @field
