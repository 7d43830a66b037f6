(module_attribute name: (_) @name) @module
(record_decl name: (_) @name) @struct
(pp_define lhs: (macro_lhs name: (_) @name)) @macro
(type_alias name: (type_name name: (_) @name)) @type
(opaque name: (type_name name: (_) @name)) @type
(fun_decl clause: (function_clause name: (_) @name args: (_) @_parameters)) @function
(callback fun: (_) @name) @method
