(function_declaration name: (_) @name) @function
(assignment_statement
  (variable_list . name: (_) @name)
  (expression_list . value: (function_definition body: (_)? @_body))) @function
(field name: (identifier) @name value: (function_definition)) @method
(chunk (variable_declaration (assignment_statement (variable_list name: (identifier) @name)) @variable))
(chunk (assignment_statement (variable_list name: (_) @name)) @variable)
