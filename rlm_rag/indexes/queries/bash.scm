(function_definition name: (_) @name) @function
(command name: (command_name) @_c argument: (concatenation . (word) @name) (#eq? @_c "alias")) @alias
(program (variable_assignment name: (variable_name) @name) @variable)
(program (declaration_command (variable_assignment name: (variable_name) @name) @variable))
