(class_definition name: (_) @name) @class
(function_definition name: (_) @name) @function
(type_alias_statement left: (type [(identifier) @name (generic_type . (identifier) @name)])) @type
((assignment left: (identifier) @name) @constant (#match? @name "^_*[A-Z][A-Z0-9_]*$"))
(module (expression_statement (assignment left: (identifier) @name) @variable))
(module (_ (block (expression_statement (assignment left: (identifier) @name) @variable))))
(class_definition body: (block (expression_statement (assignment left: (identifier) @name) @variable)))
(class_definition body: (block (_ (block (expression_statement (assignment left: (identifier) @name) @variable)))))
(module (expression_statement (assignment left: (pattern_list (identifier) @name)) @variable))
(class_definition body: (block (expression_statement (assignment left: (pattern_list (identifier) @name)) @variable)))
(module (expression_statement (assignment right: (assignment left: (identifier) @name)) @variable))
